"""Every chunk runs once, errors propagate, and no chunk outlives the call."""

from __future__ import annotations

import threading
from threading import Barrier, Thread

import pytest

from rtlang_kernels.cpu import threads
from rtlang_kernels.cpu.threads import run_chunks, run_team, share_out


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


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_nobody_waits_for_a_call_that_raises(bad: int) -> None:
    ends, ended = threading.Event(), list[int]()

    def work(index: int) -> None:
        if index == bad:
            raise ArithmeticError(str(index))
        if ends.wait(timeout=30):
            ended.append(index)

    with pytest.raises(ArithmeticError, match=str(bad)):
        run_team(work, [(0,), (1,), (2,)], ends.set)
    assert sorted(ended) == [index for index in range(3) if index != bad]


def test_calls_run_while_the_interpreter_exits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("concurrent.futures.thread._shutdown", True)  # set before runtimes are closed
    are_daemons: list[bool] = []
    run_chunks(lambda _: are_daemons.append(threading.current_thread().daemon), [(0,), (1,), (2,), (3,)])
    assert sorted(are_daemons) == [False, True, True, True]


def test_a_thread_that_cannot_be_started_leaves_no_call_to_a_later_team(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    threads._pool.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(Thread, "start", _refuse)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            run_chunks(seen.append, [(0,), (1,), (2,)])
    run_chunks(seen.append, [(3,), (4,), (5,)])
    assert sorted(seen) == [3, 4, 5]


def _refuse(_: Thread) -> None:
    raise RuntimeError("can't start new thread")


@pytest.mark.parametrize("num_threads", [1, 3, 50])
def test_threads_share_items_out(num_threads: int) -> None:
    seen: list[int] = []
    share_out(seen.append, range(20), num_threads)
    assert sorted(seen) == list(range(20))
    share_out(seen.append, [], num_threads)
    assert len(seen) == 20


def test_as_many_threads_share_items_as_were_asked_for() -> None:
    barrier = Barrier(3)
    share_out(lambda _: barrier.wait(timeout=30), range(6), 3)
    assert not barrier.broken


@pytest.mark.parametrize("num_threads", [1, 3])
def test_after_an_error_no_further_item_is_taken(num_threads: int) -> None:
    seen: list[int] = []

    def work(item: int) -> None:
        seen.append(item)
        if item == 5:
            raise ArithmeticError(str(item))

    before = threading.active_count()
    with pytest.raises(ArithmeticError, match="5"):
        share_out(work, range(100_000), num_threads)
    assert len(seen) < 100_000
    assert threading.active_count() == before
