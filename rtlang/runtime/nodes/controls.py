"""The state of a switch or repeat node that runs."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class RunningControl:
    """A running control node: its current block and the nodes that it has started."""

    started: float
    entry: int | None = None
    iteration: int = 0
    node_ids: list[int] = field(default_factory=list)
