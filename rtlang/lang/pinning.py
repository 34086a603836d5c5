"""Keeps prompts in the prefix cache of a runtime."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.contract.generation import Prompt
from rtlang.contract.target import Target
from rtlang.lang.execution.run import resolve_runtime


def pin(
    prompt: Prompt | None = None,
    *,
    token_ids: Iterable[int] | None = None,
    ttl_s: float | None = None,
    runtime: Target | None = None,
) -> Any:
    """Compute a prompt and keep its pages from eviction, on a runtime in this process or the default one; see `CacheView.pin`.

    Returns:
        The `Pinned` prompt, which says what was granted and can be released.
    Raises:
        TraceError: there is no runtime. ParameterError: it has no cache in this process, or as `CacheView.pin`.
    """
    target = resolve_runtime(runtime)
    cache = getattr(target, "cache", None)
    if cache is None:
        raise ParameterError("runtime", target, "expected an rt.Runtime(...), whose cache is in this process")
    return cache.pin(prompt, token_ids=token_ids, ttl_s=ttl_s)
