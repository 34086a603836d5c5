"""Runs each workload with all passes, with each pass off in turn, and with none.

The variants of a workload take turns on one runtime, and each ratio of latencies is taken within one turn, so drift of the machine's speed
does not affect it. The prefix cache is emptied before every run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rtlang.bench.machine import Environment
from rtlang.compiler.pipeline import PASSES
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError
from rtlang.model.loader import pick_dtype
from rtlang.runtime.runtime import Runtime
from rtlang_bench.programs.meter import Meter, Run, measure
from rtlang_bench.programs.report import ALL, NONE, Mark, ProgramReport, Table, findings, variant
from rtlang_bench.programs.workloads import MAKERS, SETTINGS, ProgramWorkload

CACHED_SHARE, VOTE_SHARE = 0.95, 0.60


@dataclass(frozen=True, slots=True)
class ProgramOptions:
    """Options of the command.

    Attributes:
        workloads: keys of `workloads.MAKERS`.
        is_quick: small workloads and one turn, which shows that everything runs; timings mean nothing.
        repeats: turns; default 3.
        seed: seed of the texts.
    """

    workloads: tuple[str, ...] = tuple(MAKERS)
    is_quick: bool = False
    repeats: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name in self.workloads or ("",):
            if name not in MAKERS:
                raise ConfigError("workload", name, f"expected one of {', '.join(MAKERS)}")
        if self.repeats is not None and self.repeats < 1:
            raise ConfigError("repeats", self.repeats, "expected a positive integer")

    @property
    def num_repeats(self) -> int:
        return self.repeats or (1 if self.is_quick else 3)


def run_ablation(
    config: RuntimeConfig,
    options: ProgramOptions,
    *,
    command: str = "python -m rtlang_bench.programs",
    tell: Callable[[str], None] = lambda line: None,
) -> ProgramReport:
    """Run the benchmark and return its figures.

    Args:
        config: settings of the runtime; a workload overrides what it needs. With dtype "auto", float32 is used: then greedy and seeded
            texts are the same in every variant.
        command: the command line to show in the report.
        tell: called with a line of text when a part begins.
    Raises:
        ModelLoadError, ConfigError: the model cannot be loaded with these settings.
        RtlangError: a program failed, so there are no figures.
    """
    if config.dtype == "auto":
        config = replace(config, dtype="float32")
    tables = tuple(_measured(name, config, options, tell) for name in options.workloads)
    dtype = str(pick_dtype(config.dtype)).removeprefix("torch.")
    return ProgramReport(
        environment=Environment.of(command, config.model, dtype, config.num_threads),
        num_turns=options.num_repeats,
        tables=tables,
        marks=marks_of(tables),
        findings=findings(tables, PASSES, options.num_repeats),
    )


def marks_of(tables: tuple[Table, ...]) -> tuple[Mark, ...]:
    """The marks that the measured workloads have."""
    found = []
    for table in tables:
        whole = table.variants[0]
        if whole.cached_share is not None:
            text = "agents that waited for tools under pressure: share of their tokens still cached"
            found.append(Mark(text, whole.cached_share, CACHED_SHARE, is_least=True))
        baseline = next((each for each in table.variants if each.name == "all samples"), None)
        if baseline is not None:
            text = "vote of 9 on decided questions: tokens generated, as a share of those of all samples"
            found.append(
                Mark(text, whole.generated_tokens.median / baseline.generated_tokens.median, VOTE_SHARE, is_least=False)
            )
    return tuple(found)


def _measured(name: str, config: RuntimeConfig, options: ProgramOptions, tell: Callable[[str], None]) -> Table:
    config = replace(config, **SETTINGS.get(name, {}))
    with Runtime(config=config) as runtime:
        workload = _made(name, runtime, options, options.seed)
        plays = _plays(workload)
        tell(f"{name}: warm-up")
        measure(runtime, _plays(_made(name, runtime, replace(options, is_quick=True), options.seed + 1))[ALL])
        runs: dict[str, list[Run]] = {each: [] for each in plays}
        for number in range(1, options.num_repeats + 1):
            for each, play in sorted(plays.items(), key=lambda item: item[0], reverse=number % 2 == 0):
                tell(f"{name}: turn {number} of {options.num_repeats}, {each}")
                runs[each].append(measure(runtime, play))
    whole = runs[ALL]
    return Table(name, workload.summary, tuple(variant(each, found, whole) for each, found in runs.items()))


def _plays(workload: ProgramWorkload) -> dict[str, Callable[[Meter], None]]:
    """The variants of a workload by name, the one with all passes first."""
    passes: dict[str, Any] = {ALL: True, **{f"without {name}": f"-{name}" for name in PASSES}, NONE: False}
    plays = {name: _bound(workload.play, {"passes": chosen}) for name, chosen in passes.items()}
    return plays | {name: _bound(play, {"passes": True}) for name, play in workload.baselines.items()}


def _bound(play: Callable[[Meter, Mapping[str, Any]], None], options: Mapping[str, Any]) -> Callable[[Meter], None]:
    return lambda meter: play(meter, options)


def _made(name: str, runtime: Runtime, options: ProgramOptions, seed: int) -> ProgramWorkload:
    return MAKERS[name](runtime.tokenizer, seed=seed, quick=options.is_quick)
