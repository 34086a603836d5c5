"""Runs the nodes that have a value and no sequence: pure functions, and functions of the host."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from rtlang.contract.errors import CallError, rebuild
from rtlang.contract.events import CallRequested, ValueKnown
from rtlang.contract.graph.pure_functions import apply
from rtlang.contract.request_graph import Apply, Call
from rtlang.runtime.nodes.node_ends import NodeEnds, Stopped
from rtlang.runtime.nodes.node_table import NodeTable
from rtlang.runtime.texts.token_sequence import TokenSequence


class ValueNodes:
    """Computes pure functions, and asks the listener for the values of host functions; see `Executor`.

    Args:
        reports_progress: whether ValueKnown is sent.
    """

    def __init__(self, table: NodeTable, ends: NodeEnds, *, reports_progress: bool) -> None:
        self._table, self._ends, self._reports_progress = table, ends, reports_progress
        self._called: dict[int, float] = {}  # start times, by call that waits for its value

    def start(self, node: Apply | Call, before: TokenSequence) -> None:
        """See `Executor.start`."""
        ends, args = self._ends, [self._table.value(each) for each in node.args]
        if isinstance(node, Call):
            self._called[node.node_id] = ends.clock()
            ends.emit(CallRequested(ends.graph_id, node.node_id, node.function, tuple(args)))
            return
        value = ends.work.run_stoppable(partial(apply, node.function, args))
        if self._reports_progress:
            ends.emit(ValueKnown(ends.graph_id, node.node_id, value))
        ends.end(node, None, (value,))

    def resolve(self, node_id: int, value: Any) -> None:
        """Set the value of a call; ignored unless it is waiting for one."""
        started = self._called.pop(node_id, None)
        if started is not None:
            self._ends.end_value(self._table.nodes[node_id], value, started)

    def reject(self, node_id: int, code: str, message: str, facts: Mapping[str, Any] | None = None) -> None:
        """Let a call fail; ignored unless it is waiting for its value."""
        if self._called.pop(node_id, None) is None:
            return
        node = self._table.nodes[node_id]
        assert isinstance(node, Call)
        is_call = code == CallError.code
        error = CallError(node.function, message) if is_call else rebuild(code, message, dict(facts or {}))
        self._ends.fail(node, error)

    def stop(self, node: Apply | Call, *, is_cancelled: bool = False) -> Stopped:
        """See `Executor.stop`. The value of a call that arrives later is ignored."""
        self._called.pop(node.node_id, None)
        return Stopped()
