"""Lanes of threads for compilations, so that slow ones do not delay the others.

A compilation begins in the first lane. If it takes more than the slice of a lane while others wait there, it is stopped and begins again in
the next one; the last lane has no slice. So a compilation waits for at most one slice of each other client in its lane (`FairQueue`),
however many hostile constraints those have queued. A compilation is never paused in its middle: it may hold a lock that another needs.

All lanes share the interpreter with the engine, whose step asks for it hundreds of times and may have to wait each time. Long compilations
therefore rest while the engine has requests, and those of later lanes while an earlier one works.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any

from rtlang.work.fair_executor import FairExecutor
from rtlang.work.fair_queue import Owner

SLICES_S = (0.06, 0.3, math.inf)
"""For each lane the time of a thread after which a compilation makes way for others. Most constraints need less than 20 ms."""
NUM_THREADS = (2, 1, 2)
"""For each lane its least number of threads. In the first, one may be in a part of a compilation that asks for no flag."""
_QUICK_S = 0.01
"""Time of a thread before its first rest."""
_WORK_S, _REST_S = 0.002, 0.0000
"""Time of all threads together between two rests, and the length of a rest: compilations take two thirds of the interpreter."""


class CancelFlag(threading.Event):
    """The cancel flag of one compilation, which its budget asks about every half millisecond.

    Args:
        is_unwanted: set when nobody waits for the result any more.
        slice_s: time of the thread until it makes way for others.
        makes_way: whether others wait in its lane.
        rest: called after every millisecond of work beyond the first few.
        clock: time of the thread in seconds.
    """

    def __init__(
        self,
        is_unwanted: threading.Event,
        slice_s: float = math.inf,
        rest: Callable[[], None] = lambda: None,
        makes_way: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
        super().__init__()
        self._is_unwanted, self._rest, self._makes_way, self._clock = is_unwanted, rest, makes_way, clock
        now = clock()
        self._ends_at, self._rests_at = now + slice_s, now + _QUICK_S
        self.is_over = False

    def is_set(self) -> bool:
        """Whether the compilation must stop: nobody wants it, or its slice is over (`is_over`)."""
        if self._is_unwanted.is_set():
            return True
        now = self._clock()
        self.is_over = self.is_over or (now > self._ends_at and self._makes_way())
        if not self.is_over and now > self._rests_at:
            self._rests_at = now + _WORK_S
            self._rest()
        return self.is_over


class CompileLanes:
    """The threads that compile. Safe to use from several threads.

    Args:
        num_threads: threads of the first lane, at least.
        executor: runs all jobs instead, in one lane without slices; for tests.
        is_busy: whether the engine has requests; read without a lock.
    """

    def __init__(
        self, num_threads: int, executor: Executor | None = None, is_busy: Callable[[], bool] = lambda: False
    ) -> None:
        self._executor, self._is_busy = executor, is_busy
        self._sizes = (max(num_threads, NUM_THREADS[0]), *NUM_THREADS[1:])
        self._pools = [FairExecutor(size, f"constraint-compile-{lane}") for lane, size in enumerate(self._sizes)]
        self._num_working = [0] * len(self._pools)
        self._lock = threading.Lock()

    @property
    def last(self) -> int:
        """The lane without a slice."""
        return 0 if self._executor is not None else len(self._pools) - 1

    def submit(self, job: Callable[[], None], *, owner: Owner, size: int, lane: int = 0) -> Future[Any]:
        """Run a job in a lane.

        Args:
            owner: the client that waits for it.
            size: the length of the source: the smallest job of an owner comes first.
        Raises:
            RuntimeError: the lanes were closed.
        """
        if self._executor is not None:
            return self._executor.submit(job)
        return self._pools[lane].submit_for(owner, size, job)

    @contextmanager
    def working(self, is_unwanted: threading.Event, lane: int) -> Iterator[CancelFlag]:
        """The cancel flag of a compilation on the calling thread, from now to its end."""
        if self._executor is not None:
            yield CancelFlag(is_unwanted)
            return
        self._count(lane, 1)
        pool = self._pools[lane]
        try:
            yield CancelFlag(is_unwanted, SLICES_S[lane], lambda: self._rest(lane), lambda: pool.num_waiting > 0)
        finally:
            self._count(lane, -1)

    def resize(self, num_late: int) -> None:
        """Change the number of threads: `num_late` of them, in any lane, are busy with work that nobody waits for."""
        for pool, size in zip(self._pools, self._sizes, strict=True):
            pool.resize(size + num_late)

    def close(self) -> None:
        """Stop the threads after their current jobs and drop the others."""
        for pool in self._pools:
            pool.shutdown(wait=False, cancel_futures=True)

    def _count(self, lane: int, change: int) -> None:
        with self._lock:
            self._num_working[lane] += change

    def _rest(self, lane: int) -> None:
        """Let the engine run, and the lanes before this one. All threads of this lane together keep the share of one."""
        num_before, num_here = sum(self._num_working[:lane]), self._num_working[lane]
        if self._is_busy() or num_before:
            time.sleep((num_here + num_before) * (_WORK_S + _REST_S) - _WORK_S)


def cancelled(future: Future[Any]) -> threading.Event:
    """An event that is set once nobody waits for a future any more."""
    event = threading.Event()
    future.add_done_callback(lambda done: event.set())
    return event
