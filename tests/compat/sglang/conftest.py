"""A backend with the model of the package, shared by all tests."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

import rtlang.compat.sglang as sgl
from rtlang.testing import ScriptedRuntime


@pytest.fixture(scope="module")
def tiny() -> Iterator[sgl.Runtime]:
    with sgl.Runtime(model_path="rtlang:tiny", dtype="float32", speculation="off") as runtime:
        yield runtime


@pytest.fixture
def backend(tiny: sgl.Runtime) -> Iterator[sgl.Runtime]:
    """The model of the package as the default backend."""
    sgl.set_default_backend(tiny)
    yield tiny
    sgl.set_default_backend(None)


@pytest.fixture(autouse=True)
def log_level_stays() -> Iterator[None]:
    """Undo `log_level` of runtimes, which is that of the process."""
    logger = logging.getLogger("rtlang")
    level = logger.level
    yield
    logger.setLevel(level)


@pytest.fixture(autouse=True)
def scripted_runtimes_end(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """End the runtimes that a test makes without a `with` block, each of which has a thread."""
    made: list[ScriptedRuntime] = []
    begin = ScriptedRuntime.__init__

    def noted(self: ScriptedRuntime, *args: Any, **options: Any) -> None:
        begin(self, *args, **options)
        made.append(self)

    monkeypatch.setattr(ScriptedRuntime, "__init__", noted)
    yield
    for runtime in made:
        runtime.close()
