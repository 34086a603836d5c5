"""The report of a comparison: turns pairs of runs into medians, ratios and spreads, and these into tables.

Each row compares our runs with the baseline's on one workload. The two sides alternate, so each ratio is taken within a pair of
consecutive runs and is not affected by drift of the machine's speed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import mean, median
from typing import Any

from rich import box
from rich.console import JustifyMethod
from rich.table import Table

from rtlang.bench.comparison.step_profile import PROFILE_TITLE, Profile, profile_notes, profile_rows
from rtlang.bench.machine import Environment
from rtlang.bench.measure import Measurement, agreement, percentile
from rtlang.bench.workloads.workload import PoissonArrivals, Workload

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Side:
    """The figures of one engine: medians over its runs, and percentiles over the programs or tokens of all runs. Times are in seconds.

    Attributes:
        latency_mean_s, latency_p50_s, latency_p99_s: from the arrival of a program to its end.
        first_token_p50_s, first_token_p99_s: from the arrival of a program to its first token.
        gap_p50_s, gap_p99_s: between two outputs of a generation; None without gaps. Of `longprompt`, only those beside the long prompt.
        cached_share: prompt tokens that were cached.
    """

    output_tokens_per_s: float
    total_s: float
    latency_mean_s: float
    latency_p50_s: float
    latency_p99_s: float
    first_token_p50_s: float
    first_token_p99_s: float
    gap_p50_s: float | None
    gap_p99_s: float | None
    cached_share: float
    peak_bytes: int | None
    num_output_tokens: int


@dataclass(frozen=True, slots=True)
class Row:
    """One workload.

    Attributes:
        baseline, ratio, ratio_min, ratio_max, program_ratio: None if the baseline does not run it; `reason` says why.
        ratio: our output tokens per second divided by the baseline's, median of the pairs; ratio_min and ratio_max are the extremes. Where
            the arrivals of programs decide the tokens per second, the baseline's mean latency divided by ours; see `ratio_of`.
        program_ratio: of programs per second, which counts objects where lengths differ.
        cpu_ratio: of output tokens per second of processor time, which does not depend on other load on the machine; None if not
            measured. Meaningful with one thread only, since waiting threads may spin.
        machine_share: the time that the machine needs at least to read the weights once a step, or to multiply them with all computed
            tokens, relative to our time, median of the runs; None if not measured.
        num_equal: how many of the num_compared generations of the last pair have the same tokens on both sides.
    """

    workload: str
    summary: str
    ours: Side
    baseline: Side | None
    reason: str | None
    ratio_of: str
    ratio: float | None
    ratio_min: float | None
    ratio_max: float | None
    program_ratio: float | None
    cpu_ratio: float | None
    machine_share: float | None
    num_runs: int
    num_equal: int
    num_compared: int


@dataclass(frozen=True, slots=True)
class Report:
    """All rows of one benchmark, and the environment they were measured in.

    Attributes:
        baseline: what it is compared with.
        notes: explanations needed to interpret the figures.
        fp32_equal, fp32_compared: number of float32 generations whose greedy tokens are the same on both sides, and number tried.
        profiles: where our time goes, of the workloads that were run with timers.
    """

    environment: Environment
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    fp32_equal: int
    fp32_compared: int
    baseline: str = "transformers static batching"
    profiles: tuple[Profile, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Whether both sides do the same work: most greedy outputs agree in float32 (two logits may tie within rounding)."""
        return 4 * self.fp32_equal >= 3 * self.fp32_compared

    def to_plain(self) -> dict[str, Any]:
        """The report as maps, lists and scalars."""
        plain = asdict(self)
        return {**plain.pop("environment"), **plain}

    def cells(self) -> list[tuple[str, list[list[str]]]]:
        """The tables: a title, and the cells with the head first."""
        rows = [list(_HEADERS), *(line for row in self.rows for line in _lines(row))]
        tables = [(f"rtlang against {self.baseline}", rows)]
        return [*tables, (PROFILE_TITLE, profile_rows(self.profiles))] if self.profiles else tables

    def to_tables(self) -> list[Table]:
        """The tables for the terminal."""
        tables = []
        for title, (head, *rows) in self.cells():
            table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, padding=0)
            for index, header in enumerate(head):
                justify: JustifyMethod = "left" if index == 0 else "right"
                table.add_column(header, justify=justify, no_wrap=index == 0 or "(" in header)  # unreadable if wrapped
            for line in rows:
                table.add_row(*line)
            tables.append(table)
        return tables

    def to_markdown(self) -> str:
        """The tables as markdown, followed by the facts."""
        lines: list[str] = []
        for _, (head, *rows) in self.cells():
            lines += ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
            lines += ["| " + " | ".join(line) + " |" for line in rows] + [""]
        return "\n".join([*lines, *(f"- {line}" for line in self.facts())]) + "\n"

    def facts(self) -> list[str]:
        """What was measured, where, and how far the outputs agree; one line per fact."""
        return [
            *self.environment.facts(),
            *map(_about, self.rows),
            *self.notes,
            *profile_notes(self.profiles),
            *self._agreement(),
        ]

    def _agreement(self) -> list[str]:
        if not self.fp32_compared:
            return []
        return [
            f"float32 greedy tokens equal on both sides: {self.fp32_equal} of {self.fp32_compared} generations tried"
        ]


def compare(
    workload: Workload,
    ours: Sequence[Measurement],
    baseline: Sequence[Measurement],
    *,
    reason: str | None = None,
    least_s: Callable[[Measurement], float] | None = None,
) -> Row:
    """Build the row of a workload from its runs; ours[i] and baseline[i] form a pair.

    Args:
        reason: why there are no runs of the baseline; None if there are.
        least_s: the time that the machine needs at least for one of our runs, in seconds.
    Raises:
        ValueError: there are no runs, or a run has no counterpart.
    """
    if not ours or (reason is None and len(ours) != len(baseline)):
        raise ValueError(f"{len(ours)} and {len(baseline)} runs cannot be paired")
    pairs = [] if reason is not None else list(zip(ours, baseline, strict=True))
    is_latency = isinstance(workload.arrival, PoissonArrivals)
    if is_latency:
        ratios = [mean(b.latencies_s) / mean(a.latencies_s) for a, b in pairs]
    else:
        ratios = [a.output_tokens_per_s / b.output_tokens_per_s for a, b in pairs]
    cpu_ratios = [
        (a.num_output_tokens / a.cpu_s) / (b.num_output_tokens / b.cpu_s) for a, b in pairs if a.cpu_s and b.cpu_s
    ]
    equal, compared = agreement(*pairs[-1]) if pairs else (0, 0)
    return Row(
        workload=workload.name,
        summary=workload.summary,
        ours=_side(ours, workload.watched),
        baseline=_side(baseline, workload.watched) if pairs else None,
        reason=reason,
        ratio_of="mean latency" if is_latency else "output tokens a second",
        ratio=median(ratios) if pairs else None,
        ratio_min=min(ratios, default=None),
        ratio_max=max(ratios, default=None),
        program_ratio=median(b.total_s / a.total_s for a, b in pairs) if pairs else None,
        cpu_ratio=median(cpu_ratios) if cpu_ratios else None,
        machine_share=None if least_s is None else median(least_s(run) / run.total_s for run in ours),
        num_runs=len(ours),
        num_equal=equal,
        num_compared=compared,
    )


def _side(runs: Sequence[Measurement], watched: int | None) -> Side:
    latencies = [latency for run in runs for latency in run.latencies_s]
    first = [each for run in runs for each in run.first_token_s]
    gaps = [gap for run in runs for gap in run.gaps_s(watched)]
    peaks = [run.peak_bytes for run in runs if run.peak_bytes is not None]
    return Side(
        output_tokens_per_s=median(run.output_tokens_per_s for run in runs),
        total_s=median(run.total_s for run in runs),
        latency_mean_s=mean(latencies),
        latency_p50_s=percentile(latencies, 0.5),
        latency_p99_s=percentile(latencies, 0.99),
        first_token_p50_s=percentile(first, 0.5),
        first_token_p99_s=percentile(first, 0.99),
        gap_p50_s=percentile(gaps, 0.5) if gaps else None,
        gap_p99_s=percentile(gaps, 0.99) if gaps else None,
        cached_share=sum(run.cached_tokens for run in runs) / max(1, sum(run.prompt_tokens for run in runs)),
        peak_bytes=max(peaks, default=None),
        num_output_tokens=round(median(run.num_output_tokens for run in runs)),
    )


_HEADERS = ("workload", "tok/s", "ratio (min-max)", "end s", "first s", "gap ms", "cached", "MiB", "same")
"""The columns; with a slash, a cell has the median and the 99th percentile."""


def _about(row: Row) -> str:
    """One line that describes what a row measures."""
    parts = [f"{row.workload}: {row.summary}"]
    if row.ratio is None or row.baseline is None:
        parts.append(f"not run on the baseline: {row.reason}; runs: {row.num_runs}")
    else:
        parts.append(f"pairs of runs: {row.num_runs}; ratio of {row.ratio_of}")
        if row.ratio_of != "mean latency":
            parts.append(f"ratio of programs a second {row.program_ratio:.2f}")
        if row.baseline.gap_p99_s and row.ours.gap_p99_s:
            parts.append(
                f"the 99th percentile of its gaps is {row.baseline.gap_p99_s / row.ours.gap_p99_s:.2f} times ours"
            )
    if row.cpu_ratio is not None:
        parts.append(f"ratio by processor time {row.cpu_ratio:.2f}")
    if row.machine_share is not None:
        parts.append(f"{row.machine_share:.0%} of the machine")
    return "; ".join(parts)


def _lines(row: Row) -> list[list[str]]:
    """The two lines of a workload: ours, with the comparison, and the baseline's."""
    same = f"{row.num_equal}/{row.num_compared}" if row.num_compared else "-"
    ratio = "-" if row.ratio is None else f"{row.ratio:.2f} ({row.ratio_min:.2f}-{row.ratio_max:.2f})"
    ours = [row.workload, *_figures(row.ours, ratio), same]
    if row.baseline is None:
        return [ours, ["baseline", *["-"] * (len(_HEADERS) - 2), ""]]
    return [ours, ["baseline", *_figures(row.baseline, "1"), ""]]


def _figures(side: Side, ratio: str) -> list[str]:
    return [
        f"{side.output_tokens_per_s:.0f}",
        ratio,
        f"{_short(side.latency_p50_s)}/{_short(side.latency_p99_s)}",
        f"{_short(side.first_token_p50_s)}/{_short(side.first_token_p99_s)}",
        "-" if side.gap_p50_s is None or side.gap_p99_s is None else f"{_ms(side.gap_p50_s)}/{_ms(side.gap_p99_s)}",
        f"{side.cached_share:.0%}",
        "?" if side.peak_bytes is None else f"{side.peak_bytes / MIB:.0f}",
    ]


def _short(seconds: float) -> str:
    return f"{seconds:.2f}" if seconds < 10 else f"{seconds:.1f}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.1f}" if seconds < 0.01 else f"{seconds * 1e3:.0f}"
