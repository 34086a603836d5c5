"""Tells how many runs of a batch share a piece of text, from the arguments of all runs.

A piece that holds no argument of its run is part of the program, which all runs share. Any other piece is shared by as many runs as the
rarest argument in it. So the answer does not depend on which run is recorded first. Pieces that equally many runs share are in the order
in which the batch first names their arguments.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from rtlang.compiler.context import ShareOf, Sharing
from rtlang.contract.request_graph import Part

MAX_LEAVES = 10_000  # of one run
MIN_CHARS_WITHIN = 4  # shorter arguments count only as whole pieces: they are parts of too many texts by chance


class SharedPieces:
    """The arguments of all runs of a batch."""

    def __init__(self, arguments: Sequence[Any]) -> None:
        """Args: arguments: of each run, any nesting of containers."""
        self._arguments = arguments

    def of_run(self, index: int) -> ShareOf:
        """The shares of pieces of one run."""

        def share(piece: tuple[Part, ...]) -> Sharing:
            if not all(isinstance(part, str) for part in piece):
                return Sharing(0.0)  # a generated value
            text = "".join(map(str, piece))
            counts, ranks, leaves = self._counts, self._ranks, self._leaves
            found = [
                (counts[leaf], ranks[leaf])
                for leaf in leaves[index]
                if leaf == text or (len(leaf) >= MIN_CHARS_WITHIN and leaf in text)
            ]
            if not found:
                return Sharing(1.0)
            num_runs, rank = min(found)
            return Sharing(num_runs / len(leaves), rank if num_runs > 1 else None)

        return share

    @cached_property
    def _leaves(self) -> list[dict[str, None]]:
        return [dict.fromkeys(_leaves(each)) for each in self._arguments]

    @cached_property
    def _counts(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        for each in self._leaves:
            counts.update(list(each))
        return counts

    @cached_property
    def _ranks(self) -> dict[str, int]:
        return {leaf: rank for rank, leaf in enumerate(self._counts)}


def _leaves(item: Any) -> Iterator[str]:
    todo, num = [item], 0
    while todo and num < MAX_LEAVES:
        each = todo.pop()
        num += 1
        if isinstance(each, str):
            if each:
                yield each
        elif isinstance(each, (int, float)):
            yield str(each)
        elif isinstance(each, dict):
            todo.extend(reversed(each.values()))
        elif isinstance(each, (list, tuple)):
            todo.extend(reversed(each))
        elif isinstance(each, (set, frozenset)):
            todo.extend(each)
