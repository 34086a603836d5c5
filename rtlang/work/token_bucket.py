"""An amount per minute: a bucket that refills steadily and is charged after the fact."""

from __future__ import annotations

PERIOD_S = 60.0


class TokenBucket:
    """A bucket that holds the amount of one minute. It may be overdrawn, because the cost of work is known when it is done.

    Args:
        now: seconds of a clock that never goes back; also for the methods.
    """

    def __init__(self, per_minute: float, now: float) -> None:
        self._per_minute, self._level, self._seen = per_minute, per_minute, now

    def set_rate(self, per_minute: float) -> None:
        """Change the rate, and with it the size."""
        if per_minute != self._per_minute:
            self._level += per_minute - self._per_minute
            self._per_minute = per_minute

    def charge(self, amount: float, now: float) -> None:
        """Take an amount out."""
        self._refill(now)
        self._level -= amount

    def wait_s(self, now: float) -> float:
        """Seconds until the bucket holds something; 0 if it does."""
        self._refill(now)
        return 0.0 if self._level > 0 else (1e-6 * self._per_minute - self._level) * PERIOD_S / self._per_minute

    def _refill(self, now: float) -> None:
        self._level = min(self._per_minute, self._level + (now - self._seen) * self._per_minute / PERIOD_S)
        self._seen = max(self._seen, now)
