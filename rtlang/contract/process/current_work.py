"""The work that an engine thread does now, and the graph that it belongs to; and the work of graphs on other threads beside it.

A thread writes a few integers before each piece of work, and almost nothing afterwards: no clock, no lock. A monitor in the same process
reads them when a thread stalls; in memory that is shared with another process, they also tell it what the threads were doing when their
process ended.
"""

from __future__ import annotations

import itertools
import threading
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, TypeVar

from rtlang.contract.process.stoppable_work import StoppableWork, WorkStopped

_T = TypeVar("_T")
Words: TypeAlias = "array[int] | memoryview[int]"
"""Words of 64 bits; those of a memoryview may be shared with another process."""

MAX_ROW_GRAPHS = 1000
_TURN, _IS_RESTING, _GRAPH, _NODE, _THREAD, _NATIVE_THREAD, _NUM_ROW_GRAPHS, _ROW_GRAPHS = range(8)
MAX_BESIDE = 8
"""Threads beside the engine's whose work is recorded."""
_BESIDE, _NUM_BESIDE_WORDS = _ROW_GRAPHS + MAX_ROW_GRAPHS, 4
NUM_WORDS = _BESIDE + MAX_BESIDE * _NUM_BESIDE_WORDS
"""Words of 64 bits of a record."""


class WorkBeside(NamedTuple):
    """Work of a graph on a thread beside the engine's.

    Attributes:
        slot: its place in the record.
        number: tells it from all other work of this process.
        node_id: the node that it was begun for, if any.
        thread: `threading.get_ident` of its thread.
    """

    slot: int
    number: int
    graph_id: int
    node_id: int | None
    thread: int


@dataclass(frozen=True, slots=True)
class WorkSample:
    """A reading of a record.

    Attributes:
        turn: number of turns of the thread so far.
        is_resting: whether the thread waits for work.
        graph_id: the graph for which it works alone; None if it works for none or for several.
        node_id: the node of this graph that was begun last, if any.
        row_graph_ids: the graphs with rows in the steps that are being computed.
        thread: its `threading.get_ident`; 0 before the first turn.
        beside: work on other threads.
        native_thread: its `threading.get_native_id`; 0 before the first turn.
    """

    turn: int
    is_resting: bool
    graph_id: int | None
    node_id: int | None
    row_graph_ids: frozenset[int]
    thread: int
    beside: tuple[WorkBeside, ...] = ()
    native_thread: int = 0

    @property
    def at_work(self) -> frozenset[int]:
        """The graphs of which one is the cause if the process ends now."""
        return self._at_work_in_turn.union(each.graph_id for each in self.beside)

    def at_work_in(self, thread: int) -> frozenset[int]:
        """The graphs of which one is the cause if this thread ends the process now; it may be a helper of one of the others."""
        beside = frozenset(each.graph_id for each in self.beside if each.thread == thread)
        return beside or (self._at_work_in_turn if thread == self.thread else self.at_work)

    @property
    def _at_work_in_turn(self) -> frozenset[int]:
        if self.is_resting:
            return frozenset()
        return self.row_graph_ids if self.graph_id is None else frozenset((self.graph_id,))

    @property
    def piece(self) -> tuple[int, int | None] | None:
        """Names the work of the thread for a graph in one turn; None while it does no such work."""
        return None if self.is_resting or self.graph_id is None else (self.turn, self.graph_id)


def read_sample(words: Words) -> WorkSample:
    """Read a record, in whatever state it is."""
    num_graphs = min(words[_NUM_ROW_GRAPHS], MAX_ROW_GRAPHS)
    return WorkSample(
        words[_TURN],
        bool(words[_IS_RESTING]),
        words[_GRAPH] or None,
        words[_NODE] - 1 if words[_NODE] else None,
        frozenset(words[_ROW_GRAPHS : _ROW_GRAPHS + num_graphs]),
        words[_THREAD],
        tuple(_beside_in(words)),
        words[_NATIVE_THREAD],
    )


def _beside_in(words: Words) -> Iterable[WorkBeside]:
    for slot in range(MAX_BESIDE):
        start = _BESIDE + slot * _NUM_BESIDE_WORDS
        number, graph_id, node, thread = words[start : start + _NUM_BESIDE_WORDS]
        if number:
            yield WorkBeside(slot, number, graph_id, node - 1 if node else None, thread)


class CurrentWork:
    """The record of an engine thread, and of threads beside it. Each writes its part; `sample`, `interrupt` and `interrupt_beside` may be
    called on any other one.

    Attributes:
        asked_to_stop: the graph whose sliced work should end, with the seconds for which it has held the thread; None if there is none.
    """

    def __init__(self) -> None:
        self._words: Words = array("Q", bytes(8 * NUM_WORDS))
        self._words[_IS_RESTING] = 1
        self._stoppable = StoppableWork()
        self._stoppable_beside = tuple(StoppableWork("a thread") for _ in range(MAX_BESIDE))
        self._free_slots, self._numbers = list(range(MAX_BESIDE)), itertools.count(1)
        self._slots_lock, self._local = threading.Lock(), _Local()
        self.asked_to_stop: tuple[int, float] | None = None

    def share(self, words: Words) -> None:
        """Write to this memory from now on: NUM_WORDS words, all zero."""
        words[_IS_RESTING] = 1
        self._words = words

    def sample(self) -> WorkSample:
        """The work now."""
        return read_sample(self._words)

    @property
    def node_id(self) -> int | None:
        """The node of the graph for which the engine thread works, that was begun last."""
        node = self._words[_NODE]
        return node - 1 if node else None

    # -- the thread

    def begin_turn(self) -> None:
        """The thread begins a turn: it works for no graph yet."""
        words = self._words
        words[_TURN] += 1
        words[_GRAPH] = words[_IS_RESTING] = 0
        if not words[_THREAD]:
            words[_THREAD], words[_NATIVE_THREAD] = threading.get_ident(), threading.get_native_id()

    def rest(self) -> None:
        """The thread waits for work."""
        self._words[_IS_RESTING] = 1

    def begin(self, graph_id: int) -> None:
        """The thread works for this graph from now on; 0 for none."""
        words = self._words
        words[_GRAPH] = graph_id
        words[_NODE] = 0

    def begin_node(self, node_id: int) -> None:
        """The work for the graph is that of this node from now on."""
        self._words[_NODE] = node_id + 1

    def begin_step(self, graph_ids: Iterable[int]) -> None:
        """The steps that are being computed have rows of these graphs from now on."""
        words, found = self._words, array("Q", set(graph_ids))
        num_graphs = min(len(found), MAX_ROW_GRAPHS)
        words[_GRAPH] = words[_NUM_ROW_GRAPHS] = 0
        words[_ROW_GRAPHS : _ROW_GRAPHS + num_graphs] = found[:num_graphs]
        words[_NUM_ROW_GRAPHS] = num_graphs

    def end_step(self) -> None:
        """No step is being computed."""
        self._words[_GRAPH] = self._words[_NUM_ROW_GRAPHS] = 0

    def run_stoppable(self, act: Callable[[], _T]) -> _T:
        """Call a function that a monitor may end at any instruction, here or within `run_beside`. It must be pure: its effect is only its
        result.

        Raises:
            WorkStopped: it was stopped.
        """
        slot = self._local.slot
        return (self._stoppable if slot is None else self._stoppable_beside[slot]).run(act)

    def poll(self, graph_id: int) -> None:
        """End the sliced work of a graph that was asked to stop.

        Raises:
            WorkStopped: it was.
        """
        asked = self.asked_to_stop
        if asked is not None and asked[0] == graph_id:
            self.asked_to_stop = None
            raise WorkStopped(asked[1])

    # -- threads beside it

    def run_beside(self, graph_id: int, node_id: int | None, act: Callable[[], _T]) -> _T:
        """Call a function on this thread, which works for a node of a graph meanwhile."""
        with self._slots_lock:
            slot = self._free_slots.pop() if self._free_slots else None
        if slot is None:  # more threads than MAX_BESIDE: this work is neither recorded nor stopped
            return act()
        words, start = self._words, _BESIDE + slot * _NUM_BESIDE_WORDS
        words[start + 1], words[start + 2] = graph_id, 0 if node_id is None else node_id + 1
        words[start + 3] = threading.get_ident()
        words[start] = next(self._numbers)
        self._local.slot = slot
        try:
            return act()
        finally:
            self._local.slot = None
            words[start] = 0
            with self._slots_lock:
                self._free_slots.append(slot)

    # -- a monitor

    def interrupt(self, sample: WorkSample, seconds: float) -> bool:
        """Stop the work of a graph that has held the engine thread for `seconds`.

        Returns:
            Whether it is interrupted: it is stoppable, and still the work of the sample.
        """
        return self._stoppable.interrupt(sample.thread, seconds, lambda: self.sample().piece == sample.piece)

    def interrupt_beside(self, work: WorkBeside, seconds: float) -> bool:
        """Stop work on another thread; see `interrupt`."""
        stoppable = self._stoppable_beside[work.slot]
        return stoppable.interrupt(work.thread, seconds, lambda: work in self.sample().beside)


class _Local(threading.local):
    slot: int | None = None
