"""Tells how many runs of a batch share a piece of text, from the arguments of all runs.

A piece that holds no argument of its run is part of the program, which all runs share. Any other piece is shared by as many runs as the
rarest argument in it. So the answer does not depend on which run is recorded first. Pieces that equally many runs share are in the order
in which the batch first names their arguments. Of a batch whose rows come while it runs, the latest ones are counted.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterator
from typing import Any

from rtlang.compiler.context import ShareOf, Sharing
from rtlang.contract.request_graph import Part

MAX_LEAVES = 10_000  # of one run
MIN_CHARS_WITHIN = 4  # shorter arguments count only as whole pieces: they are parts of too many texts by chance


class SharedPieces:
    """The arguments of the runs of a batch, or of the latest of its runs. Thread-safe.

    Nothing is counted before a piece is asked for.

    Args:
        most: the number of runs that are remembered; None remembers all.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._arguments: deque[Any] = deque()
        self._leaves: deque[dict[str, None]] = deque()  # of the first ones of `_arguments`, as far as they were counted
        self._counts: Counter[str] = Counter()
        self._ranks: dict[str, int] = {}
        self._next_rank = 0
        self._lock = threading.Lock()

    def add(self, arguments: Any) -> ShareOf:
        """Add a run by its arguments, any nesting of containers. Returns the shares of its pieces among the runs that are known then."""
        with self._lock:
            self._arguments.append(arguments)
            if self._most is not None and len(self._arguments) > self._most:
                self._forget()
        own: dict[str, None] = {}

        def share(piece: tuple[Part, ...]) -> Sharing:
            if not all(isinstance(part, str) for part in piece):
                return Sharing(0.0)  # a generated value
            text = "".join(map(str, piece))
            if not own:
                own.update(dict.fromkeys(_leaves(arguments)))
            found = [leaf for leaf in own if leaf == text or (len(leaf) >= MIN_CHARS_WITHIN and leaf in text)]
            return self._rarest(found)

        return share

    def _rarest(self, leaves: list[str]) -> Sharing:
        with self._lock:
            while len(self._leaves) < len(self._arguments):
                self._count(self._arguments[len(self._leaves)])
            known = [(self._counts[leaf], self._ranks[leaf]) for leaf in leaves if leaf in self._ranks]
            if len(known) < len(leaves) or not known:  # the run was forgotten, or it is text of the program
                return Sharing(0.0 if leaves else 1.0)
            num_runs, rank = min(known)
            return Sharing(num_runs / len(self._leaves), rank if num_runs > 1 else None)

    def _count(self, arguments: Any) -> None:
        leaves = dict.fromkeys(_leaves(arguments))
        self._leaves.append(leaves)
        self._counts.update(list(leaves))
        for leaf in leaves:
            if leaf not in self._ranks:
                self._ranks[leaf] = self._next_rank
                self._next_rank += 1

    def _forget(self) -> None:
        self._arguments.popleft()
        for leaf in self._leaves.popleft() if self._leaves else ():
            self._counts[leaf] -= 1
            if not self._counts[leaf]:
                del self._counts[leaf], self._ranks[leaf]


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
