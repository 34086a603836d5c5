"""Fixtures of the language's tests: a fake runtime, and an end for anything that would hang."""

from __future__ import annotations

import faulthandler
from collections.abc import Iterator

import pytest

import rtlang as rt
from tests.support.fake_target import FakeTarget


@pytest.fixture(autouse=True)
def _no_test_hangs() -> Iterator[None]:
    faulthandler.dump_traceback_later(120, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture
def target() -> Iterator[FakeTarget]:
    """A fake runtime that is also the default one."""
    with FakeTarget() as fake:
        rt.set_default_runtime(fake)
        yield fake
        rt.set_default_runtime(None)
