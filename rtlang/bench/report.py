"""The report of a comparison: turns pairs of runs into medians, ratios and spreads, and these into tables.

Each row compares our runs with the baseline's on one workload. The two sides alternate, so each ratio is taken within a pair of
consecutive runs and is not affected by drift of the machine's speed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from rich import box
from rich.console import JustifyMethod
from rich.table import Table

from rtlang.bench.measure import Measurement, agreement

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Side:
    """The figures of one engine: medians over its runs, and percentiles over the graphs of all runs. Times are in seconds."""

    output_tokens_per_s: float
    total_s: float
    latency_p50_s: float
    latency_p99_s: float
    first_token_p50_s: float
    cached_share: float
    peak_bytes: int | None
    num_output_tokens: int


@dataclass(frozen=True, slots=True)
class Row:
    """One workload.

    Attributes:
        ratio: our output tokens per second divided by the baseline's, median of the pairs; ratio_min and ratio_max are the extremes.
        machine_share: the time that the machine needs at least to read the weights once a step, or to multiply them with all computed
            tokens, relative to our time, median of the runs; None if not measured.
        program_ratio: the same for programs per second, which counts objects where lengths differ.
        cpu_ratio: as `ratio`, per second of processor time, which does not depend on other load on the machine; None if not measured.
            Meaningful with one thread only, since waiting threads may spin.
        num_equal: how many of the num_compared generations of the last pair have the same tokens on both sides.
    """

    workload: str
    summary: str
    ours: Side
    baseline: Side
    ratio: float
    ratio_min: float
    ratio_max: float
    program_ratio: float
    machine_share: float | None
    cpu_ratio: float | None
    num_pairs: int
    num_equal: int
    num_compared: int


@dataclass(frozen=True, slots=True)
class Report:
    """All rows of one benchmark, and the environment they were measured in.

    Attributes:
        command: the command line as typed.
        machine, model: their descriptions.
        versions: versions of packages, by name.
        baseline: what it is compared with.
        notes: explanations needed to interpret the figures.
        fp32_equal, fp32_compared: number of float32 generations whose greedy tokens are the same on both sides, and number tried.
    """

    command: str
    machine: str
    model: str
    dtype: str
    num_threads: int
    versions: dict[str, str | None]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    fp32_equal: int
    fp32_compared: int
    baseline: str = "transformers static batching"

    @property
    def is_sound(self) -> bool:
        """Whether both sides do the same work: most greedy outputs agree in float32 (two logits may tie within rounding)."""
        return 4 * self.fp32_equal >= 3 * self.fp32_compared

    def to_plain(self) -> dict[str, Any]:
        """The report as maps, lists and scalars."""
        return asdict(self)

    def to_table(self) -> Table:
        """The rows as a table for the terminal."""
        table = Table(
            title=f"rtlang against {self.baseline}",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            padding=(0, 1, 0, 0),
        )
        for index, header in enumerate(_HEADERS):
            justify: JustifyMethod = "left" if index == 0 else "right"
            table.add_column(header, justify=justify, no_wrap=index == 0 or "(" in header)  # unreadable if wrapped
        for row in self.rows:
            for line in _lines(row):
                table.add_row(*line)
        return table

    def to_markdown(self) -> str:
        """The rows as a markdown table, followed by the facts."""
        lines = [
            "| " + " | ".join(_HEADERS) + " |",
            "|---|" + "---:|" * (len(_HEADERS) - 1),
            *("| " + " | ".join(line) + " |" for row in self.rows for line in _lines(row)),
            "",
            *(f"- {line}" for line in self.facts()),
        ]
        return "\n".join(lines) + "\n"

    def facts(self) -> list[str]:
        """What was measured, where, and how far the outputs agree; one line per fact."""
        packages = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        return [
            f"`{self.command}` on {self.machine}",
            f"{self.model}; {self.dtype}, {self.num_threads} threads; {packages}",
            *map(_about, self.rows),
            *self.notes,
            f"float32 greedy tokens equal on both sides: {self.fp32_equal} of {self.fp32_compared} generations tried",
        ]


def compare(
    workload: str,
    summary: str,
    ours: Sequence[Measurement],
    baseline: Sequence[Measurement],
    *,
    is_agreement_due: bool = True,
    least_s: Callable[[Measurement], float] | None = None,
) -> Row:
    """Build the row of a workload from its runs; ours[i] and baseline[i] form a pair.

    Args:
        least_s: the time that the machine needs at least for one of our runs, in seconds.
        is_agreement_due: whether both sides should produce the same tokens, so that comparing them is meaningful.
    Raises:
        ValueError: there are no runs, or a run has no counterpart.
    """
    if not ours or len(ours) != len(baseline):
        raise ValueError(f"{len(ours)} and {len(baseline)} runs cannot be paired")
    ratios = [a.output_tokens_per_s / b.output_tokens_per_s for a, b in zip(ours, baseline, strict=True)]
    cpu_ratios = [
        (a.num_output_tokens / a.cpu_s) / (b.num_output_tokens / b.cpu_s)
        for a, b in zip(ours, baseline, strict=True)
        if a.cpu_s and b.cpu_s
    ]
    equal, compared = agreement(ours[-1], baseline[-1]) if is_agreement_due else (0, 0)
    return Row(
        workload=workload,
        summary=summary,
        ours=_side(ours),
        baseline=_side(baseline),
        ratio=median(ratios),
        ratio_min=min(ratios),
        ratio_max=max(ratios),
        machine_share=None if least_s is None else median(least_s(run) / run.total_s for run in ours),
        program_ratio=median(b.total_s / a.total_s for a, b in zip(ours, baseline, strict=True)),
        cpu_ratio=median(cpu_ratios) if cpu_ratios else None,
        num_pairs=len(ratios),
        num_equal=equal,
        num_compared=compared,
    )


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest of `values` that at least a `share` (above 0, at most 1) of them do not exceed.

    Raises:
        ValueError: there are no values, or `share` is out of range.
    """
    if not values or not 0 < share <= 1:
        raise ValueError("expected at least one value and a share above 0 and at most 1")
    return sorted(values)[math.ceil(share * len(values)) - 1]


def _side(runs: Sequence[Measurement]) -> Side:
    latencies = [latency for run in runs for latency in run.latencies_s]
    peaks = [run.peak_bytes for run in runs if run.peak_bytes is not None]
    return Side(
        output_tokens_per_s=median(run.output_tokens_per_s for run in runs),
        total_s=median(run.total_s for run in runs),
        latency_p50_s=percentile(latencies, 0.5),
        latency_p99_s=percentile(latencies, 0.99),
        first_token_p50_s=percentile([first for run in runs for first in run.first_token_s], 0.5),
        cached_share=sum(run.cached_tokens for run in runs) / max(1, sum(run.prompt_tokens for run in runs)),
        peak_bytes=max(peaks, default=None),
        num_output_tokens=round(median(run.num_output_tokens for run in runs)),
    )


_HEADERS = (
    "workload",
    "tok/s",
    "ratio (min-max)",
    "p50 s",
    "p99 s",
    "first s",
    "cached",
    "MiB",
    "same",
)


def _about(row: Row) -> str:
    """One line that describes what a row measures."""
    by_cpu = "" if row.cpu_ratio is None else f"; ratio by processor time {row.cpu_ratio:.2f}"
    share = "" if row.machine_share is None else f"; {row.machine_share:.0%} of the machine"
    programs = f"ratio of programs a second {row.program_ratio:.2f}"
    return f"{row.workload}: {row.summary}; pairs of runs: {row.num_pairs}; {programs}{by_cpu}{share}"


def _lines(row: Row) -> list[list[str]]:
    """The two lines of a workload: ours, with the comparison, and the baseline's."""
    ratio = f"{row.ratio:.2f} ({row.ratio_min:.2f}-{row.ratio_max:.2f})"
    same = f"{row.num_equal}/{row.num_compared}" if row.num_compared else "-"
    return [
        [row.workload, *_figures(row.ours, ratio), same],
        ["baseline", *_figures(row.baseline, "1"), ""],
    ]


def _figures(side: Side, ratio: str) -> list[str]:
    return [
        f"{side.output_tokens_per_s:.0f}",
        ratio,
        f"{side.latency_p50_s:.2f}",
        f"{side.latency_p99_s:.2f}",
        f"{side.first_token_p50_s:.2f}",
        f"{side.cached_share:.0%}",
        "?" if side.peak_bytes is None else f"{side.peak_bytes / MIB:.0f}",
    ]
