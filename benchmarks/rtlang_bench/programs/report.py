"""The report of an ablation: medians and spreads per variant, marks, and for each pass what it saves.

A difference between two variants counts only if it shows in every turn: tokens, steps and pages vary with the moment at which the engine
sees a program. Times are shown, but they decide nothing, because they vary with everything else on the machine; latency counts in steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from rich import box
from rich.table import Table as RichTable

from rtlang.bench.machine import Environment
from rtlang.bench.measure import percentile
from rtlang_bench.programs.meter import Run

ALL, NONE = "all passes", "no passes"
LEAST_SHARE = 0.02  # smaller savings are not named
LEAST_STEPS = 3  # programs that arrive a moment later take one or two steps more
LEAST_TURNS = 3
_HEADERS = (
    "variant",
    "prompt",
    "generated",
    "steps",
    "pages",
    "nodes",
    "mean s",
    "p99 s",
    "latency",
    "in steps",
    "CPU",
    "cached",
)


@dataclass(frozen=True, slots=True)
class Spread:
    """The median, the smallest and the largest of the values of all turns."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """The spread of at least one value."""
        found = list(values)
        return cls(median(found), min(found), max(found))

    @property
    def is_exact(self) -> bool:
        """Whether all values are the same."""
        return self.low == self.high

    def saved(self, without: Spread) -> float:
        """The relative reduction from `without`, negative for an increase; 0 if the ranges of the turns overlap."""
        if not without.median or not (self.high < without.low or without.high < self.low):
            return 0.0
        return 1 - self.median / without.median


@dataclass(frozen=True, slots=True)
class Variant:
    """One workload under one choice of passes.

    Attributes:
        prompt_tokens, generated_tokens, num_steps, peak_pages, num_nodes: see `Run`.
        latency_s, latency_p99_s: seconds from the submission of a program to its end; over the programs of all turns.
        latency_ratio, latency_steps_ratio, cpu_ratio: mean latency of a program, the same in steps of the engine, and processor time,
            each divided by that with all passes in the same turn.
        cached_share: see `Run`; the smallest of the turns.
    """

    name: str
    prompt_tokens: Spread
    generated_tokens: Spread
    num_steps: Spread
    peak_pages: Spread
    num_nodes: Spread
    latency_s: float
    latency_p99_s: float
    latency_ratio: Spread
    latency_steps_ratio: Spread
    cpu_ratio: Spread
    cached_share: float | None


@dataclass(frozen=True, slots=True)
class Table:
    """All variants of a workload; the first has all passes."""

    workload: str
    summary: str
    variants: tuple[Variant, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """A share, or with `is_ratio` a ratio, that has to be at least (`is_least`) or at most a limit."""

    text: str
    value: float
    limit: float
    is_least: bool
    is_ratio: bool = False

    @property
    def is_met(self) -> bool:
        """Whether the value keeps the limit."""
        return self.value >= self.limit if self.is_least else self.value <= self.limit

    def __str__(self) -> str:
        bound = "at least" if self.is_least else "at most"
        value, limit = (
            (f"{self.value:.2f}x", f"{self.limit:.1f}x")
            if self.is_ratio
            else (f"{self.value:.1%}", f"{self.limit:.0%}")
        )
        return f"{self.text}: {value}, {bound} {limit}: {'pass' if self.is_met else 'FAIL'}"


@dataclass(frozen=True, slots=True)
class Finding:
    """The effect of one pass on one workload: the workload without the pass, compared with all passes.

    Attributes:
        saved: by what is saved, the share of what is used without the pass; negative where the pass costs something. Only differences of
            at least LEAST_SHARE that show in every turn.
    """

    name: str
    workload: str
    saved: dict[str, float]

    @property
    def is_useful(self) -> bool:
        """Whether the pass saves something."""
        return any(share > 0 for share in self.saved.values())

    def __str__(self) -> str:
        parts = [f"{share:.0%} of {what}" for what, share in self.saved.items() if share > 0]
        costs = [f"{-share:.0%} more {what}" for what, share in self.saved.items() if share < 0]
        text = f"{self.name}, {self.workload}: saves {', '.join(parts) if parts else 'nothing'}"
        return f"{text}; costs {', '.join(costs)}" if costs else text


@dataclass(frozen=True, slots=True)
class ProgramReport:
    """All tables of one benchmark, and the environment they were measured in."""

    environment: Environment
    num_turns: int
    tables: tuple[Table, ...]
    marks: tuple[Mark, ...]
    findings: tuple[Finding, ...]

    @property
    def is_met(self) -> bool:
        """Whether all marks are met."""
        return all(mark.is_met for mark in self.marks)

    @property
    def useless(self) -> tuple[str, ...]:
        """The passes that save nothing in any of the measured workloads."""
        names = dict.fromkeys(finding.name for finding in self.findings)
        return tuple(name for name in names if not any(each.is_useful for each in self.findings if each.name == name))

    def to_plain(self) -> dict[str, Any]:
        """The report as maps, lists and scalars."""
        marks = [{**asdict(mark), "is_met": mark.is_met} for mark in self.marks]
        plain = asdict(self)
        return {**plain.pop("environment"), **plain, "marks": marks, "useless": list(self.useless)}

    def to_tables(self) -> list[RichTable]:
        """One table per workload, for the terminal."""
        found = []
        for table in self.tables:
            shown = RichTable(title=table.workload, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
            for index, header in enumerate(_HEADERS):
                shown.add_column(header, justify="left" if index == 0 else "right", no_wrap=True)
            for variant in table.variants:
                shown.add_row(*_cells(variant))
            found.append(shown)
        return found

    def to_markdown(self) -> str:
        """The tables as markdown, followed by the facts."""
        lines = []
        for table in self.tables:
            lines += [
                f"**{table.workload}**: {table.summary}",
                "",
                "| " + " | ".join(_HEADERS) + " |",
                "|---|" + "---:|" * (len(_HEADERS) - 1),
                *("| " + " | ".join(_cells(variant)) + " |" for variant in table.variants),
                "",
            ]
        return "\n".join([*lines, *(f"- {line}" for line in self.facts())]) + "\n"

    def facts(self) -> list[str]:
        """The setup, the machine, the saving of each pass and the target figures; one line per fact."""
        return [
            *self.environment.facts(f"{self.num_turns} turns"),
            *(f"{table.workload}: {table.summary}" for table in self.tables),
            "prompt, generated: tokens computed (~: they differed between turns); mean, p99: seconds until a program ends; latency, in "
            "steps, CPU: mean latency, that in steps of the engine, and processor time, divided by those with all passes in the same turn "
            "(min-max); pages: most in use at once; nodes: of the submitted graphs; cached: share of its tokens that a waiting program "
            "found again",
            *(str(finding) for finding in self.findings if finding.saved),
            *(f"{name}: saves nothing in these workloads" for name in self.useless),
            *map(str, self.marks),
        ]


LATENCY = "latency in steps"


def variant(name: str, runs: Sequence[Run], whole: Sequence[Run]) -> Variant:
    """The figures of a variant; runs[i] and whole[i], with all passes, belong to the same turn."""
    pairs = list(zip(runs, whole, strict=True))
    latencies = [latency for run in runs for latency in run.latencies_s]
    shares = [run.cached_share for run in runs if run.cached_share is not None]
    return Variant(
        name=name,
        prompt_tokens=Spread.of(run.prompt_tokens for run in runs),
        generated_tokens=Spread.of(run.generated_tokens for run in runs),
        num_steps=Spread.of(run.num_steps for run in runs),
        peak_pages=Spread.of(run.peak_pages for run in runs),
        num_nodes=Spread.of(run.num_nodes for run in runs),
        latency_s=sum(latencies) / len(latencies),
        latency_p99_s=percentile(latencies, 0.99),
        latency_ratio=Spread.of(run.latency_s / other.latency_s for run, other in pairs),
        latency_steps_ratio=Spread.of(run.latency_steps / max(1, other.latency_steps) for run, other in pairs),
        cpu_ratio=Spread.of(run.cpu_s / other.cpu_s for run, other in pairs),
        cached_share=min(shares, default=None),
    )


def findings(tables: Sequence[Table], passes: Sequence[str], num_turns: int) -> tuple[Finding, ...]:
    """The effect of each pass on each workload. With fewer than LEAST_TURNS turns only what hardly varies counts."""
    found = []
    for name in passes:
        for table in tables:
            whole = table.variants[0]
            for each in table.variants:
                if each.name == f"without {name}":
                    saved = {
                        "prompt tokens": whole.prompt_tokens.saved(each.prompt_tokens),
                        "generated tokens": whole.generated_tokens.saved(each.generated_tokens),
                        "nodes": whole.num_nodes.saved(each.num_nodes),
                    }
                    if num_turns >= LEAST_TURNS:
                        saved["peak pages"] = whole.peak_pages.saved(each.peak_pages)
                        if abs(whole.num_steps.median - each.num_steps.median) >= LEAST_STEPS:
                            saved["steps"] = whole.num_steps.saved(each.num_steps)
                            saved[LATENCY] = whole.latency_steps_ratio.saved(each.latency_steps_ratio)
                    kept = {what: share for what, share in saved.items() if abs(share) >= LEAST_SHARE}
                    found.append(Finding(name, table.workload, kept))
    return tuple(found)


def _cells(variant: Variant) -> list[str]:
    return [
        variant.name,
        _count(variant.prompt_tokens),
        _count(variant.generated_tokens),
        _count(variant.num_steps),
        _count(variant.peak_pages),
        _count(variant.num_nodes),
        f"{variant.latency_s:.2f}",
        f"{variant.latency_p99_s:.2f}",
        _ratio(variant.latency_ratio),
        _ratio(variant.latency_steps_ratio),
        _ratio(variant.cpu_ratio),
        "" if variant.cached_share is None else f"{variant.cached_share:.1%}",
    ]


def _count(spread: Spread) -> str:
    return f"{'' if spread.is_exact else '~'}{spread.median:.0f}"


def _ratio(spread: Spread) -> str:
    return f"{spread.median:.2f} ({spread.low:.2f}-{spread.high:.2f})"
