"""Repeated log lines are left out and counted."""

from __future__ import annotations

import logging

import pytest

from rtlang.contract.process.log_limit import MAX_KINDS, LimitedLog, RepeatFilter, limited_logs


def record(text: str, *args: object, name: str = "asyncio") -> logging.LogRecord:
    return logging.LogRecord(name, logging.ERROR, "x.py", 1, text, args, None)


def test_a_flood_of_one_kind_is_a_few_lines_and_a_count() -> None:
    now = [0.0]
    limit = RepeatFilter(burst=3, period_s=10.0, clock=lambda: now[0])
    assert sum(limit.filter(record("no descriptors: %d", n)) for n in range(1000)) == 3
    assert limit.filter(record("another"))
    now[0] = 10.0
    last = record("no descriptors: %d", 7)
    assert limit.filter(last)
    assert last.getMessage() == "no descriptors: 7 (997 similar lines were left out)"


def test_memory_is_bounded() -> None:
    limit = RepeatFilter()
    for number in range(3 * MAX_KINDS):
        assert limit.filter(record(f"line {number}"))
    assert len(limit._kinds) <= MAX_KINDS


def test_loggers_are_limited_for_a_while(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("tests.noisy")
    with limited_logs("tests.noisy"):
        for _ in range(50):
            logger.error("again")
    assert len(caplog.records) == 5
    assert logger.filters == []


def test_an_error_that_repeats_itself_has_one_traceback_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    log = LimitedLog(logging.getLogger("tests.limited"), 60.0, clock=lambda: now[0])
    for number in range(50):
        log.error("step %d failed", number, exc_info=ValueError("too large"))
    log.error("another")
    now[0] = 60.0
    log.error("step %d failed", 50, exc_info=ValueError("too large"))
    messages = [record.getMessage() for record in caplog.records]
    assert messages == ["step 0 failed", "another", "step 50 failed (49 similar lines were left out)"]
    assert "ValueError: too large" in caplog.text
