"""Collects what the thread watch reports during a test run."""

from __future__ import annotations

import logging

_MAX_LINES = 12


class Collector(logging.Handler):
    """Takes the reports instead of the log, so that tests of logs and of quiet processes see none."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.worst: dict[str, tuple[float, int, str]] = {}  # by function: milliseconds, count, place
        logger = logging.getLogger("rtlang.contract.process.thread_watch")
        logger.addHandler(self)
        logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        if not isinstance(record.args, tuple) or len(record.args) != 4:
            return
        thread, milliseconds, what, place = record.args
        assert isinstance(milliseconds, float)
        key = f"{thread}: {what}"
        most, count, where = self.worst.get(key, (0.0, 0, ""))
        self.worst[key] = (max(most, milliseconds), count + 1, str(place) if milliseconds > most else where)

    def summary(self) -> list[str]:
        """The worst calls, the longest first."""
        ordered = sorted(self.worst.items(), key=lambda item: -item[1][0])[:_MAX_LINES]
        return [
            f"{most:8.1f} ms at most, {count} times, {key} at {place[:300]}" for key, (most, count, place) in ordered
        ]
