"""What is set for the whole process holds while someone serves, and is put back."""

from __future__ import annotations

import gc
import os
import sys
import weakref
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from rtlang.runtime.process import process_settings
from rtlang.runtime.process.process_settings import TIDY_AFTER


def settings() -> tuple[float, tuple[int, int, int]]:
    return sys.getswitchinterval(), gc.get_threshold()


@pytest.fixture(autouse=True)
def plain_settings() -> Iterator[None]:
    gc.unfreeze()  # what `conftest.py` has set aside
    before = settings()
    sys.setswitchinterval(0.005)
    gc.set_threshold(700, 10, 10)
    process_settings._next_tidy = 0.0
    yield
    sys.setswitchinterval(before[0])
    gc.set_threshold(*before[1])


class Node:
    """May point at itself."""

    def __init__(self) -> None:
        self.me = self


def test_the_last_to_end_puts_back_what_the_first_found() -> None:
    before = settings()
    process_settings.begin()
    during = settings()
    assert during[0] == pytest.approx(process_settings.SWITCH_INTERVAL_S)
    assert during[1] == (700, process_settings.MIDDLE_AFTER, process_settings.FULL_AFTER)
    process_settings.begin()
    process_settings.end()
    assert settings() == during
    assert gc.get_freeze_count() > 0
    process_settings.end()
    assert settings() == before
    assert gc.get_freeze_count() == 0


def test_what_is_finer_already_stays() -> None:
    sys.setswitchinterval(0.0001)
    gc.set_threshold(700, 2, 10_000)
    before = settings()
    process_settings.begin()
    assert settings() == before
    process_settings.end()
    assert settings() == before


def test_what_others_set_meanwhile_stays() -> None:
    process_settings.begin()
    sys.setswitchinterval(0.002)
    gc.set_threshold(500, 5, 5)
    meanwhile = settings()
    process_settings.end()
    assert settings() == meanwhile


def test_old_garbage_goes_when_nobody_waits_and_enough_has_come() -> None:
    process_settings.begin()
    try:
        node = weakref.ref(Node())
        gc.collect(1)  # now it is old
        old = Node()
        gc.collect(1)
        found = weakref.ref(old)
        del old
        process_settings.tidy()
        assert found() is not None
        for _ in range(TIDY_AFTER):
            gc.collect(1)
        assert found() is not None
        process_settings.tidy()
        assert found() is None
        assert node() is None
    finally:
        process_settings.end()


def test_garbage_of_what_was_loaded_is_found_in_the_end() -> None:
    node = Node()
    found = weakref.ref(node)
    process_settings.begin()
    del node
    gc.collect()
    assert found() is not None
    process_settings.end()
    gc.collect()
    assert found() is None


def test_without_serving_nothing_is_tidied() -> None:
    gc.collect()
    node = Node()
    gc.collect(1)
    found = weakref.ref(node)
    del node
    for _ in range(TIDY_AFTER):
        gc.collect(1)
    process_settings.tidy()
    assert found() is not None


@pytest.fixture
def without_collecting() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_where_collecting_is_turned_off_nothing_is_collected_or_set_aside(
    without_collecting: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, node = settings(), Node()
    found = weakref.ref(node)
    del node
    monkeypatch.setattr(process_settings, "TIDY_AFTER", 0)
    process_settings.begin()
    process_settings.tidy()
    assert gc.get_freeze_count() == 0
    process_settings.end()
    assert settings() == before
    assert not gc.isenabled()
    assert found() is not None


def test_nothing_is_collected_while_something_is_loaded() -> None:
    with process_settings.loading():
        with process_settings.loading():
            assert not gc.isenabled()
        assert not gc.isenabled()
        process_settings.begin()  # one has loaded while another does
        assert gc.get_freeze_count() > 0
    assert gc.isenabled()
    process_settings.end()
    assert gc.get_freeze_count() == 0


def test_collecting_stays_off_where_it_was_before_something_was_loaded(without_collecting: None) -> None:
    with process_settings.loading():
        process_settings.begin()
        assert gc.get_freeze_count() == 0
    process_settings.end()
    assert not gc.isenabled()


def test_what_others_have_set_aside_stays_so() -> None:
    gc.collect()
    gc.freeze()
    try:
        count = gc.get_freeze_count()
        process_settings.begin()
        process_settings.begin()
        process_settings.end()
        assert 0 < gc.get_freeze_count() <= count
        process_settings.end()
        assert 0 < gc.get_freeze_count() <= count
    finally:
        gc.unfreeze()


def test_an_interrupted_beginning_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    before = settings()

    def interrupt() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(process_settings.gc, "collect", interrupt)
        with pytest.raises(KeyboardInterrupt):
            process_settings.begin()
    assert settings() == before
    assert gc.get_freeze_count() == 0
    process_settings.begin()
    process_settings.end()
    assert settings() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("is_held", [False, True])
def test_a_fork_begins_with_what_was_there_before(is_held: bool) -> None:
    before = settings()
    process_settings.begin()
    ours, theirs = os.pipe()
    loads = process_settings.loading()
    loads.__enter__()
    if is_held:
        process_settings._lock.acquire()  # by a thread that does not come along
    child = os.fork()
    if not child:
        was_put_back = settings() == before and gc.get_freeze_count() == 0
        process_settings.begin()
        is_set = settings() != before
        process_settings.end()
        os.write(theirs, bytes([was_put_back, is_set, settings() == before, gc.isenabled()]))
        os._exit(0)
    if is_held:
        process_settings._lock.release()
    loads.__exit__(None, None, None)
    os.close(theirs)
    with os.fdopen(ours, "rb") as pipe:
        assert pipe.read() == bytes([1, 1, 1, 1])
    os.waitpid(child, 0)
    assert settings() != before
    process_settings.end()
    assert settings() == before


def test_a_long_collection_at_an_idle_moment_has_a_long_rest_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now, collections = 1_000.0, list[float]()

    def collect() -> int:
        nonlocal now
        collections.append(now)
        now += 0.5
        return 0

    monkeypatch.setattr(process_settings, "_num_users", 1)
    monkeypatch.setattr(process_settings, "_next_tidy", 0.0)
    fake_gc = SimpleNamespace(isenabled=lambda: True, get_count=lambda: (0, 0, TIDY_AFTER), collect=collect)
    monkeypatch.setattr(process_settings, "gc", fake_gc)
    monkeypatch.setattr(process_settings, "time", SimpleNamespace(monotonic=lambda: now))
    for _ in range(300):
        process_settings.tidy()
        now += 1.0
    assert collections == [1_000.0, 1_100.5, 1_201.0]
