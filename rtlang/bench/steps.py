"""Compares plain figures with llama.cpp: decoding of a few rows, reading of a prompt, the time until a first token, and memory.

Each pair has both sides as new processes, bound to the same cores, which take turns; the one that begins alternates. Before the first pair
our side runs once, so that kernels are compiled and the file is in the system's cache for both.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from rich import box
from rich.table import Table

from rtlang.bench.baselines.llama_cpp_engine import LlamaCppEngine
from rtlang.bench.baselines.rtlang_worker import measurement_of
from rtlang.bench.baselines.worker_process import WorkerProcess
from rtlang.bench.machine import Environment, resident_bytes
from rtlang.bench.measure import Measurement
from rtlang.bench.workloads.steps import CASES, tokens_per_s
from rtlang.bench.workloads.text import Codec
from rtlang.contract.config import RuntimeConfig
from rtlang.model.loader import load_tokenizer
from rtlang.model.system_resources import num_cores

CACHE_TOKENS = 4096
READY, MEMORY = "ready", "memory"
_UNITS = {READY: "s", MEMORY: "MiB"}
_HEADERS = ("figure", "unit", "rtlang", "llama.cpp", "ahead (min-max)", "by processor time")


@dataclass(frozen=True, slots=True)
class Pair:
    """A figure of both sides in one pair; processor times in seconds, None where they say nothing."""

    ours: float
    theirs: float
    ours_cpu_s: float | None = None
    theirs_cpu_s: float | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure over all pairs: tokens a second of a case, seconds until a first token, or MiB of resident memory."""

    name: str
    pairs: tuple[Pair, ...]

    @property
    def unit(self) -> str:
        return _UNITS.get(self.name, "tokens/s")

    @property
    def ahead(self) -> list[float]:
        """By pair, how many times better ours is: above 1 it is ahead."""
        is_less_better = self.name in _UNITS
        return [each.theirs / each.ours if is_less_better else each.ours / each.theirs for each in self.pairs]

    @property
    def ahead_by_cpu(self) -> float | None:
        """The median ratio of processor times, which other load on the machine does not change."""
        ratios = [each.theirs_cpu_s / each.ours_cpu_s for each in self.pairs if each.ours_cpu_s and each.theirs_cpu_s]
        return median(ratios) if ratios else None

    def cells(self) -> list[str]:
        """Its line of the table."""
        ours, theirs = (median(getattr(each, side) for each in self.pairs) for side in ("ours", "theirs"))
        by_cpu = self.ahead_by_cpu
        ahead = f"{median(self.ahead):.2f} ({min(self.ahead):.2f}-{max(self.ahead):.2f})"
        shown = (f"{each:.0f}" if each >= 100 else f"{each:.1f}" for each in (ours, theirs))
        return [self.name, self.unit, *shown, ahead, "-" if by_cpu is None else f"{by_cpu:.2f}"]


@dataclass(frozen=True, slots=True)
class StepsReport:
    """All figures, with the model and the machine."""

    environment: Environment
    figures: tuple[Figure, ...]

    @property
    def is_sound(self) -> bool:
        return True

    def to_plain(self) -> dict[str, Any]:
        """The report as plain values."""
        plain = asdict(self)
        return {**plain.pop("environment"), **plain}

    def to_tables(self) -> list[Table]:
        """The table for a terminal."""
        table = Table(title="rtlang against llama.cpp", box=box.SIMPLE_HEAD, pad_edge=False)
        for index, name in enumerate(_HEADERS):
            table.add_column(name, justify="left" if index < 2 else "right", no_wrap=True)
        for figure in self.figures:
            table.add_row(*figure.cells())
        return [table]

    def to_markdown(self) -> str:
        """The table and the facts as Markdown."""
        lines = [_HEADERS, ("---", "---", *["---:"] * (len(_HEADERS) - 2)), *(each.cells() for each in self.figures)]
        table = ["| " + " | ".join(line) + " |" for line in lines]
        return "\n".join([*table, "", *(f"- {line}" for line in self.facts())]) + "\n"

    def facts(self) -> list[str]:
        """What was measured, and where."""
        return [
            *self.environment.facts(f"{len(self.figures[0].pairs)} pairs"),
            "each pair has both sides as new processes on the same cores, in turns; medians, and of the ratios also the extremes",
            "decode N: tokens a second of N requests at once, from the median time between two steps; memory: resident, at the end",
            "ready: from the start of the process until its first token, with the file in the system's cache",
        ]


class OurProcess:
    """Our side in a process of its own."""

    def __init__(self, config: RuntimeConfig, cores: list[int]) -> None:
        usual = RuntimeConfig()
        settings = {
            each.name: value
            for each in fields(config)
            if (value := getattr(config, each.name)) != getattr(usual, each.name)
        }
        command = [sys.executable, "-m", "rtlang.bench.baselines.rtlang_worker"]
        self._process = WorkerProcess("rtlang", [*command, json.dumps({"config": settings, "cores": cores})])
        self.ready_cpu_s: float = self._process.first["cpu_s"]

    def close(self) -> None:
        """End the process."""
        self._process.close()

    @property
    def resident_bytes(self) -> int:
        """Resident memory of the process."""
        return resident_bytes(self._process.proc)

    def run(self, case: str, seed: int) -> Measurement:
        """One run of a case."""
        return measurement_of(self._process.ask({"case": case, "seed": seed}))


class TheirProcess:
    """llama.cpp, with the same cases."""

    def __init__(self, libraries: Path, config: RuntimeConfig, cores: list[int], codec: Codec) -> None:
        self._codec = codec
        self._engine = LlamaCppEngine(
            libraries,
            Path(config.model),
            num_tokens=CACHE_TOKENS,
            num_threads=config.num_threads or num_cores(),
            cores=cores,
        )

    def close(self) -> None:
        """End the process."""
        self._engine.close()

    @property
    def ready_cpu_s(self) -> float:
        """Processor time of the process until its first token."""
        return self._engine.ready_cpu_s

    @property
    def resident_bytes(self) -> int:
        """Resident memory of the process."""
        return self._engine.resident_bytes

    @property
    def version(self) -> str:
        """The version of llama.cpp."""
        return self._engine.version

    def run(self, case: str, seed: int) -> Measurement:
        """One run of a case."""
        return self._engine.run(CASES[case](self._codec, seed=seed), self._codec)


Start = Callable[[], OurProcess | TheirProcess]


def run_steps(
    config: RuntimeConfig,
    *,
    libraries: Path,
    repeats: int = 3,
    seed: int = 0,
    command: str = "",
    tell: Callable[[str], None] = lambda line: None,
) -> StepsReport:
    """Measure all figures.

    Args:
        config: of our side; its model is a GGUF file, and its number of threads applies to both.
        libraries: the folder of llama.cpp's shared libraries.
        repeats: pairs.
    Raises:
        RtlangError: a side does not start or ends early.
    """
    codec = load_tokenizer(Path(config.model))
    num_threads = config.num_threads or num_cores()
    cores = sorted(os.sched_getaffinity(0))[:num_threads]
    ours: Start = lambda: OurProcess(config, cores)  # noqa: E731
    theirs: Start = lambda: TheirProcess(libraries, config, cores, codec)  # noqa: E731
    tell("compiling kernels")
    with closing(ours()) as process:
        for case in CASES:
            process.run(case, seed)
    found: dict[str, list[Pair]] = {name: [] for name in (*CASES, READY, MEMORY)}
    version = ""
    for number in range(repeats):
        tell(f"pair {number + 1} of {repeats}")
        version = _run_pair(ours, theirs, number, seed, found)
    name = Path(config.model).name
    environment = Environment.of(command, name, f"llama.cpp {version}", num_threads)
    return StepsReport(environment, tuple(Figure(each, tuple(pairs)) for each, pairs in found.items()))


def _run_pair(ours: Start, theirs: Start, number: int, seed: int, found: dict[str, list[Pair]]) -> str:
    """Add one pair of every figure; returns the version of llama.cpp."""
    starts = [ours, theirs] if number % 2 == 0 else [theirs, ours]
    started = perf_counter()
    with closing(starts[0]()) as first:
        between = perf_counter()
        with closing(starts[1]()) as second:
            ready = [between - started, perf_counter() - between]
            sides = [first, second]
            is_ours = [isinstance(each, OurProcess) for each in sides]

            def add(name: str, values: list[float], cpu: list[float | None]) -> None:
                a, b = is_ours.index(True), is_ours.index(False)
                found[name].append(Pair(values[a], values[b], cpu[a], cpu[b]))

            none: list[float | None] = [None, None]
            add(READY, ready, [each.ready_cpu_s for each in sides])
            for each in sides:
                each.run(next(reversed(CASES)), seed + 1000)
            for case in CASES:
                runs = [each.run(case, seed + number) for each in sides]
                add(case, [tokens_per_s(each) for each in runs], [each.cpu_s for each in runs])
            add(MEMORY, [each.resident_bytes / (1 << 20) for each in sides], none)
            return next(each.version for each in sides if isinstance(each, TheirProcess))
