"""Every chunk runs once, errors propagate, and no chunk outlives the call."""

from __future__ import annotations

import contextlib
import threading
from threading import Barrier, Thread

import pytest

from rtlang_kernels.cpu import threads
from rtlang_kernels.cpu.threads import run_chunks, run_team


def test_every_chunk_runs_once() -> None:
    for count in (1, 2, 5):
        seen: list[int] = []
        run_chunks(seen.append, [(i,) for i in range(count)])
        assert sorted(seen) == list(range(count))


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_an_error_in_any_chunk_is_raised_after_all_chunks_end(bad: int) -> None:
    ended: list[int] = []

    def work(index: int) -> None:
        if index == bad:
            raise ArithmeticError(str(index))
        ended.append(index)

    with pytest.raises(ArithmeticError, match=str(bad)):
        run_chunks(work, [(0,), (1,), (2,)])
    assert len(ended) == 2


def test_the_calls_of_a_team_run_at_the_same_time() -> None:
    for count in (1, 2, 5):
        barrier, seen = Barrier(count), []

        def work(index: int, barrier: Barrier = barrier, seen: list[int] = seen) -> None:  # type: ignore[assignment]
            barrier.wait(timeout=30)
            seen.append(index)

        run_team(work, [(i,) for i in range(count)], barrier.abort)
        assert sorted(seen) == list(range(count))


def test_teams_that_start_at_once_do_not_wait_for_threads_of_each_other() -> None:
    ended: list[int] = []

    def team(number: int) -> None:
        for _ in range(20):
            barrier = Barrier(4)
            run_team(lambda _, barrier=barrier: barrier.wait(timeout=30), [(i,) for i in range(4)], barrier.abort)
        ended.append(number)

    callers = [Thread(target=team, args=(number,), daemon=True) for number in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(timeout=60)
    assert sorted(ended) == [0, 1, 2]


def test_nobody_waits_for_a_thread_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pool:
        def __init__(self) -> None:
            self.threads: list[Thread] = []

        def submit(self, function: object, *arguments: object) -> None:
            if self.threads:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self.threads.append(Thread(target=function, args=arguments, daemon=True))  # type: ignore[arg-type]
            self.threads[0].start()

    pool, barrier, ended = Pool(), Barrier(3), []

    def work(index: int) -> None:
        try:
            barrier.wait(timeout=30)
        finally:
            ended.append(index)

    monkeypatch.setattr(threads, "_pool", lambda _: pool)
    with pytest.raises(RuntimeError, match="cannot schedule"):
        run_team(lambda index: None if index == 0 else _quietly(work, index), [(0,), (1,), (2,)], barrier.abort)
    pool.threads[0].join(timeout=60)
    assert ended == [1]


def _quietly(work: object, index: int) -> None:
    with contextlib.suppress(threading.BrokenBarrierError):
        work(index)  # type: ignore[operator]
