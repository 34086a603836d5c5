"""Parts of a run, each a process with a time limit: a part that fails, hangs or loses the device costs only its own limit.

A process writes its figures to a file of its own as soon as they are known, so they survive its end and the end of the run.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtlang_kernels_bench.output import Output

ENDING_S = 10.0
"""Limit for a killed process to end."""
BUDGET_SHARE = 0.85
"""Share of its limit after which a part starts no new measurement."""
MIN_LIMIT_S = 15.0
"""A part is not started with less time than this, or than its own limit if that is less."""
_FIGURES = ".jsonl"


@dataclass(frozen=True, slots=True)
class Part:
    """A command that measures something.

    Attributes:
        name: also of its files.
        arguments: of the interpreter. Options `--json FILE` and, with `has_budget`, `--budget-s SECONDS` are added.
    """

    name: str
    limit_s: float
    arguments: tuple[str, ...]
    has_budget: bool = True


def run_parts(
    parts: Sequence[Part],
    folder: Path,
    output: Output,
    budget_s: float,
    *,
    then: Callable[[], None] = lambda: None,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Run the parts in order, as far as the budget allows. Each may use the time that those before it left.

    Args:
        folder: receives NAME.jsonl, the figures of each part, and NAME.log, its output.
        output: receives the lines of all parts, and their failures.
        then: called after each part.
    """
    started = clock()
    for part in parts:
        limit_s = min(part.limit_s, budget_s - (clock() - started))
        if limit_s < min(MIN_LIMIT_S, part.limit_s):
            output.fail(part.name, "not run: out of time")
            continue
        output.write(f"== {part.name}, at most {limit_s:.0f} s")
        with output.part(part.name):
            _run(part, folder, output, limit_s)
        then()


def read_figures(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The figures of each part that ran. A line that was cut off is left out."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(folder.glob(f"*{_FIGURES}")):
        figures = found.setdefault(path.stem, [])
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            with suppress(ValueError):
                if isinstance(figure := json.loads(line), dict):
                    figures.append(figure)
    return found


def _run(part: Part, folder: Path, output: Output, limit_s: float) -> None:
    """Run a part.

    Raises:
        TimeoutError: it was killed after its limit.
        RuntimeError: it ended with another status than 0.
    """
    command = [sys.executable, *part.arguments, "--json", str(folder / f"{part.name}{_FIGURES}")]
    if part.has_budget:
        command += ["--budget-s", f"{BUDGET_SHARE * limit_s:.1f}"]
    end = time.monotonic() + limit_s
    with open(folder / f"{part.name}.log", "w", encoding="utf-8") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            start_new_session=True,  # its own processes are killed with it
        )
        assert process.stdout is not None
        stream = process.stdout

        def read() -> None:
            # The log is closed early if a process that was left holds the stream.
            with stream, suppress(ValueError):
                for line in stream:
                    log.write(line)
                    log.flush()
                    output.write(line.rstrip("\n"))

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        try:
            status = process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"killed after {limit_s:.0f} s") from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):  # a process that waits for the device may not end
                process.wait(ENDING_S)
            reader.join(ENDING_S)
    if status != 0:
        raise RuntimeError(f"ended with status {status}; its output is in {part.name}.log")
