"""What the canaries measured against what ran at that time, and whether the bounds are kept.

Several cases run at a time, so a measurement is noted for each of them; the worst cases are repeated alone, which tells whose it was.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from rtlang_bench.figure import Figure

GAP_LIMIT_S, CANARY_LIMIT_S, MEMORY_LIMIT_BYTES = 0.25, 1.0, 200 << 20
CANARIES = ("schema", "tokenize", "tokens")
MEASURES = ("stream", *CANARIES, "held", "memory")
"""What is noted for each case: the longest gap of the stream, the longest probe of each other kind, the longest piece of work on a thread
that serves everybody, and growth of memory."""

_MIB = 1 << 20
_WORST = 10


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measurement of a canary: `kind` is "stream" (a gap between tokens), one of `CANARIES`, or "stall" (of the machine).

    Of the server, "held" is CPU time that its event loop or engine thread spent in one piece; `place` says where.
    """

    kind: str
    begun: float
    ended: float
    error: str = ""
    place: str = ""

    @property
    def seconds(self) -> float:
        return self.ended - self.begun


@dataclass(frozen=True, slots=True)
class MemorySample:
    """Resident bytes of the server's processes at a time."""

    at: float
    frontend: int
    engine: int

    @property
    def total(self) -> int:
        return self.frontend + self.engine


@dataclass(slots=True)
class CaseRecord:
    """One case that was sent.

    Attributes:
        ends: how its requests ended, each way once.
        wrong: what was wrong with them.
        worst: by measure, the largest value while it ran (seconds, or bytes).
        alone: the same when it was repeated alone.
    """

    number: int
    name: str
    begun: float
    ended: float = math.inf
    ends: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    worst: dict[str, float] = field(default_factory=dict)
    alone: dict[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Baseline:
    """The largest values on the idle server, by measure, and its resident bytes."""

    seconds: dict[str, float]
    memory: int

    def __str__(self) -> str:
        shown = ", ".join(
            f"{kind} {1e3 * self.seconds.get(kind, 0.0):.0f} ms" for kind in ("stream", *CANARIES, "stall")
        )
        return f"idle: longest {shown}; {self.memory / _MIB:.0f} MiB"


def baseline_of(measurements: Iterable[Measurement], memory: int) -> Baseline:
    """The baseline from what was measured before the first case."""
    seconds: dict[str, float] = {}
    for each in measurements:
        seconds[each.kind] = max(seconds.get(each.kind, 0.0), each.seconds)
    return Baseline(seconds, memory)


def note_measurements(records: list[CaseRecord], measurements: Iterable[Measurement]) -> None:
    """Note each measurement at all cases that ran during it."""
    ordered = sorted(records, key=lambda record: record.begun)
    for each in measurements:
        if each.error:
            continue
        for record in ordered:
            if record.begun >= each.ended:
                break
            if record.ended > each.begun:
                record.worst[each.kind] = max(record.worst.get(each.kind, 0.0), each.seconds)


def note_memory(records: list[CaseRecord], samples: list[MemorySample]) -> None:
    """Note for each case how far memory rose above its beginning."""
    for record in records:
        before = [each.total for each in samples if each.at <= record.begun]
        during = [each.total for each in samples if record.begun <= each.at <= record.ended + 0.1]
        start = before[-1] if before else during[0] if during else 0
        record.worst["memory"] = float(max(0, max(during, default=start) - start))


def figures(
    records: list[CaseRecord],
    measurements: list[Measurement],
    samples: list[MemorySample],
    baseline: Baseline,
    *,
    limit_bytes: int,
    restarts: int,
) -> Iterator[Figure]:
    """The verdict: each bound with the worst value."""
    during = [each for each in measurements if not each.error]
    stream = max((each.seconds for each in during if each.kind == "stream"), default=0.0)
    idle = baseline.seconds.get("stream", 0.0)
    stalls = max((each.seconds for each in during if each.kind == "stall"), default=0.0)
    note = f"beyond {idle * 1e3:.0f} ms when idle; the machine stalled for up to {stalls * 1e3:.0f} ms"
    yield Figure("longest_gap", max(0.0, stream - idle) * 1e3, "<=", GAP_LIMIT_S * 1e3, "ms", note)
    for kind in CANARIES:
        found = [each.seconds for each in during if each.kind == kind]
        note = f"of {len(found)}; {baseline.seconds.get(kind, 0.0) * 1e3:.0f} ms when idle"
        yield Figure(f"slowest_{kind}", max(found, default=math.nan), "<=", CANARY_LIMIT_S, "s", note)
    held = [each for each in measurements if each.kind == "held"]
    longest = max(held, key=lambda each: each.seconds, default=None)
    value, note = (0.0, "") if longest is None else (longest.seconds * 1e3, longest.place)
    yield Figure("longest_held", value, "<=", GAP_LIMIT_S * 1e3, "ms", f"CPU time in one piece {note}".strip())
    errors = [each.error for each in measurements if each.error]
    yield Figure("canary_errors", len(errors), "==", 0, "", errors[0] if errors else "")
    frontend, engine = (
        max((each.frontend for each in samples), default=0),
        max((each.engine for each in samples), default=0),
    )
    peak = max((each.total for each in samples), default=0)
    note = f"peaks: frontend {frontend / _MIB:.0f}, engine {engine / _MIB:.0f} MiB; the principal may hold {limit_bytes / _MIB:.0f} MiB"
    allowed = (limit_bytes + MEMORY_LIMIT_BYTES) / _MIB
    yield Figure("memory_growth", (peak - baseline.memory) / _MIB, "<=", allowed, "MiB", note)
    yield Figure("engine_restarts", restarts, "==", 0)
    wrong = [record for record in records if record.wrong]
    yield Figure("wrong_ends", len(wrong), "==", 0, "", f"of {len(records)} cases")


def worst_cases(records: list[CaseRecord], measure: str, count: int = _WORST) -> list[CaseRecord]:
    """The cases with the largest values of a measure."""
    found = [record for record in records if record.worst.get(measure)]
    return sorted(found, key=lambda record: record.worst[measure], reverse=True)[:count]


def worst_lines(records: list[CaseRecord]) -> Iterator[str]:
    """The worst cases by each measure as lines, with what they were alone if they were repeated."""
    for measure in MEASURES:
        yield f"worst by {measure}:"
        for record in worst_cases(records, measure):
            alone = "" if record.alone is None else f", alone {_shown(measure, record.alone.get(measure, 0.0))}"
            ends = "; ".join(record.ends)
            yield f"  {_shown(measure, record.worst[measure])}{alone}: case {record.number} {record.name}: {ends}"


def held_lines(measurements: Iterable[Measurement]) -> Iterator[str]:
    """The longest pieces of work on the threads that serve everybody, by place, as lines."""
    worst: dict[str, tuple[float, int]] = {}
    for each in measurements:
        if each.kind == "held":
            seconds, count = worst.get(each.place, (0.0, 0))
            worst[each.place] = max(seconds, each.seconds), count + 1
    yield "held a thread that serves everybody (CPU time in one piece):"
    for place, (seconds, count) in sorted(worst.items(), key=lambda item: -item[1][0])[: 2 * _WORST]:
        yield f"  {seconds * 1e3:.0f} ms at most, {count} times: {place}"


def report(records: list[CaseRecord]) -> Iterator[str]:
    """The worst cases by each measure, and the wrong ends by what they are about, as lines."""
    yield from worst_lines(records)
    wrong: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], int] = {}
    for record in records:
        for each in record.wrong:
            wrong[record.name, each] += 1
            first.setdefault((record.name, each), record.number)
    if wrong:
        yield "wrong ends:"
    for (name, text), count in wrong.most_common(40):
        yield f"  {count} x {name}: {text} (first: case {first[name, text]})"
    ends = Counter(end for record in records for end in record.ends)
    yield "ends: " + ", ".join(f"{count} x {end}" for end, count in ends.most_common())


def _shown(measure: str, value: float) -> str:
    return f"{value / _MIB:.0f} MiB" if measure == "memory" else f"{value * 1e3:.0f} ms"
