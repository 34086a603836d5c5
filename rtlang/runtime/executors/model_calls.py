"""The engine requests of generate and select nodes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from rtlang.contract.errors import RtlangError, ValueMemoryError
from rtlang.contract.events import (
    Completion,
    DraftUse,
    NodeFinished,
    NodeStarted,
    PromptComputed,
    TextDelta,
    Timing,
    TokenLogprob,
)
from rtlang.contract.graph.node_paths import site_of
from rtlang.contract.graph.value_size import Measured
from rtlang.contract.params import FinishReason, SamplingParams, SelectMethod, Usage, seconds_left
from rtlang.contract.request_graph import Apply, Generate, Node, Select, choices_of, num_requests
from rtlang.contract.runs.run_options import RunOptions
from rtlang.engine.requests.request import Request, RequestOutput, RequestSpec
from rtlang.runtime.executors.best_of_pruning import BestOfPruning
from rtlang.runtime.executors.budget_account import BudgetAccount
from rtlang.runtime.executors.early_fields import EarlyFields, early_value
from rtlang.runtime.executors.host import Host
from rtlang.runtime.executors.seeds import node_seed
from rtlang.runtime.executors.selection import select_scores, softmax, token_logprobs
from rtlang.runtime.nodes.branch_points import BranchPoints
from rtlang.runtime.nodes.node_ends import NodeEnds, Stopped
from rtlang.runtime.nodes.node_table import NodeTable
from rtlang.runtime.nodes.work_slices import START_US, STARTS_A_TURN, WorkSlices
from rtlang.runtime.texts.token_healing import Healing, ends_with_text, healing_of
from rtlang.runtime.texts.token_sequence import TokenSequence

READ_US = 1.0
"""Of a character of a growing text of which fields are read."""
FIELD_US = 0.2
"""Of a character of a field that becomes a value."""


@dataclass(slots=True)
class NodeRequests:
    """The requests of one running generate or select node."""

    node: Generate | Select
    started: float
    before: TokenSequence
    prompt: tuple[int, ...] = ()  # the tokens before it, without the one that healing takes back
    branch_points: tuple[int, ...] = ()
    healing: Healing | None = None
    requests: list[Request] = field(default_factory=list)
    by_choice: dict[int, Request] = field(default_factory=dict)  # generate: the first request of each completion
    completions: dict[int, Completion] = field(default_factory=dict)
    num_open: int = 0
    choices: list[tuple[int, ...]] = field(default_factory=list)  # select: the tokens of each choice
    scored: list[Request | None] = field(default_factory=list)  # select: by job; None if there is nothing to compute
    first_token_time: float | None = None
    pruning: BestOfPruning | None = None  # with best_of
    is_computed: bool = False  # the prompt of one of its requests


class ModelCalls:
    """The running generate and select nodes of a graph; see `Executor`.

    Args:
        account: accounts for what the nodes spend, if the run has a budget.
        options: of the run, with a seed.
        branches: finds the places where prompts branch; None if the model has no states.

    Attributes:
        usage: the tokens of all ended nodes.
        continue_from: by node, the output tokens of each choice that an earlier run gave out. They are not given out again.
    """

    def __init__(
        self,
        table: NodeTable,
        ends: NodeEnds,
        slices: WorkSlices,
        host: Host,
        account: BudgetAccount | None,
        options: RunOptions,
        branches: BranchPoints | None = None,
    ) -> None:
        self.usage, self.continue_from = Usage(), dict(options.continue_from)
        self._table, self._ends, self._slices, self._host, self._account = table, ends, slices, host, account
        self._seed, self._reports_progress = options.seed or 0, options.reports_progress
        self._branches = branches
        self._tokenizer = host.tokenizer
        self._work: dict[int, NodeRequests] = {}
        self._early = EarlyFields()

    def _begun(self, sequence: TokenSequence) -> TokenSequence:
        """The sequence; an empty one becomes the model's start tokens."""
        return sequence if len(sequence) else sequence.followed_by(self._tokenizer.start_ids())

    def _prompt(self, sequence: TokenSequence) -> tuple[int, ...]:
        if sequence.conversation.refusal is not None:
            raise sequence.conversation.refusal
        return self._begun(sequence).token_ids

    def start(self, node: Generate | Select, before: TokenSequence, held: Collection[int] = ()) -> None:
        """See `Executor.start`.

        Args:
            node: with the parameters that the budget allows.
            held: completions that `start_choice` starts, or that `cancel_choice` ends without a start.
        """
        if self._reports_progress:
            self._ends.emit(NodeStarted(self._ends.graph_id, node.node_id, node.name))
        if isinstance(node, Generate):
            self._start_generate(node, before, held)
        else:
            self._start_select(node, before)

    @property
    def running(self) -> list[int]:
        """Ids of the nodes that have started and not ended."""
        return list(self._work)

    def stop(self, node: Generate | Select, *, is_cancelled: bool = False) -> Stopped:
        """See `Executor.stop`. The open completions of a cancelled node are marked as cancelled."""
        work = self._forget(node.node_id) or NodeRequests(node, self._ends.clock(), TokenSequence())
        computed = [request.token_ids for request in work.requests]
        are_texts = isinstance(node, Generate) and work.pruning is None
        completions = [
            work.completions.get(choice) or _cancelled(work.by_choice.get(choice) if are_texts else None)
            for choice in range(choices_of(node))
        ]
        self._abort_all(work.requests)
        if is_cancelled:
            self._report(node, work, tuple(completions))
        elif self._account is not None:
            self._account.spend(node.node_id, _usage_of(work.requests))
        return Stopped(computed, tuple(completion.text for completion in completions))

    def stop_all(self) -> None:
        """Abort all requests, because the graph has ended."""
        works, self._work = self._work, {}
        for work in works.values():
            self._abort_all(work.requests)

    def _forget(self, node_id: int) -> NodeRequests | None:
        self._early.forget(node_id)
        return self._work.pop(node_id, None)

    def _abort_all(self, requests: Iterable[Request]) -> None:
        for request in requests:
            self._host.abort(request)

    def cancel_choice(self, node: Generate, choice: int) -> None:
        """End one completion of a running node; the node ends when the others have."""
        work = self._work.get(node.node_id)
        if work is None or choice in work.completions:
            return
        request = work.by_choice.get(choice)
        work.completions[choice] = _cancelled(request)
        if request is not None:
            self._host.abort(request)
        self._close_choice(work.node, work)

    def read_field(self, node: Apply) -> None:
        """A node was added: it has its value early if it reads a field of a running text."""
        text = self._early.add(node)
        if text is not None and self._early.is_read(text):
            self._follow(*text)

    def _follow(self, node_id: int, choice: int) -> None:
        """Give the nodes that read fields of a text those that are final."""
        work = self._work.get(node_id)
        request = None if work is None or work.pruning is not None else work.by_choice.get(choice)
        if request is None or not _is_enforced(request):
            return
        text, so_far = (node_id, choice), request.output_text.shown
        self._slices.spend(READ_US * self._early.num_unread(text, so_far))
        for found in self._early.read(text, so_far):
            price_us = FIELD_US * len(found.json)
            know = self._know_early if self._slices.is_small(price_us) else self._know_late
            self._slices.do(price_us, partial(early_value, found), partial(know, found.readers))

    def _know_early(self, readers: Sequence[int], found: Measured | Exception) -> None:
        """The value of a field that nodes read was found."""
        if isinstance(found, Exception):
            return
        for reader in readers:
            with suppress(ValueMemoryError):  # the node fails when it is computed
                self._host.reserve(found.measure.num_bytes)
                self._table.wait((), partial(self._tell_early, reader, found))

    def _know_late(self, readers: Sequence[int], found: Measured | Exception) -> None:
        """Likewise, on another thread."""
        self._know_early(readers, found)
        self._ends.drain()

    def _tell_early(self, reader: int, value: Measured) -> None:
        """A node has its value, unless it was computed meanwhile."""
        if reader in self._table.ended or (reader, 0) in self._table.values:
            self._host.reserve(-value.measure.num_bytes)
        else:
            self._ends.know(reader, 0, value)

    def start_choice(self, node_id: int, choice: int) -> None:
        """Start a completion that was held back; does nothing if its node has ended."""
        work = self._work.get(node_id)
        if work is not None and choice not in work.completions:
            self._start_choice(work, choice)

    def _start_generate(self, node: Generate, before: TokenSequence, held: Collection[int]) -> None:
        num_texts = num_requests(node)
        work = self._work[node.node_id] = NodeRequests(node, self._ends.clock(), before, num_open=num_texts)
        if node.params.best_of > 1:
            work.pruning = BestOfPruning(num_texts)
        work.healing = self._healing(node, before)
        work.prompt = self._prompt(before)
        if work.healing is not None:
            work.prompt = work.prompt[:-1]
        num_all = len(work.prompt)
        if node.params.truncate_prompt_tokens is not None:
            work.prompt = work.prompt[-node.params.truncate_prompt_tokens :]
        work.branch_points = self._find_branch_points(node, before, len(work.prompt), num_all - len(work.prompt))
        self._start_in_turns(
            work, [partial(self._start_choice, work, each) for each in range(num_texts) if each not in held]
        )

    def _find_branch_points(
        self, node: Generate | Select, before: TokenSequence, num_prompt_tokens: int, start: int = 0
    ) -> tuple[int, ...]:
        return () if self._branches is None else self._branches.find(node, before, num_prompt_tokens, start)

    def _start_in_turns(self, work: NodeRequests, starts: Sequence[Callable[[], None]], done: int = 0) -> None:
        """Start the requests of a node, some of them in later turns."""
        num_now = len(starts) if self._host.later is None else STARTS_A_TURN
        if done:  # the first ones are in the price of the action
            self._slices.spend(START_US * min(num_now, len(starts) - done))
        for start in starts[done : done + num_now]:
            start()
        if self._host.later is not None and len(starts) > done + num_now:
            self._host.later(partial(self._go_on, work, starts, done + num_now))

    def _go_on(self, work: NodeRequests, starts: Sequence[Callable[[], None]], done: int) -> None:
        if self._work.get(work.node.node_id) is not work:
            return
        try:
            self._start_in_turns(work, starts, done)
        except RtlangError as error:
            self._ends.fail(work.node, error)

    def _start_choice(self, work: NodeRequests, choice: int) -> None:
        node, healing = work.node, work.healing
        assert isinstance(node, Generate)
        if choice in work.completions:  # a decision has ended it before its turn
            return
        params = node.params
        seed = node_seed(self._seed, node)
        if params.best_of > 1:
            params = replace(params, best_of=1, logprobs=params.logprobs or 0)
        given = () if work.pruning is not None else self.continue_from.get(node.node_id, ())
        request = self._host.submit(
            RequestSpec(
                prompt_ids=work.prompt,
                params=params,
                listener=lambda output: self._on_generated(work, choice, output),
                constraint=node.constraint,
                seed=seed,
                choice=choice,
                deadline=None if params.deadline_s is None else work.started + seconds_left(params.deadline_s),
                remaining_tokens=node.marks.remaining_tokens,
                is_urgent=node.marks.is_urgent,
                score_from=1 if params.prompt_logprobs is not None and choice == 0 else None,
                begins_with="" if healing is None else healing.text,
                first_banned_ids=() if healing is None else healing.banned_token_ids,
                given_ids=given[choice] if choice < len(given) else (),
                site=(_site(node), node.constraint),
                branch_points=work.branch_points,
            )
        )
        work.requests.append(request)
        work.by_choice[choice] = request

    def _healing(self, node: Node, before: TokenSequence) -> Healing | None:
        """The tokens that healing removes from the text before a generation. Tokens of the chat template and generated ones stay."""
        if (
            not isinstance(node, Generate)
            or not node.params.token_healing
            or not node.params.max_tokens
            or not ends_with_text(node.parent, self._table.nodes, self._table.value)
        ):
            return None
        if not hasattr(self._tokenizer, "token_bytes"):  # a runtime without a model
            return None
        return healing_of(self._tokenizer, self._begun(before).token_ids)

    def after(self, node: Node, before: TokenSequence, completion: Completion) -> TokenSequence:
        """The sequence after a generated text; its first token replaces the last one before it if that was taken back."""
        healing = self._healing(node, before)
        begun = self._begun(before)
        if healing is not None:
            written = b"".join(map(self._tokenizer.token_bytes, completion.token_ids))
            if written.startswith(healing.text.encode()):
                begun = begun.without_last()
        return begun.generated(completion.token_ids, completion.text)

    def _on_generated(self, work: NodeRequests, choice: int, output: RequestOutput) -> None:
        node = work.node
        assert isinstance(node, Generate)
        if self._work.get(node.node_id) is not work or choice in work.completions:
            return
        pruning = work.pruning
        if (
            pruning is not None and choice in pruning.lost
        ):  # stopped here: its end is an abort, and no error of the node
            return
        if output.error is not None:
            self._ends.fail(node, output.error)
            return
        self._report_computed(work, output.request)
        if pruning is None and (output.text or output.token_ids):
            if work.first_token_time is None:
                work.first_token_time = self._ends.clock()
            token_ids = tuple(output.token_ids)
            logprobs = tuple(output.logprobs) if node.params.logprobs is not None else None
            self._ends.emit(TextDelta(self._ends.graph_id, node.node_id, choice, output.text, token_ids, logprobs))
        if pruning is not None and pruning.is_lost(
            choice, output.request.results.logprobs, has_ended=output.finish_reason is not None
        ):
            if output.finish_reason is None:
                self._host.abort(output.request)
            self._close_choice(node, work)
            return
        if output.finish_reason is None:
            if pruning is None and output.text and self._early.is_read((node.node_id, choice)):
                self._follow(node.node_id, choice)
                self._ends.drain()
            return
        request = output.request
        if request not in work.requests:  # an earlier attempt was invalid; usage counts all attempts
            work.requests.append(request)
        work.completions[choice] = Completion(
            text=request.output_text.text,
            token_ids=tuple(request.output_text.token_ids),
            finish_reason=output.finish_reason,
            stop_match=request.results.stop,
            logprobs=tuple(request.results.logprobs) if node.params.logprobs is not None else None,
            distortion=None if request.spec.given_ids else tuple(request.results.distortion) or None,
            captures=request.results.captures,
        )
        self._close_choice(node, work)
        if work.num_open and work.pruning is None:
            self._ends.know(node.node_id, choice, work.completions[choice].text)

    def _close_choice(self, node: Generate | Select, work: NodeRequests) -> None:
        assert isinstance(node, Generate)
        work.num_open -= 1
        if work.num_open == 0:
            self._finish_generate(node, work)

    def _finish_generate(self, node: Generate, work: NodeRequests) -> None:
        self._forget(node.node_id)
        if work.pruning is not None:
            best = work.completions[work.pruning.winner]
            work.completions = {0: best}
            work.first_token_time = self._ends.clock()
            self._ends.emit(TextDelta(self._ends.graph_id, node.node_id, 0, best.text, best.token_ids))
        completions = tuple(work.completions[choice] for choice in range(node.params.n))
        before = work.before
        after = self.after(node, before, completions[0])
        scores = tuple(work.requests[0].prompt_scores) if node.params.prompt_logprobs is not None else None
        self._report(node, work, completions, prompt_logprobs=scores)
        self._end(work, after if node.params.n == 1 else before, [completion.text for completion in completions])

    def _end(self, work: NodeRequests, after: TokenSequence, texts: Sequence[str]) -> None:
        self._ends.end(work.node, after, texts, computed=[request.token_ids for request in work.requests])

    def _report(
        self,
        node: Generate | Select,
        work: NodeRequests,
        completions: tuple[Completion, ...],
        *,
        scores: tuple[float, ...] | None = None,
        probabilities: tuple[float, ...] | None = None,
        prompt_logprobs: tuple[TokenLogprob, ...] | None = None,
        choice_logprobs: tuple[tuple[TokenLogprob, ...], ...] | None = None,
        unconditional_logprobs: tuple[tuple[TokenLogprob, ...], ...] | None = None,
    ) -> None:
        requests = work.requests
        usage = _usage_of(requests)
        self.usage = self.usage + usage
        max_tokens = None
        if self._account is not None:
            self._account.spend(node.node_id, usage)
            asked = self._table.nodes[node.node_id]
            if isinstance(node, Generate) and isinstance(asked, Generate) and node.params != asked.params:
                max_tokens = node.params.max_tokens
        now = self._ends.clock()
        timing = Timing(
            _since(work.started, (request.stats.first_step_time for request in requests), now),
            (now if work.first_token_time is None else work.first_token_time) - work.started,
            now - work.started,
        )
        self._ends.emit(
            NodeFinished(
                self._ends.graph_id,
                node.node_id,
                node.name,
                completions,
                usage,
                timing,
                scores,
                probabilities,
                prompt_logprobs,
                max_tokens=max_tokens,
                choice_logprobs=choice_logprobs,
                unconditional_logprobs=unconditional_logprobs,
                drafts=_drafts_of(requests),
            )
        )

    # -- select

    def _start_select(self, node: Select, before: TokenSequence) -> None:
        work = self._work[node.node_id] = NodeRequests(node, self._ends.clock(), before)
        prompt = work.prompt = self._prompt(before)
        work.branch_points = self._find_branch_points(node, before, len(prompt))
        work.choices = [tuple(self._tokenizer.encode(choice, is_start=not prompt)) for choice in node.choices]
        prefixes = [prompt]
        if node.method is SelectMethod.UNCONDITIONAL_LIKELIHOOD_NORMALIZED:
            prefixes.append(tuple(self._tokenizer.start_ids()))
        jobs = [(prefix, choice) for prefix in prefixes for choice in work.choices]
        is_scored = [len(prefix) + len(choice) > max(1, len(prefix)) for prefix, choice in jobs]
        work.num_open = sum(is_scored)
        work.scored = [None] * len(jobs)
        starts_of = [
            partial(self._start_scoring, work, at, prefix, choice)
            for at, (prefix, choice) in enumerate(jobs)
            if is_scored[at]
        ]
        self._start_in_turns(work, starts_of)
        if not work.num_open:  # single tokens without a prefix
            self._finish_select(node, work)

    def _start_scoring(self, work: NodeRequests, at: int, prefix: tuple[int, ...], choice: tuple[int, ...]) -> None:
        request = self._host.submit(
            RequestSpec(
                prompt_ids=prefix + choice,
                params=SamplingParams(max_tokens=1),
                listener=lambda output: self._on_scored(work, output),
                remaining_tokens=work.node.marks.remaining_tokens,
                is_urgent=work.node.marks.is_urgent,
                score_from=max(1, len(prefix)),
                score_only=True,
                branch_points=work.branch_points if prefix is work.prompt else (),
            )
        )
        work.requests.append(request)
        work.scored[at] = request

    def _on_scored(self, work: NodeRequests, output: RequestOutput) -> None:
        node = work.node
        assert isinstance(node, Select)
        if self._work.get(node.node_id) is not work or not output.is_last:
            return
        if output.error is not None:
            self._ends.fail(node, output.error)
            return
        self._report_computed(work, output.request)
        work.num_open -= 1
        if not work.num_open:
            self._finish_select(node, work)

    def _report_computed(self, work: NodeRequests, request: Request) -> None:
        """Report once for each node how much of its prompt was cached."""
        if self._reports_progress and not work.is_computed:
            work.is_computed = True
            event = PromptComputed(
                self._ends.graph_id, work.node.node_id, request.num_prompt_tokens, request.stats.num_cached_tokens
            )
            self._ends.emit(event)

    def _finish_select(self, node: Select, work: NodeRequests) -> None:
        self._forget(node.node_id)
        num_choices = len(node.choices)
        scored = [
            token_logprobs(tokens, () if request is None else request.results.scores, self._tokenizer.vocab_size)
            for tokens, request in zip(itertools.cycle(work.choices), work.scored)
        ]
        conditional, unconditional = (
            [[score.logprob for score in each] for each in part]
            for part in (scored[:num_choices], scored[num_choices:])
        )
        scores = select_scores(node.method, work.choices, conditional, unconditional)
        best = max(range(num_choices), key=lambda index: scores[index])
        text, tokens = node.choices[best], work.choices[best]
        completion = Completion(text, tokens, FinishReason.STOP, None, scored[best])
        probabilities = softmax([sum(values) for values in conditional])
        work.first_token_time = self._ends.clock()
        self._ends.emit(TextDelta(self._ends.graph_id, node.node_id, 0, text, tokens))
        self._report(
            node,
            work,
            (completion,),
            scores=tuple(scores),
            probabilities=probabilities,
            choice_logprobs=tuple(scored[:num_choices]),
            unconditional_logprobs=tuple(scored[num_choices:]) or None,
        )
        self._end(work, self._begun(work.before).generated(tokens, text), [text])


def _site(node: Generate) -> str | int:
    """The generation in its program, for drafts from earlier texts of the same one."""
    if node.path is not None:
        return site_of(node.path)
    return node.node_id if node.name is None else node.name


def _is_enforced(request: Request) -> bool:
    """Whether masks alone enforce the constraint of a request, so that no check can reject its finished text."""
    return request.session is not None and request.session.value_check is None


def _usage_of(requests: Sequence[Request]) -> Usage:
    return Usage(
        sum(request.num_prompt_tokens for request in requests),
        sum(request.stats.num_cached_tokens for request in requests),
        sum(request.num_output_tokens for request in requests),
        *(
            sum(request.stats.num_fetched_tokens.get(tier, 0) for request in requests)
            for tier in ("host", "disk", "peer")
        ),
    )


def _drafts_of(requests: Sequence[Request]) -> tuple[DraftUse, ...]:
    sources = sorted({source for request in requests for source in request.stats.drafts})
    counts = [[request.stats.drafts.get(source, (0, 0)) for request in requests] for source in sources]
    return tuple(
        DraftUse(source, *map(sum, zip(*of_requests, strict=True)))
        for source, of_requests in zip(sources, counts, strict=True)
    )


def _since(start: float, times: Iterable[float | None], now: float) -> float:
    return min((time for time in times if time is not None), default=now) - start


def _cancelled(request: Request | None) -> Completion:
    """The completion of a request that a decision ended."""
    if request is None:
        return Completion("", (), FinishReason.CANCELLED)
    return Completion(request.output_text.text, tuple(request.output_text.token_ids), FinishReason.CANCELLED)
