"""Figures of runs: latencies in seconds, token gaps in multiples of the target, throughput, and the error of the cost model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import mean, median

import numpy as np

from rtlang.bench.measure import percentile
from rtlang.engine.planning.step_cost import StepSize
from rtlang_bench.arrivals.step_times import StepTimes
from rtlang_bench.arrivals.timed_engine import Gap, StepRecord, TimedEngine

THROUGHPUT_GOAL = 0.97
"""Least share of the best fixed setting's throughput."""
GAP_GOAL = 1.3
"""Most that the 99th percentile of the token gap may be, in targets."""
GAP_IN_PLAIN_STEPS = 4.0
"""The target of a token gap where no time is set, in steps without prompts."""


class PlainSteps:
    """The measured time of steps that only decode, by their number of rows: medians of all runs, so it is the same for every setting.

    Attributes:
        times: fitted to all steps.
    """

    def __init__(self, steps: Iterable[StepRecord], target_gap_s: float | None = None) -> None:
        steps = list(steps)
        self.times = StepTimes(steps)
        by_size: dict[int, list[StepRecord]] = defaultdict(list)
        for step in steps:
            if step.is_plain:
                by_size[step.num_rows.bit_length()].append(step)
        found = [by_size[size] for size in sorted(by_size)]
        self._rows = [mean(step.num_rows for step in group) for group in found]
        self._seconds = [median(step.seconds for step in group) for group in found]
        self._times = {size: [step.seconds for step in group] for size, group in by_size.items()}
        self._target_gap_s = target_gap_s

    def seconds(self, num_rows: int) -> float:
        """Time of a step of so many decoding rows; NaN if no such step was measured."""
        return float(np.interp(num_rows, self._rows, self._seconds)) if self._rows else float("nan")

    def noise(self, num_rows: int) -> float:
        """The 99th percentile of the time of steps of about so many rows, relative to their median: of work that is the same."""
        times = self._times.get(num_rows.bit_length(), [])
        return percentile(times, 0.99) / median(times) if times else float("nan")

    def target_s(self, num_rows: int) -> float:
        """The target of the gap between two tokens of so many rows."""
        return self._target_gap_s or GAP_IN_PLAIN_STEPS * self.seconds(num_rows)

    def steady_target_s(self, plain: StepSize) -> float:
        """The target in fitted time, for a step whose decoding rows alone are `plain`."""
        return self._target_gap_s or GAP_IN_PLAIN_STEPS * self.times.seconds(plain)


@dataclass(frozen=True, slots=True)
class RunFigures:
    """The figures of one setting under one workload, over all its runs.

    Attributes:
        first_token_s: p50 and p99.
        gap: p50, p99 and maximum between two tokens, in targets.
        wall_gap: p99 in time that passed, in targets.
        steady_gap: p99 without the noise of the machine, in targets; see `StepTimes`.
        output_tokens_per_s: from the first arrival to the last end.
        busy_share: share of that time in which the engine worked.
        latency_s: mean and p99 of programs.
        cost_error: mean relative error of the expected time of steps: of all, and of those with prompts.
    """

    workload: str
    setting: str
    first_token_s: tuple[float, float]
    gap: tuple[float, float, float]
    wall_gap: float
    steady_gap: float
    output_tokens_per_s: float
    busy_share: float
    latency_s: tuple[float, float]
    cost_error: tuple[float, float]

    HEAD = (
        "| workload | setting | first token p50 / p99 | gap p50 / p99 / max | wall p99 | steady p99 | output tok/s | busy "
        "| latency mean / p99 | cost error |\n|---|---|---|---|---|---|---|---|---|---|"
    )

    def __str__(self) -> str:
        first, latency = (" / ".join(_seconds(each) for each in pair) for pair in (self.first_token_s, self.latency_s))
        gap = " / ".join(f"{each:.2f}" for each in self.gap)
        errors = " / ".join(f"{each:.0%}" for each in self.cost_error)
        return (
            f"| {self.workload} | {self.setting} | {first} | {gap} | {self.wall_gap:.2f} | {self.steady_gap:.2f} "
            f"| {self.output_tokens_per_s:.0f} | {self.busy_share:.0%} | {latency} | {errors} |"
        )


def figures_of(workload: str, setting: str, runs: Sequence[TimedEngine], plain: PlainSteps) -> RunFigures:
    """The figures of all runs of a setting under a workload."""
    records = [record for run in runs for record in run.records]
    first = [each for record in records for each in record.first_token_s]
    gaps = [gap for run in runs for gap in gaps_of(run, plain)]
    wall_gaps = [gap for run in runs for gap in gaps_of(run, plain, wall=True)]
    latencies = [record.latency_s for record in records]
    total_s = sum(run.now - min(record.load.arrival_s for record in run.records) for run in runs)
    steps = [step for run in runs for step in run.steps if step.predicted_s]
    return RunFigures(
        workload,
        setting,
        (percentile(first, 0.5), percentile(first, 0.99)),
        (percentile(gaps, 0.5), percentile(gaps, 0.99), max(gaps, default=float("nan"))),
        percentile(wall_gaps, 0.99),
        percentile([gap for run in runs for gap in steady_gaps_of(run, plain)], 0.99),
        sum(record.num_generated for record in records) / total_s,
        sum(run.busy_s for run in runs) / total_s,
        (mean(latencies), percentile(latencies, 0.99)),
        (_error(steps), _error([step for step in steps if not step.is_plain])),
    )


def gaps_of(
    run: TimedEngine, plain: PlainSteps, gaps: Iterable[Gap] | None = None, *, wall: bool = False
) -> list[float]:
    """Gaps between tokens (all of the run, unless given) in targets of the step with which each ended.

    Args:
        wall: in time that passed instead of processor time.
    """
    if gaps is None:
        gaps = [gap for record in run.records for gap in record.gaps]
    targets = [plain.target_s(max(1, step.num_decodes)) for step in run.steps]
    return [(gap.wall_s if wall else gap.seconds) / targets[gap.step] for gap in gaps]


def steady_gaps_of(run: TimedEngine, plain: PlainSteps, gaps: Iterable[Gap] | None = None) -> list[float]:
    """Gaps as in `gaps_of`, in fitted times: those of the steps of the gap, relative to the target of the last."""
    if gaps is None:
        gaps = [gap for record in run.records for gap in record.gaps]
    seconds = [plain.times.seconds(step.size) for step in run.steps]
    targets = [plain.steady_target_s(step.plain) for step in run.steps]
    return [sum(seconds[gap.step - gap.num_steps + 1 : gap.step + 1]) / targets[gap.step] for gap in gaps]


def _error(steps: Sequence[StepRecord]) -> float:
    return mean(abs(step.predicted_s - step.seconds) / step.seconds for step in steps) if steps else float("nan")


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if value >= 1 else f"{value * 1e3:.0f} ms"
