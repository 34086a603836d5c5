"""The bell: no wake-up is lost, nobody sleeps past a timeout, and nothing is left behind."""

from __future__ import annotations

import threading
from functools import partial
from itertools import count

import pytest

from rtlang.lang.bell import Bell


def test_what_is_ready_needs_no_ring() -> None:
    assert Bell().wait(lambda: True)


def test_a_timeout_ends_the_wait() -> None:
    bell = Bell()
    assert not bell.wait(lambda: False, 0.0)
    assert not bell.wait(lambda: False, 0.01)
    bell.ring()  # for nobody


def test_it_is_asked_once_more_at_the_timeout() -> None:
    asked = count()
    assert Bell().wait(lambda: next(asked) == 1, 0.001)


def test_no_ring_is_lost_between_many_threads() -> None:
    """Each thread waits for its turn, does it and rings: one lost ring and all sleep for ever."""
    bell, turns, size, rounds = Bell(), [0], 8, 40

    def is_turn(mine: int) -> bool:
        return turns[0] == mine

    def work(index: int) -> None:
        for step in range(rounds):
            mine = step * size + index
            assert bell.wait(partial(is_turn, mine), 60)
            with bell.lock:
                turns[0] += 1
            bell.ring()

    threads = [threading.Thread(target=work, args=(index,)) for index in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert turns[0] == size * rounds


def test_an_error_of_the_one_who_asks_leaves_it_usable() -> None:
    """As Ctrl-C does, which is raised wherever the main thread is."""
    bell = Bell()

    def interrupted() -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bell.wait(interrupted)
    is_there = threading.Event()

    def rings() -> None:
        is_there.set()
        bell.ring()

    threading.Thread(target=rings).start()
    assert bell.wait(is_there.is_set, 60)
