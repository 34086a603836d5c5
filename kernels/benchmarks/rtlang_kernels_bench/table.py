"""Lines of the GPU benchmark as text, and their summary: distance from the floor, baselines won and lost."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a table; times in microseconds, baseline times (`peers`) by name."""

    group: str
    label: str
    ours_us: float
    spread: float
    host_us: float
    floor_us: float
    peers: dict[str, float]
    error: float


def summary(lines: Sequence[Line]) -> list[str]:
    """Per group: geometric mean distance from the floor and from each baseline, and the worst line."""
    text = []
    for group in dict.fromkeys(line.group for line in lines):
        part = [line for line in lines if line.group == group]
        to_floor = [line.ours_us / line.floor_us for line in part]
        worst = max(part, key=lambda line: line.ours_us / line.floor_us)
        text.append(
            f"{group}: ours/floor {_geomean(to_floor):.2f} (worst {max(to_floor):.2f}: {worst.label}), "
            f"median of floor/ours {statistics.median(1 / ratio for ratio in to_floor):.0%}"
        )
        for peer in dict.fromkeys(name for line in part for name in line.peers):
            ratios = [line.peers[peer] / line.ours_us for line in part if peer in line.peers]
            losses = sum(ratio < 1 for ratio in ratios)
            text.append(
                f"{group}: {peer}/ours {_geomean(ratios):.2f}, {losses} of {len(ratios)} lost, least {min(ratios):.2f}"
            )
    return text


def _geomean(values: Sequence[float]) -> float:
    return math.exp(statistics.fmean(math.log(value) for value in values))


def format_line(line: Line) -> str:
    """Format a line of the table."""
    peers = "  ".join(f"{name} {us:.1f} ({us / line.ours_us:.2f}x)" for name, us in line.peers.items())
    return (
        f"{line.group:<9} {line.label:<64} {line.ours_us:>9.1f} us  spread {line.spread:>4.0%}  host {line.host_us:>7.1f}  "
        f"floor {line.floor_us:>8.1f} ({line.ours_us / line.floor_us:.2f}x)  error {line.error:.0e}  {peers}"
    )
