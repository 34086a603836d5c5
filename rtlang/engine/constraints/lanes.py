"""Two lanes of threads for compilations, so that slow ones do not delay the others.

A compilation begins in the fast lane. If it takes more than `SLICE_S` of a thread's time, it is stopped there and begins again in the slow
lane, where it has all the time of its limit. So a queue of n hostile constraints delays another one by at most n slices, and fairness
between owners (`FairQueue`) makes that one slice. A compilation is never paused in its middle: it may hold a lock that another needs.
While the fast lane is busy, slow compilations give way to it, for they share the interpreter.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from rtlang.engine.daemon_pool import DaemonPool

SLICE_S = 0.1
"""Time of a thread after which a compilation moves to the slow lane. Most constraints need less than 20 ms."""
MIN_FAST = 2
"""Least number of threads in the fast lane: one may be in a part of a compilation that asks for no flag."""
NUM_SLOW = 2
_REST_S = 0.0005  # about the time between two checks of a compilation: it halves the speed


class CancelFlag(threading.Event):
    """The cancel flag of one compilation, which its budget asks about every half millisecond.

    Args:
        is_unwanted: set when nobody waits for the result any more.
        fast: the pool of the fast lane.
        is_slow: whether the compilation is in the slow lane.
    """

    def __init__(self, is_unwanted: threading.Event, fast: DaemonPool | None, *, is_slow: bool) -> None:
        super().__init__()
        self._is_unwanted, self._fast, self._is_slow = is_unwanted, fast, is_slow
        self._ends_at = time.thread_time() + SLICE_S
        self.is_over = False

    def is_set(self) -> bool:
        """Whether the compilation must stop: nobody wants it, or its slice in the fast lane is over (`is_over`)."""
        if self._is_unwanted.is_set():
            return True
        if self._fast is None:
            return False
        if self._is_slow:
            if self._fast.num_waiting:
                time.sleep(_REST_S)
            return False
        self.is_over = self.is_over or time.thread_time() > self._ends_at
        return self.is_over


class CompileLanes:
    """The threads that compile. Safe to use from several threads.

    Args:
        num_threads: threads of the fast lane.
        executor: runs all jobs instead, in one lane without slices; for tests.
    """

    def __init__(self, num_threads: int, executor: Executor | None = None) -> None:
        self._executor = executor
        self._fast = None if executor is not None else DaemonPool(max(num_threads, MIN_FAST), "constraint-compile")
        self._slow = None if executor is not None else DaemonPool(NUM_SLOW, "constraint-compile-slow")

    def submit(self, job: Callable[[], None], *, owner: str, size: int, is_slow: bool = False) -> Future[Any]:
        """Run a job in a lane.

        Args:
            owner: the name of the principal that waits for it.
            size: the length of the source: the smallest job of an owner comes first.
        Raises:
            RuntimeError: the lanes were closed.
        """
        if self._executor is not None:
            return self._executor.submit(job)
        pool = self._slow if is_slow else self._fast
        assert pool is not None
        return pool.submit_for(owner, size, job)

    def cancel_flag(self, is_unwanted: threading.Event, *, is_slow: bool) -> CancelFlag:
        """The cancel flag of a compilation that begins now on the calling thread."""
        return CancelFlag(is_unwanted, self._fast, is_slow=is_slow)

    def resize(self, num_threads: int, num_late: int) -> None:
        """Change the number of threads: `num_late` of them, in either lane, are busy with work that nobody waits for."""
        if self._fast is not None and self._slow is not None:
            self._fast.resize(max(num_threads, MIN_FAST) + num_late)
            self._slow.resize(NUM_SLOW + num_late)

    def close(self) -> None:
        """Stop the threads after their current jobs and drop the others."""
        for pool in (self._fast, self._slow):
            if pool is not None:
                pool.shutdown(wait=False, cancel_futures=True)
