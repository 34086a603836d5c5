"""Log lines never make a process wait for whoever reads them, and are not lost while somebody does."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rtlang.contract.process.log_writer import MAX_WAITING_BYTES, LogWriter

NUM_LINES = 5_000  # of 1 kB: more than a pipe and the queue hold together
SCRIPT = """
import logging, sys
from rtlang.contract.process.logs import configure_logs
configure_logs('INFO', is_json=True)
log = logging.getLogger('rtlang.requests')
for number in range({num_lines}):
    log.info('%d ' + 'x' * 1000, number)
print('logged', flush=True)
sys.stdin.read()
log.info('the last one' + {more})
{end}
"""


def started(num_lines: int, more: str = "''", end: str = "") -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    script = SCRIPT.format(num_lines=num_lines, more=more, end=end)
    return subprocess.Popen([sys.executable, "-c", script], stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def test_a_process_whose_log_nobody_reads_goes_on_and_ends() -> None:
    with started(NUM_LINES) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "logged\n"
        process.stdin.close()
        assert process.wait(60) == 0


def test_a_late_reader_gets_the_lines_in_order_and_the_number_of_those_lost() -> None:
    with started(NUM_LINES) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "logged\n"
        messages = [json.loads(process.stderr.readline())["message"] for _ in range(100)]
        process.stdin.close()
        messages += [json.loads(line)["message"] for line in process.stderr]
    numbers = [int(each.split()[0]) for each in messages if each.endswith("x")]
    assert numbers == list(range(len(numbers)))
    assert MAX_WAITING_BYTES < len(numbers) * 1200 < NUM_LINES * 1200
    assert f"{NUM_LINES - len(numbers)} log lines were lost, because nobody read them in time" in messages
    assert messages[-1] == "the last one"


@pytest.mark.parametrize("length", [0, 5_000])
def test_the_last_line_before_a_crash_is_written(length: int) -> None:
    with started(0, f"'y' * {length}", "import os; os._exit(3)") as process:
        output, errors = process.communicate("", 60)
    assert output == "logged\n"
    assert json.loads(errors)["message"] == "the last one" + "y" * length


@pytest.mark.parametrize("is_file", [True, False])
def test_long_lines_are_written_whole(is_file: bool, tmp_path: Path) -> None:
    reading, writing = (-1, os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)) if is_file else os.pipe()
    with os.fdopen(writing, "w", encoding="utf-8") as stream:
        handler = LogWriter(stream)
        for number in range(3):
            handler.handle(logging.LogRecord("a", logging.INFO, "x.py", 1, "%d" + "é" * 10_000, (number,), None))
        handler.flush()
    text = (tmp_path / "log").read_text(encoding="utf-8") if is_file else os.read(reading, 100_000).decode()
    if not is_file:
        os.close(reading)
    assert text.split() == [f"{number}" + "é" * 10_000 for number in range(3)]


def test_a_stream_without_a_descriptor_is_written_to() -> None:
    stream = io.StringIO()
    handler = LogWriter(stream)
    handler.handle(logging.LogRecord("a", logging.INFO, "x.py", 1, "hello", (), None))
    assert stream.getvalue() == "hello\n"
