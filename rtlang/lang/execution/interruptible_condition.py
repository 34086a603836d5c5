"""Waiting for another thread, in a way that Ctrl-C may interrupt at any point."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

# An interrupt that comes just before a thread falls asleep is seen when it wakes, so it wakes now and then.
SLICE_S = 1.0


class InterruptibleCondition:
    """A lock for what several threads share, and a bell that wakes those who wait for a change of it.

    Attributes:
        lock: reentrant; for whoever reads or changes more than one thing at once.

    A `threading.Condition` interrupted in the wrong place stays locked for ever, or is released twice. Here the lock is taken by
    `with bell.lock` alone, which an interrupt cannot split, and nobody sleeps with it.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._sleepers: deque[threading.Lock] = deque()

    def ring(self) -> None:
        """Wake all who wait. Call it after the change."""
        for _ in range(len(self._sleepers)):  # those who sleep again meanwhile have seen the change
            try:
                sleeper = self._sleepers.popleft()
            except IndexError:
                return
            sleeper.release()

    def wait(self, is_ready: Callable[[], bool], timeout_s: float | None = None) -> bool:
        """Wait until it is ready, asked at the start, after each ring and at the end; whether it is.

        Args:
            is_ready: asked without the lock.
            timeout_s: seconds after which to give up; None waits for ever.
        """
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            sleeper = threading.Lock()
            sleeper.acquire()
            self._sleepers.append(sleeper)
            if is_ready():
                self._leave(sleeper)
                return True
            left = SLICE_S if end is None else min(end - time.monotonic(), SLICE_S)
            if left <= 0:
                self._leave(sleeper)
                return False
            if not sleeper.acquire(timeout=left):
                self._leave(sleeper)

    def _leave(self, sleeper: threading.Lock) -> None:
        try:
            self._sleepers.remove(sleeper)
        except ValueError:  # it was just rung for
            return
