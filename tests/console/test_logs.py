"""Log lines as JSON."""

from __future__ import annotations

import json
import logging
import sys

from rtlang.console.logs import JsonFormatter


def test_a_record_is_one_object_on_one_line() -> None:
    record = logging.LogRecord("rtlang.serve", logging.WARNING, "x.py", 1, "two\nlines of %s", ("it",), None)
    record.stream = 7
    line = JsonFormatter().format(record)
    assert "\n" not in line
    found = json.loads(line)
    assert found.pop("time").endswith("+00:00")
    assert found == {"level": "WARNING", "logger": "rtlang.serve", "message": "two\nlines of it", "stream": 7}


def test_an_exception_has_its_traceback_and_odd_values_are_text() -> None:
    try:
        raise ValueError("no")
    except ValueError:
        record = logging.LogRecord("a", logging.ERROR, "x.py", 1, "failed", (), sys.exc_info())
    record.peer = object()
    found = json.loads(JsonFormatter().format(record))
    assert "ValueError: no" in found["exception"]
    assert found["peer"].startswith("<object")
