"""Measures the time from `rtlang run` to its first streamed text, with an empty and with a filled compilation cache.

python -m rtlang.bench.cold_start --rounds 3
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from tempfile import TemporaryDirectory, TemporaryFile
from typing import NamedTuple

PROGRAM = "examples/character.py:character"
COMPILE_ALL = ("-c", "from rtlang_grammars.api.precompile import precompile; precompile()")


class Times(NamedTuple):
    """Seconds from the start of a process to the first byte of its output, and to its end."""

    first: float
    whole: float


def timed(command: Sequence[str], environment: Mapping[str, str]) -> Times:
    """Run a command and time it.

    Raises:
        RuntimeError: it failed or wrote nothing; the message contains its error output.
    """
    started = time.perf_counter()
    with (
        TemporaryFile() as said,
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=said) as process,
    ):
        assert process.stdout is not None
        has_text, first = bool(process.stdout.read(1)), time.perf_counter() - started
        process.stdout.read()
        process.wait()
        said.seek(0)
        message = said.read().decode(errors="replace")
    if process.returncode or not has_text:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}: {message[-1000:]}")
    return Times(first, time.perf_counter() - started)


def measure(program: str, rounds: int, run: Callable[[Sequence[str], Mapping[str, str]], Times] = timed) -> str:
    """Measure, and return a table with the medians of all rounds. Each round starts with its own empty cache directory."""
    command = [sys.executable, "-m", "rtlang", "run", program]
    cold, warm = [], []
    for _ in range(rounds):
        with TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # a background compilation may still be writing
            environment = {**os.environ, "NUMBA_CACHE_DIR": folder, "RTLANG_CACHE_DIR": folder}
            cold.append(run(command, environment))
            # The first run may have left a background compilation; the two share their results through the cache.
            subprocess.run([sys.executable, *COMPILE_ALL], env=environment, check=True)
            warm.append(run(command, environment))
    lines = ["| caches | first text | whole run |", "|---|---|---|"]
    for name, times in (("empty", cold), ("filled", warm)):
        first, whole = (statistics.median(column) for column in zip(*times, strict=True))
        lines.append(f"| {name} | {first:.1f} s | {whole:.1f} s |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Time to the first streamed text of a first run.")
    parser.add_argument("--program", default=PROGRAM, help=f"as for `rtlang run`; default: {PROGRAM}")
    parser.add_argument("--rounds", type=int, default=3, help="default: 3")
    options = parser.parse_args()
    if not 1 <= options.rounds <= 100:
        parser.error("--rounds: expected 1 to 100")
    print(measure(options.program, options.rounds))


if __name__ == "__main__":
    main()
