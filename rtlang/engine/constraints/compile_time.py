"""The CPU time of a compilation, seen from other threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

STUCK_S = 120.0
"""Wall time without progress after which a compilation counts as stuck: it waits for something that does not come."""
_LEAST_SHARE = 0.002
"""Share of a core below which there is no progress. A compilation on a loaded machine, which also rests for the engine, has more."""
_SHORTEST_S = 0.05


class CompileTime:
    """The CPU time that the calling thread uses from now on. Safe to read from several threads.

    Waiting does not count: for the interpreter, for a core, or for rests of the lanes. Where the system does not tell the time of other
    threads, wall time counts instead.

    Args:
        cpu: CPU time of the thread in seconds.
        wall: wall time in seconds.
    """

    def __init__(self, cpu: Callable[[], float] | None = None, wall: Callable[[], float] = time.monotonic) -> None:
        self._cpu, self._wall = cpu or thread_clock(), wall
        self._begun = self._seen = self._cpu()
        self._looked = wall()

    @property
    def used_s(self) -> float:
        """CPU time so far."""
        return self._cpu() - self._begun

    def left_s(self, limit_s: float) -> float:
        """CPU time that is left of a limit, at least so much that looking again costs little."""
        return max(_SHORTEST_S, limit_s - (self._cpu() - self._begun))

    def is_over(self, limit_s: float) -> bool:
        """Whether the thread has used more CPU time than that, or is stuck."""
        cpu, now = self._cpu(), self._wall()
        if cpu - self._begun >= limit_s:
            return True
        if cpu - self._seen > _LEAST_SHARE * (now - self._looked):
            self._seen, self._looked = cpu, now
        return now - self._looked > STUCK_S


def thread_clock() -> Callable[[], float]:
    """The CPU clock of the calling thread, in seconds, for all threads. It stands still once the thread has ended."""
    get_clock = getattr(time, "pthread_getcpuclockid", None)
    if get_clock is None:
        return time.monotonic
    clock, last = get_clock(threading.get_ident()), time.thread_time()

    def read() -> float:
        nonlocal last
        try:
            last = time.clock_gettime(clock)
        except OSError:  # the thread has ended
            return last
        return last

    return read
