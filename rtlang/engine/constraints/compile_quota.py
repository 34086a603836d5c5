"""The compile seconds of each principal."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection

from rtlang.contract.errors import OverloadError
from rtlang.contract.runs.principal import Principal
from rtlang.work.token_bucket import TokenBucket


class CompileQuota:
    """Charges compilations to the principals that wait for them. Safe to use from several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: dict[str, TokenBucket] = {}
        self._lock = threading.Lock()

    def check(self, principal: Principal) -> None:
        """Raise OverloadError if the principal has used up its compile seconds."""
        limit = principal.limits.compile_seconds_per_minute
        if limit is None:
            return
        with self._lock:
            now = self._clock()
            bucket = self._buckets.setdefault(principal.name, TokenBucket(limit, now))
            bucket.set_rate(limit)
            wait_s = bucket.wait_s(now)
        if wait_s:
            raise OverloadError(
                f"{principal.name} has used compile_seconds_per_minute = {limit:g} for constraints", round(wait_s, 3)
            )

    def charge(self, names: Collection[str], seconds: float) -> None:
        """Divide a compilation between principals; those without a limit are not counted."""
        with self._lock:
            for name in names:
                if (bucket := self._buckets.get(name)) is not None:
                    bucket.charge(seconds / len(names), self._clock())
