"""Limits the rate of log lines: a fault that repeats itself must not fill a disk."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator

MAX_KINDS = 1024


class RepeatFilter(logging.Filter):
    """Lets through at most `burst` records of one kind in `period_s` seconds; the next one says how many were left out.

    Records are of one kind if logger, level and message template agree.
    """

    def __init__(self, burst: int = 5, period_s: float = 10.0, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._burst, self._period_s, self._clock = burst, period_s, clock
        self._lock = threading.Lock()
        self._kinds: dict[tuple[str, int, str], list[float]] = {}  # start of the period, records in it

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is written."""
        kind = (record.name, record.levelno, str(record.msg)[:200])
        now = self._clock()
        with self._lock:
            found = self._kinds.get(kind)
            if found is None and len(self._kinds) >= MAX_KINDS:
                self._kinds.clear()
            if found is None or now - found[0] >= self._period_s:
                num_left_out = 0 if found is None else int(found[1]) - self._burst
                self._kinds[kind] = [now, 1]
                if num_left_out > 0:
                    record.msg = f"{record.getMessage()} ({num_left_out} similar lines were left out)"
                    record.args = ()
                return True
            found[1] += 1
            return found[1] <= self._burst


class LimitedLog:
    """Writes errors of one logger, at most one of a kind in `period_s` seconds; the next one says how many were left out.

    Args:
        log: the logger; owned by the caller.
        clock: seconds, monotonic.
    """

    def __init__(
        self, log: logging.Logger, period_s: float = 60.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._log, self._limit = log, RepeatFilter(1, period_s, clock)

    def error(self, message: str, *args: object, exc_info: BaseException | None = None) -> None:
        """Write an error, with the traceback of an exception. Errors with the same message are of one kind."""
        if self._log.isEnabledFor(logging.ERROR):
            info = None if exc_info is None else (type(exc_info), exc_info, exc_info.__traceback__)
            record = self._log.makeRecord(self._log.name, logging.ERROR, __file__, 0, message, args, info)
            if self._limit.filter(record):
                self._log.handle(record)


@contextlib.contextmanager
def limited_logs(*names: str) -> Iterator[RepeatFilter]:
    """Limit the records of these loggers for a while."""
    limit = RepeatFilter()
    loggers = [logging.getLogger(name) for name in names]
    for each in loggers:
        each.addFilter(limit)
    try:
        yield limit
    finally:
        for each in loggers:
            each.removeFilter(limit)
