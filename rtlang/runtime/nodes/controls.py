"""The state of a switch or repeat node that runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class RunningControl:
    """A running control node and its current block."""

    started: float
    entry: int | None = None
    iteration: int = 0
