"""Which engine has which graph: the state of an `EngineTarget`, without its connections and threads.

A graph is open on one engine, or waits for one. Each opening has a stream id of its own, so that late events of an engine that has lost
the graph are told apart. When an engine ends, its graphs are opened on other engines; crash_suspects.py decides which of them are opened
alone, and which one fails. Every operation returns the orders that must be carried out, in this order.

No input or output and no clock: every time is an argument. `check` states what holds between two operations.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from rtlang.fleet.engines.crash_suspects import PROBE_WAIT_S, START_WAIT_S, CrashSuspects, Death

GRACE_S = 2.0
"""Seconds that an engine may take to end a graph that was cancelled, or whose deadline has passed."""


SILENT_S = 5.0
"""Seconds without a sign of life of its thread after which an engine takes no new graphs while others answer."""


class Placement(Protocol):
    """Chooses the engine of each graph."""

    def choose(self, graph_id: int, engines: Collection[str]) -> str:
        """The engine for a graph, one of these; there is at least one."""

    def note_opened(self, graph_id: int, engine: str) -> None:
        """A graph was opened on an engine."""

    def note_left(self, graph_id: int, engine: str) -> None:
        """An engine does not have a graph any more, because either has ended or the graph moves."""


class EndReason(Enum):
    """Why a graph ends without a final event of its engine."""

    CANCELLED = "cancelled"
    DEADLINE = "deadline"
    CRASHES = "crashes"
    STALLS = "stalls"


@dataclass(frozen=True, slots=True)
class OpenGraph:
    """Open a graph, as it is now, on an engine."""

    graph_id: int
    engine: str
    stream_id: int


@dataclass(frozen=True, slots=True)
class CancelGraph:
    """Tell an engine to end its part of a graph."""

    graph_id: int
    engine: str
    stream_id: int


@dataclass(frozen=True, slots=True)
class GraphMoved:
    """A graph has lost its engine, and goes on when it is opened again."""

    graph_id: int


@dataclass(frozen=True, slots=True)
class FailGraph:
    """A graph has ended."""

    graph_id: int
    reason: EndReason


Order = OpenGraph | CancelGraph | GraphMoved | FailGraph


@dataclass(eq=False, slots=True)
class PooledGraph:
    """A graph that has not ended.

    Attributes:
        engine: the engine that has it; None while it waits.
        stream_id: names its last opening.
        deadline: when it should have ended; None for never.
        cancelled_at: None if it was not cancelled. It is opened nowhere any more.
    """

    graph_id: int
    deadline: float | None = None
    engine: PooledEngine | None = None
    stream_id: int = 0
    cancelled_at: float | None = None


@dataclass(eq=False, slots=True)
class PooledEngine:
    """One engine, and the graphs that it has.

    Attributes:
        is_ready: whether it is running.
        is_silent: whether its thread has not answered for SILENT_S, as of the last `tick`.
        is_leaving: whether it gives up its graphs for good.
        is_spare: whether it takes no graphs until another engine does not work.
        num_moved: graphs that went from it to other engines.
    """

    name: str
    graphs: dict[int, PooledGraph] = field(default_factory=dict)
    is_ready: bool = False
    is_silent: bool = False
    is_leaving: bool = False
    is_spare: bool = False
    num_moved: int = 0

    @property
    def works(self) -> bool:
        """Whether it is running and answers."""
        return self.is_ready and not self.is_silent


class EnginePool:
    """The engines and the graphs of a target. Not thread-safe.

    Args:
        num_spares: engines that take no graphs while all others are ready.

    Attributes:
        engines: by name. Read only, as all below.
        graphs: those that have not ended, by id.
        streams: the graphs that engines have, by stream id.
        blames_graph: whether a graph was the cause of the last end of an engine, so that the next one need not wait.
    """

    def __init__(self, placement: Placement, num_spares: int = 0) -> None:
        self.engines: dict[str, PooledEngine] = {}
        self.graphs: dict[int, PooledGraph] = {}
        self.streams: dict[int, PooledGraph] = {}
        self._placement, self._num_spares = placement, num_spares
        self._unplaced: dict[int, PooledGraph] = {}  # wait for any engine; suspects wait in `_suspects`
        self._suspects = CrashSuspects()
        self._stream_ids = itertools.count(1)
        self._orders: list[Order] = []  # of the operation under way
        self.blames_graph = False

    # -- engines

    def add_engine(self, name: str, now: float) -> list[Order]:
        """Add an engine, which is not ready yet. It may become the spare, so that the present one takes graphs."""
        assert name not in self.engines
        self.engines[name] = PooledEngine(name)
        return self._place_all(now)

    def note_ready(self, name: str, now: float) -> list[Order]:
        """An engine has started; it knows no graph."""
        engine = self.engines[name]
        engine.is_ready, engine.is_silent = True, False
        return self._place_all(now)

    def note_lost(self, name: str) -> None:
        """The connection to an engine has ended: it takes no graphs. `note_death` follows."""
        self.engines[name].is_ready = False

    def note_death(self, name: str, last_beat: float, now: float, death: Death) -> list[Order]:
        """An engine has ended; its graphs are opened elsewhere, or again here.

        Args:
            last_beat: the last time at which its thread worked.
        """
        engine = self.engines[name]
        engine.is_ready = False
        verdict = self._suspects.note_death(name, engine.graphs, last_beat, death)
        self.blames_graph = verdict.blames_graph
        for graph in list(engine.graphs.values()):
            self._take_off(graph)
            if graph.cancelled_at is not None:
                self._fail(graph, EndReason.CANCELLED)
                continue
            self._note_moved(graph, engine)
            if graph.graph_id == verdict.culprit:
                self._fail(graph, EndReason.CRASHES if death.held_by is None else EndReason.STALLS)
            elif not self._suspects.is_suspect(graph.graph_id):
                self._unplaced[graph.graph_id] = graph
        for graph_id in verdict.released:
            self._unplaced[graph_id] = self.graphs[graph_id]
        return self._place_all(now)

    def leave(self, name: str, now: float) -> list[Order]:
        """An engine takes no new graphs any more."""
        self.engines[name].is_leaving = True
        return self._place_all(now)

    def evacuate(self, name: str, now: float) -> list[Order]:
        """Move all graphs of an engine elsewhere."""
        for graph in list(self.engines[name].graphs.values()):
            self._move(graph, None, now)
        return self._taken_orders()

    def remove_engine(self, name: str, now: float) -> list[Order]:
        """Forget an engine, which is leaving. A graph that it still has is opened elsewhere without a strike."""
        orders = self.note_death(name, math.inf, now, Death(has_crashed=False))
        del self.engines[name]
        return orders

    def staying(self) -> list[str]:
        """The engines that are not leaving."""
        return [name for name, engine in self.engines.items() if not engine.is_leaving]

    def is_open(self, name: str) -> bool:
        """Whether an engine takes new graphs."""
        return name in self._open_engines()

    # -- graphs

    def add(self, graph_id: int, now: float, deadline: float | None = None, *, is_suspect: bool = False) -> list[Order]:
        """Add a graph; it waits if no engine takes graphs.

        Args:
            is_suspect: whether it waits for an engine of its own, and fails if it crashes that.
        """
        graph = self.graphs[graph_id] = PooledGraph(graph_id, deadline)
        if is_suspect:
            self._suspects.add(graph_id)
            self._probe_next(now)
        else:
            self._place(graph, now)
        return self._taken_orders()

    def note_output(self, graph_id: int, now: float) -> list[Order]:
        """A graph has given something on its engine, and goes on."""
        was_probed = graph_id in self._suspects.probed
        self._suspects.note_output(graph_id)
        if was_probed and graph_id not in self._suspects.probed:
            self._make_room([graph_id], now)
        self._probe_next(now)
        return self._taken_orders()

    def end(self, graph_id: int, now: float) -> list[Order]:
        """Forget a graph, which has ended by its engine or otherwise. Does nothing if it is unknown."""
        graph = self.graphs.get(graph_id)
        if graph is not None:
            self._forget(graph)
            self._probe_next(now)
        return self._taken_orders()

    def cancel(self, graph_id: int, now: float) -> list[Order]:
        """Cancel a graph: its engine ends it, or it fails at once. Does nothing if it has ended."""
        graph = self.graphs.get(graph_id)
        if graph is not None:
            graph.cancelled_at = now if graph.cancelled_at is None else graph.cancelled_at
            self._tell_cancel(graph)
            if graph.engine is None:
                self._fail(graph, EndReason.CANCELLED)
        return self._taken_orders()

    def move(self, graph_id: int, to: str | None, now: float) -> list[Order]:
        """Open a graph on another engine; None for the one that the placement chooses. Does nothing if no engine has it, if it was
        cancelled, or if it is a suspect that would have to share the other engine.
        """
        graph = self.graphs.get(graph_id)
        if graph is not None:
            self._move(graph, to, now)
            self._probe_next(now)  # its engine may be free for suspects now
        return self._taken_orders()

    def tick(self, last_beats: Mapping[str, float], now: float) -> list[Order]:
        """Clear a suspect that its engine has survived, fail the graphs that no engine ends in time, and note which engines are silent.
        Call it about once a second.

        Args:
            last_beats: by engine, the last time at which its thread worked.
        """
        for name, engine in self.engines.items():
            engine.is_silent = engine.is_ready and now - last_beats[name] > SILENT_S
        if self._suspects.engine is not None:
            probed = set(self._suspects.probed)
            self._suspects.tick(last_beats[self._suspects.engine])
            self._make_room(sorted(probed - self._suspects.probed), now)
        for graph in list(self.graphs.values()):
            if graph.cancelled_at is not None and now > graph.cancelled_at + GRACE_S:
                self._tell_cancel(graph)
                self._fail(graph, EndReason.CANCELLED)
            elif graph.deadline is not None and now > graph.deadline + GRACE_S:
                self._tell_cancel(graph)
                self._fail(graph, EndReason.DEADLINE)
        return self._place_all(now)

    def strikes(self, graph_id: int) -> int:
        """The strikes against a graph; see crash_suspects.py."""
        return self._suspects.strikes(graph_id)

    def check(self) -> None:
        """Assert that the records agree with each other."""
        suspects = self._suspects
        held = {id_: engine for engine in self.engines.values() for id_ in engine.graphs}
        places = [*held, *self._unplaced, *suspects.waiting_ids]
        assert sorted(places) == sorted(self.graphs), "each graph is in one place"
        assert all(self.graphs[id_].engine is engine for id_, engine in held.items())
        assert all(self.graphs[id_].engine is None for id_ in (*self._unplaced, *suspects.waiting_ids))
        assert all(graph.cancelled_at is None for graph in self.graphs.values() if graph.engine is None)
        assert {graph.stream_id: graph for graph in self.graphs.values() if graph.engine is not None} == self.streams
        assert all(held[graph_id].name == suspects.engine for graph_id in suspects.probed)
        assert (suspects.engine is None) == (not suspects.probed), "an engine takes suspects only while one is there"
        assert not (suspects.waiting and not suspects.probed and self._empty_engines()), (
            "an empty engine takes suspects"
        )
        assert all(suspects.is_suspect(graph_id) for graph_id in (*suspects.probed, *suspects.waiting_ids))
        assert not any(suspects.is_suspect(graph_id) for graph_id in self._unplaced)
        assert not (self._unplaced and self._open_engines()), "a graph waits only while no engine takes graphs"
        assert not self._orders
        staying = [self.engines[name] for name in self.staying()]
        spares = [engine for engine in staying if engine.is_spare]
        assert len(spares) == max(0, min(self._num_spares, len(staying) - 1))
        if any(self._serves(engine) for engine in spares):
            assert all(self._serves(each) for each in staying if not each.is_spare), "a spare takes graphs when it must"

    # -- the steps of the operations, which add to the orders

    def _taken_orders(self) -> list[Order]:
        orders, self._orders = self._orders, []
        return orders

    def _running_engines(self) -> list[str]:
        """The engines that can have graphs; those that are silent only if all are."""
        return self._answering(name for name in self.engines if self._can_run(name))

    def _open_engines(self) -> list[str]:
        """The engines that take any graph."""
        kept = self._suspects.engine
        return self._answering(
            name for name, each in self.engines.items() if self._can_run(name) and name != kept and not each.is_spare
        )

    def _can_run(self, name: str) -> bool:
        return self.engines[name].is_ready and not self.engines[name].is_leaving

    def _answering(self, names: Iterable[str]) -> list[str]:
        found = list(names)
        return [name for name in found if not self.engines[name].is_silent] or found

    def _serves(self, engine: PooledEngine) -> bool:
        """Whether an engine is available to graphs that are not suspects."""
        return engine.works and engine.name != self._suspects.engine

    def _appoint_spares(self) -> None:
        """Choose the spare engines: those that do not serve, so that a spare takes graphs as soon as another engine ends or is given to
        suspects; then those that are spare already, and those with the fewest graphs.
        """
        if not self._num_spares:
            return
        staying = [engine for engine in reversed(self.engines.values()) if not engine.is_leaving]
        staying.sort(key=lambda engine: (self._serves(engine), not engine.is_spare, len(engine.graphs)))
        num_spares = max(0, min(self._num_spares, len(staying) - 1))
        for index, engine in enumerate(staying):
            engine.is_spare = index < num_spares

    def _place_all(self, now: float) -> list[Order]:
        """Open the graphs that wait, and suspects one group at a time, after a change of the engines.

        While an engine is being started, suspects wait for it and leave the others to other graphs. With all engines running, they come
        first: they crash an engine at once, or give it back.
        """
        self._appoint_spares()
        if not all(map(self._can_run, self.staying())):
            self._place_unplaced(now)
        self._probe_next(now)
        self._place_unplaced(now)
        return self._taken_orders()

    def _place_unplaced(self, now: float) -> None:
        if self._unplaced and self._open_engines():
            waiting, self._unplaced = self._unplaced, {}
            for graph in waiting.values():
                self._place(graph, now)

    def _place(self, graph: PooledGraph, now: float) -> None:
        engines = self._open_engines()
        if engines:
            self._open(graph, self._placement.choose(graph.graph_id, engines), now)
        else:
            self._unplaced[graph.graph_id] = graph

    def _open(self, graph: PooledGraph, name: str, now: float) -> None:
        graph.engine, graph.stream_id = self.engines[name], next(self._stream_ids)
        graph.engine.graphs[graph.graph_id] = self.streams[graph.stream_id] = graph
        self._suspects.note_opened(graph.graph_id, now)
        self._placement.note_opened(graph.graph_id, name)
        self._orders.append(OpenGraph(graph.graph_id, name, graph.stream_id))

    def _probe_next(self, now: float) -> None:
        """Open the next suspects, on an engine without other graphs, unless some are open; without any, give the engine back."""
        suspects = self._suspects
        if not suspects.waiting:
            suspects.waits_since = None
        if suspects.probed or not (suspects.waiting or suspects.engine):
            return
        if not suspects.waiting or suspects.engine not in self._running_engines():
            self._give_to_suspects(None, now)
        if suspects.waiting and suspects.engine is None and (name := self._engine_for_probe(now)) is not None:
            self._give_to_suspects(name, now)
        if suspects.waiting and suspects.engine is not None:
            for graph_id in suspects.take_next():
                self._open(self.graphs[graph_id], suspects.engine, now)

    def _give_to_suspects(self, name: str | None, now: float) -> None:
        """Give an engine to the suspects alone, or take it back with None. A spare may take its place, or may be spare again."""
        if name != self._suspects.engine:
            self._suspects.engine = name
            self._appoint_spares()
            self._place_unplaced(now)

    def _engine_for_probe(self, now: float) -> str | None:
        """An engine without graphs, which a spare is, or the one that was crashed when it is back; after a long wait the one with the
        fewest.
        """
        suspects, engines = self._suspects, self._empty_engines()
        if suspects.waits_since is None:
            suspects.waits_since = now
        wait_s = PROBE_WAIT_S if all(map(self._can_run, self.staying())) else START_WAIT_S
        if not engines and now > suspects.waits_since + wait_s:
            engines = sorted(self._running_engines(), key=lambda name: len(self.engines[name].graphs))
        if not engines:
            return None
        suspects.waits_since = None
        return engines[0]

    def _empty_engines(self) -> list[str]:
        """The engines without graphs, spares first, since others need not wait for these."""
        found = [name for name in self._running_engines() if not self.engines[name].graphs]
        return sorted(found, key=lambda name: not self.engines[name].is_spare)

    def _make_room(self, graph_ids: Iterable[int], now: float) -> None:
        """Take cleared suspects off the engine of the others, so that the next one is alone there."""
        if self._suspects.waiting:
            for graph_id in graph_ids:
                self._move(self.graphs[graph_id], None, now)

    def _move(self, graph: PooledGraph, to: str | None, now: float) -> None:
        engine = graph.engine
        if engine is None or graph.cancelled_at is not None or engine.name == to:
            return
        is_probed = graph.graph_id in self._suspects.probed
        if is_probed and to is not None:
            return
        self._tell_cancel(graph)
        self._note_moved(graph, engine)
        self._take_off(graph)
        if is_probed:
            self._suspects.requeue_probed(graph.graph_id)
            self._probe_next(now)
        elif to is None:
            self._place(graph, now)
        else:
            self._open(graph, to, now)

    def _note_moved(self, graph: PooledGraph, engine: PooledEngine) -> None:
        engine.num_moved += 1
        self._orders.append(GraphMoved(graph.graph_id))

    def _tell_cancel(self, graph: PooledGraph) -> None:
        if graph.engine is not None:
            self._orders.append(CancelGraph(graph.graph_id, graph.engine.name, graph.stream_id))

    def _take_off(self, graph: PooledGraph) -> None:
        engine, graph.engine = graph.engine, None
        if engine is not None:
            del engine.graphs[graph.graph_id], self.streams[graph.stream_id]
            self._placement.note_left(graph.graph_id, engine.name)

    def _fail(self, graph: PooledGraph, reason: EndReason) -> None:
        self._forget(graph)
        self._orders.append(FailGraph(graph.graph_id, reason))

    def _forget(self, graph: PooledGraph) -> None:
        self._take_off(graph)
        del self.graphs[graph.graph_id]
        self._unplaced.pop(graph.graph_id, None)
        self._suspects.forget(graph.graph_id)
