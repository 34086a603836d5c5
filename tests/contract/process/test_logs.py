"""Log lines as JSON."""

from __future__ import annotations

import json
import logging
import subprocess
import sys

import pytest

from rtlang.contract.process.logs import JsonFormatter


def test_a_record_is_one_object_on_one_line() -> None:
    record = logging.LogRecord("rtlang.serve", logging.WARNING, "x.py", 1, "two\nlines of %s", ("it",), None)
    record.stream = 7
    line = JsonFormatter().format(record)
    assert "\n" not in line
    found = json.loads(line)
    assert found.pop("time").endswith("+00:00")
    expected = {"level": "WARNING", "logger": "rtlang.serve", "message": "two\nlines of it", "stream": 7}
    assert found == expected
    found = json.loads(JsonFormatter("engine").format(record))
    assert found.pop("time")
    assert found == expected | {"process": "engine"}


def test_an_exception_has_its_traceback_and_odd_values_are_text() -> None:
    try:
        raise ValueError("no")
    except ValueError:
        record = logging.LogRecord("a", logging.ERROR, "x.py", 1, "failed", (), sys.exc_info())
    record.peer = object()
    found = json.loads(JsonFormatter().format(record))
    assert "ValueError: no" in found["exception"]
    assert found["peer"].startswith("<object")


@pytest.mark.parametrize("is_json", [True, False])
def test_a_process_that_is_not_the_main_one_writes_its_name_in_the_same_form(is_json: bool) -> None:
    script = (
        "import logging; from rtlang.contract.process.logs import configure_logs, writes_json\n"
        f"configure_logs('INFO', is_json={is_json}, process='engine')\n"
        f"assert writes_json() is {is_json}\n"
        "logging.getLogger('a').info('loaded')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    (line,) = done.stderr.splitlines()
    if is_json:
        assert json.loads(line)["process"] == "engine"
    else:
        assert line.endswith("INFO a [engine]: loaded")
