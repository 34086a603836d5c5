"""Pure functions that another thread may end; `test_current_work.py` ends them at random moments."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from rtlang.contract.process.stoppable_work import StoppableWork, WorkStopped


def on_thread(act: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    results: list[object] = []

    def run() -> None:
        try:
            results.append(act())
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, results


def loop() -> None:
    while True:
        pass


def test_a_piece_is_ended_once_and_the_thread_is_named() -> None:
    work = StoppableWork("a thread")
    thread, results = on_thread(lambda: work.run(loop))
    assert thread.ident is not None
    while not work.interrupt(thread.ident, 3.0, lambda: True):
        time.sleep(0)
    thread.join(60)
    [stopped] = results
    assert isinstance(stopped, WorkStopped)
    assert (stopped.seconds, stopped.thread) == (3.0, "a thread")
    assert not work.interrupt(thread.ident, 9.0, lambda: True)


def test_a_piece_that_handles_every_error_ends_all_the_same() -> None:
    work = StoppableWork()

    def stubborn() -> None:
        try:
            loop()
        except Exception:
            loop()

    thread, results = on_thread(lambda: work.run(stubborn))
    assert thread.ident is not None
    while not work.interrupt(thread.ident, 3.0, lambda: True):
        time.sleep(0)
    thread.join(60)
    assert isinstance(results[0], WorkStopped)


def test_nothing_is_ended_that_is_not_meant() -> None:
    work = StoppableWork()
    own = threading.get_ident()
    assert not work.interrupt(own, 1.0, lambda: True), "nothing runs"
    assert work.run(lambda: work.interrupt(own, 1.0, lambda: False)) is False, "it does something else"
    with pytest.raises(ZeroDivisionError):
        work.run(lambda: 1 // 0)
    assert work.run(lambda: 5) == 5
