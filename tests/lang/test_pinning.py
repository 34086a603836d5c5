"""`rt.pin` hands prompts to the cache of a runtime. (What a cache grants: tests/runtime/test_cache_view.py.)"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import rtlang as rt
from rtlang.testing import ScriptedRuntime


def test_a_prompt_is_pinned_on_the_runtime_that_is_given() -> None:
    asked: list[tuple[Any, ...]] = []

    def pin(prompt: Any, **options: Any) -> str:
        asked.append((prompt, options))
        return "pinned"

    runtime: Any = SimpleNamespace(submit=print, cache=SimpleNamespace(pin=pin))
    assert rt.pin("text", ttl_s=3, runtime=runtime) == "pinned"
    assert asked == [("text", {"token_ids": None, "ttl_s": 3})]


def test_a_runtime_without_a_cache_is_named() -> None:
    with ScriptedRuntime({}) as runtime, pytest.raises(rt.ParameterError, match="have a prefix cache"):
        rt.pin("text", runtime=runtime)
