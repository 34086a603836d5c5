"""Ends nodes with outcomes that the engine does not compute: known from an earlier run, or given by a function.

A text without tokens, such as one that a user has edited, is encoded here; a long one beside the engine thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.errors import RtlangError
from rtlang.contract.events import Completion, NodeFinished
from rtlang.contract.params import FinishReason, Usage
from rtlang.contract.request_graph import Call, Generate, Node, Select, Text, name_of
from rtlang.contract.runs.known import KnownOutcome, check_known
from rtlang.runtime.executors.budget_account import BudgetAccount
from rtlang.runtime.executors.host import Host
from rtlang.runtime.executors.model_calls import ModelCalls
from rtlang.runtime.nodes.node_ends import NodeEnds
from rtlang.runtime.nodes.node_table import NodeTable
from rtlang.runtime.nodes.slots import cancellation
from rtlang.runtime.nodes.work_slices import CHAR_US, WorkSlices
from rtlang.runtime.texts.token_sequence import TokenSequence

_TOKEN_BYTES = 40  # an integer and its place in a tuple


class GivenOutcomes:
    """The given outcomes of one graph. Used on the engine thread only.

    Attributes:
        known: outcomes of nodes, which end with them once they start. The outcome of a decision fixes its winner.
    """

    def __init__(
        self,
        table: NodeTable,
        ends: NodeEnds,
        slices: WorkSlices,
        calls: ModelCalls,
        host: Host,
        account: BudgetAccount | None,
        known: Mapping[int, KnownOutcome],
    ) -> None:
        self.known = dict(known)
        self._table, self._ends, self._slices, self._calls = table, ends, slices, calls
        self._host, self._account = host, account
        self._answering: set[int] = set()

    @property
    def answering(self) -> set[int]:
        """Nodes that the host's answer, or a text that is being encoded, will end later."""
        return self._answering - self._table.ended

    def end_cancelled(self, node: Node) -> bool:
        """End a node that was cancelled in the earlier run; returns whether it was. Nothing starts it again."""
        known = self.known.get(node.node_id)
        if known is None or not isinstance(known.end, NodeFinished) or not known.end.is_cancelled:
            return False
        self._conclude(node, TokenSequence(), known)
        return True

    def end_known(self, node: Node, before: TokenSequence) -> bool:
        """End a node that starts with its known outcome; returns whether it has one."""
        known = self.known.pop(node.node_id, None)
        if known is None:
            return False
        num_chars = sum(len(each.text) for each in _completions(known) if not each.token_ids)
        if num_chars == 0:
            self._conclude(node, before, known)
            return True
        self._answering.add(node.node_id)
        work = partial(self._with_tokens, known)
        self._slices.do(CHAR_US * num_chars, work, partial(self._end_encoded, node, before), WorkKind.TOKENIZE)
        return True

    def _with_tokens(self, known: KnownOutcome) -> KnownOutcome:
        """The outcome with the tokens of its texts."""
        assert isinstance(known.end, NodeFinished)
        encode = self._host.tokenizer.encode
        completions = tuple(
            replace(each, token_ids=tuple(encode(each.text, is_start=False))) if not each.token_ids else each
            for each in known.end.completions
        )
        self._host.reserve(_TOKEN_BYTES * sum(len(each.token_ids) for each in completions))
        return KnownOutcome(replace(known.end, completions=completions), is_replayed=known.is_replayed)

    def _end_encoded(self, node: Node, before: TokenSequence, known: KnownOutcome | Exception) -> None:
        def end() -> None:
            if isinstance(known, Exception):
                raise known
            self._conclude(node, before, known)

        self._ends.guard(node, (), end)

    def is_answered(self, node: Text | Generate | Select | Call, before: TokenSequence) -> bool:
        """Whether the host's answer ends a node, now or later. `node` has the parameters that the budget allows."""
        if self._host.answer is None:
            return False
        asked = self._table.nodes[node.node_id]
        max_tokens = node.params.max_tokens if isinstance(node, Generate) and node is not asked else None
        answered = self._host.answer(node, before, lambda outcome: self._conclude(asked, before, outcome, max_tokens))
        if answered and node.node_id not in self._table.ended:
            self._answering.add(node.node_id)
        return answered

    def _conclude(
        self, node: Node, before: TokenSequence, outcome: KnownOutcome, max_tokens: int | None = None
    ) -> None:
        """End a node with an outcome. `max_tokens`: its limit, if the budget has lowered it."""
        if self._table.is_over or node.node_id in self._table.ended:
            return
        if isinstance(outcome.end, RtlangError):
            self._ends.fail(node, outcome.end)
            return
        check_known(node, outcome.end, self._host.tokenizer.num_ids)
        for delta in outcome.deltas(self._ends.graph_id, node.node_id):
            self._ends.emit(delta)
        event = outcome.event(self._ends.graph_id, node.node_id, name_of(node))
        event = event if max_tokens is None else replace(event, max_tokens=max_tokens)
        self._calls.usage = self._calls.usage + event.usage
        if self._account is not None:
            self._account.spend(node.node_id, Usage() if event.is_replayed else event.usage)
        self._ends.emit(event)
        after = before
        values: tuple[Any, ...] = () if isinstance(node, Text) else (outcome.measured(),)
        if isinstance(node, (Generate, Select)):
            is_branch = isinstance(node, Generate) and node.params.n > 1
            after = before if is_branch else self._calls.after(node, before, event.completions[0])
            values = tuple(each.text for each in event.completions)
        for choice, each in enumerate(event.completions):
            if each.finish_reason is FinishReason.CANCELLED:
                self._table.lost_choices.add((node.node_id, choice))
        error = cancellation() if event.is_cancelled else None
        self._ends.end(node, after, values, error, is_cancelled=event.is_cancelled)


def _completions(known: KnownOutcome) -> tuple[Completion, ...]:
    return () if isinstance(known.end, RtlangError) else known.end.completions
