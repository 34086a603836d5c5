"""Checks in a separate process; scripts that hang, exit or cannot use the GPU stand in for the real one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Empty
from typing import ClassVar

import pytest
import torch

pytest.importorskip("triton")  # not available on every platform

from rtlang_kernels_bench import check_process, device_checks
from rtlang_kernels_bench.output import Output

CPU = torch.device("cpu")
NAMES = ["a", "b", "c", "d"]
BEGIN = """
import json, sys, time
def tell(**report):
    print(json.dumps(report), flush=True)
first = int(sys.argv[1])
"""


@pytest.fixture(autouse=True)
def four_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(device: torch.device) -> float:
        return 0.5

    monkeypatch.setattr(device_checks, "checks", lambda: iter([(name, check) for name in NAMES]))
    monkeypatch.setattr(check_process, "MAX_COMPILE_PROCESSES", 0)


def said(script: str, *, is_late: int = 99) -> tuple[list[str], int]:
    """Output of a run with a process of this code; it is late after `starts` starts."""
    starts: list[int] = []

    def late() -> bool:
        starts.append(1)
        return len(starts) > is_late

    lines: list[str] = []
    with Output(echo=lines.append) as output:
        command = (sys.executable, "-c", BEGIN + script)
        check_process.run(output, CPU, late, command=command, longest_s=60.0)
    return lines, output.num_failed


def test_checks_are_reported_and_foreign_output_is_ignored() -> None:
    script = "sys.stdout.buffer.write(b'hello \\xff\\n')\ntell(is_ready=True)\nprint('[1]')\n"
    script += "for name in 'abcd'[first:]: tell(name=name, error=0.25)"
    assert said(script) == ([f"check {name}: error 2.5e-01" for name in NAMES], 0)


def test_a_check_that_ends_the_process_fails_only_itself() -> None:
    script = "tell(is_ready=True)\nfor name in 'abcd'[first:]:\n"
    script += "    if name == 'b': sys.exit(139)\n    tell(name=name, error=0)"
    lines, num_failed = said(script)
    assert lines == [
        "check a: error 0.0e+00",
        "FAILED check b: its process ended with status 139",
        "check c: error 0.0e+00",
        "check d: error 0.0e+00",
    ]
    assert num_failed == 1


def test_a_lost_device_is_available_again_in_the_next_process() -> None:
    script = "tell(is_ready=True)\nfor name in 'abcd'[first:]:\n"
    script += "    if name == 'c':\n        tell(name=name, failed='RuntimeError: an illegal memory access')\n        sys.exit(4)\n"
    script += "    tell(name=name, error=0)"
    lines, num_failed = said(script)
    assert lines[2:] == ["FAILED check c: RuntimeError: an illegal memory access", "check d: error 0.0e+00"]
    assert num_failed == 1
    assert said("tell(is_ready=True)\nsys.exit(4)")[0] == [
        f"FAILED check {name}: its process ended with status 4" for name in NAMES
    ]


class Silent:
    """Lines of a process that writes nothing after them."""

    def __init__(self, *reports: dict[str, object]) -> None:
        self.lines = [json.dumps(report) for report in reports]

    def get(self, timeout: float) -> str:
        assert timeout == 60.0
        if not self.lines:
            raise Empty
        return self.lines.pop(0)


def test_a_hanging_check_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    ready = {"is_ready": True}
    silent = [Silent(ready, {"name": "a", "error": 0}), Silent(ready), Silent()]
    alive: list[str] = []

    @contextmanager
    def lines(command: list[str]) -> Iterator[tuple[None, Silent]]:
        alive.append(command[-1])
        yield None, silent.pop(0)
        alive.append("ended")

    monkeypatch.setattr(check_process, "_lines", lines)
    told, num_failed = said("")
    assert told[0] == "check a: error 0.0e+00"
    assert told[1:] == [f"FAILED check {name}: hangs: no output for 60 s" for name in "bcd"]
    assert alive == ["0", "ended", "2", "ended", "3", "ended"]
    assert num_failed == 3


def test_a_process_does_not_outlive_its_context() -> None:
    script = "import time; print('begun', flush=True); time.sleep(1000)"
    with check_process._lines((sys.executable, "-c", script)) as (process, found):
        assert found.get() == "begun\n"
        assert process.poll() is None
    assert process.returncode == -signal.SIGKILL


def test_a_silent_process_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_process, "ENDING_S", 0.1)
    script = "import os\ntell(is_ready=True)\nfor name in 'abcd'[first:]:\n"
    script += "    if name == 'b':\n        os.close(1)\n        time.sleep(1000)\n"
    script += "    tell(name=name, error=0)"
    lines, num_failed = said(script)
    assert lines[:2] == [
        "check a: error 0.0e+00",
        "FAILED check b: its process closed its output and does not end",
    ]
    assert lines[2:] == ["check c: error 0.0e+00", "check d: error 0.0e+00"]
    assert num_failed == 1


def test_a_process_whose_output_is_held_open_is_not_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_process, "ENDING_S", 0.1)
    script = "import subprocess, sys, time\n"
    script += "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)'])\n"
    script += "print(child.pid, flush=True)\ntime.sleep(1000)"
    with check_process._lines((sys.executable, "-c", script)) as (process, found):
        child = int(str(found.get()))
    try:
        assert process.stdout is not None
        assert not process.stdout.closed  # somebody reads there still
    finally:
        os.kill(child, signal.SIGKILL)
    assert found.get(timeout=60) is None
    assert process.stdout.closed


def test_the_checks_run_here_if_no_other_process_can_use_the_gpu() -> None:
    lines, num_failed = said("sys.exit(1)")
    assert lines == [
        "no other process can use the GPU (its process ended with status 1): running the checks in this process",
        *(f"check {name}: error 5.0e-01" for name in NAMES),
    ]
    assert num_failed == 0


def test_no_process_starts_after_the_budget() -> None:
    lines, _ = said("tell(is_ready=True)\ntell(name='abcd'[first], error=0)\nsys.exit(4)", is_late=3)
    assert lines == [
        "check a: error 0.0e+00",
        "check b: error 0.0e+00",
        "2 kernel checks were skipped: out of time",
    ]


def test_the_process_continues_after_a_failed_check_and_ends_with_the_device(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def wrong(device: torch.device) -> float:
        raise ArithmeticError("error 3,\nless is allowed")

    checks = [("a", wrong), ("b", wrong), ("c", lambda device: 0.5), ("d", wrong)]
    monkeypatch.setattr(device_checks, "checks", lambda: iter(checks))
    assert check_process.main(["1"], CPU) == 0
    failed = {"failed": "ArithmeticError: error 3, less is allowed"}
    reports = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert reports == [{"is_ready": True}, {"name": "b"} | failed, {"name": "c", "error": 0.5}, {"name": "d"} | failed]
    assert check_process._answers(CPU)
    monkeypatch.setattr(check_process, "_answers", lambda device: False)
    assert check_process.main(["0"], CPU) == check_process.LOST
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_processes_that_compile_beside_each_other_run_every_check_once(tmp_path: Path) -> None:
    script = "import pathlib, sys\nfirst, step = map(int, sys.argv[1:])\n"
    script += f"for name in 'abcdefg'[first::step]: (pathlib.Path({str(tmp_path)!r}) / name).touch(exist_ok=False)\n"
    script += "if first == 1: sys.exit(3)\n"
    check_process.precompile((sys.executable, "-c", script), 3, 60.0)
    assert sorted(path.name for path in tmp_path.iterdir()) == list("abcdefg")


class Hanging:
    """A process that ends only when it is killed."""

    started: ClassVar[list[Hanging]] = []

    def __init__(self, command: Sequence[str], **_: object) -> None:
        self.arguments, self.is_killed = command[-2:], False
        Hanging.started.append(self)

    def kill(self) -> None:
        self.is_killed = True

    def wait(self, timeout: float) -> int:
        if not self.is_killed:
            raise subprocess.TimeoutExpired("x", timeout)
        assert all(each.is_killed for each in Hanging.started), "all end at the same time"
        return -9


def test_processes_that_hang_are_killed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Hanging, "started", [])
    monkeypatch.setattr(check_process.subprocess, "Popen", Hanging)
    check_process.precompile(("x",), 3, 0.01)
    assert [list(each.arguments) for each in Hanging.started] == [["0", "3"], ["1", "3"], ["2", "3"]]
    assert all(each.is_killed for each in Hanging.started)


def test_nothing_is_compiled_first_by_one_process_or_when_it_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_process, "MAX_COMPILE_PROCESSES", 8)
    monkeypatch.setattr(check_process.os, "cpu_count", lambda: 16)
    monkeypatch.setattr(Hanging, "started", [])
    monkeypatch.setattr(check_process.subprocess, "Popen", Hanging)
    check_process.precompile(("x",), 1, 0.01)
    with Output(echo=lambda _: None) as output:
        check_process.run(output, CPU, lambda: True, command=("x",))
    assert Hanging.started == []


def test_a_process_runs_every_so_many_checks(capsys: pytest.CaptureFixture[str]) -> None:
    assert check_process.main(["1", "2"], CPU) == 0
    names = [json.loads(line).get("name") for line in capsys.readouterr().out.splitlines()]
    assert names == [None, *NAMES[1::2]]


def test_the_command_is_the_module_of_this_file() -> None:
    assert check_process.COMMAND[-1] == check_process.__name__
