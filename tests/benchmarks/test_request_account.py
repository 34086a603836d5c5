"""The benchmark of the account runs the real record: every request of it has a line, and none is kept."""

from __future__ import annotations

import logging

import pytest

from rtlang.contract.process.logs import REQUEST_LOGGER, LogFormat
from rtlang_bench.request_account import measure


@pytest.mark.parametrize("log", [None, LogFormat.TEXT, LogFormat.JSON])
def test_each_form_is_measured_and_the_logger_is_as_before(log: LogFormat | None) -> None:
    logger = logging.getLogger(REQUEST_LOGGER)
    before = logger.level, logger.propagate, list(logger.handlers)
    row = measure(log, 4)
    assert row.request_us > 0
    assert row.json_us > 0
    assert f"log {row.log}" in str(row)
    assert (logger.level, logger.propagate, list(logger.handlers)) == before
