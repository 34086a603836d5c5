"""Jobs in order on a changing number of threads, and an exit that waits for none of them."""

from __future__ import annotations

import ast
import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.errors import OverloadError
from rtlang.work.fair_executor import TRIM_PRICE, FairExecutor, is_unwanted, shared_limits, start_timer
from rtlang.work.fair_queue import Owner, QueueLimits
from rtlang.work.work_account import RequestWork, request_work
from tests.support.summed_work import SummedWork

ROOT = Path(__file__).parents[2]


def wait_for(release: threading.Event, begun: threading.Event) -> bool:
    begun.set()
    return release.wait(60)


def test_jobs_run_in_order_and_their_results_and_errors_come_back() -> None:
    pool = FairExecutor(1, "test")
    order: list[int] = []

    def divide(by: int) -> int:
        order.append(by)
        return 10 // by

    futures = [pool.submit(divide, by) for by in (5, 2, 0, 1)]
    assert [futures[index].result(60) for index in (0, 1, 3)] == [2, 5, 10]
    assert isinstance(futures[2].exception(60), ZeroDivisionError)
    assert order == [5, 2, 0, 1]
    pool.shutdown()


def test_as_many_jobs_run_at_a_time_as_there_are_threads() -> None:
    pool = FairExecutor(3, "test")
    together = threading.Barrier(3)
    for future in [pool.submit(together.wait, 60) for _ in range(6)]:
        future.result(60)
    pool.shutdown()


def test_a_larger_pool_goes_on_beside_a_job_that_is_stuck_and_a_smaller_one_ends_threads() -> None:
    pool = FairExecutor(1, "test")
    release, begun = threading.Event(), threading.Event()
    stuck = pool.submit(wait_for, release, begun)
    behind = pool.submit(lambda: threading.current_thread())
    assert begun.wait(60)
    assert not behind.done()
    pool.resize(2)
    second = behind.result(60)
    assert second.daemon
    pool.resize(1)
    second.join(60)  # idle, and one too many
    assert not second.is_alive()
    release.set()
    assert stuck.result(60)
    assert pool.submit(lambda: 7).result(60) == 7
    pool.shutdown()


def test_a_cancelled_job_is_not_run_and_shutting_down_drops_what_has_not_begun() -> None:
    pool = FairExecutor(1, "test")
    release, begun = threading.Event(), threading.Event()
    ran: list[str] = []
    running = pool.submit(wait_for, release, begun)
    assert begun.wait(60)
    assert pool.submit(lambda: ran.append("cancelled")).cancel()
    dropped = pool.submit(lambda: ran.append("dropped"))
    pool.shutdown(wait=False, cancel_futures=True)
    assert dropped.cancelled()
    assert not running.done()
    with pytest.raises(RuntimeError):
        pool.submit(lambda: ran.append("late"))
    release.set()
    pool.shutdown()
    assert running.done()
    assert ran == []


def test_cheap_jobs_of_anyone_begin_beside_long_ones() -> None:
    pool = FairExecutor(6, "test", shared_limits(6))
    release = threading.Event()
    begun = [threading.Event() for _ in range(30)]
    long = [pool.submit_for(Owner("a"), 1.0, lambda each=each: wait_for(release, each)) for each in begun]  # type: ignore[misc]
    assert begun[0].wait(60)
    assert begun[1].wait(60)
    for owner in (Owner("a"), Owner("b"), Owner("c", "x")):
        assert pool.submit_for(owner, 0.001, lambda: 7).result(60) == 7
    assert pool.submit_for(Owner("b"), 1.0, lambda: 8).result(60) == 8, (
        "a long one of another party finds a thread as well"
    )
    assert sum(each.is_set() for each in begun) == 2
    release.set()
    assert all(each.result(60) for each in long)
    pool.shutdown()


def test_no_party_has_all_threads_whatever_its_prices_say() -> None:
    pool = FairExecutor(3, "test", shared_limits(3))
    release = threading.Event()
    begun = [threading.Event() for _ in range(9)]
    stuck = [pool.submit_for(Owner("a"), 0.0, lambda each=each: wait_for(release, each)) for each in begun]  # type: ignore[misc]
    assert pool.submit_for(Owner("b"), 0.0, lambda: 7).result(60) == 7
    assert sum(each.is_set() for each in begun) <= 2
    release.set()
    assert all(each.result(60) for each in stuck)
    pool.shutdown()


def test_a_cancelled_job_that_runs_is_told_and_one_that_waits_makes_room() -> None:
    pool = FairExecutor(1, "test", QueueLimits(max_waiting=1))
    begun = threading.Event()

    def poll() -> str:
        begun.set()
        while not is_unwanted():
            pass
        return "told"

    running = pool.submit_for(Owner("a"), 1, poll)
    assert begun.wait(60)
    waiting = pool.submit_for(Owner("a"), 1, lambda: "never", is_bounded=True)
    with pytest.raises(OverloadError):
        pool.submit_for(Owner("a"), 1, lambda: "refused", is_bounded=True)
    assert waiting.cancel()
    assert pool.num_waiting == 0
    after = pool.submit_for(Owner("a"), 1, lambda: is_unwanted(), is_bounded=True)
    assert not running.cancel()
    assert running.result(60) == "told"
    assert after.result(60) is False, "the flag is of one job"
    assert not is_unwanted()
    pool.shutdown()


def test_a_task_awaits_a_job_and_takes_it_along_when_it_is_cancelled() -> None:
    pool = FairExecutor(1, "test", account=(account := SummedWork()))
    release, begun, ran = threading.Event(), threading.Event(), list[str]()

    async def main() -> RequestWork:
        request_work.set(work := RequestWork())
        blocking = asyncio.ensure_future(pool.run(Owner("a"), 1, lambda: wait_for(release, begun), kind=WorkKind.PARSE))
        await asyncio.sleep(0)
        dropped = asyncio.ensure_future(pool.run(Owner("a"), 1, lambda: ran.append("dropped")))
        await asyncio.sleep(0)
        assert begun.wait(60)
        dropped.cancel()
        with pytest.raises(asyncio.CancelledError):
            await dropped
        assert pool.num_waiting == 0
        release.set()
        assert await blocking
        with pytest.raises(ZeroDivisionError):
            await pool.run(Owner("b"), 1, lambda: 1 / 0, kind=WorkKind.TOKENIZE)
        return work

    work = asyncio.run(main())
    pool.shutdown()
    assert ran == []
    assert set(work.seconds) == {WorkKind.PARSE, WorkKind.OTHER, WorkKind.TOKENIZE}
    assert {name: set(kinds) for name, kinds in account.snapshot().items()} == {
        "a": {WorkKind.PARSE},
        "b": {WorkKind.TOKENIZE},
    }


def test_what_had_to_wait_for_a_long_job_runs_after_the_pool_is_shut_down() -> None:
    pool = FairExecutor(3, "test", shared_limits(3))
    release, begun = threading.Event(), threading.Event()
    first = pool.submit_for(Owner("a"), 1.0, lambda: wait_for(release, begun))
    assert begun.wait(60)
    second = pool.submit_for(Owner("a"), 1.0, lambda: "second")
    pool.shutdown(wait=False)
    release.set()
    pool.shutdown()
    assert first.result(0)
    assert second.result(0) == "second"


def test_a_job_that_never_ends_does_not_keep_the_process() -> None:
    script = (
        "import threading\n"
        "from rtlang.work.fair_executor import FairExecutor\n"
        "begun = threading.Event()\n"
        "FairExecutor(1, 'x').submit(lambda: begun.set() or threading.Event().wait())\n"
        "begun.wait()\n"
        "print('out')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "out\n", "")


def test_a_timer_fires_unless_it_is_cancelled() -> None:
    fired = threading.Event()
    never = start_timer(3600, fired.set)
    never.cancel()
    start_timer(0, fired.set)
    assert fired.wait(60)


def test_memory_is_given_back_after_expensive_jobs_alone() -> None:
    told: list[float] = []
    pool = FairExecutor(1, "test", trim_memory=lambda: told.append(len(done)))
    done: list[float] = []
    for price in (TRIM_PRICE / 2, TRIM_PRICE, 1.0):
        pool.submit_for(Owner("a"), price, lambda price=price: done.append(price))  # type: ignore[misc]
    pool.shutdown()
    assert told == [2, 3]


POOLS = {"to_thread", "run_in_executor", "ThreadPoolExecutor", "ProcessPoolExecutor"}
"""Pools that take work first come, first served."""
OF_REQUESTS = ("cache", "contract", "engine", "fleet", "model", "protocol", "runtime", "serve", "work")


@pytest.mark.parametrize("part", OF_REQUESTS)
def test_work_of_requests_runs_on_no_other_pool(part: str) -> None:
    found = []
    for path in sorted((ROOT / "rtlang" / part).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = getattr(node, "attr", None) or getattr(node, "id", None) or getattr(node, "name", None)
            if name in POOLS:
                found.append(f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)} uses {name}")
    assert found == []
