"""Executes a graph on the engine thread: starts each node when its slots are filled, and ends the graph when all nodes have ended.

A node starts when its parent has ended and the values that it refers to are known. A sequence is a list of token ids that only grows: text
is encoded once when it is added, and generated tokens are never re-encoded. If a node fails, the nodes that depend on it fail with an error
that names the cause; other nodes continue. The nodes of a block exist from the time when their control node has chosen to run it.

The state of the nodes is in `nodes/node_table.py`, with the order in which they start; how a node of each kind runs is in `executors/`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from rtlang.contract.errors import DeadlineError, RtlangError, SpentError
from rtlang.contract.events import Event, GraphFailed, GraphFinished
from rtlang.contract.graph.value_size import Measured
from rtlang.contract.node_work import NodeWork
from rtlang.contract.params import seconds_left
from rtlang.contract.request_graph import (
    Apply,
    Call,
    Decide,
    Generate,
    Node,
    Repeat,
    Select,
    Switch,
    Text,
    num_requests,
    parent_of,
    path_of,
)
from rtlang.contract.runs.known import ContinueFrom, Known
from rtlang.contract.runs.run_options import RunOptions
from rtlang.runtime.executors.budget_account import BudgetAccount
from rtlang.runtime.executors.control_nodes import ControlNodes
from rtlang.runtime.executors.decisions import Decisions
from rtlang.runtime.executors.given_outcomes import GivenOutcomes
from rtlang.runtime.executors.host import Host
from rtlang.runtime.executors.model_calls import ModelCalls
from rtlang.runtime.executors.text_nodes import TextNodes
from rtlang.runtime.executors.value_nodes import ValueNodes
from rtlang.runtime.nodes.branch_points import BranchPoints
from rtlang.runtime.nodes.graph_retention import GraphRetention
from rtlang.runtime.nodes.node_ends import Executor, NodeEnds
from rtlang.runtime.nodes.node_table import NodeTable
from rtlang.runtime.nodes.slots import slots_of
from rtlang.runtime.nodes.work_slices import WorkSlices
from rtlang.runtime.texts.token_sequence import TokenSequence

NAME_US = 1.2
"""Of a node of which the final event may tell the value."""


class GraphExecution:
    """The execution of one graph. Used on the engine thread only.

    Args:
        listener: receives all events, with exactly one final event.
        options: of the run, with a seed.
        on_end: called once, after the final event.
        outputs: ids of nodes that no decision cancels.
        on_expand: called with a control node's id and the nodes of a block before they start.

    Attributes:
        table: the state of the nodes.
    """

    def __init__(
        self,
        graph_id: int,
        options: RunOptions,
        host: Host,
        listener: Callable[[Event], None],
        on_end: Callable[[], None],
        *,
        outputs: Collection[int] | None = None,
        on_expand: Callable[[int, Sequence[Node]], None] = lambda control_id, nodes: None,
    ) -> None:
        self.graph_id, self._is_open, self._listener, self._on_end = graph_id, options.is_open, listener, on_end
        self._is_finishing = False
        self._host = host
        self._timers: list[Callable[[], None]] = []  # what cancels those of the deadlines of generations
        self._account = account = None if options.budget is None else BudgetAccount(options.budget)
        self.table = table = NodeTable(options.inputs, generations_last=account is not None)
        self._slices = slices = WorkSlices(
            table.waits,
            self._end_if_done,
            lambda: table.is_over,
            host.later,
            host.offload,
            partial(host.work.poll, graph_id),
            host.worked,
            host.turn,
        )
        self._retention = retention = GraphRetention(host.pages, options.is_open)
        self._executors: dict[type[Node], Executor] = {}
        self._ends = ends = NodeEnds(
            graph_id, listener, host.clock, table, slices, retention, self._executors, host.work
        )
        self._branches = BranchPoints(table) if host.has_states else None
        self._calls = calls = ModelCalls(table, ends, slices, host, account, options, self._branches)
        self._given = given = GivenOutcomes(table, ends, slices, calls, host, account, options.known)
        self._values = ValueNodes(table, ends, slices, host.reserve, reports_progress=options.reports_progress)
        self._decisions = Decisions(table, ends, slices, calls, given.known, outputs or (), self._start, host.reserve)
        controls = ControlNodes(table, ends, slices, retention, on_expand, self._add, host.reserve)
        self._executors |= {
            Text: TextNodes(table, ends, slices, host),
            Generate: calls,
            Select: calls,
            Apply: self._values,
            Call: self._values,
            Switch: controls,
            Repeat: controls,
            Decide: self._decisions,
        }

    @property
    def is_ended(self) -> bool:
        """Whether the final event was sent."""
        return self.table.is_over

    @property
    def work_ahead(self) -> NodeWork:
        """The estimated work of the nodes that have not begun."""
        return self.table.work_ahead

    def path_of(self, node_id: int) -> str | None:
        """The path of a node, by the id under which it runs; None if it has none."""
        node = self.table.nodes.get(node_id)
        return None if node is None else path_of(node)

    def add_nodes(
        self, nodes: Sequence[Node], known: Known | None = None, continue_from: ContinueFrom | None = None
    ) -> None:
        """Add validated nodes, known outcomes and tokens of theirs, and start those whose dependencies are done."""
        self._given.known.update(known or {})
        self._calls.continue_from.update(continue_from or {})
        self._slices.add_later(self.table.uses.prepared(nodes), len(nodes), self._add, lambda: None)

    def close(self) -> None:
        """End the graph once its nodes have ended: no more will be added."""
        self._is_open = False
        self._retention.close()
        self._slices.drain()

    def fail(self, error: RtlangError) -> None:
        """End the graph now with `error`."""
        if not self.is_ended:
            self._end(GraphFailed(self.graph_id, error))

    def resolve(self, node_id: int, value: Measured) -> None:
        """Set the value of a host call; ignored unless it is waiting for one."""
        if not self.is_ended:
            self._values.resolve(node_id, value)

    def reject(self, node_id: int, code: str, message: str, facts: Mapping[str, Any] | None = None) -> None:
        """Let a host call fail; ignored unless it is waiting for its value."""
        if not self.is_ended:
            self._values.reject(node_id, code, message, facts)

    def settle_work(self) -> None:
        """Tell the host the time of the running turn so far."""
        self._slices.settle()

    def spend_time(self) -> None:
        """End all generations that run, because the time of the budget is over."""
        account = self._account
        if account is None or self.is_ended:
            return
        account.is_late = True
        error = SpentError("seconds", account.budget.seconds or 0.0)
        for node_id in (*self._calls.running, *self._given.answering):
            if node_id not in self.table.ended:  # the failure of another one may have decided a vote
                self._ends.fail(self.table.nodes[node_id], error)

    def _add(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self.table.add(node)
        self._retention.add(nodes)
        if self._branches is not None:
            self._branches.add(nodes)
        for node in nodes:
            if self._given.end_cancelled(node):
                continue
            if isinstance(node, Decide):
                self._decisions.start(node, TokenSequence())
                continue
            self.table.wait(slots_of(node), partial(self._start, node), node)
            if isinstance(node, Apply):
                self._calls.read_field(node)
        self._decisions.restage(nodes)

    def _start(self, node: Node) -> None:
        if not self._decisions.holds_back(node.node_id):
            self.table.begin(node.node_id)
            slots = slots_of(node) if self.table.has_losses else ()
            self._ends.guard(node, slots, partial(self._run, node))

    def _run(self, node: Node) -> None:
        before = self.table.sequence(parent_of(node))
        if isinstance(node, (Text, Generate, Select, Call)):
            if self._given.end_known(node, before):
                return
            if isinstance(node, Generate) and self._account is not None:
                node = self._account.lowered(node, num_requests(node) + self.table.waits.num_ready_requests)
            if isinstance(node, Generate) and node.params.deadline_s is not None:
                self._expire_later(node.node_id, node.params.deadline_s)
            if self._given.is_answered(node, before):
                return
        if isinstance(node, Generate):
            self._calls.start(node, before, self._decisions.held_choices(node.node_id))
        else:
            self._executors[type(node)].start(node, before)

    def _expire_later(self, node_id: int, deadline_s: float) -> None:
        assert self._host.call_at is not None, "a host without timers"
        expire = partial(self._expire, node_id, deadline_s)
        self._timers.append(self._host.call_at(self._host.clock() + seconds_left(deadline_s), expire))

    def _expire(self, node_id: int, deadline_s: float) -> None:
        """The deadline of a generation has passed."""
        if node_id not in self.table.ended:
            error = DeadlineError(f"deadline_s = {deadline_s:g}: the deadline of the generation has passed")
            self._ends.fail(self.table.nodes[node_id], error)

    def _end_if_done(self) -> None:
        if not self._is_open and self.table.is_done and not self._is_finishing:
            self._is_finishing = True
            self._slices.do(NAME_US * len(self.table.nodes), self.table.named_values, self._finish)

    def _finish(self, values: dict[str, Any] | Exception) -> None:
        """The named values were put together, those of many nodes on another thread."""
        if isinstance(values, Exception):
            raise values
        if not self.is_ended:
            failed = tuple(sorted(self.table.failed))
            self._end(GraphFinished(self.graph_id, values, self._calls.usage, failed))

    def _end(self, event: GraphFinished | GraphFailed) -> None:
        self.table.is_over = True
        self._calls.stop_all()
        for cancel in self._timers:
            cancel()
        self._retention.end_graph()
        self._listener(event)
        self._on_end()
