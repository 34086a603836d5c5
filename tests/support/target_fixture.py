"""A fixture for tests that run programs: a fake runtime."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import rtlang as rt
from tests.support.fake_target import FakeTarget


@pytest.fixture
def target() -> Iterator[FakeTarget]:
    """A fake runtime that is also the default one."""
    with FakeTarget() as fake:
        rt.set_default_runtime(fake)
        yield fake
        rt.set_default_runtime(None)
