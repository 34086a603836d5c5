"""A fixture for tests that run programs: a fake runtime."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import rtlang as rt
from rtlang.compiler import pipeline
from tests.support.programs.fake_target import FakeTarget


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTarget]:
    """A fake runtime that is also the default one.

    Its texts depend on the names of generations, so that generations with different names are not equal and must not be merged.
    """
    monkeypatch.setattr(pipeline, "_ALL", pipeline._ALL - {"merge"})
    with FakeTarget() as fake:
        rt.set_default_runtime(fake)
        yield fake
        rt.set_default_runtime(None)
