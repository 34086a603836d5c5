"""The command `python -m rtlang_bench.device.host_time`: processor time of the engine's thread in a decoding step, without the device's.

The device is pretended (`pretended.py`). Free and constrained batches take turns in one process. The time of a batch is the median of its
replayed steps, of these the least of several turns; what counts is the ratio of constrained to free.
"""

from __future__ import annotations

import json
import os
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from string import ascii_lowercase
from tempfile import TemporaryDirectory
from time import thread_time
from typing import Annotated, Any
from unittest.mock import patch

import typer

from rtlang.bench.measure import run_on_target
from rtlang.console.one_line_errors import one_line_errors
from rtlang.console.source import CommandError
from rtlang.contract.config import MAX_TARGET_GAP_MS, RuntimeConfig
from rtlang.contract.params import Constraint, SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph, Text
from rtlang.engine.engine import Engine
from rtlang.engine.scheduling.scheduler import Scheduler
from rtlang.model.device_runner import DeviceRunner
from rtlang.model.text.tokenizer import Tokenizer
from rtlang.runtime.runtime import Runtime
from rtlang_bench.command import command, progress
from rtlang_bench.device.pretended import ENVIRONMENT, pretended_device, write_model
from rtlang_bench.device.run import COUNTED, FREE_TEXT, RECORDS

GOAL = 1.3
"""Maximum ratio of a constrained step to a free one."""
_PAGE_SIZE = 16
_WORD_LENGTHS = (2, 11)  # letters


@dataclass(frozen=True, slots=True)
class Kind:
    """A batch whose rows all have this constraint.

    Attributes:
        opening, closing: how each text begins and ends.
        part: makes a part of a text, of random words; the constraint allows any number of parts between `opening` and `closing`.
    """

    name: str
    constraint: Constraint | None
    part: Callable[[Random], str]
    opening: str = ""
    closing: str = ""

    def token_ids(self, tokenizer: Tokenizer, random: Random, num_tokens: int) -> list[int]:
        """A random text of at least `num_tokens` tokens, with an end token."""
        found = list(tokenizer.encode(self.opening, is_start=False))
        while len(found) < num_tokens:
            found += tokenizer.encode(self.part(random), is_start=False)
        return [*found, *tokenizer.encode(self.closing, is_start=False), min(tokenizer.eos_token_ids)]


def _word(random: Random) -> str:
    return "".join(random.choices(ascii_lowercase, k=random.randrange(*_WORD_LENGTHS))) + " "


def _record(random: Random) -> str:
    words = [_word(random) for _ in range(4)]
    return f'{{"n":"{words[0]}{words[1]}","tags":["{words[2].strip()}","{words[3].strip()}"]}}\n'


KINDS = (
    Kind("free", None, _word),
    Kind("regex", FREE_TEXT, _word),
    Kind("records", RECORDS, _record),
    Kind("counted", COUNTED, _word, '"', '"'),
)
ALL_KINDS = ",".join(kind.name for kind in KINDS)


@dataclass(frozen=True, slots=True)
class HostTime:
    """The time of a step of one kind.

    Attributes:
        step_ms: thread CPU time of a replayed step, in milliseconds.
        ratio: to the step of the free rows.
        parts_ms: the same by part of the step; parts may contain others.
        num_replayed, num_eager: steps of the last turn.
    """

    kind: str
    num_rows: int
    step_ms: float
    ratio: float
    parts_ms: dict[str, float]
    num_replayed: int
    num_eager: int

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {value:.2f}" for name, value in self.parts_ms.items())
        steps = f"{self.num_replayed} steps replayed, {self.num_eager} not"
        return (
            f"{self.num_rows:>4} rows {self.kind:<8} {self.step_ms:6.2f} ms/step  {self.ratio:5.2f}  ({parts}; {steps})"
        )


class _Clock:
    """Thread CPU time of replayed steps of all rows and of their parts, in seconds."""

    def __init__(self, num_rows: int) -> None:
        self.num_rows = num_rows
        self.runner: Any = None
        self.steps: list[float] = []
        self.parts: defaultdict[str, list[float]] = defaultdict(list)
        self.num_eager = 0

    def clear(self) -> None:
        self.steps.clear()
        self.parts.clear()
        self.num_eager = 0

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """Measure all engines until the exit."""

        def load(run: DeviceRunner) -> None:
            old_load(run)
            self.runner = run

        def step(engine: Engine, now: float) -> Any:
            num_replayed, num_eager = self.runner.num_replayed, self.runner.num_eager
            started = thread_time()
            outputs = old_step(engine, now)
            seconds = thread_time() - started
            self.num_eager += self.runner.num_eager - num_eager
            is_full = engine.last_step is not None and len(engine.last_step.rows) == self.num_rows
            if is_full and self.runner.num_replayed > num_replayed:
                self.steps.append(seconds)
            return outputs

        old_load, old_step = DeviceRunner.load, Engine.step
        parts = [(Scheduler, "schedule"), (Engine, "_apply")]
        parts += [(DeviceRunner, name) for name in ("launch", "sample", "collect")]
        with patch.object(DeviceRunner, "load", load), patch.object(Engine, "step", step):
            patches = [patch.object(owner, name, self._timed(getattr(owner, name), name)) for owner, name in parts]
            for each in patches:
                each.start()
            try:
                yield
            finally:
                for each in patches:
                    each.stop()

    def _timed(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        times = self.parts

        def timed(*args: Any, **options: Any) -> Any:
            started = thread_time()
            try:
                return function(*args, **options)
            finally:
                times[name.strip("_")].append(thread_time() - started)

        return timed


def measure(
    num_rows: int,
    kinds: tuple[Kind, ...] = KINDS,
    *,
    num_turns: int = 3,
    num_tokens: int = 160,
    tell: Callable[[str], None] = lambda text: None,
) -> list[HostTime]:
    """Decode `num_rows` rows of each kind in turns; one result for each kind. The first kind is the base of the ratios.

    Args:
        num_tokens: tokens of each row, or a few more.
        tell: receives a line about the present work.
    """
    clock, max_tokens = _Clock(num_rows), 2 * num_tokens + 64  # so far off that no constraint replaces a token
    steps_of: defaultdict[str, list[float]] = defaultdict(list)
    parts_of: defaultdict[str, dict[str, float]] = defaultdict(dict)
    counts: dict[str, tuple[int, int]] = {}
    with TemporaryDirectory(prefix="rtlang-bench-") as folder, pretended_device() as script, clock.measuring():
        config = RuntimeConfig(
            model=str(write_model(Path(folder))),
            device="interpreter",
            weights="dummy",
            dtype="bfloat16",
            page_size=_PAGE_SIZE,
            num_pages=num_rows * (4 + max_tokens // _PAGE_SIZE) + 64,
            max_rows=num_rows,
            max_step_tokens=8192,
            max_model_len=1024,
            target_gap_ms=MAX_TARGET_GAP_MS,  # the prompts are computed in few steps
            num_threads=1,
        )
        random = Random(0)
        with Runtime(config=config) as runtime:
            for turn in range(num_turns + 1):  # the first one compiles and exports automata
                for kind in kinds:
                    tell(f"{num_rows} rows, {kind.name}, turn {turn} of {num_turns}")
                    texts = [kind.token_ids(runtime.tokenizer, random, num_tokens) for _ in range(num_rows)]
                    script.set(texts)
                    graphs = _graphs(num_rows, max_tokens, kind.constraint)
                    clock.clear()
                    run_on_target(runtime, graphs)
                    if not turn:
                        continue
                    steps_of[kind.name].append(1e3 * statistics.median(clock.steps))
                    counts[kind.name] = len(clock.steps), clock.num_eager
                    best = parts_of[kind.name]
                    for name, times in clock.parts.items():
                        middle = 1e3 * statistics.median(times)
                        best[name] = min(middle, best.get(name, middle))
    least = {name: min(times) for name, times in steps_of.items()}
    base = least[kinds[0].name]
    return [
        HostTime(name, num_rows, step_ms, step_ms / base, parts_of[name], *counts[name])
        for name, step_ms in least.items()
    ]


def _graphs(num_rows: int, max_tokens: int, constraint: Constraint | None) -> list[RequestGraph]:
    params = SamplingParams(max_tokens=max_tokens, temperature=0.8)
    return [
        RequestGraph(
            (
                Text(0, None, (f"Row {row} of {num_rows}:",)),
                Generate(1, 0, "out", replace(params, seed=row), constraint),
            )
        )
        for row in range(num_rows)
    ]


def bench_host_time(
    rows: Annotated[str, typer.Option(help="Comma-separated numbers of rows.")] = "128",
    kinds: Annotated[str, typer.Option(help="Comma-separated kinds; the first one is the base.")] = ALL_KINDS,
    turns: Annotated[int, typer.Option(min=1, help="Repeats of each kind.")] = 3,
    tokens: Annotated[int, typer.Option(min=8, help="Tokens of each row.")] = 160,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write all figures to this file.")] = None,
) -> None:
    """Measure the host's time of a decoding step, of free and of constrained rows, without a GPU."""
    os.environ.update(ENVIRONMENT)
    with one_line_errors():
        by_name = {kind.name: kind for kind in KINDS}
        if not set(kinds.split(",")) <= by_name.keys():
            raise CommandError(f"--kinds {kinds}: expected some of {ALL_KINDS}")
        if not all(count.isdecimal() and int(count) for count in rows.split(",")):
            raise CommandError(f"--rows {rows}: expected positive numbers")
        chosen = tuple(by_name[name] for name in kinds.split(","))
        with progress() as tell:
            found = [
                each
                for count in rows.split(",")
                for each in measure(int(count), chosen, num_turns=turns, num_tokens=tokens, tell=tell)
            ]
        for each in found:
            typer.echo(str(each))
        typer.echo(f"goal: at most {GOAL} times the step of free rows")
        if json_file is not None:
            json_file.write_text("".join(json.dumps(asdict(each)) + "\n" for each in found))


app = command(bench_host_time)

if __name__ == "__main__":
    app()
