"""Threads beside an engine take turns, and rest while it computes."""

from __future__ import annotations

import threading
import time

import pytest

from rtlang.runtime.process import interpreter_share
from rtlang.runtime.process.interpreter_share import MAX_REST_S, REST, InterpreterShare


def busy(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


@pytest.mark.parametrize(("is_busy", "seconds"), [(True, 0.005), (True, 0.2), (False, 0.2)])
def test_a_turn_ends_with_a_rest_while_the_engine_computes(is_busy: bool, seconds: float) -> None:
    rests: list[float] = []
    with InterpreterShare(lambda: is_busy, rests.append).turn():
        busy(seconds)
    assert len(rests) == is_busy
    assert all(REST * 0.005 <= each <= MAX_REST_S for each in rests)
    if seconds > MAX_REST_S:
        assert rests == [MAX_REST_S] * is_busy


def test_one_thread_works_at_a_time() -> None:
    share, num_working, most = InterpreterShare(lambda: False), 0, 0

    def work() -> None:
        nonlocal num_working, most
        for _ in range(20):
            with share.turn():
                num_working += 1
                most = max(most, num_working)
                time.sleep(0.0005)
                num_working -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_nobody_waits_for_a_thread_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter_share, "MAX_WAIT_S", 0.01)
    share = InterpreterShare(lambda: False)
    with share.turn(), share.turn(), share.turn():
        pass
    with share.turn():  # it can be had again
        assert share._turn.locked()
    assert not share._turn.locked()


def test_an_error_ends_a_turn() -> None:
    share = InterpreterShare(lambda: False)
    with pytest.raises(KeyError), share.turn():
        raise KeyError
    assert not share._turn.locked()
