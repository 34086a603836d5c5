"""Which running programs move to a replica that came after they were placed.

A program moves only if what waits before it, without its own work, exceeds what waits at the other replica and the tokens that have to be
computed again there. The cheapest programs move first, from the replica with the most work, until none of them gains. A program moves at
most once to each replica that comes, so programs never go back and forth.

No input or output and no clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rtlang.fleet.routing.router import MISS_WEIGHT


@dataclass(frozen=True, slots=True)
class MovableProgram:
    """A program that may move.

    Attributes:
        left: its work that is left, in tokens.
        again: tokens that have to be computed again where it moves.
    """

    graph_id: int
    left: float
    again: float


def programs_to_move(
    waiting: Mapping[str, float], programs: Mapping[str, Sequence[MovableProgram]], to: str
) -> list[tuple[int, str]]:
    """The programs that gain by moving, with the replica that each leaves, in the order of their moves.

    Args:
        waiting: tokens that wait at each replica, `to` included.
        programs: by replica, the programs of this frontend that may move. Where they are only a part of the work, other frontends are taken
            to move as large a part of theirs.
    """
    there, here = waiting[to], {name: waiting[name] for name in programs}
    queues = {name: sorted(each, key=lambda one: (-one.again, one.left)) for name, each in programs.items()}
    parts = {name: _part(sum(one.left for one in each), waiting[name]) for name, each in programs.items()}
    moves = []
    while queues:
        name = max(queues, key=lambda each: here[each])
        if here[name] <= there:
            break
        if not queues[name]:
            del queues[name]
            continue
        one = queues[name].pop()
        if here[name] - one.left > there + MISS_WEIGHT * one.again:
            here[name] -= one.left / parts[name]
            there += (one.left + one.again) / parts[name]
            moves.append((one.graph_id, name))
    return moves


def _part(own: float, all_together: float) -> float:
    """The part of a replica's work that is ours, above 0 and at most 1."""
    return min(1.0, own / all_together) if own > 0 < all_together else 1.0
