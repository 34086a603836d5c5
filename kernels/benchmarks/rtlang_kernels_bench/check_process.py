"""Checks of the GPU kernels in a separate process: a kernel that hangs, or makes the device fail, costs only its own check.

`main` is that process: it runs the checks from a given number on and writes a line of JSON for each. `run` starts it, and restarts it after
a check that ended it. Before that, several processes run a part of the checks each, in parallel, to fill the on-disk cache of compiled
kernels.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import Any

import torch

from rtlang_kernels_bench import device_checks
from rtlang_kernels_bench.output import Output

LONGEST_S = 120.0  # between two lines of the process: its imports, or the compilation of a kernel
ENDING_S = 30.0  # limit for a process to end
LOST = 4  # exit status of a process whose device no longer responds
COMMAND = (sys.executable, "-m", "rtlang_kernels_bench.check_process")
MAX_COMPILE_PROCESSES = 8


def run(
    output: Output,
    device: torch.device,
    is_late: Callable[[], bool] = lambda: False,
    *,
    command: Sequence[str] = COMMAND,
    longest_s: float = LONGEST_S,
) -> None:
    """Run all checks and report each: its error, or its failure. No process is started once `is_late`.

    If no other process can use the GPU (in exclusive mode, for example), this process runs the checks.

    Args:
        command: of the process, without its arguments: the number of its first check, and optionally the step to the next one.
        longest_s: the process is ended after this many seconds without output.
    """
    names = [name for name, _ in device_checks.checks()]
    if not is_late():
        precompile(command, min(MAX_COMPILE_PROCESSES, (os.cpu_count() or 1) // 2), longest_s)
    number = 0
    while number < len(names) and not is_late():
        begun, is_ready, reason = number, False, ""
        with _lines([*command, str(number)]) as (process, lines):
            while number < len(names):
                try:
                    line = lines.get(timeout=longest_s)
                except Empty:
                    reason = f"hangs: no output for {longest_s:.0f} s"
                    break
                if line is None:
                    try:
                        status = process.wait(ENDING_S)
                    except subprocess.TimeoutExpired:  # it waits for the device while ending
                        reason = "its process closed its output and does not end"
                        break
                    reason = "" if status == LOST and number > begun else f"its process ended with status {status}"
                    break
                report = _report(line)
                is_ready = is_ready or report is not None
                if report is None or "name" not in report:
                    continue
                if "failed" in report:
                    output.fail(f"check {report['name']}", report["failed"])
                else:
                    output.write(f"check {report['name']}: error {report['error']:.1e}")
                number += 1
        if reason and not is_ready and begun == 0:
            output.write(f"no other process can use the GPU ({reason}): running the checks in this process")
            device_checks.run_checks(output, device)
            return
        if reason:
            output.fail(f"check {names[number]}", reason)
            number += 1
    if number < len(names):
        output.write(f"{len(names) - number} kernel checks were skipped: out of time")


def precompile(command: Sequence[str], num_processes: int, longest_s: float = LONGEST_S) -> None:
    """Fill the on-disk cache of compiled kernels: processes in parallel run every `num_processes`th check each; their results are ignored.

    Args:
        command: of the process, without its arguments.
        num_processes: nothing is started if it is less than 2.
        longest_s: processes that still run after this many seconds are killed.
    """
    if num_processes < 2:
        return
    end = time.monotonic() + longest_s
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for number in range(num_processes):
            arguments = [*command, str(number), str(num_processes)]
            processes.append(
                subprocess.Popen(
                    arguments,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=_environment(),
                )
            )
        _wait_for(processes, end)
    finally:
        for process in processes:
            process.kill()
        _wait_for(processes, time.monotonic() + ENDING_S)  # a process that waits for the device may not end


def _wait_for(processes: Sequence[subprocess.Popen[bytes]], end: float) -> None:
    """Wait until all have ended, or until `end` of the monotonic clock."""
    for process in processes:
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, end - time.monotonic()))


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


@contextmanager
def _lines(command: Sequence[str]) -> Iterator[tuple[subprocess.Popen[str], SimpleQueue[str | None]]]:
    """Start a process and queue its lines, then None; the process ends with the context."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",  # libraries may write anything
        env=_environment(),
    )
    found: SimpleQueue[str | None] = SimpleQueue()
    assert process.stdout is not None
    stream = process.stdout

    def read() -> None:
        with stream:
            for line in stream:
                found.put(line)
        found.put(None)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield process, found
    finally:
        process.kill()
        with suppress(subprocess.TimeoutExpired):  # a process that waits for the device may not end
            process.wait(ENDING_S)
            reader.join(ENDING_S)  # longer only if a child of the process still holds its output


def _report(line: str) -> dict[str, Any] | None:
    """Parse a line of the process; None if another library wrote it."""
    try:
        report = json.loads(line)
    except ValueError:
        return None
    return report if isinstance(report, dict) else None


def main(arguments: Sequence[str], device: torch.device | None = None) -> int:
    """Run the checks from number arguments[0] on, or only every arguments[1]th of these; returns the exit status."""
    device = device or torch.device("cuda", torch.cuda.current_device())
    torch.zeros(1, device=device)
    torch.set_float32_matmul_precision("highest")  # as in `device_run.environment`
    _write({"is_ready": True})
    first, step = (*map(int, arguments), 1)[:2]
    for name, check in list(device_checks.checks())[first::step]:
        try:
            _write({"name": name, "error": check(device)})
        except Exception as error:
            _write({"name": name, "failed": f"{type(error).__name__}: {' '.join(str(error).split())}"})
            if not _answers(device):
                return LOST
    return 0


def _answers(device: torch.device) -> bool:
    """Whether the device still computes after a failure."""
    try:
        return bool(torch.zeros(1, device=device).add(1).item() == 1)
    except RuntimeError:
        return False


def _write(report: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(report) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
