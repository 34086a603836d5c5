"""Lines to and from a process, and what is said when it ends."""

from __future__ import annotations

import sys

import pytest

from rtlang.bench.baselines.worker_process import WorkerProcess
from rtlang.bench.machine import resident_bytes
from rtlang.contract.errors import RtlangError

ECHO = """
import json, sys
print(json.dumps({"arguments": sys.argv[1:]}), flush=True)
for line in sys.stdin:
    if "end" in line:
        sys.exit("it is enough")
    print(line, end="", flush=True)
"""


def test_lines_are_answered_until_the_process_ends() -> None:
    process = WorkerProcess("echo", [sys.executable, "-S", "-c", ECHO, "a"])
    assert process.first == {"arguments": ["a"]}
    assert process.ask({"x": [1, 2]}) == {"x": [1, 2]}
    assert resident_bytes(process.proc) > 1 << 20
    with pytest.raises(RtlangError, match="echo ended with code 1: it is enough"):
        process.ask("end")
    process.close()


def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(RtlangError, match="vllm_python = /nowhere/python"):
        WorkerProcess("vLLM", ["/nowhere/python"], field="vllm_python")
