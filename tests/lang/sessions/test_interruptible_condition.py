"""The bell: no wake-up is lost, nobody sleeps past a timeout, and nothing is left behind."""

from __future__ import annotations

import asyncio
import signal
import threading
from functools import partial
from itertools import count

import pytest

from rtlang.lang.sessions import interruptible_condition as bell_module
from rtlang.lang.sessions.interruptible_condition import InterruptibleCondition


@pytest.fixture
def _no_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody wakes but for a ring or a timeout."""
    monkeypatch.setattr(bell_module, "SLICE_S", 1e6)


def test_what_is_ready_needs_no_ring() -> None:
    assert InterruptibleCondition().wait(lambda: True)


def test_a_timeout_ends_the_wait() -> None:
    bell = InterruptibleCondition()
    assert not bell.wait(lambda: False, 0.0)
    assert not bell.wait(lambda: False, 0.01)
    bell.notify_all()  # for nobody


def test_it_is_asked_once_more_at_the_timeout() -> None:
    asked = count()
    assert InterruptibleCondition().wait(lambda: next(asked) == 1, 0.001)


@pytest.mark.usefixtures("_no_slices")
def test_no_ring_is_lost_between_many_threads() -> None:
    """Each thread waits for its turn, does it and rings: one lost ring and all sleep until they give up."""
    bell, turns, size, rounds = InterruptibleCondition(), [0], 8, 40

    def is_turn(mine: int) -> bool:
        return turns[0] == mine

    def work(index: int) -> None:
        for step in range(rounds):
            mine = step * size + index
            if not bell.wait(partial(is_turn, mine), 60):
                return
            with bell.lock:
                turns[0] += 1
            bell.notify_all()

    threads = [threading.Thread(target=work, args=(index,)) for index in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert turns[0] == size * rounds


@pytest.mark.usefixtures("_no_slices")
def test_an_error_of_the_one_who_asks_leaves_it_usable() -> None:
    """As Ctrl-C does, which is raised wherever the main thread is."""
    bell = InterruptibleCondition()

    def interrupted() -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bell.wait(interrupted)
    is_there = threading.Event()

    def rings() -> None:
        is_there.set()
        bell.notify_all()

    threading.Thread(target=rings).start()
    assert bell.wait(is_there.is_set, 60)


@pytest.mark.usefixtures("_no_slices")
def test_one_who_gave_up_takes_no_ring_from_others() -> None:
    bell, is_there, waits = InterruptibleCondition(), threading.Event(), threading.Event()
    assert not bell.wait(lambda: False, 0.001)
    found = []

    def asks() -> bool:
        waits.set()
        return is_there.is_set()

    waiter = threading.Thread(target=lambda: found.append(bell.wait(asks, 60)))
    waiter.start()
    assert waits.wait(60)
    is_there.set()
    bell.notify_all()
    waiter.join()
    assert found == [True]
    assert not bell._sleepers


def test_ctrl_c_ends_the_wait_and_leaves_the_lock_free() -> None:
    bell, asked = InterruptibleCondition(), threading.Event()
    main = threading.get_ident()

    def is_ready() -> bool:
        asked.set()
        return False

    def interrupts() -> None:
        assert asked.wait(60)
        signal.pthread_kill(main, signal.SIGINT)

    threading.Thread(target=interrupts).start()
    with pytest.raises(KeyboardInterrupt):
        bell.wait(is_ready, 60)
    got = []
    other = threading.Thread(target=lambda: got.append(bell.lock.acquire(timeout=60)))
    other.start()
    other.join()
    assert got == [True]


def test_a_burst_of_notifications_from_many_threads_wakes_every_coroutine() -> None:
    conditions = [InterruptibleCondition() for _ in range(200)]
    done = [False] * len(conditions)

    def notify(indices: range) -> None:
        for index in indices:
            done[index] = True
            conditions[index].notify_all()

    async def wait_for_all() -> list[bool]:
        waits = [
            asyncio.ensure_future(condition.wait_async(lambda index=index: done[index]))
            for index, condition in enumerate(conditions)
        ]
        await asyncio.sleep(0)
        threads = [threading.Thread(target=notify, args=(range(start, 200, 4),)) for start in range(4)]
        for thread in threads:
            thread.start()
        found = await asyncio.wait_for(asyncio.gather(*waits), 20)
        for thread in threads:
            thread.join()
        return found

    for _ in range(20):
        done[:] = [False] * len(done)
        assert all(asyncio.run(wait_for_all()))
