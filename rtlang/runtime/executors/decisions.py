"""Runs decisions: finds the winner among operands as they become known, and ends the work that only the others needed.

A decision waits for no slots: it starts when it is added, and an action for each operand waits for its value or failure. Votes hold
back operands that may not be needed (`staging.py`), so this file also decides when a ready node has to wait.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any

from rtlang.contract.errors import ApplyError, RequestError
from rtlang.contract.events import NodeFinished
from rtlang.contract.request_graph import Decide, Generate, Node, Operand
from rtlang.contract.runs.known import KnownOutcome
from rtlang.runtime.executors.decision_state import DecisionState
from rtlang.runtime.executors.model_calls import ModelCalls
from rtlang.runtime.executors.staging import Staging
from rtlang.runtime.nodes.node_ends import NodeEnds, Stopped
from rtlang.runtime.nodes.node_table import NodeTable
from rtlang.runtime.nodes.slots import Slot, operand_slots, slots_of
from rtlang.runtime.texts.token_sequence import TokenSequence


class Decisions:
    """See `Executor`.

    Args:
        known: outcomes by node, which the nodes end with once they start. The outcome of a decision fixes its winner.
        outputs: ids of nodes that no decision cancels.
        start: starts a node that was held back.
    """

    def __init__(
        self,
        table: NodeTable,
        ends: NodeEnds,
        calls: ModelCalls,
        known: dict[int, KnownOutcome],
        outputs: Collection[int],
        start: Callable[[Node], None],
    ) -> None:
        self._table, self._ends, self._calls = table, ends, calls
        self._known, self._outputs, self._start = known, frozenset(outputs), start
        self._states: dict[int, DecisionState] = {}
        self._started: dict[int, float] = {}
        self._staging = Staging(table.uses, self._is_output, table.begun)

    def start(self, node: Decide, before: TokenSequence) -> None:
        """See `Executor.start`; called when the node is added."""
        known = self._known.pop(node.node_id, None)
        fixed = known.end.value[0] if known is not None and isinstance(known.end, NodeFinished) else None
        self._states[node.node_id] = state = DecisionState(node, fixed)
        self._staging.add(node)
        self._started[node.node_id] = self._ends.clock()
        for operands, tell in ((node.of, state.know), (node.by or (), state.rate)):
            for index, operand in enumerate(operands):
                self._table.wait(operand_slots((operand,)), partial(self._learn, node, index, operand, tell))

    def _learn(self, node: Decide, index: int, operand: Operand, tell: Callable[[int, Any], None]) -> None:
        """An operand has become known, or has failed."""
        state = self._states.get(node.node_id)
        if state is None or node.node_id in self._table.ended:
            return
        if self._table.cause_of(operand_slots((operand,))) is not None:
            state.lose(index)
        else:
            tell(index, self._table.value(operand))
        self._ends.guard(node, (), partial(self._decide, node, state))
        if self._staging.is_due(node.node_id, state, is_over=node.node_id in self._table.ended):
            self._stage([node.node_id])

    def _decide(self, node: Decide, state: DecisionState) -> None:
        if state.is_lost:
            raise self._table.cause_of(slots_of(node)) or RequestError("no operand has a value")
        try:
            winner = state.winner()
        except TypeError as error:
            raise ApplyError(node.how, [], str(error)) from None
        if winner is None:
            return
        del self._states[node.node_id]
        self._ends.end_value(node, [winner, state.value(winner)], self._started.pop(node.node_id))
        self._cancel_losers(self._table.open_slots(slots_of(node)))

    def _cancel_losers(self, lost: Sequence[Slot]) -> None:
        """End the work that only these operands needed."""
        node_ids, choices = self._table.uses.needless(lost, self._is_output)
        nodes = {node_id: self._table.nodes[node_id] for node_id, _ in choices}
        self._ends.cancel(node_ids)
        for node_id, choice in sorted(choices):
            node = nodes[node_id]
            assert isinstance(node, Generate)
            self._calls.cancel_choice(node, choice)
            self._table.lose(node_id, choice)

    def _is_output(self, node_id: int) -> bool:
        return node_id in self._outputs or node_id in self._known

    def stop(self, node: Decide, *, is_cancelled: bool = False) -> Stopped:
        """See `Executor.stop`. A failed decision holds back its operands until `_learn` goes on."""
        self._states.pop(node.node_id, None)
        self._started.pop(node.node_id, None)
        if is_cancelled:
            self._staging.end(node.node_id)
        return Stopped()

    # -- operands that votes hold back

    def holds_back(self, node_id: int) -> bool:
        """Whether a node that is ready has to wait; it is started later if it is needed."""
        return self._staging.park(node_id)

    def held_choices(self, node_id: int) -> set[int]:
        """The completions of a starting node that have to wait."""
        return self._staging.park_choices(node_id)

    def restage(self, nodes: Iterable[Node]) -> None:
        """Take new nodes into account: operands that they need are held back no more."""
        self._stage(self._staging.due(self._table.uses.used_by(nodes)))

    def _stage(self, vote_ids: Collection[int]) -> None:
        """Find again which operands votes hold back, and start the others."""
        if not vote_ids:
            return
        for vote_id in vote_ids:
            state = self._states.get(vote_id)
            if state is None or vote_id in self._table.ended:
                self._staging.end(vote_id)
            else:
                self._staging.update(vote_id, state)
        node_ids, choices = self._staging.released()
        for node in map(self._table.nodes.__getitem__, node_ids):
            self._table.wait((), partial(self._start, node), node)
        for node_id, choice in choices:
            self._ends.guard(self._table.nodes[node_id], (), partial(self._calls.start_choice, node_id, choice))
