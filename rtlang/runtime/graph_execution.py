"""Executes a graph on the engine thread: starts nodes, keeps their token sequences and values, emits events.

A node starts when its parent has ended and the values that it refers to are known. A sequence is a list of token ids that only grows: text
is encoded once when it is added, and generated tokens are never re-encoded. If a node fails, the nodes that depend on it fail with an error
that names the cause; other nodes continue. The nodes of a block exist from the time when their control node has chosen to run it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from rtlang.contract.blocks import BlockPlacement, chosen_block, placed_until
from rtlang.contract.errors import (
    ApplyError,
    CallError,
    RequestError,
    RtlangError,
    SpentError,
    SwitchError,
    internal_error,
    rebuild,
)
from rtlang.contract.events import (
    CallRequested,
    Completion,
    Event,
    GraphFailed,
    GraphFinished,
    NodeFailed,
    NodeFinished,
    Timing,
    ValueKnown,
)
from rtlang.contract.graph import (
    MAX_NODES,
    Apply,
    Arg,
    Block,
    Call,
    Const,
    Decide,
    Generate,
    Node,
    Operand,
    Ref,
    Repeat,
    Select,
    Switch,
    Text,
    name_of,
    num_requests,
    parent_of,
)
from rtlang.contract.known import KnownOutcome, check_known
from rtlang.contract.params import FinishReason, Usage
from rtlang.contract.pure_functions import apply, text_of_plain
from rtlang.contract.run_options import RunOptions
from rtlang.engine.program_pages import ProgramPages
from rtlang.engine.request import Request
from rtlang.model.text.tokenizer import Tokenizer
from rtlang.runtime.nodes.ballot import Ballot
from rtlang.runtime.nodes.controls import RunningControl
from rtlang.runtime.nodes.early_fields import EarlyFields
from rtlang.runtime.nodes.graph_retention import GraphRetention
from rtlang.runtime.nodes.long_texts import Encoded, Offload, is_long, num_chars, sequence_of, with_texts
from rtlang.runtime.nodes.losers import CANCELLED, Slot, cancellation, cause_of, operand_slots, slots_of
from rtlang.runtime.nodes.model_calls import ModelCalls, Submit
from rtlang.runtime.nodes.named_values import named_values
from rtlang.runtime.nodes.staging import Staging
from rtlang.runtime.nodes.turns import Later, Turns
from rtlang.runtime.nodes.uses import Uses
from rtlang.runtime.nodes.waiting import WaitingActions
from rtlang.runtime.nodes.work_ahead import WorkAhead
from rtlang.runtime.spending.purse import Purse
from rtlang.runtime.token_healing import ends_with_text
from rtlang.runtime.token_sequence import TokenSequence, append_text

logger = logging.getLogger(__name__)
Answer = Callable[[Text | Generate | Select | Call, TokenSequence, Callable[[KnownOutcome], None]], bool]
"""Ends nodes instead of the engine; see `GraphExecution`."""
__all__ = ["Answer", "GraphExecution", "Submit"]


class GraphExecution:
    """The nodes and sequences of one graph. Used on the engine thread only.

    Args:
        options: of the run, with a seed. `known` and `continue_from` begin with a copy of their results of an earlier run.
        listener: receives all events, with exactly one final event.
        on_end: called once, after the final event.
        max_model_len: maximum sequence length in tokens.
        clock: returns seconds.
        answer: called with each text, generate, select and call node that starts, its prompt and a function that ends it; returns
            whether it ends the node, now or later, instead of the engine.
        outputs: ids of nodes that no decision cancels.
        on_expand: called with a control node's id and the nodes of a block before they start.
        pages: keeps the pages of sequences that are continued later; None keeps nothing.
        later: calls a function in a later turn of the engine thread, see `Turns`.
        offload: encodes long texts on another thread; None encodes them here.

    Attributes:
        known: outcomes of nodes, which end with them once they start. That of a decision fixes its winner.
        continue_from: for generations, the output tokens of each choice that an earlier run gave out.
    """

    def __init__(
        self,
        graph_id: int,
        options: RunOptions,
        listener: Callable[[Event], None],
        *,
        tokenizer: Tokenizer,
        max_model_len: int,
        submit: Submit,
        abort: Callable[[Request], None],
        clock: Callable[[], float],
        on_end: Callable[[], None],
        answer: Answer | None = None,
        outputs: Collection[int] | None = None,
        on_expand: Callable[[int, Sequence[Node]], None] = lambda control_id, nodes: None,
        pages: ProgramPages | None = None,
        later: Later | None = None,
        offload: Offload | None = None,
    ) -> None:
        self.graph_id, self.is_open, self.is_ended = graph_id, options.is_open, False
        self.ahead = WorkAhead(options.inputs)
        self._inputs, self._listener = options.inputs, listener
        self._tokenizer, self._max_model_len = tokenizer, max_model_len
        self._clock, self._on_end, self._on_expand = clock, on_end, on_expand
        self._outputs, self._answer, self._reports_progress = frozenset(outputs or ()), answer, options.reports_progress
        self.known, self.continue_from = dict(options.known), dict(options.continue_from)
        self._answering: set[int] = set()
        self._purse = None if options.budget is None else Purse(options.budget)
        self._calls = ModelCalls(
            graph_id,
            listener,
            tokenizer=tokenizer,
            submit=submit,
            abort=abort,
            clock=clock,
            seed=options.seed or 0,
            purse=self._purse,
            reports_progress=options.reports_progress,
            ends_with_text=lambda node: ends_with_text(node.parent, self._nodes, self._value),
            on_text=self._read_text,
            on_choice=lambda node, choice, text: self._know(node.node_id, choice, text),
            on_end=self._end_model_call,
            on_fail=self._fail_node,
            later=later,
            continue_from=self.continue_from,
        )
        self._retention = GraphRetention(pages, options.is_open)
        self._nodes: dict[int, Node] = {}
        self._ended, self._cancelled = set[int](), set[int]()
        self._sequences: dict[int, TokenSequence] = {}
        self._values: dict[tuple[int, int], Any] = {}
        self._errors: dict[int, RtlangError] = {}
        self._lost_choices: set[tuple[int, int]] = set()
        self._controls: dict[int, RunningControl] = {}
        self._ballots: dict[int, Ballot] = {}
        self._staging, self._uses, self._begun = Staging(), Uses(), set[int]()
        self._host_calls: dict[int, float] = {}  # start by node
        self._decision_starts: dict[int, float] = {}
        self._actions = WaitingActions(
            generations_last=options.budget is not None
        )  # with a budget, these share what is left
        self._early = EarlyFields(
            self._calls.text_so_far,
            lambda node_id, value: self._actions.add((), partial(self._know, node_id, 0, value)),
        )
        self._offload = offload
        self._turns = Turns(self._actions, self._on_idle, lambda: self.is_ended, later)

    def add_nodes(self, nodes: Sequence[Node]) -> None:
        """Add validated nodes, and start those whose dependencies are done."""
        self._turns.add_later(self._uses.prepared(nodes), len(nodes), self._add, lambda: None)

    def close(self) -> None:
        """End the graph once its nodes have ended: no more will be added."""
        self.is_open = False
        self._retention.close()
        self._drain()

    def fail(self, error: RtlangError) -> None:
        """End the graph now with `error`."""
        if self.is_ended:
            return
        self.is_ended = True
        self._calls.stop_all()
        self._retention.end_graph()
        self._listener(GraphFailed(self.graph_id, error))
        self._on_end()

    def resolve(self, node_id: int, value: Any) -> None:
        """Set the value of a host call; ignored unless it is waiting for one."""
        started = self._host_calls.pop(node_id, None)
        if started is not None and not self.is_ended:
            self._end_value(self._nodes[node_id], value, started)

    def reject(self, node_id: int, code: str, message: str, facts: Mapping[str, Any] | None = None) -> None:
        """Let a host call fail; ignored unless it is waiting for its value."""
        if self._host_calls.pop(node_id, None) is None or self.is_ended:
            return
        node = self._nodes[node_id]
        assert isinstance(node, Call)
        is_call = code == CallError.code
        self._fail_node(
            node, CallError(node.function, message) if is_call else rebuild(code, message, dict(facts or {}))
        )

    def spend_time(self) -> None:
        """End all generations that run, because the time of the budget is over."""
        purse = self._purse
        if purse is None or self.is_ended:
            return
        purse.is_late = True
        for node_id in (*self._calls.running, *(self._answering - self._ended)):
            self._fail_node(self._nodes[node_id], SpentError("seconds", purse.budget.seconds or 0.0))

    # -- nodes

    def _add(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self._nodes[node.node_id] = node
            self._uses.add(node)
        self._retention.add(nodes)
        self.ahead.add(nodes)
        for node in nodes:
            known = self.known.get(node.node_id)
            if known is not None and isinstance(known.end, NodeFinished) and known.end.is_cancelled:
                self._conclude(node, TokenSequence(), known)
            elif isinstance(node, Decide):
                self._start_decision(node)
            else:
                self._wait(slots_of(node), partial(self._start, node), node)
                if isinstance(node, Apply) and (text := self._early.add(node)) is not None:
                    self._early.follow(text)
        self._stage(self._staging.due(self._uses.used_by(nodes)))

    def _wait(self, slots: Iterable[Slot], run: Callable[[], None], node: Node | None = None) -> None:
        """Run something once all slots are there: known, failed or cancelled. `node` is what it starts."""
        self._actions.add(self._open(slots), run, node)

    def _open(self, slots: Iterable[Slot]) -> list[Slot]:
        known, lost = self._values, self._lost_choices
        return [slot for slot in slots if not (slot[0] in self._ended or slot in known or slot in lost)]

    def _drain(self) -> None:
        self._turns.drain()

    def _on_idle(self) -> None:
        if not self.is_open and len(self._nodes) == len(self._ended):
            self._finish()

    def _affordable(self, node: Generate) -> Generate:
        """The node with the tokens that the budget has for it."""
        if self._purse is None:
            return node
        return self._purse.lowered(node, num_requests(node) + self._actions.num_ready_requests)

    def _conclude(
        self, node: Node, before: TokenSequence, outcome: KnownOutcome, max_tokens: int | None = None
    ) -> None:
        """End a node with an outcome that was not computed for it. `max_tokens`: its limit, if the budget has lowered it."""
        if self.is_ended or node.node_id in self._ended:
            return
        if isinstance(outcome.end, RtlangError):
            self._fail_node(node, outcome.end)
            return
        check_known(node, outcome.end, self._tokenizer.num_ids)
        for delta in outcome.deltas(self.graph_id, node.node_id):
            self._listener(delta)
        event = outcome.event(self.graph_id, node.node_id, name_of(node))
        event = event if max_tokens is None else replace(event, max_tokens=max_tokens)
        self._calls.usage = self._calls.usage + event.usage
        if self._purse is not None:
            self._purse.spend(node.node_id, Usage() if event.is_replayed else event.usage)
        self._listener(event)
        after = before
        if isinstance(node, (Generate, Select)):
            is_branch = isinstance(node, Generate) and node.params.n > 1
            after = before if is_branch else self._calls.after(node, before, event.completions[0])
            self._values.update(((node.node_id, choice), each.text) for choice, each in enumerate(event.completions))
        else:
            self._values[node.node_id, 0] = event.value
        if event.is_cancelled:
            self._cancelled.add(node.node_id)
            self._errors[node.node_id] = cancellation()
        self._lost_choices.update(
            (node.node_id, choice)
            for choice, each in enumerate(event.completions)
            if each.finish_reason is FinishReason.CANCELLED
        )
        self._end_node(node, after)

    def _guarded(self, node: Node, slots: Iterable[Slot], act: Callable[[], None]) -> None:
        """Act for a node unless it has ended; it fails if one of the slots has failed, or if `act` raises."""
        if node.node_id in self._ended:
            return
        cause = cause_of(slots, self._errors, self._lost_choices)
        if cause is not None:
            self._fail_node(node, cause, is_silent=isinstance(node, (Text, Apply)) and cause.cause_message == CANCELLED)
            return
        try:
            act()
        except RtlangError as error:
            self._fail_node(node, error)
        except Exception as error:
            self._fail_node(node, internal_error(logger, f"node {node.node_id} of graph {self.graph_id} failed", error))

    def _start(self, node: Node) -> None:
        if self._staging.park(node.node_id):
            return
        self._begun.add(node.node_id)
        self.ahead.leave(node.node_id)
        self._guarded(node, slots_of(node), partial(self._begin, node))

    def _begin(self, node: Node) -> None:
        before = self._sequence(parent_of(node))
        if isinstance(node, (Text, Generate, Select, Call)):
            known = self.known.pop(node.node_id, None)
            if known is not None:
                self._conclude(node, before, known)
                return
            asked = node
            node = self._affordable(node) if isinstance(node, Generate) else node
            if self._answer is not None and self._is_answered(self._answer, node, before, asked):
                return
        match node:
            case Text():
                self._start_text(node, before)
            case Generate():
                held = self._staging.park_choices(node.node_id)
                assert isinstance(asked, Generate)
                self._calls.start(node, before, asked.params, held)
            case Select():
                self._calls.start(node, before)
            case Apply():
                value = self._values[node.node_id, 0] = apply(node.function, [self._value(each) for each in node.args])
                if self._reports_progress:
                    self._listener(ValueKnown(self.graph_id, node.node_id, value))
                self._end_node(node)
            case Call():
                self._host_calls[node.node_id] = self._clock()
                args = tuple(self._value(each) for each in node.args)
                self._listener(CallRequested(self.graph_id, node.node_id, node.function, args))
            case Switch():
                self._start_switch(node)
            case Repeat():
                self._controls[node.node_id] = RunningControl(self._clock(), node.parent)
                self._iterate(node)

    def _start_text(self, node: Text, before: TokenSequence) -> None:
        parts = with_texts(node.parts, self._text_of)
        self._turns.spend_on_text(num_chars(parts))
        encode = partial(append_text, before, parts, self._tokenizer, {}, text_of_plain, self._max_model_len)
        if self._offload is not None and is_long(parts, before):
            self._offload(num_chars(parts), encode, partial(self._end_text, node))
        else:
            self._end_node(node, encode(is_constant=node.marks.is_constant))

    def _end_text(self, node: Text, encoded: Encoded) -> None:
        """A text that was encoded on another thread."""
        self._guarded(node, (), lambda: self._end_node(node, sequence_of(encoded)))

    def _text_of(self, part: Ref | Arg) -> str:
        return self._inputs[part.name] if isinstance(part, Arg) else text_of_plain(self._value(part))

    def _is_answered(
        self, answer: Answer, node: Text | Generate | Select | Call, before: TokenSequence, asked: Node
    ) -> bool:
        max_tokens = node.params.max_tokens if isinstance(node, Generate) and node is not asked else None
        is_answered = answer(node, before, lambda outcome: self._conclude(asked, before, outcome, max_tokens))
        if is_answered and node.node_id not in self._ended:
            self._answering.add(node.node_id)
        return is_answered

    def _sequence(self, node_id: int | None) -> TokenSequence:
        return TokenSequence() if node_id is None else self._sequences[node_id]

    def _value(self, operand: Operand) -> Any:
        match operand:
            case Const():
                return operand.value
            case Arg():
                return self._inputs[operand.name]
            case Ref():
                return self._values[operand.node_id, operand.choice]

    def _know(self, node_id: int, choice: int, value: Any) -> None:
        self._values[node_id, choice] = value
        self._actions.release((node_id, choice))
        self._drain()

    def _read_text(self, node: Generate, choice: int) -> None:
        self._early.follow((node.node_id, choice))
        self._drain()

    def _end_node(
        self, node: Node, sequence: TokenSequence | None = None, computed: Sequence[Sequence[int]] = ()
    ) -> None:
        """A node has ended. `computed`: the tokens of its requests."""
        node_id = node.node_id
        self._ended.add(node_id)
        self._uses.end(node_id)
        self.ahead.leave(node_id)
        if sequence is not None:
            self._sequences[node_id] = sequence
        before = parent_of(node)
        self._retention.end(node, len(self._sequences.get(before, ())) if before is not None else 0, sequence, computed)
        self._controls.pop(node_id, None)
        self._early.forget(node_id)
        self._actions.release((node_id, None))
        for choice in range(node.params.n if isinstance(node, Generate) else 1):
            self._actions.release((node_id, choice))
        self._drain()

    def _end_model_call(
        self, node: Generate | Select, sequence: TokenSequence, texts: tuple[str, ...], requests: Sequence[Request]
    ) -> None:
        self._values.update(((node.node_id, choice), text) for choice, text in enumerate(texts))
        self._end_node(node, sequence, [request.token_ids for request in requests])

    def _end_value(self, node: Node, value: Any, started: float, sequence: TokenSequence | None = None) -> None:
        """End a node that has a value and no completions."""
        self._values[node.node_id, 0] = value
        self._report_value(node, started, value)
        self._end_node(node, sequence)

    def _report_value(self, node: Node, started: float, value: Any, completions: tuple[Completion, ...] = ()) -> None:
        seconds = self._clock() - started
        timing = Timing(0.0, seconds, seconds)
        self._listener(
            NodeFinished(self.graph_id, node.node_id, name_of(node), completions, Usage(), timing, value=value)
        )

    def _fail_node(self, node: Node, error: RtlangError, *, is_silent: bool = False) -> None:
        computed = self._calls.tokens_of(node.node_id)
        self._calls.stop(node.node_id)
        if self._purse is not None:
            self._purse.spend(node.node_id, Usage())
        self._errors[node.node_id] = error
        if is_silent:
            self._cancelled.add(node.node_id)
        else:
            self._listener(NodeFailed(self.graph_id, node.node_id, name_of(node), error))
        self._end_node(node, None, computed)

    def _finish(self) -> None:
        self.is_ended = True
        self._retention.end_graph()
        failed = self._errors.keys() - self._cancelled
        values = named_values({key: node for key, node in self._nodes.items() if key not in failed}, self._values)
        self._listener(GraphFinished(self.graph_id, values, self._calls.usage, tuple(sorted(failed))))
        self._on_end()

    # -- control nodes

    def _start_switch(self, node: Switch) -> None:
        value = self._value(node.on)
        block = chosen_block(node, value)
        if block is None:
            raise SwitchError(f"{value!r:.60}", [f"{key!r:.60}" for key, _ in node.cases])
        self._controls[node.node_id] = RunningControl(self._clock(), node.parent)
        self._run_block(node, block)

    def _iterate(self, node: Repeat) -> None:
        offset = self._controls[node.node_id].iteration * node.stride
        self._run_block(node, node.body, offset, placed_until(node, offset))

    def _run_block(self, node: Switch | Repeat, block: Block, offset: int = 0, until: Operand | None = None) -> None:
        control = self._controls[node.node_id]
        num_nodes = len(self._nodes) + self._turns.num_arriving
        if num_nodes + len(block.nodes) > MAX_NODES:
            raise RequestError(f"the graph has run {num_nodes} nodes; at most {MAX_NODES} are allowed")
        placement = BlockPlacement(node.node_id, control.entry, offset)
        value, end = placement.value(block), control.entry if block.end is None else placement.end(block)
        slots = operand_slots((value, until)) | ({(end, None)} if end is not None else set())
        act = partial(self._guarded, node, slots, partial(self._end_block, node, value, end, until))

        def await_block() -> None:
            if node.node_id not in self._ended:  # it may have been cancelled meanwhile
                self._retention.run_block(node.node_id, end)
                self._wait(slots, act)

        inner = self._uses.prepared(placement.nodes(block))
        self._turns.add_later(inner, len(block.nodes), partial(self._add_inner, node.node_id), await_block)

    def _add_inner(self, control_id: int, inner: Sequence[Node]) -> None:
        if control_id not in self._ended:
            self._on_expand(control_id, inner)
            self._uses.add_parts(control_id, [each.node_id for each in inner])
            self._add(inner)

    def _end_block(self, node: Switch | Repeat, value: Operand | None, end: int | None, until: Operand | None) -> None:
        control = self._controls[node.node_id]
        if isinstance(node, Repeat) and until is not None and not self._value(until):
            control.iteration += 1
            if control.iteration < node.at_most:
                control.entry = end
                self._iterate(node)
                return
        result = None if value is None else self._value(value)
        self._end_value(node, result, control.started, self._sequence(end))

    # -- decisions

    def _start_decision(self, node: Decide) -> None:
        known = self.known.pop(node.node_id, None)
        fixed = known.end.value[0] if known is not None and isinstance(known.end, NodeFinished) else None
        self._ballots[node.node_id] = ballot = Ballot(node, fixed)
        self._staging.add(node)
        self._decision_starts[node.node_id] = self._clock()
        for index, operand in enumerate(node.of):
            self._wait(operand_slots((operand,)), partial(self._learn, node, index, operand, ballot.know))
        for index, operand in enumerate(node.by or ()):
            self._wait(operand_slots((operand,)), partial(self._learn, node, index, operand, ballot.rate))

    def _learn(self, node: Decide, index: int, operand: Operand, tell: Callable[[int, Any], None]) -> None:
        """An operand of a decision has become known, or has failed."""
        ballot = self._ballots.get(node.node_id)
        if ballot is None or node.node_id in self._ended:
            return
        if cause_of(operand_slots((operand,)), self._errors, self._lost_choices) is not None:
            ballot.lose(index)
        else:
            tell(index, self._value(operand))
        self._guarded(node, (), partial(self._decide, node, ballot))
        if self._staging.is_due(node.node_id, ballot, is_over=node.node_id in self._ended):
            self._stage([node.node_id])

    def _decide(self, node: Decide, ballot: Ballot) -> None:
        if ballot.is_lost:
            raise cause_of(slots_of(node), self._errors, self._lost_choices) or RequestError("no operand has a value")
        try:
            winner = ballot.winner()
        except TypeError as error:
            raise ApplyError(node.how, [], str(error)) from None
        if winner is None:
            return
        del self._ballots[node.node_id]
        started = self._decision_starts.pop(node.node_id)
        self._end_value(node, [winner, ballot.value(winner)], started)
        self._cancel(self._open(slots_of(node)))

    def _stage(self, vote_ids: Collection[int]) -> None:
        """Find again what votes hold back, and start what they hold back no more."""
        if not vote_ids:
            return
        for vote_id in vote_ids:
            ballot = self._ballots.get(vote_id)
            if ballot is None or vote_id in self._ended:
                self._staging.end(vote_id)
            else:
                self._staging.update(vote_id, ballot, self._uses, self._is_output, self._begun)
        node_ids, choices = self._staging.released()
        for node in map(self._nodes.__getitem__, node_ids):
            self._actions.add((), partial(self._start, node), node)
        for node_id, choice in choices:
            self._guarded(self._nodes[node_id], (), partial(self._calls.start_choice, node_id, choice))

    def _is_output(self, node_id: int) -> bool:
        return node_id in self._outputs or node_id in self.known

    def _cancel(self, lost: Sequence[Slot]) -> None:
        """End the work that only these operands needed."""
        node_ids, choices = self._uses.needless(lost, self._is_output)
        running = {node_id: self._nodes[node_id] for node_id in (*node_ids, *(slot[0] for slot in choices))}
        for node_id in sorted(node_ids):
            self._cancelled.add(node_id)
            self._errors[node_id] = cancellation()
            self._ended.add(node_id)
            self._uses.end(node_id)
            self._host_calls.pop(node_id, None)
            self._ballots.pop(node_id, None)
            self._staging.end(node_id)
        for node_id in sorted(node_ids):
            node = running[node_id]
            computed = self._calls.tokens_of(node_id)
            if isinstance(node, (Generate, Select)):
                texts = self._calls.cancel(node)
                self._values.update(((node_id, choice), text) for choice, text in enumerate(texts))
            elif not isinstance(node, (Text, Apply)):
                self._report_value(node, self._clock(), None, (Completion("", (), FinishReason.CANCELLED),))
            self._end_node(node, None, computed)
        for node_id, choice in sorted(choices):
            self._lost_choices.add((node_id, choice))
            node = running[node_id]
            assert isinstance(node, Generate)
            self._calls.cancel_choice(node, choice)
            self._actions.release((node_id, choice))
