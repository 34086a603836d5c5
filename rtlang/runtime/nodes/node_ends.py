"""Ends nodes: every end of a node is reported, stored in the table and followed by what waited for it, in one place."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from rtlang.contract.errors import RtlangError, internal_error
from rtlang.contract.events import Completion, Event, NodeFailed, NodeFinished, Timing
from rtlang.contract.graph.value_size import Measured
from rtlang.contract.params import FinishReason, Usage
from rtlang.contract.process.current_work import CurrentWork
from rtlang.contract.process.stoppable_work import WorkStopped
from rtlang.contract.request_graph import Generate, Node, Select, name_of, parent_of
from rtlang.runtime.nodes.graph_retention import GraphRetention
from rtlang.runtime.nodes.node_table import NodeTable
from rtlang.runtime.nodes.slots import CANCELLED, Slot
from rtlang.runtime.nodes.work_slices import WorkSlices
from rtlang.runtime.texts.token_sequence import TokenSequence

logger = logging.getLogger(__name__)

Computed = Sequence[Sequence[int]]
"""The tokens of each request of a node, which the cache may hold."""


class Stopped(NamedTuple):
    """The remains of a node whose work was stopped: the tokens of its requests, and the texts of its completions so far."""

    computed: Computed = ()
    texts: tuple[str, ...] = ()


class Executor(Protocol):
    """Runs the nodes of one kind. It ends a node with `NodeEnds`, at once or later."""

    def start(self, node: Any, before: TokenSequence) -> None:
        """Start a node whose slots are filled.

        Args:
            before: the sequence that it continues.
        Raises:
            RtlangError: the node fails.
        """

    def stop(self, node: Any, *, is_cancelled: bool = False) -> Stopped:
        """Forget a node and stop its work, if it runs.

        Args:
            is_cancelled: the node is not needed any more; else it fails. Completions are reported then.
        """


class NodeEnds:
    """Ends the nodes of one graph. Used on the engine thread only.

    Args:
        emit: sends an event to the listener of the graph.
        executors: by kind of node; filled before the first node is added.

    Attributes:
        work: the record of the engine thread's work.
    """

    def __init__(
        self,
        graph_id: int,
        emit: Callable[[Event], None],
        clock: Callable[[], float],
        table: NodeTable,
        slices: WorkSlices,
        retention: GraphRetention,
        executors: Mapping[type[Node], Executor],
        work: CurrentWork,
    ) -> None:
        self.graph_id, self.emit, self.clock, self.work = graph_id, emit, clock, work
        self._table, self._slices, self._retention, self._executors = table, slices, retention, executors

    def guard(self, node: Node, slots: Iterable[Slot], act: Callable[[], None]) -> None:
        """Act for a node unless it has ended; it fails if one of the slots has failed, or if `act` raises.

        Raises:
            WorkStopped: the work was stopped; the whole graph fails.
        """
        if node.node_id in self._table.ended:
            return
        cause = self._table.cause_of(slots)
        if cause is not None:
            is_silent = self._table.is_silent(node) and cause.cause_message == CANCELLED
            self.fail(node, cause, is_silent=is_silent)
            return
        self.work.begin_node(node.node_id)
        try:
            act()
        except WorkStopped:
            raise
        except RtlangError as error:
            self.fail(node, error)
        except Exception as error:
            self.fail(node, internal_error(logger, f"node {node.node_id} of graph {self.graph_id} failed", error))

    def end(
        self,
        node: Node,
        sequence: TokenSequence | None = None,
        values: Sequence[Any] = (),
        error: RtlangError | None = None,
        *,
        computed: Computed = (),
        is_cancelled: bool = False,
    ) -> None:
        """A node has ended, and its end was reported; see `NodeTable.end`. Starts what waited for it."""
        self._table.end(node, sequence, values, error, is_cancelled=is_cancelled)
        before = parent_of(node)
        num_before = 0 if before is None else len(self._table.sequences.get(before, ()))
        self._retention.end(node, num_before, sequence, computed)
        self._slices.drain()

    def end_value(
        self, node: Node, value: Measured | None, started: float, sequence: TokenSequence | None = None
    ) -> None:
        """End a node that has a value and no completions. None: its value is None."""
        self._report(node, started, None if value is None else value.value)
        self.end(node, sequence, (value,))

    def fail(self, node: Node, error: RtlangError, *, is_silent: bool = False) -> None:
        """End a node with an error. `is_silent`: without an event, because a decision was made without it."""
        computed = self._executors[type(node)].stop(node).computed
        error.__traceback__ = error.__context__ = None  # they would keep what the node was computing
        if not is_silent:
            self.emit(NodeFailed(self.graph_id, node.node_id, name_of(node), error))
        self.end(node, None, (), error, computed=computed, is_cancelled=is_silent)

    def cancel(self, node_ids: Iterable[int]) -> None:
        """End nodes that a decision made needless: none of them starts while the others end."""
        nodes = [self._table.nodes[node_id] for node_id in sorted(node_ids)]
        for node in nodes:
            self._table.cancel(node.node_id)
        for node in nodes:
            stopped = self._executors[type(node)].stop(node, is_cancelled=True)
            if not isinstance(node, (Generate, Select)) and not self._table.is_silent(node):
                self._report(node, self.clock(), None, (Completion("", (), FinishReason.CANCELLED),))
            self.end(node, values=stopped.texts, computed=stopped.computed)

    def _report(self, node: Node, started: float, value: Any, completions: tuple[Completion, ...] = ()) -> None:
        seconds = self.clock() - started
        timing = Timing(0.0, seconds, seconds)
        event = NodeFinished(self.graph_id, node.node_id, name_of(node), completions, Usage(), timing, value=value)
        self.emit(event)

    def know(self, node_id: int, choice: int, value: Any) -> None:
        """A value of a node that goes on is known. Starts what waited for it."""
        self._table.know(node_id, choice, value)
        self._slices.drain()

    def drain(self) -> None:
        """Start what has become ready."""
        self._slices.drain()
