"""Jobs in order on a changing number of threads, and an exit that waits for none of them."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from rtlang.work.fair_executor import FairExecutor, start_timer


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
