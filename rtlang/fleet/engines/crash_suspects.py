"""Finds the graph that crashes engines, and lets it fail alone.

A graph has a strike for each engine in a row that ended before the graph gave anything there. With SUSPECT_STRIKES it is a suspect:
suspects are opened one at a time, on one engine that takes no other graphs meanwhile. With FATAL_STRIKES, a suspect that ends this engine
as well is the culprit. An engine that was killed from outside, by an operator or for lack of memory, counts half as much as a crash.

No input or output and no clock: every time is an argument. The owner (engine_pool.py) opens the graphs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

PROBE_S, HARMLESS_S = 5.0, 60.0
"""Seconds after which a graph counts as harmless if its engine's thread still works: one that was opened alone, and any other."""
CRASH, KILL = 2, 1
"""Strikes against a graph that has given nothing since it was opened, when its engine crashes or is killed from outside."""
SUSPECT_STRIKES, FATAL_STRIKES = 4, 6
"""Strikes in a row for which a graph is opened alone, and for which it fails if it is."""


class CrashSuspects:
    """The strikes of graphs, and the queue of suspects. Not thread-safe; graphs and engines are named by their ids.

    Attributes:
        waiting: suspects that no engine has, in the order of their turns.
        engine: the engine that takes only suspects; None if there is none.
        probed: the suspect that is open on this engine, until it gives something, ends, or counts as harmless.
    """

    def __init__(self) -> None:
        self.waiting: dict[int, None] = {}
        self.engine: str | None = None
        self.probed: int | None = None
        self._opened_at: dict[int, float] = {}  # graphs that have given nothing since then
        self._strikes: Counter[int] = Counter()

    def strikes(self, graph_id: int) -> int:
        """The strikes against a graph."""
        return self._strikes[graph_id]

    def is_suspect(self, graph_id: int) -> bool:
        """Whether a graph is opened alone from now on."""
        return self._strikes[graph_id] >= SUSPECT_STRIKES

    def note_opened(self, graph_id: int, now: float) -> None:
        """A graph was opened on an engine."""
        self._opened_at[graph_id] = now

    def clear(self, graph_id: int) -> None:
        """A graph has given something, or has ended: it crashed no engine."""
        self._opened_at.pop(graph_id, None)
        self._strikes.pop(graph_id, None)
        self.waiting.pop(graph_id, None)
        if self.probed == graph_id:
            self.probed = None

    def tick(self, last_beat: float) -> None:
        """Clear the probed suspect if its engine's thread worked, at the time `last_beat`, for long enough after it was opened."""
        if self.probed is not None and last_beat > self._opened_at[self.probed] + PROBE_S:
            self.clear(self.probed)

    def note_death(self, engine: str, graph_ids: Iterable[int], last_beat: float, *, has_crashed: bool) -> int | None:
        """Count an engine's end against its graphs; returns the culprit, if one is found.

        Args:
            graph_ids: the graphs that were open there.
            last_beat: the last time at which the engine's thread worked. Graphs that it survived for long only wait for something.
        """
        unproven = []
        for graph_id in graph_ids:
            if graph_id not in self._opened_at:
                continue
            if last_beat > self._opened_at[graph_id] + HARMLESS_S:
                self.clear(graph_id)
            else:
                unproven.append(graph_id)
                self._strikes[graph_id] += CRASH if has_crashed else KILL
        if engine != self.engine:
            return None
        probed, self.probed, self.engine = self.probed, None, None
        is_culprit = probed is not None and unproven == [probed] and self._strikes[probed] >= FATAL_STRIKES
        return probed if is_culprit else None

    def enqueue(self, graph_ids: Collection[int]) -> None:
        """Add suspects that no engine has."""
        self.waiting.update(dict.fromkeys(graph_ids))

    def requeue_probed(self) -> None:
        """Put the probed suspect, which was taken off its engine, back in the first place."""
        assert self.probed is not None
        self.waiting = {self.probed: None} | self.waiting
        self.probed = None

    def take_next(self) -> int:
        """Make the first suspect that waits the probed one; returns it."""
        assert self.probed is None
        self.probed = next(iter(self.waiting))
        del self.waiting[self.probed]
        return self.probed
