"""What is set for the whole process holds while someone serves, and is put back."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator

import pytest

from rtlang_grammars import process


def settings() -> tuple[float, tuple[int, int, int]]:
    return sys.getswitchinterval(), gc.get_threshold()


@pytest.fixture(autouse=True)
def plain_settings() -> Iterator[None]:
    before = settings()
    sys.setswitchinterval(0.005)
    gc.set_threshold(700, 10, 10)
    yield
    sys.setswitchinterval(before[0])
    gc.set_threshold(*before[1])


class Node:
    """May point at itself."""

    def __init__(self) -> None:
        self.me = self


def test_the_last_to_end_puts_back_what_the_first_found() -> None:
    before = settings()
    process.begin()
    during = settings()
    assert during[0] == pytest.approx(process.SWITCH_INTERVAL_S)
    assert during[1] == (700, process.MIDDLE_AFTER, process.FULL_AFTER)
    process.begin()
    process.end()
    assert settings() == during
    assert gc.get_freeze_count() > 0
    process.end()
    assert settings() == before
    assert gc.get_freeze_count() == 0


def test_what_is_finer_already_stays() -> None:
    sys.setswitchinterval(0.0001)
    gc.set_threshold(700, 2, 10_000)
    before = settings()
    process.begin()
    assert settings() == before
    process.end()
    assert settings() == before


def test_what_others_set_meanwhile_stays() -> None:
    process.begin()
    sys.setswitchinterval(0.002)
    gc.set_threshold(500, 5, 5)
    meanwhile = settings()
    process.end()
    assert settings() == meanwhile


def test_old_garbage_goes_when_nobody_waits_and_enough_has_come() -> None:
    process.begin()
    try:
        node = weakref.ref(Node())
        gc.collect(1)  # now it is old
        old = Node()
        gc.collect(1)
        found = weakref.ref(old)
        del old
        process.tidy()
        assert found() is not None
        for _ in range(process.TIDY_AFTER):
            gc.collect(1)
        assert found() is not None
        process.tidy()
        assert found() is None
        assert node() is None
    finally:
        process.end()


def test_garbage_of_what_was_loaded_is_found_in_the_end() -> None:
    node = Node()
    found = weakref.ref(node)
    process.begin()
    del node
    gc.collect()
    assert found() is not None
    process.end()
    gc.collect()
    assert found() is None


def test_without_serving_nothing_is_tidied() -> None:
    gc.collect()
    node = Node()
    gc.collect(1)
    found = weakref.ref(node)
    del node
    for _ in range(process.TIDY_AFTER):
        gc.collect(1)
    process.tidy()
    assert found() is not None
