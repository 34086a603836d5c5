"""Tells how many runs of a batch share a piece of text, from the arguments of all runs.

A piece that holds no argument of its run is part of the program, which all runs share. Any other piece is shared by as many runs as the
rarest argument in it. So the answer does not depend on which run is recorded first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from rtlang.compiler.context import ShareOf
from rtlang.contract.graph import Part

MAX_LEAVES = 10_000  # of one run
MIN_CHARS_WITHIN = 4  # shorter arguments count only as whole pieces: they are parts of too many texts by chance


class SharedPieces:
    """The arguments of all runs of a batch."""

    def __init__(self, arguments: Sequence[Any]) -> None:
        """Args: arguments: of each run, any nesting of containers."""
        self._arguments = arguments

    def of_run(self, index: int) -> ShareOf:
        """The shares of pieces of one run."""

        def share(piece: tuple[Part, ...]) -> float:
            if not all(isinstance(part, str) for part in piece):
                return 0.0  # a generated value
            text = "".join(map(str, piece))
            counts, leaves = self._counts, self._leaves
            found = [
                counts[leaf]
                for leaf in leaves[index]
                if leaf == text or (len(leaf) >= MIN_CHARS_WITHIN and leaf in text)
            ]
            return min(found) / len(leaves) if found else 1.0

        return share

    @cached_property
    def _leaves(self) -> list[frozenset[str]]:
        return [frozenset(_leaves(each)) for each in self._arguments]

    @cached_property
    def _counts(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        for each in self._leaves:
            counts.update(each)
        return counts


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
            todo.extend(each.values())
        elif isinstance(each, (list, tuple, set, frozenset)):
            todo.extend(each)
