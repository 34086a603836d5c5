"""Pauses between attempts to reconnect."""

from __future__ import annotations

import threading
import time


class ReconnectBackoff:
    """Reconnect delays with exponential backoff and a time limit. Used by one thread; `is_over` by any."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s, self._pause_s = limit_s, 0.0
        self._until: float | None = None
        self.is_over = threading.Event()
        self.is_over.set()

    def next_pause(self) -> float | None:
        """Seconds until the next attempt; None once the time limit is reached.

        A connection that breaks before delivering a message counts as part of the same outage.
        """
        now = time.monotonic()
        if self._until is None:
            self._until, self._pause_s = now + self._limit_s, 0.0
            self.is_over.clear()
            return 0.0
        self._pause_s = min(max(0.05, 2 * self._pause_s), 1.0)
        return self._pause_s if now + self._pause_s <= self._until else None

    def end(self) -> None:
        """End the outage: the new connection works."""
        self._until = None
        self.is_over.set()
