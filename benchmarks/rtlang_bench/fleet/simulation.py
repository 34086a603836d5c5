"""The simulation of a large fleet under every rule, at two loads, and its report.

At the light load the rules that know no prefixes still keep up; the heavy one is that at which the best rule uses about 0.85 of the
fleet. Marks hold for rtlang's router at the heavy load.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from random import Random
from typing import Any

from rich import box
from rich.table import Table

from rtlang.bench.machine import this_machine
from rtlang_bench.figure import Figure
from rtlang_bench.fleet.rules import RULES, Routed
from rtlang_bench.fleet.simulated_fleet import Outcome, simulate
from rtlang_bench.fleet.simulated_load import LoadShape, make_load

LIGHT_LOAD = 0.2
HEAVY_LOAD = 1.85
"""Loads of the fleet, if every program were computed on a replica that holds nothing of it."""

LIGHT_SHARE = 5  # the light load needs fewer programs: queues are short
LEAST_HIT_RATE, MOST_IMBALANCE, MOST_DECISION_US = 0.96, 1.3, 100.0
QUICK = LoadShape(50, 4_000, 50, 2_000)
_HEADERS = ("rule", "hit rate", "busiest/mean", "used", "latency", "p99", "us/decision")


@dataclass(frozen=True, slots=True)
class SimulationReport:
    """The outcomes of all rules by load."""

    command: str
    machine: str
    shape: LoadShape
    light: tuple[Outcome, ...]
    heavy: tuple[Outcome, ...]

    @property
    def figures(self) -> tuple[Figure, ...]:
        """The marks of rtlang's router."""
        found = next((each for each in self.heavy if each.rule == Routed.name), None)
        if found is None:
            return ()
        return (
            Figure("hit_rate", found.hit_rate, ">=", LEAST_HIT_RATE),
            Figure("busiest_over_mean", found.balance, "<=", MOST_IMBALANCE),
            Figure("decision", found.decision_us, "<=", MOST_DECISION_US, "us"),
        )

    @property
    def is_met(self) -> bool:
        """Whether all marks are met."""
        return all(figure.is_met for figure in self.figures)

    def to_plain(self) -> dict[str, Any]:
        """The report as maps, lists and scalars."""
        return {**asdict(self), "figures": [asdict(figure) for figure in self.figures]}

    def to_tables(self) -> list[Table]:
        """One table for each load."""
        found = []
        for title, outcomes in self._loads():
            table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
            for index, header in enumerate(_HEADERS):
                table.add_column(header, justify="left" if index == 0 else "right", no_wrap=index > 0)
            for outcome in outcomes:
                table.add_row(*_cells(outcome))
            found.append(table)
        return found

    def to_markdown(self) -> str:
        """The tables as Markdown, followed by the facts."""
        lines = []
        for title, outcomes in self._loads():
            lines += [
                f"**{title}**",
                "",
                "| " + " | ".join(_HEADERS) + " |",
                "|---|" + "---:|" * (len(_HEADERS) - 1),
                *("| " + " | ".join(_cells(outcome)) + " |" for outcome in outcomes),
                "",
            ]
        return "\n".join([*lines, *(f"- {line}" for line in self.facts())]) + "\n"

    def facts(self) -> list[str]:
        """The sizes, the machine and the marks; one line per fact."""
        shape = self.shape
        return [
            f"`{self.command}` on {self.machine}",
            f"{shape.num_replicas:,} replicas, {shape.num_templates:,} templates, {shape.num_documents:,} documents, caches of "
            f"{shape.cache_tokens:,} tokens",
            "latency, p99: from arrival to the end of a program, in units of its mean time alone without a cache; used: share of the "
            "fleet's time; saturated: work piled up, and the run was ended",
            *map(str, self.figures),
        ]

    def _loads(self) -> Sequence[tuple[str, tuple[Outcome, ...]]]:
        num_light = self.shape.num_programs // LIGHT_SHARE
        return [
            (f"light load, {num_light:,} programs", self.light),
            (f"heavy load, {self.shape.num_programs:,} programs", self.heavy),
        ]


def run_simulation(
    shape: LoadShape, *, seed: int = 0, command: str = "", tell: Callable[[str], None] = lambda line: None
) -> SimulationReport:
    """Simulate all rules at both loads. Takes minutes for 1,000,000 programs, most of it for the rules that choose per call."""
    found: list[tuple[Outcome, ...]] = []
    for load_name, load, each in (
        ("light", LIGHT_LOAD, replace(shape, num_programs=shape.num_programs // LIGHT_SHARE)),
        ("heavy", HEAVY_LOAD, shape),
    ):
        programs = make_load(each, seed)
        arrivals = programs.arrivals(load, seed + 1)
        outcomes = []
        for rule in RULES:
            made = rule(each, Random(seed + 2))
            tell(f"{load_name} load: {made.name}")
            outcomes.append(simulate(programs, arrivals, made))
        found.append(tuple(outcomes))
    return SimulationReport(command, str(this_machine()), shape, *found)


def _cells(outcome: Outcome) -> list[str]:
    if outcome.is_saturated:
        return [outcome.rule, f"{outcome.hit_rate:.3f}", "", "saturated", "", "", f"{outcome.decision_us:.1f}"]
    return [
        outcome.rule,
        f"{outcome.hit_rate:.3f}",
        f"{outcome.balance:.2f}",
        f"{outcome.used:.2f}",
        f"{outcome.mean:.2f}",
        f"{outcome.p99:.2f}",
        f"{outcome.decision_us:.1f}",
    ]
