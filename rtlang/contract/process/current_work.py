"""The work that an engine's thread does now, and the graph that it belongs to.

The thread writes a few integers before each piece of work, and nothing afterwards: no clock, no lock. A monitor in the same process reads
them when the thread stalls; in memory that is shared with another process, they also tell what the thread did when its process ended.

A pure function may be run so that a monitor can stop it (`run_stoppable`). Nothing else is ever interrupted: code that changes the state of
the engine, of a cache or of a matcher is not made to end at any instruction.
"""

from __future__ import annotations

import ctypes
import threading
import time
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

_T = TypeVar("_T")
Words: TypeAlias = "array[int] | memoryview[int]"
"""Words of 64 bits; those of a memoryview may be shared with another process."""

MAX_ROW_GRAPHS = 1000
_TURN, _IS_RESTING, _GRAPH, _NODE, _THREAD, _NUM_ROW_GRAPHS, _ROW_GRAPHS = range(7)
NUM_WORDS = _ROW_GRAPHS + MAX_ROW_GRAPHS
"""Words of 64 bits of a record."""


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
    """

    turn: int
    is_resting: bool
    graph_id: int | None
    node_id: int | None
    row_graph_ids: frozenset[int]
    thread: int

    @property
    def at_work(self) -> frozenset[int]:
        """The graphs of which one is the cause if the thread ends its process now."""
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
    )


class WorkStopped(Exception):
    """A stoppable piece of work was stopped, or sliced work was asked to stop: its graph fails.

    Attributes:
        seconds: for which it had held the thread.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(f"stopped after {seconds:g} s")
        self.seconds = seconds


class _Interrupt(BaseException):
    """Raised by the monitor's thread within a stoppable piece of work; never leaves `run_stoppable`."""


class CurrentWork:
    """The record of one thread. The thread writes; `sample` and `interrupt` may be called on any other one.

    Attributes:
        asked_to_stop: the graph whose sliced work should end, with the seconds for which it has held the thread; None if there is none.
    """

    def __init__(self) -> None:
        self._words: Words = array("Q", bytes(8 * NUM_WORDS))
        self._words[_IS_RESTING] = 1
        self._piece: object | None = None  # the stoppable piece that runs
        self._is_interrupting = self._was_interrupted = False
        self._held_s = 0.0
        self.asked_to_stop: tuple[int, float] | None = None

    def share(self, words: Words) -> None:
        """Write to this memory from now on: NUM_WORDS words, all zero."""
        words[_IS_RESTING] = 1
        self._words = words

    def sample(self) -> WorkSample:
        """The work now."""
        return read_sample(self._words)

    # -- the thread

    def begin_turn(self) -> None:
        """The thread begins a turn: it works for no graph yet."""
        words = self._words
        words[_TURN] += 1
        words[_GRAPH] = words[_IS_RESTING] = 0
        if not words[_THREAD]:
            words[_THREAD] = threading.get_ident()

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
        """Call a function that `interrupt` may end at any instruction. It must be pure: its effect is only its result.

        Raises:
            WorkStopped: it was stopped.
        """
        self._was_interrupted, self._piece = False, act
        try:
            try:
                return act()
            finally:
                self._end_piece()
        except _Interrupt:  # one at most for each piece, so none can come in the next lines
            self._end_piece()
            raise WorkStopped(self._held_s) from None

    def _end_piece(self) -> None:
        """From here on no interrupt arrives. It may be interrupted itself, and is then called again."""
        self._piece = None
        while self._is_interrupting:  # the monitor found the piece running
            time.sleep(0)
        if self._was_interrupted:
            _raise_in(threading.get_ident(), None)  # unless it has arrived

    def poll(self, graph_id: int) -> None:
        """End the sliced work of a graph that was asked to stop.

        Raises:
            WorkStopped: it was.
        """
        asked = self.asked_to_stop
        if asked is not None and asked[0] == graph_id:
            self.asked_to_stop = None
            raise WorkStopped(asked[1])

    # -- a monitor

    def interrupt(self, sample: WorkSample, seconds: float) -> bool:
        """Stop the work of a graph, which has held the thread for so many seconds.

        Returns:
            Whether it is interrupted: it is stoppable, and still the work of the sample.
        """
        self._is_interrupting = True  # before the piece is read: see `_end_piece`
        try:
            if self._piece is None or self._was_interrupted or self.sample().piece != sample.piece:
                return False
            self._held_s, self._was_interrupted = seconds, True
            _raise_in(sample.thread, _Interrupt)
            return True
        finally:
            self._is_interrupting = False


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Raise an exception in a thread when it executes the next instruction of Python; None takes it back."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), None if error is None else ctypes.py_object(error)
    )
