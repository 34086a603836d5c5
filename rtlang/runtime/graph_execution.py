"""Executes a graph on the engine thread: starts nodes, keeps their token sequences, emits events.

A node starts when its parent and the nodes it refers to have ended. A sequence is a list of token ids that only grows: text is encoded once
when it is added, and generated tokens are never re-encoded. If a node fails, the nodes that depend on it fail with an error that names
the cause; other nodes continue.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from rtlang.contract.budget import Budget
from rtlang.contract.errors import DependencyError, RequestError, RtlangError, SpentError
from rtlang.contract.events import (
    Completion,
    Event,
    GraphFailed,
    GraphFinished,
    NodeFailed,
    NodeFinished,
    TextDelta,
    Timing,
    TokenLogprob,
)
from rtlang.contract.graph import (
    Apply,
    Arg,
    Const,
    Generate,
    Node,
    Operand,
    Ref,
    RoleEnd,
    RoleStart,
    Select,
    Text,
    dependencies,
    num_requests,
    parent_of,
)
from rtlang.contract.known import KnownOutcome
from rtlang.contract.params import Constraint, FinishReason, SamplingParams, SelectMethod, Usage
from rtlang.contract.pure_functions import apply, text_of_plain
from rtlang.engine.request import Request, RequestOutput
from rtlang.model.text.tokenizer import Tokenizer
from rtlang.runtime.seeds import node_seed
from rtlang.runtime.selection import select_scores, softmax, token_logprobs
from rtlang.runtime.spending.contest import Contest
from rtlang.runtime.spending.purse import Purse
from rtlang.runtime.token_healing import Healing, healing_of
from rtlang.runtime.token_sequence import TokenSequence, append_text

Answer = Callable[[Text | Generate | Select, TokenSequence, Callable[[KnownOutcome], None]], bool]
"""Ends nodes instead of the engine; see `GraphExecution`."""


class Submit(Protocol):
    """Adds a request to the engine; see `Engine.add` for the arguments."""

    def __call__(
        self,
        token_ids: Sequence[int],
        params: SamplingParams,
        listener: Callable[[RequestOutput], None],
        *,
        constraint: Constraint | None = None,
        seed: int = 0,
        choice: int = 0,
        score_from: int | None = None,
        score_only: bool = False,
        begins_with: str = "",
        first_banned_ids: tuple[int, ...] = (),
    ) -> Request: ...


@dataclass(slots=True)
class _Work:
    """The requests of one running generate or select node."""

    node: Generate | Select
    started: float
    requests: list[Request] = field(default_factory=list)
    completions: dict[int, Completion] = field(default_factory=dict)
    num_open: int = 0
    choices: list[tuple[int, ...]] = field(default_factory=list)  # select: the tokens of each choice
    scored: list[Request | None] = field(default_factory=list)  # select: by job; None if there is nothing to compute
    first_token_time: float | None = None
    contest: Contest | None = None  # with best_of


class GraphExecution:
    """The nodes and sequences of one graph. Used on the engine thread only.

    Args:
        listener: receives all events, with exactly one final event.
        on_end: called once, after the final event.
        max_model_len: maximum sequence length in tokens.
        clock: returns seconds.
        seed: determines, with the id of the node, the seed of a generation without one.
        answer: called with each text, generate and select node that starts, its prompt and a function that ends it; returns whether it
            ends the node, now or later, instead of the engine.
        budget: what the nodes may spend together.
    """

    def __init__(
        self,
        graph_id: int,
        inputs: Mapping[str, str],
        listener: Callable[[Event], None],
        *,
        tokenizer: Tokenizer,
        max_model_len: int,
        submit: Submit,
        abort: Callable[[Request], None],
        clock: Callable[[], float],
        on_end: Callable[[], None],
        is_open: bool,
        seed: int = 0,
        answer: Answer | None = None,
        budget: Budget | None = None,
    ) -> None:
        self._answer = answer
        self._purse = None if budget is None else Purse(budget)
        self.graph_id = graph_id
        self.is_open = is_open
        self.is_ended = False
        self._inputs, self._listener = inputs, listener
        self._tokenizer, self._submit, self._abort = tokenizer, submit, abort
        self._max_model_len = max_model_len
        self._clock, self._on_end, self._seed = clock, on_end, seed
        self._nodes: dict[int, Node] = {}
        self._num_missing: dict[int, int] = {}  # number of unfinished dependencies, by waiting node
        self._waiters: dict[int, list[int]] = {}
        self._sequences: dict[int, TokenSequence] = {}
        self._texts: dict[int, tuple[str, ...]] = {}
        self._values: dict[int, Any] = {}  # of nodes that compute values
        self._errors: dict[int, RtlangError] = {}
        self._work: dict[int, _Work] = {}
        self._ready: list[int] = []
        self._is_draining = False
        self._usage = Usage()

    def add_nodes(self, nodes: Sequence[Node]) -> None:
        """Add validated nodes, and start those whose dependencies are done."""
        for node in nodes:
            self._nodes[node.node_id] = node
            missing = [i for i in dependencies(node) if i not in self._sequences and i not in self._errors]
            self._num_missing[node.node_id] = len(missing)
            for dependency in missing:
                self._waiters.setdefault(dependency, []).append(node.node_id)
            if not missing:
                self._ready.append(node.node_id)
        self._drain()

    def close(self) -> None:
        """End the graph once its nodes have ended: no more will be added."""
        self.is_open = False
        self._drain()

    def fail(self, error: RtlangError) -> None:
        """End the graph now with `error`."""
        if self.is_ended:
            return
        self.is_ended = True
        for work in self._work.values():
            for request in work.requests:
                self._abort(request)
        self._listener(GraphFailed(self.graph_id, error))
        self._on_end()

    def spend_time(self) -> None:
        """End all generations that run, because the time of the budget is over."""
        purse = self._purse
        if purse is None or self.is_ended:
            return
        purse.is_late = True
        for work in list(self._work.values()):
            self._fail_node(self._nodes[work.node.node_id], SpentError("seconds", purse.budget.seconds or 0.0))

    # -- nodes

    def _drain(self) -> None:
        """Start all nodes that can start, then finish the graph if it is done."""
        if self._is_draining or self.is_ended:
            return
        self._is_draining = True
        while self._ready and not self.is_ended:
            node = self._nodes[self._next_ready()]
            cause = next((i for i in sorted(dependencies(node)) if i in self._errors), None)
            if cause is not None:
                self._fail_node(node, self._dependency_error(cause))
                continue
            try:
                self._start(node)
            except RtlangError as error:
                self._fail_node(node, error)
            except Exception as error:
                self._fail_node(node, RequestError(f"{type(error).__name__}: {error}"))
        self._is_draining = False
        if not self.is_open and not self._work and not self.is_ended and len(self._nodes) == self._num_ended():
            self._finish()

    def _next_ready(self) -> int:
        """The node to start next. With a budget generations come last, so that those that start together share what is left."""
        if self._purse is not None:
            for index in range(len(self._ready) - 1, -1, -1):
                if not isinstance(self._nodes[self._ready[index]], Generate):
                    return self._ready.pop(index)
        return self._ready.pop()

    def _num_ended(self) -> int:
        return len(self._sequences) + len(self._errors)

    def _dependency_error(self, node_id: int) -> DependencyError:
        error = self._errors[node_id]
        if isinstance(error, DependencyError):
            return DependencyError(error.node_id, error.cause_code, error.cause_message)
        return DependencyError(node_id, error.code, error.message)

    def _start(self, node: Node) -> None:
        parent = parent_of(node)
        before = self._sequences[parent] if parent is not None else TokenSequence()
        if (
            self._answer is not None
            and isinstance(node, (Text, Generate, Select))
            and self._answer(node, before, lambda outcome: self._conclude(node, before, outcome))
        ):
            return
        match node:
            case Text():
                after = append_text(
                    before,
                    node.parts,
                    self._tokenizer,
                    self._inputs,
                    lambda ref: text_of_plain(self._operand(ref)),
                    self._max_model_len,
                    is_constant=node.marks.is_constant,
                )
                self._end_node(node, after, ())
            case Generate():
                self._start_generate(self._affordable(node), before)
            case Select():
                self._start_select(node, before)
            case Apply():
                self._values[node.node_id] = apply(node.function, [self._operand(each) for each in node.args])
                self._end_node(node, TokenSequence(), ())
            case _:
                raise RequestError(f"{type(node).__name__.lower()} nodes are not executed by this runtime")

    def _affordable(self, node: Generate) -> Generate:
        """The node with the tokens that the budget has for it."""
        if self._purse is None:
            return node
        waiting = (self._nodes[node_id] for node_id in self._ready)
        others = sum(num_requests(other) for other in waiting if isinstance(other, Generate))
        return self._purse.lowered(node, num_requests(node) + others)

    def _conclude(self, node: Node, before: TokenSequence, outcome: KnownOutcome) -> None:
        """End a node with an outcome that was not computed for it."""
        if self.is_ended or node.node_id in self._sequences or node.node_id in self._errors:
            return
        if isinstance(outcome.end, RtlangError):
            self._fail_node(node, outcome.end)
            return
        for delta in outcome.deltas(self.graph_id, node.node_id):
            self._listener(delta)
        name = None if isinstance(node, Text) else node.name
        event = outcome.event(self.graph_id, node.node_id, name)
        self._usage = self._usage + event.usage
        self._listener(event)
        is_branch = isinstance(node, Generate) and node.params.n > 1
        after = before if is_branch else self._after(node, before, event.completions[0].token_ids)
        self._end_node(node, after, tuple(each.text for each in event.completions))

    def _operand(self, operand: Operand) -> Any:
        """The value of an operand whose node has ended."""
        match operand:
            case Const():
                return operand.value
            case Arg():
                return self._inputs[operand.name]
            case Ref():
                if operand.node_id in self._values:
                    return self._values[operand.node_id]
                return self._texts[operand.node_id][operand.choice]

    def _end_node(self, node: Node, sequence: TokenSequence, texts: tuple[str, ...]) -> None:
        self._sequences[node.node_id] = sequence
        self._texts[node.node_id] = texts
        self._release(node.node_id)

    def _fail_node(self, node: Node, error: RtlangError) -> None:
        work = self._work.pop(node.node_id, None)
        if work is not None:
            for request in work.requests:
                self._abort(request)
            if self._purse is not None:
                self._purse.spend(node.node_id, _usage_of(work.requests))
        self._errors[node.node_id] = error
        name = None if isinstance(node, Text) else node.name
        self._listener(NodeFailed(self.graph_id, node.node_id, name, error))
        self._release(node.node_id)

    def _release(self, node_id: int) -> None:
        for waiter in self._waiters.pop(node_id, ()):
            self._num_missing[waiter] -= 1
            if self._num_missing[waiter] == 0:
                self._ready.append(waiter)
        self._drain()

    def _finish(self) -> None:
        self.is_ended = True
        values: dict[str, str | list[str]] = {}
        for node_id in sorted(self._texts):
            node = self._nodes[node_id]
            if isinstance(node, (Text, Apply)) or node.name is None:
                continue
            texts = list(self._texts[node_id])
            if node.name in values:
                before = values[node.name]
                values[node.name] = [*(before if isinstance(before, list) else [before]), *texts]
            else:
                values[node.name] = texts if len(texts) > 1 else texts[0]
        self._listener(GraphFinished(self.graph_id, values, self._usage, tuple(sorted(self._errors))))
        self._on_end()

    # -- generate

    def _begun(self, sequence: TokenSequence) -> TokenSequence:
        """The sequence; an empty one becomes the model's start tokens."""
        return sequence if len(sequence) else sequence.followed_by(self._tokenizer.start_ids())

    def _prompt(self, sequence: TokenSequence) -> tuple[int, ...]:
        return self._begun(sequence).token_ids

    def _start_generate(self, node: Generate, before: TokenSequence) -> None:
        params = node.params
        seed = params.seed if params.seed is not None else node_seed(self._seed, node.node_id)
        num_texts = num_requests(node)
        work = self._work[node.node_id] = _Work(node, self._clock(), num_open=num_texts)
        if params.best_of > 1:
            work.contest = Contest(num_texts)
            params = replace(params, best_of=1, logprobs=params.logprobs or 0)
        prompt = self._prompt(before)
        healing = self._healing(node, before)
        if healing is not None:
            prompt = prompt[:-1]
        for choice in range(num_texts):

            def listener(output: RequestOutput, choice: int = choice) -> None:
                self._on_generated(work, choice, output)

            work.requests.append(
                self._submit(
                    prompt,
                    params,
                    listener,
                    constraint=node.constraint,
                    seed=seed,
                    choice=choice,
                    score_from=1 if params.prompt_logprobs is not None and choice == 0 else None,
                    begins_with="" if healing is None else healing.text,
                    first_banned_ids=() if healing is None else healing.banned_token_ids,
                )
            )

    def _healing(self, node: Node, before: TokenSequence) -> Healing | None:
        """What a generation takes back from the text before it. Tokens of the chat template and generated ones stay."""
        if not isinstance(node, Generate) or not node.params.token_healing or not self._ends_with_text(node.parent):
            return None
        if not hasattr(self._tokenizer, "token_bytes"):  # a runtime without a model
            return None
        return healing_of(self._tokenizer, self._begun(before).token_ids)

    def _ends_with_text(self, node_id: int | None) -> bool:
        """Whether the last characters of a node's sequence are text."""
        while node_id is not None:
            node = self._nodes[node_id]
            if not isinstance(node, Text):
                return False
            for part in reversed(node.parts):
                if isinstance(part, (RoleStart, RoleEnd)):
                    return False
                if part if isinstance(part, str) else text_of_plain(self._operand(part)):
                    return True
            node_id = node.parent
        return False

    def _after(self, node: Node, before: TokenSequence, token_ids: tuple[int, ...]) -> TokenSequence:
        """The sequence behind a generated text; its first token replaces the last one before it if that was taken back."""
        healing = self._healing(node, before)
        begun = self._begun(before)
        if healing is not None:
            written = b"".join(map(self._tokenizer.token_bytes, token_ids))
            if written.startswith(healing.text.encode()):
                begun = begun.without_last()
        return begun.followed_by(token_ids)

    def _on_generated(self, work: _Work, choice: int, output: RequestOutput) -> None:
        node = work.node
        assert isinstance(node, Generate)
        if self.is_ended or self._work.get(node.node_id) is not work:
            return
        if output.error is not None:
            self._fail_node(node, output.error)
            return
        contest = work.contest
        if contest is not None and choice in contest.lost:
            return
        if contest is None and (output.text or output.token_ids):
            if work.first_token_time is None:
                work.first_token_time = self._clock()
            token_ids = tuple(output.token_ids)
            self._listener(TextDelta(self.graph_id, node.node_id, choice, output.text, token_ids))
        if contest is not None and contest.is_lost(
            choice, output.request.logprobs, has_ended=output.finish_reason is not None
        ):
            if output.finish_reason is None:
                self._abort(output.request)
            self._close_choice(node, work)
            return
        if output.finish_reason is None:
            return
        request = output.request
        if request not in work.requests:  # an earlier attempt was invalid; usage counts all attempts
            work.requests.append(request)
        work.completions[choice] = Completion(
            text=request.output_text.text,
            token_ids=tuple(request.output_text.token_ids),
            finish_reason=output.finish_reason,
            stop_match=request.output_stop,
            logprobs=tuple(request.logprobs) if node.params.logprobs is not None else None,
            distortion=tuple(request.distortion) or None,
        )
        self._close_choice(node, work)

    def _close_choice(self, node: Generate, work: _Work) -> None:
        work.num_open -= 1
        if work.num_open == 0:
            self._finish_generate(node, work)

    def _finish_generate(self, node: Generate, work: _Work) -> None:
        del self._work[node.node_id]
        if work.contest is not None:
            best = work.completions[work.contest.winner]
            work.completions = {0: best}
            work.first_token_time = self._clock()
            self._listener(TextDelta(self.graph_id, node.node_id, 0, best.text, best.token_ids))
        completions = tuple(work.completions[choice] for choice in range(node.params.n))
        before = self._sequences[node.parent] if node.parent is not None else TokenSequence()
        after = self._after(node, before, completions[0].token_ids)
        scores = tuple(work.requests[0].scores) if node.params.prompt_logprobs is not None else None
        self._report(node, work, completions, prompt_logprobs=scores)
        self._end_node(node, after if node.params.n == 1 else before, tuple(c.text for c in completions))

    def _report(
        self,
        node: Generate | Select,
        work: _Work,
        completions: tuple[Completion, ...],
        *,
        scores: tuple[float, ...] | None = None,
        probabilities: tuple[float, ...] | None = None,
        prompt_logprobs: tuple[TokenLogprob, ...] | None = None,
    ) -> None:
        requests = work.requests
        usage = _usage_of(requests)
        self._usage = self._usage + usage
        max_tokens = None
        if self._purse is not None:
            self._purse.spend(node.node_id, usage)
            asked = self._nodes[node.node_id]
            if isinstance(node, Generate) and isinstance(asked, Generate) and node.params != asked.params:
                max_tokens = node.params.max_tokens
        now = self._clock()
        timing = Timing(
            _since(work.started, (request.first_step_time for request in requests), now),
            (now if work.first_token_time is None else work.first_token_time) - work.started,
            now - work.started,
        )
        self._listener(
            NodeFinished(
                self.graph_id,
                node.node_id,
                node.name,
                completions,
                usage,
                timing,
                scores,
                probabilities,
                prompt_logprobs,
                max_tokens=max_tokens,
            )
        )

    # -- select

    def _start_select(self, node: Select, before: TokenSequence) -> None:
        work = self._work[node.node_id] = _Work(node, self._clock())
        prompt = self._prompt(before)
        work.choices = [tuple(self._tokenizer.encode(choice, is_start=not prompt)) for choice in node.choices]
        prefixes = [prompt]
        if node.method is SelectMethod.UNCONDITIONAL_LIKELIHOOD_NORMALIZED:
            prefixes.append(tuple(self._tokenizer.start_ids()))
        jobs = [prefix + choice for prefix in prefixes for choice in work.choices]
        starts = [max(1, len(prefix)) for prefix in prefixes for _ in work.choices]
        is_scored = [len(token_ids) > start for token_ids, start in zip(jobs, starts, strict=True)]
        work.num_open = sum(is_scored)
        for token_ids, start, is_asked in zip(jobs, starts, is_scored, strict=True):
            request = None
            if is_asked:
                request = self._submit(
                    token_ids,
                    SamplingParams(max_tokens=1),
                    lambda output: self._on_scored(work, output),
                    score_from=start,
                    score_only=True,
                )
                work.requests.append(request)
            work.scored.append(request)
        if not work.num_open:  # single tokens without a prefix
            self._finish_select(node, work)

    def _on_scored(self, work: _Work, output: RequestOutput) -> None:
        node = work.node
        assert isinstance(node, Select)
        if self.is_ended or self._work.get(node.node_id) is not work or not output.is_last:
            return
        if output.error is not None:
            self._fail_node(node, output.error)
            return
        work.num_open -= 1
        if not work.num_open:
            self._finish_select(node, work)

    def _finish_select(self, node: Select, work: _Work) -> None:
        del self._work[node.node_id]
        num_choices = len(node.choices)
        scored = [
            token_logprobs(tokens, () if request is None else request.scores, self._tokenizer.vocab_size)
            for tokens, request in zip(itertools.cycle(work.choices), work.scored)
        ]
        conditional, unconditional = (
            [[score.logprob for score in each] for each in part]
            for part in (scored[:num_choices], scored[num_choices:])
        )
        scores = select_scores(node.method, work.choices, conditional, unconditional)
        best = max(range(num_choices), key=lambda index: scores[index])
        text, tokens = node.choices[best], work.choices[best]
        before = self._sequences[node.parent] if node.parent is not None else TokenSequence()
        completion = Completion(text, tokens, FinishReason.STOP, None, scored[best])
        probabilities = softmax([sum(values) for values in conditional])
        work.first_token_time = self._clock()
        self._listener(TextDelta(self.graph_id, node.node_id, 0, text, tokens))
        self._report(node, work, (completion,), scores=tuple(scores), probabilities=probabilities)
        self._end_node(node, self._begun(before).followed_by(tokens), (text,))


def _usage_of(requests: Sequence[Request]) -> Usage:
    return Usage(
        sum(request.num_prompt_tokens for request in requests),
        sum(request.num_cached_tokens for request in requests),
        sum(request.num_output_tokens for request in requests),
    )


def _since(start: float, times: Iterable[float | None], now: float) -> float:
    return min((time for time in times if time is not None), default=now) - start
