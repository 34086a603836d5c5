"""Runs decisions: finds the winner among operands as they become known, and ends the work that only the others needed.

A decision waits for no slots: it starts when it is added, and an action for each operand waits for its value or failure. Votes hold
back operands that may not be needed (`staging.py`), so this file also decides when a ready node has to wait.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial

from rtlang.contract.errors import ApplyError, RequestError
from rtlang.contract.events import NodeFinished
from rtlang.contract.graph.value_size import Measured, list_bytes, list_measure, measured
from rtlang.contract.request_graph import Decide, Generate, Node, Operand
from rtlang.contract.runs.known import KnownOutcome
from rtlang.runtime.executors.decision_state import DecisionState, ranking, vote_key
from rtlang.runtime.executors.model_calls import ModelCalls
from rtlang.runtime.executors.staging import Staging
from rtlang.runtime.nodes.node_ends import NodeEnds, Stopped
from rtlang.runtime.nodes.node_table import NodeTable
from rtlang.runtime.nodes.slots import Slot, operand_slots, slots_of
from rtlang.runtime.nodes.work_slices import WorkSlices
from rtlang.runtime.texts.token_sequence import TokenSequence

OPERANDS_AT_ONCE = 256
"""Operands of which one action takes note."""
OPERAND_US = 1.5
"""Of an operand that is taken note of."""
STAGED_US = 3.0
"""Of an operand that a vote may hold back, for each one that becomes known."""
SEARCH_US = 4.0
"""Of a node that is looked at in the search for work that only the losers needed."""
RATING_US = 0.03
"""Of a character or item of a rating, for each comparison of it."""
VOTE_US = 0.6
"""Of a character or item of a value that is voted for."""
MAX_RATING_SIZE = 1_000
"""Characters and items of a rating of `best`."""


class Decisions:
    """See `Executor`.

    Args:
        known: outcomes by node, which the nodes end with once they start. The outcome of a decision fixes its winner.
        outputs: ids of nodes that no decision cancels.
        start: starts a node that was held back.
        reserve: see `Host`.
    """

    def __init__(
        self,
        table: NodeTable,
        ends: NodeEnds,
        slices: WorkSlices,
        calls: ModelCalls,
        known: dict[int, KnownOutcome],
        outputs: Collection[int],
        start: Callable[[Node], None],
        reserve: Callable[[int], None],
    ) -> None:
        self._table, self._ends, self._slices, self._calls, self._reserve = table, ends, slices, calls, reserve
        self._known, self._outputs, self._start = known, frozenset(outputs), start
        self._states: dict[int, DecisionState] = {}
        self._started: dict[int, float] = {}
        # By the identity of a value: its key, and the votes that wait for it.
        self._vote_keys: dict[int, str] = {}
        self._counting: dict[int, list[Callable[[str | Exception], None]]] = {}
        self._rating_sizes: dict[int, int] = {}
        self._num_searched = 0
        self._staging = Staging(table.uses, self._is_output, table.begun)

    def start(self, node: Decide, before: TokenSequence) -> None:
        """See `Executor.start`; called when the node is added."""
        known = self._known.pop(node.node_id, None)
        fixed = known.end.value[0] if known is not None and isinstance(known.end, NodeFinished) else None
        self._states[node.node_id] = DecisionState(node, fixed)
        self._staging.add(node)
        self._started[node.node_id] = self._ends.clock()
        self._await(node, 0)

    def _await(self, node: Decide, first: int) -> None:
        """Wait for some operands and ratings, counted together from `first` on, and for the others in later actions."""
        if node.node_id not in self._states:
            return
        num_operands = len(node.of)
        last = min(first + OPERANDS_AT_ONCE, num_operands + len(node.by or ()))
        for number in range(first, last):
            is_rating = number >= num_operands
            index = number - num_operands if is_rating else number
            operand = (node.by or ())[index] if is_rating else node.of[index]
            self._table.wait(operand_slots((operand,)), partial(self._learn, node, index, operand, is_rating))
        self._slices.spend(OPERAND_US * (last - first))
        if last < num_operands + len(node.by or ()):
            self._table.wait((), partial(self._await, node, last))

    def _learn(self, node: Decide, index: int, operand: Operand, is_rating: bool) -> None:
        """An operand has become known, or has failed."""
        state = self._states.get(node.node_id)
        if state is None or node.node_id in self._table.ended:
            return
        self._slices.spend(STAGED_US * self._staging.num_operands(node.node_id))
        if self._table.cause_of(operand_slots((operand,))) is not None:
            state.lose(index)
            self._go_on(node, state)
        else:
            self._ends.guard(node, (), partial(self._tell, node, state, index, operand, is_rating))

    def _tell(self, node: Decide, state: DecisionState, index: int, operand: Operand, is_rating: bool) -> None:
        found = self._table.measured(operand)
        if node.how == "vote":
            self._learn_vote(node, index, found)
            return
        if not is_rating:
            state.know(index, found.value)
        elif found.size <= MAX_RATING_SIZE:
            state.rate(index, found.value)
            self._rating_sizes[node.node_id] = self._rating_sizes.get(node.node_id, 0) + found.size
        else:
            reason = f"a rating has {found.size} characters and items; at most {MAX_RATING_SIZE} are allowed"
            raise ApplyError(node.how, [], reason)
        self._go_on(node, state)

    def _learn_vote(self, node: Decide, index: int, value: Measured) -> None:
        """An operand of a vote has become known: the votes for large values are found beside the engine thread, each once."""
        key = self._vote_keys.get(id(value.value))
        if key is not None:
            self._count_vote(node, index, value, key)
            return
        waiting = self._counting.setdefault(id(value.value), [])
        waiting.append(partial(self._count_vote, node, index, value))
        if len(waiting) == 1:
            price_us = VOTE_US * value.size
            self._slices.do(price_us, partial(vote_key, value.value), partial(self._count_votes, value))

    def _count_votes(self, value: Measured, key: str | Exception) -> None:
        if isinstance(key, str):
            self._vote_keys[id(value.value)] = key  # the table keeps the value, and so its identity
        for count in self._counting.pop(id(value.value)):
            count(key)
        self._slices.drain()

    def _count_vote(self, node: Decide, index: int, value: Measured, key: str | Exception) -> None:
        state = self._states.get(node.node_id)
        if state is None or node.node_id in self._table.ended:
            return
        if isinstance(key, Exception):
            self._ends.guard(node, (), partial(_refuse, key))
            return
        state.know(index, value.value, key)
        self._go_on(node, state)

    def _go_on(self, node: Decide, state: DecisionState) -> None:
        """Decide if that is possible now. Many ratings are compared beside the engine thread."""
        ratings = state.begin_ranking()
        if ratings is not None:
            num_compared = len(ratings).bit_length() * (len(ratings) + self._rating_sizes.pop(node.node_id, 0))
            self._slices.do(RATING_US * num_compared, partial(ranking, ratings), partial(self._rank, node, state))
            return
        self._ends.guard(node, (), partial(self._decide, node, state))
        if self._staging.is_due(node.node_id, state, is_over=node.node_id in self._table.ended):
            self._stage([node.node_id])

    def _rank(self, node: Decide, state: DecisionState, found: list[int] | Exception) -> None:
        """The ratings were compared."""
        if node.node_id in self._table.ended:
            return
        if isinstance(found, Exception):
            error = ApplyError(node.how, [], str(found)) if isinstance(found, TypeError) else found
            self._ends.guard(node, (), partial(_refuse, error))
            return
        state.rank(found)
        self._go_on(node, state)
        self._slices.drain()

    def _decide(self, node: Decide, state: DecisionState) -> None:
        if state.is_lost:
            raise self._table.cause_of(slots_of(node)) or RequestError("no operand has a value")
        winner = state.winner()
        if winner is None:
            return
        value = self._table.measured(node.of[winner])
        try:
            size = list_measure([measured(winner), value], list_bytes(2))
        except ValueError as error:  # it is as large, or as deep, as a value may be
            raise ApplyError(node.how, [], f"the winner with its number: {error}") from None
        chosen = Measured([winner, value.value], size)
        self._reserve(chosen.measure.num_bytes)  # it is sent
        del self._states[node.node_id]
        self._ends.end_value(node, chosen, self._started.pop(node.node_id))
        self._cancel_losers(self._table.open_slots(slots_of(node)))

    def _cancel_losers(self, lost: Sequence[Slot]) -> None:
        """End the work that only these operands needed."""
        node_ids, choices = self._table.uses.needless(lost, self._is_output)
        self._spend_search()
        nodes = {node_id: self._table.nodes[node_id] for node_id, _ in choices}
        self._ends.cancel(node_ids)
        for node_id, choice in sorted(choices):
            node = nodes[node_id]
            assert isinstance(node, Generate)
            self._calls.cancel_choice(node, choice)
            self._table.lose(node_id, choice)

    def _spend_search(self) -> None:
        before, self._num_searched = self._num_searched, self._table.uses.num_searched
        self._slices.spend(SEARCH_US * (self._num_searched - before))

    def _is_output(self, node_id: int) -> bool:
        return node_id in self._outputs or node_id in self._known

    def stop(self, node: Decide, *, is_cancelled: bool = False) -> Stopped:
        """See `Executor.stop`. A failed decision holds back its operands until `_learn` goes on."""
        self._states.pop(node.node_id, None)
        self._started.pop(node.node_id, None)
        self._rating_sizes.pop(node.node_id, None)
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
        self._spend_search()
        node_ids, choices = self._staging.released()
        for node in map(self._table.nodes.__getitem__, node_ids):
            self._table.wait((), partial(self._start, node), node)
        for node_id, choice in choices:
            self._ends.guard(self._table.nodes[node_id], (), partial(self._calls.start_choice, node_id, choice))


def _refuse(error: Exception) -> None:
    raise error
