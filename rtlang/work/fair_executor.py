"""A thread pool and timers that use daemon threads, so that they never keep the process from exiting.

The standard library's executor joins its threads at interpreter exit, so a native call that never returns would block the exit forever.
The number of threads of this pool can also change while it runs, and its queue is fair between the owners of jobs (`FairQueue`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, Protocol, TypeVar

from rtlang.work.fair_queue import FairQueue, Owner

_T = TypeVar("_T")


class FairExecutor(Executor):
    """Runs jobs: of each owner the smallest first, and those of one size in order of submission. Safe to use from several threads.

    Args:
        num_threads: maximum number of threads; started on demand.
        name: prefix of thread names.
    """

    def __init__(self, num_threads: int, name: str) -> None:
        self._num_threads, self._name = num_threads, name
        self._condition = threading.Condition()
        self._jobs = FairQueue()
        self._threads: set[threading.Thread] = set()
        self._num_idle = 0
        self._is_shut_down = False

    def submit(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> Future[_T]:
        """Run `fn` on a thread of the pool.

        Raises:
            RuntimeError: the pool was shut down.
        """
        return self.submit_for(("", ""), 0, lambda: fn(*args, **kwargs))

    def submit_for(self, owner: Owner, size: int, fn: Callable[[], _T]) -> Future[_T]:
        """Run `fn` on a thread of the pool, for an owner; `size` orders the jobs of one owner.

        Raises:
            RuntimeError: the pool was shut down.
        """
        future: Future[_T] = Future()

        def job() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = fn()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        with self._condition:
            if self._is_shut_down:
                raise RuntimeError("the pool was shut down")
            self._jobs.put((future, job), owner, size)
            self._serve()
        return future

    @property
    def num_waiting(self) -> int:
        """Number of jobs that wait for a thread. Read without a lock."""
        return len(self._jobs)

    def resize(self, num_threads: int) -> None:
        """Change the maximum number of threads. Surplus threads end after their current job."""
        with self._condition:
            self._num_threads = num_threads
            self._serve()
            self._condition.notify_all()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Refuse new jobs; `wait` for accepted ones; with `cancel_futures`, cancel those not started."""
        with self._condition:
            self._is_shut_down = True
            dropped = [future for future, _ in self._jobs.clear()] if cancel_futures else []
            self._condition.notify_all()
            threads = list(self._threads)
        for future in dropped:  # outside the lock: it runs callbacks
            future.cancel()
        if wait:
            for thread in threads:
                thread.join()

    def _serve(self) -> None:
        if len(self._jobs) > self._num_idle and len(self._threads) < self._num_threads:
            thread = threading.Thread(target=self._work, name=f"{self._name}-{len(self._threads)}", daemon=True)
            self._threads.add(thread)
            thread.start()
        self._condition.notify()

    def _work(self) -> None:
        while True:
            with self._condition:
                while len(self._threads) <= self._num_threads and not self._jobs and not self._is_shut_down:
                    self._num_idle += 1
                    self._condition.wait()
                    self._num_idle -= 1
                if len(self._threads) > self._num_threads or not self._jobs:
                    self._threads.discard(threading.current_thread())
                    self._condition.notify()
                    return
                (future, job), owner = self._jobs.take()
            started = time.thread_time()
            job()
            del future, job  # an idle thread must not keep a result alive
            with self._condition:
                self._jobs.charge(owner, time.thread_time() - started)


class JobTimer(Protocol):
    """A running timer."""

    def cancel(self) -> None:
        """Cancel the timer unless it has fired."""


def start_timer(seconds: float, action: Callable[[], None]) -> JobTimer:
    """Call `action` once after `seconds`, on a daemon thread."""
    timer = threading.Timer(seconds, action)
    timer.daemon = True
    timer.start()
    return timer


def run_or_cancel(
    submit: Callable[[Callable[[], None]], Future[Any]], job: Callable[[], None], asked: Future[Any] | None = None
) -> None:
    """Submit a job; if the pool is shut down before the job starts, the future that was asked for is cancelled."""
    try:
        submitted = submit(job)
    except RuntimeError:
        submitted = Future()
        submitted.cancel()
    submitted.add_done_callback(lambda done: asked.cancel() if asked and done.cancelled() else None)
