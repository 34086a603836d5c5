"""Measures the memory that a program over many rows takes beyond an idle runtime.

python -m rtlang_bench.programs.row_memory --rows 100000
python -m rtlang_bench.programs.row_memory --rows 2000 --model rtlang:tiny

Rows are generated one by one, and each result is read and dropped (`as_completed`), written to a file (`jsonl`), or kept (`run_batch`).
Without a model the scripted runtime answers, which keeps a record of every request. A runtime with a model has a small KV pool, which
some rows fill before, so that it does not count.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import rtlang as rt
from rtlang.contract.service.target import Target
from rtlang.lang.rows.completed_rows import MAX_IN_FLIGHT
from rtlang.testing import ScriptedRuntime
from rtlang_bench.prompt_memory import sample

GOAL = 300 << 20
"""Bytes beyond an idle runtime, at most."""
WARM_ROWS = 200
NUM_PAGES = 512
"""Of the KV pool of a model: so few that the first rows fill it."""
WAYS = ("as_completed", "jsonl", "run_batch")
_SAMPLE_EVERY = 500  # rows


@rt.program
def straight(s: rt.State, text: str) -> Any:
    """One generation, without a graph break."""
    s += rt.user("Classify: ", text) + rt.assistant(rt.gen("label", max_tokens=8))
    return s["label"]


@rt.program
def breaking(s: rt.State, text: str) -> Any:
    """Two generations, and a graph break between them."""
    s += rt.user("Classify: ", text) + rt.assistant(rt.gen("label", max_tokens=8))
    if s["label"] != "":
        s += rt.user("Why?") + rt.assistant(rt.gen("reason", max_tokens=8))
    return s["label"]


@rt.program
async def awaiting(s: rt.State, text: str) -> Any:
    """The same as a coroutine."""
    s += rt.user("Classify: ", text) + rt.assistant(rt.gen("label", max_tokens=8))
    if await s["label"] != "":
        s += rt.user("Why?") + rt.assistant(rt.gen("reason", max_tokens=8))
    return s["label"]


PROGRAMS: dict[str, rt.Program[[str], Any]] = {each.name: each for each in (straight, breaking, awaiting)}


@dataclass(frozen=True, slots=True)
class RowMemory:
    """Resident bytes of the process before, at most while the rows ran, and the time."""

    num_rows: int
    idle: int
    most: int
    seconds: float
    num_failed: int

    @property
    def added(self) -> int:
        """Bytes beyond the idle runtime."""
        return max(0, self.most - self.idle)

    @property
    def is_met(self) -> bool:
        """Whether the goal is met, and no row failed."""
        return self.added <= GOAL and not self.num_failed

    def __str__(self) -> str:
        return (
            f"{self.num_rows} rows: at most {self.added / 2**20:.0f} MiB above the idle runtime's {self.idle / 2**20:.0f} MiB "
            f"(goal: {GOAL / 2**20:.0f}), {self.added / self.num_rows:.0f} bytes a row; {self.num_failed} failed, "
            f"{1e6 * self.seconds / self.num_rows:.0f} us a row"
        )


def rows(count: int) -> Iterator[dict[str, Any]]:
    """Rows of different texts."""
    for number in range(count):
        yield {"text": f"row {number}: the lamp of shelf {number % 97} is dark"}


def measure(
    runtime: Target,
    program: rt.Program[[str], Any],
    num_rows: int,
    *,
    way: str = "as_completed",
    max_in_flight: int = MAX_IN_FLIGHT,
    tell: Callable[[str], None] = lambda line: None,
) -> RowMemory:
    """Run the program over so many rows in one of `WAYS`."""
    for _ in program.as_completed(rows(WARM_ROWS), runtime=runtime):
        pass
    gc.collect()
    idle = most = sample(0).resident
    num_failed = 0
    started = time.monotonic()

    def note(done: int, total: object) -> None:
        nonlocal most
        if done % _SAMPLE_EVERY == 0 or done == num_rows:
            resident = sample(done).resident
            most = max(most, resident)
            if done % max(1, num_rows // 10) == 0:
                tell(f"{done:8} rows {(resident - idle) / 2**20:8.1f} MiB above idle")

    if way == "as_completed":
        results = program.as_completed(rows(num_rows), runtime=runtime, progress=note, max_in_flight=max_in_flight)
        for result in results:
            num_failed += result.error is not None
    elif way == "jsonl":
        with TemporaryDirectory() as folder:
            path = Path(folder, "results.jsonl")
            num_failed = program.run_to_jsonl(
                rows(num_rows), path, runtime=runtime, progress=note, max_in_flight=max_in_flight
            ).num_failed
    else:
        kept = program.run_batch(rows(num_rows), runtime=runtime, progress=note)
        num_failed = sum(result.error is not None for result in kept)
    return RowMemory(num_rows, idle, most, time.monotonic() - started, num_failed)


def main() -> None:
    parser = argparse.ArgumentParser(description="Memory of a program over many rows.")
    parser.add_argument("--rows", type=int, default=100_000, help="default: 100000")
    parser.add_argument("--program", choices=PROGRAMS, default="straight", help="default: straight")
    parser.add_argument("--way", choices=WAYS, default="as_completed", help="default: as_completed")
    parser.add_argument("--model", default=None, help="default: the scripted runtime, without a model")
    parser.add_argument("--in-flight", type=int, default=MAX_IN_FLIGHT, help=f"default: {MAX_IN_FLIGHT}")
    options = parser.parse_args()

    def tell(line: str) -> None:
        print(line, flush=True)

    scripted = options.model is None
    runtime: Any = (
        ScriptedRuntime({"label": "yes"}) if scripted else rt.Runtime(options.model, num_threads=1, num_pages=NUM_PAGES)
    )
    with runtime:
        program = PROGRAMS[options.program]
        found = measure(runtime, program, options.rows, way=options.way, max_in_flight=options.in_flight, tell=tell)
    tell(str(found))
    sys.exit(not found.is_met)


if __name__ == "__main__":
    main()
