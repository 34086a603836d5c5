"""The figures of `rtlang bench agents`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from rich import box
from rich.table import Table

from rtlang.bench.agents.replay import Replayed, TurnFigures
from rtlang.bench.machine import Environment

LRU, INFERRED = "plain LRU", "sessions"
_HEADERS = (
    "pool",
    "side",
    "turns",
    "cached",
    "p50",
    "p99",
    "later p50",
    "p99",
    "computed",
    "differ",
    "wall",
)
_BY_DOOR = ("pool", "side", "door", "turns", "cached", "p50", "p99")


@dataclass(frozen=True, slots=True)
class AgentFigures:
    """One replay.

    Attributes:
        factor: the tokens of all sessions at their largest, relative to the pool.
        side: `LRU` or `INFERRED`.
        num_turns, num_returning: turns, and those that continue a conversation.
        cached_share: of returning tokens, those that were cached.
        first_s: median and 99th percentile of the seconds to the first token, of all turns.
        returning_s: the same of turns that continue a conversation.
        num_computed: prompt tokens that went through the model.
        num_checked, num_different: turns whose tokens were looked for in a later prompt, and those that it spells otherwise.
        doors: the figures of each door: turns, cached share, median and 99th percentile of the seconds to the first token.
    """

    factor: float
    side: str
    num_turns: int
    num_returning: int
    cached_share: float
    first_s: tuple[float, float]
    returning_s: tuple[float, float]
    num_computed: int
    num_checked: int
    num_different: int
    wall_s: float
    doors: dict[str, tuple[int, float, float, float]]

    @classmethod
    def of(cls, factor: float, side: str, found: Replayed) -> AgentFigures:
        """The figures of a replay."""
        returning = [turn for turn in found.turns if turn.num_returning]
        doors: dict[str, tuple[int, float, float, float]] = {}
        for name in dict.fromkeys(turn.door for turn in found.turns):
            own = [turn for turn in found.turns if turn.door == name]
            doors[name] = (len(own), cached_share(own), *_percentiles(own))
        return cls(
            factor,
            side,
            len(found.turns),
            len(returning),
            cached_share(found.turns),
            _percentiles(found.turns),
            _percentiles(returning),
            sum(turn.num_prompt - turn.num_cached for turn in found.turns),
            found.num_checked,
            found.num_different,
            found.wall_s,
            doors,
        )

    def cells(self) -> list[str]:
        """The cells of a row."""
        return [
            f"{self.factor:g}x",
            self.side,
            f"{self.num_turns:,}",
            f"{self.cached_share:.1%}",
            *(f"{each:.2f} s" for each in (*self.first_s, *self.returning_s)),
            f"{self.num_computed:,}",
            f"{self.num_different}/{self.num_checked}",
            f"{self.wall_s:.0f} s",
        ]


@dataclass(frozen=True, slots=True)
class AgentsReport:
    """The figures of all replays, with the model and the machine."""

    environment: Environment
    summary: str
    figures: tuple[AgentFigures, ...]
    notes: tuple[str, ...] = ()

    def to_plain(self) -> dict[str, Any]:
        """The report as plain values."""
        plain = asdict(self)
        return {**plain.pop("environment"), **plain}

    def to_tables(self) -> list[Table]:
        """The tables for a terminal."""
        return [_table("agents", _HEADERS, self.rows()), _table("by door", _BY_DOOR, self.door_rows())]

    def to_markdown(self) -> str:
        """The tables and the facts as Markdown."""
        tables = [_markdown(_HEADERS, self.rows()), _markdown(_BY_DOOR, self.door_rows())]
        return "\n".join([*tables, *(f"- {fact}" for fact in self.facts())])

    def rows(self) -> list[list[str]]:
        """The cells of the first table."""
        return [each.cells() for each in self.figures]

    def door_rows(self) -> list[list[str]]:
        """The cells of the second table."""
        return [
            [f"{each.factor:g}x", each.side, name, f"{num:,}", f"{share:.1%}", f"{middle:.2f} s", f"{late:.2f} s"]
            for each in self.figures
            for name, (num, share, middle, late) in each.doors.items()
        ]

    def facts(self) -> list[str]:
        """What was measured, and where."""
        return [
            *self.environment.facts(),
            self.summary,
            "pool: the tokens of all sessions at their largest, relative to the tokens of the KV pool",
            "cached: of the returning tokens of prompts, which an earlier prompt or output of the conversation had, or of its parent",
            "p50 and p99: seconds to the first token; later: of turns that continue a conversation",
            "differ: calls that a later prompt spells with other tokens than the model generated, of all that were looked for",
            *self.ratios(),
            *self.notes,
        ]

    def ratios(self) -> list[str]:
        """The 99th percentile of the first token with sessions, relative to plain LRU, at each size of the pool."""
        plain = {each.factor: each for each in self.figures if each.side == LRU}
        return [
            f"{each.factor:g}x: first token p99 {each.first_s[1] / plain[each.factor].first_s[1]:.2f} of plain LRU's, "
            f"of returning turns {each.returning_s[1] / plain[each.factor].returning_s[1]:.2f}, "
            f"computed tokens {each.num_computed / max(1, plain[each.factor].num_computed):.2f}"
            for each in self.figures
            if each.side == INFERRED and each.factor in plain
        ]


def cached_share(turns: Sequence[TurnFigures]) -> float:
    """The share of returning tokens that were cached; 1 without any."""
    returning = sum(turn.num_returning for turn in turns)
    cached = sum(min(turn.num_cached, turn.num_returning) for turn in turns)
    return cached / returning if returning else 1.0


def _percentiles(turns: Sequence[TurnFigures]) -> tuple[float, float]:
    """The median and the 99th percentile of the seconds to the first token."""
    times = sorted(turn.first_s for turn in turns)
    return (median(times), times[min(len(times) - 1, int(len(times) * 0.99))]) if times else (0.0, 0.0)


def _table(title: str, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False)
    for index, name in enumerate(headers):
        table.add_column(name, justify="left" if index < 2 else "right")
    for row in rows:
        table.add_row(*row)
    return table


def _markdown(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headers, ("---", "---", *["---:"] * (len(headers) - 2)), *rows]
    return "\n".join([*("| " + " | ".join(line) + " |" for line in lines), ""])
