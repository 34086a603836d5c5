"""Runs the nodes that have a value and no sequence: pure functions, and functions of the host.

A pure function is computed where its price allows, see `WorkSlices.do`. Memory for its result is reserved before it is computed. A value
that is sent counts in full, also if the graph has its parts already: that of a node with a name is in the final event of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from rtlang.contract.errors import CallError, rebuild
from rtlang.contract.events import CallRequested, ValueKnown
from rtlang.contract.graph.pure_functions import Run, compute, price_of
from rtlang.contract.graph.value_size import MAX_SIZE, Measured
from rtlang.contract.request_graph import Apply, Call, Ref
from rtlang.runtime.nodes.node_ends import NodeEnds, Stopped
from rtlang.runtime.nodes.node_table import NodeTable
from rtlang.runtime.nodes.work_slices import WorkSlices
from rtlang.runtime.texts.token_sequence import TokenSequence


class _Called(NamedTuple):
    """A call that waits for its value: when it began, and the bytes of its arguments."""

    started: float
    num_bytes: int


class ValueNodes:
    """Computes pure functions, and asks the listener for the values of host functions; see `Executor`.

    Args:
        reserve: see `Host`.
        reports_progress: whether ValueKnown is sent.
    """

    def __init__(
        self,
        table: NodeTable,
        ends: NodeEnds,
        slices: WorkSlices,
        reserve: Callable[[int], None],
        *,
        reports_progress: bool,
    ) -> None:
        self._table, self._ends, self._slices = table, ends, slices
        self._reserve, self._reports_progress = reserve, reports_progress
        self._called: dict[int, _Called] = {}  # calls that wait for their values

    def start(self, node: Apply | Call, before: TokenSequence) -> None:
        """See `Executor.start`."""
        args = [self._table.measured(each) for each in node.args]
        if isinstance(node, Call):
            self._call(node, args)
            return
        is_sent = self._reports_progress or node.name is not None
        price_us = price_of(node.function, args)
        run = self._ends.work.run_stoppable
        work = partial(_computed, node.function, args, self._reserve, run, is_sent=is_sent)
        self._slices.do(price_us, work, partial(self._end, node))

    def _end(self, node: Apply, found: Measured | Exception) -> None:
        """A pure function was computed, or has failed."""

        def end() -> None:
            if isinstance(found, Exception):
                raise found
            slot = (node.node_id, 0)
            if slot in self._table.values:  # it was known early, in another copy
                self._reserve(-self._table.measured(Ref(*slot)).measure.num_bytes)
            if self._reports_progress:
                self._ends.emit(ValueKnown(self._ends.graph_id, node.node_id, found.value))
            self._ends.end(node, None, (found,))

        self._ends.guard(node, (), end)

    def _call(self, node: Call, args: Sequence[Measured]) -> None:
        size = sum(each.size for each in args)
        if size > MAX_SIZE:
            reason = f"the arguments have {size} characters and items; at most {MAX_SIZE} are allowed"
            raise CallError(node.function, reason)
        num_bytes = sum(each.measure.num_bytes for each in args)
        self._reserve(num_bytes)
        ends = self._ends
        self._called[node.node_id] = _Called(ends.clock(), num_bytes)
        ends.emit(CallRequested(ends.graph_id, node.node_id, node.function, tuple(each.value for each in args)))

    def _answered(self, node_id: int) -> float | None:
        """The start of a call that waits for its value, whose arguments are not needed any more; None if it does not wait."""
        called = self._called.pop(node_id, None)
        if called is None:
            return None
        self._reserve(-called.num_bytes)
        return called.started

    def resolve(self, node_id: int, value: Measured) -> None:
        """Set the value of a call; ignored unless it is waiting for one."""
        started = self._answered(node_id)
        if started is None:
            return
        node = self._table.nodes[node_id]

        def end() -> None:
            self._reserve(value.measure.num_bytes)
            self._ends.end_value(node, value, started)

        self._ends.guard(node, (), end)

    def reject(self, node_id: int, code: str, message: str, facts: Mapping[str, Any] | None = None) -> None:
        """Let a call fail; ignored unless it is waiting for its value."""
        if self._answered(node_id) is None:
            return
        node = self._table.nodes[node_id]
        assert isinstance(node, Call)
        is_call = code == CallError.code
        error = CallError(node.function, message) if is_call else rebuild(code, message, dict(facts or {}))
        self._ends.fail(node, error)

    def stop(self, node: Apply | Call, *, is_cancelled: bool = False) -> Stopped:
        """See `Executor.stop`. The value of a call that arrives later is ignored."""
        self._answered(node.node_id)
        return Stopped()


def _computed(
    function: str, args: Sequence[Measured], reserve: Callable[[int], None], run: Run, *, is_sent: bool
) -> Measured:
    """Compute a pure function; reserves the memory of its value, all of it if it is sent."""
    found, num_bytes = compute(function, args, reserve, run)
    if is_sent and found.measure.num_bytes > num_bytes:
        reserve(found.measure.num_bytes - num_bytes)
    return found
