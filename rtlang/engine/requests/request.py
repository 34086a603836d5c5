"""One sequence in the engine: its specification and its progress.

Steps compute tokens until every token of a request is computed; prefill and decode are not separate states. The scheduler
alone writes computed tokens, pages and the position in the tree; the engine sets the session and appends results (token ids, scores,
log-probabilities).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from rtlang.cache.node import RadixNode
from rtlang.cache.scope import PUBLIC, CacheScope
from rtlang.contract.accounts.request_account import RequestAccount, Tokens, Wait, WorkKind
from rtlang.contract.errors import RtlangError
from rtlang.contract.events import TokenLogprob
from rtlang.contract.params import Constraint, FinishReason, SamplingParams
from rtlang.contract.runs.principal import LOCAL, Principal
from rtlang.contract.runs.session_options import SessionOptions
from rtlang.contract.step import LogitFilters, SampledToken
from rtlang.engine.constraints.session import ConstraintSession
from rtlang.engine.requests.credit import Credit
from rtlang.engine.requests.detokenizer import IncrementalDetokenizer
from rtlang.engine.requests.flow import Flow
from rtlang.engine.requests.held_states import HeldStates
from rtlang.engine.requests.program_account import ProgramAccount
from rtlang.engine.sessions.session_table import Turn


class RequestStatus(Enum):
    """The state of a request."""

    COMPILING = auto()  # its constraint is being compiled; not queued yet
    FETCHING = auto()  # pages of its prompt are looked for below the pool; not queued yet
    WAITING = auto()
    RUNNING = auto()
    PREEMPTED = auto()  # queued again, with its generated tokens
    PARKED = auto()  # waits for credit: computed up to its next token, outside the steps
    FINISHED = auto()


MAX_REPLAYED_DRAFTS = 16
"""Most accepted drafts of a row, which the next row computes again if the model has states."""

_WAITS = {
    RequestStatus.COMPILING: Wait.CONSTRAINT,
    RequestStatus.FETCHING: Wait.FETCH,
    RequestStatus.WAITING: Wait.ROW,
    RequestStatus.PREEMPTED: Wait.PREEMPTED,
    RequestStatus.PARKED: Wait.CREDIT,
}


@dataclass(slots=True)
class RequestOutput:
    """New output of a request. The last one has a finish reason, and an error if the request failed."""

    request: Request
    text: str = ""
    token_ids: Sequence[int] = ()
    finish_reason: FinishReason | None = None
    error: RtlangError | None = None
    logprobs: Sequence[TokenLogprob] = ()

    @property
    def is_last(self) -> bool:
        return self.finish_reason is not None or self.error is not None

    def followed_by(self, following: RequestOutput) -> RequestOutput:
        """This output and the next one of the request as one."""
        return replace(
            following,
            text=self.text + following.text,
            token_ids=(*self.token_ids, *following.token_ids),
            logprobs=(*self.logprobs, *following.logprobs),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSpec:
    """What a request asks for.

    Attributes:
        prompt_ids: the tokens of the prompt.
        listener: receives every RequestOutput, including the last; called on the engine thread.
        constraint: of the generated text; None for free text.
        seed, choice: key of the sampling noise, together with the index of each output token.
        priority: lower numbers are served earlier.
        deadline: time at which its node fails if it has not ended, in seconds of the engine's clock; None for no such time.
        principal: the party that the request belongs to; rows, pages, tokens and compilations are fair between principals.
        program: shared with the program's other requests; None for a program of its own.
        remaining_tokens: estimated tokens on the longest path of its program after it.
        is_urgent: whether the code of its program waits for it.
        score_from: index of the first prompt token to score; None for no scores.
        score_only: whether only prompt tokens are scored and nothing is generated.
        begins_with: text with which the generated tokens begin, before the text that is asked for and constrained.
        first_banned_ids: tokens that must not be the first output token; all end tokens are among them, unless there are none.
        given_ids: output tokens of an earlier run of the same request, with which the output begins. They are not given out again:
            the outputs are those that would follow.
        credit: shared by the requests of a graph; None for a graph without a limit.
        site: which generation of which program it is; None if that is not known.
        branch_points: positions of the prompt at which other sequences are expected to go on: states are kept there; see
            `rtlang.engine.checkpoints`.
        session: of the chat that it answers; None without one.
    """

    prompt_ids: Sequence[int]
    params: SamplingParams
    listener: Callable[[RequestOutput], None]
    constraint: Constraint | None = None
    seed: int = 0
    choice: int = 0
    priority: int = 0
    deadline: float | None = None
    principal: Principal = LOCAL
    program: ProgramAccount | None = None
    remaining_tokens: int = 0
    is_urgent: bool = True
    score_from: int | None = None
    score_only: bool = False
    begins_with: str = ""
    first_banned_ids: tuple[int, ...] = ()
    given_ids: Sequence[int] = ()
    credit: Credit | None = None
    site: Hashable | None = None
    branch_points: Sequence[int] = ()
    session: SessionOptions | None = None


@dataclass(slots=True)
class Pending:
    """Results of launched steps that the host has not seen; all 0 between steps on the host.

    Attributes:
        num_tokens, num_scores: sampled tokens and scores.
        num_computed_tokens: computed tokens.
        num_drafts: draft tokens of one step. The request sits out steps until their results say how long its text is.
    """

    num_tokens: int = 0
    num_scores: int = 0
    num_computed_tokens: int = 0
    num_drafts: int = 0


@dataclass(slots=True)
class HeldPages:
    """The pages of a running or parked request.

    Attributes:
        page_ids: in the order of the tokens.
        node, num_tree_tokens: the deepest tree node that the request locks, and the number of tokens on the path to it.
    """

    page_ids: list[int] = field(default_factory=list)
    node: RadixNode | None = None
    num_tree_tokens: int = 0


@dataclass(slots=True)
class Results:
    """The results besides the text.

    Attributes:
        scores: of prompt tokens, and of given output tokens whose log-probabilities are wanted.
        logprobs: of the output tokens.
        distortion: what each masked sample lost in probability, with the length of the text after it.
        stop: the stop string, pattern or token that ended the text.
        captures: the texts that rules of the grammar have captured, by name, once the text has ended; None if there are none.
    """

    scores: list[TokenLogprob] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    distortion: list[tuple[float, int]] = field(default_factory=list)
    stop: str | int | None = None
    captures: Mapping[str, tuple[str, ...]] | None = None


@dataclass(slots=True)
class RequestStats:
    """Figures for usage, metrics and traces.

    Attributes:
        num_cached_tokens: prompt tokens taken from the prefix cache at first admission.
        num_replayed_tokens: prompt tokens after these whose K and V were stored, but no state; computed again.
        num_fetched_tokens: prompt tokens loaded into the cache for this request, by tier.
        num_preemptions: times that its pages were taken.
        first_step_time: when it was first admitted, in seconds of the engine's clock.
        drafts: by source, the number of draft tokens that were computed, and of those accepted.
        num_reached_tokens: the most tokens that were computed or cached before it gave up its pages.
        waits: seconds of each cause of waiting that is over.
        step_s: its part of the time of its steps, in seconds.
    """

    num_cached_tokens: int = 0
    num_replayed_tokens: int = 0
    num_fetched_tokens: dict[str, int] = field(default_factory=dict)
    num_preemptions: int = 0
    first_step_time: float | None = None
    drafts: dict[str, tuple[int, int]] = field(default_factory=dict)
    num_reached_tokens: int = 0
    waits: dict[str, float] = field(default_factory=dict)
    step_s: float = 0.0


@dataclass(slots=True, eq=False)
class Request:
    """A sequence to continue or to score: its specification, facts derived from it, and progress.

    Attributes:
        spec: replaced once if its text ends within the given tokens whose log-probabilities must still be computed.
        program: the program that it belongs to, shared with the program's other requests.
        arrival_time: in seconds of the engine's clock.
        entered_at: when it came into its state, in seconds of `time.monotonic`.
        scope: which stored sequences it may find; see `rtlang.cache.scope`.
        stop_ids: tokens that end generation; `eos_ids` are the model's.
        filters: of its sampled tokens; None for none.
        resampled_ids: given tokens that are sampled again, since the filters depend on what they were sampled from; not given out again.
        token_ids: prompt followed by output; grows by sampled tokens.
        max_tokens: the largest number of output tokens; less than its parameters allow if the model takes no more.
        late: its sampled token, which another thread accepts; the request sits out steps until the engine has applied it.
        num_given: number of given tokens that are in `token_ids` already.
        given_end: the last output, if the text ended with the given tokens but their log-probabilities must still be computed.
        num_computed_tokens: number of computed tokens: K and V are in pages, and the state, if the model has any, is the one after them.
        states: its state slots while it runs or is parked; None if the model has no states.
        flow: its flow while it waits or runs; see `fair_shares.py`.
        max_surprise: the limit that Mirostat has learned from the tokens so far, in bits.
        prompt_s: expected time of the part of its prompt that is not computed, in seconds; 0 while it is not known.
        last_step_id: the step that computed it last.
        num_passed: requests of others that started while it waited for pages.
        turn: its place in a session; None if sessions are not inferred, or nothing is generated.
        awaited: the running request that will keep a state for it, and the position of that state; None if it waits for none.
        needs_history: whether its next token depends on the tokens before it otherwise than through the model.
    """

    request_id: int
    spec: RequestSpec
    output_text: IncrementalDetokenizer
    program: ProgramAccount = field(default_factory=lambda: ProgramAccount(0.0))
    arrival_time: float = 0.0
    scope: CacheScope = PUBLIC
    stop_ids: frozenset[int] = frozenset()
    eos_ids: frozenset[int] = frozenset()
    filters: LogitFilters | None = None
    resampled_ids: Sequence[int] = ()

    token_ids: list[int] = field(init=False)
    num_prompt_tokens: int = field(init=False)
    max_tokens: int = field(init=False)
    status: RequestStatus = RequestStatus.WAITING
    entered_at: float = field(default_factory=time.monotonic)
    session: ConstraintSession | None = None
    late: SampledToken | None = None
    num_given: int = 0
    given_end: RequestOutput | None = None
    num_computed_tokens: int = 0
    pending: Pending = field(default_factory=Pending)
    pages: HeldPages = field(default_factory=HeldPages)
    states: HeldStates | None = None
    results: Results = field(default_factory=Results)
    stats: RequestStats = field(default_factory=RequestStats)
    flow: Flow | None = None
    prompt_s: float = 0.0
    last_step_id: int = 0
    num_passed: int = 0
    turn: Turn | None = None
    awaited: tuple[Request, int] | None = None
    needs_history: bool = field(init=False)
    max_surprise: float = field(init=False)

    def __post_init__(self) -> None:
        params = self.spec.params
        self.needs_history = bool(
            params.presence_penalty
            or params.frequency_penalty
            or params.repetition_penalty != 1.0
            or params.logits_processors
            or (self.filters is not None and (self.filters.rules or params.mirostat))
        )
        self.max_surprise = 2 * params.mirostat_tau
        self.token_ids = list(self.spec.prompt_ids)
        self.num_prompt_tokens = len(self.token_ids)
        self.max_tokens = self.spec.params.max_tokens

    def enter(self, status: RequestStatus) -> None:
        """Change its state, and note how long it waited in the one before."""
        now, cause = time.monotonic(), _WAITS.get(self.status)
        if cause is not None:
            waits = self.stats.waits
            waits[cause] = waits.get(cause, 0.0) + now - self.entered_at
        self.status, self.entered_at = status, now

    @property
    def account(self) -> RequestAccount:
        """What it has cost so far. Given tokens of an earlier run count as prompt."""
        stats, num_given = self.stats, min(self.num_given, self.num_output_tokens)
        num_prompt = min(max(stats.num_reached_tokens, self.num_computed_tokens), self.num_prompt_tokens + num_given)
        account = RequestAccount(waits=dict(stats.waits))
        account.add_tokens(Tokens.PROMPT, num_prompt)
        account.add_tokens(Tokens.CACHED, min(stats.num_cached_tokens, num_prompt))
        account.add_tokens(Tokens.OUTPUT, self.num_output_tokens - num_given)
        for num_drafted, num_accepted in stats.drafts.values():
            account.add_tokens(Tokens.DRAFTED, num_drafted)
            account.add_tokens(Tokens.ACCEPTED, num_accepted)
        account.add_work(WorkKind.STEPS, stats.step_s)
        return account

    @property
    def num_kv_tokens(self) -> int:
        """Number of tokens whose K and V are in pages. Those after `num_computed_tokens` are computed again for their states."""
        return self.num_computed_tokens if self.states is None else self.states.num_kv_tokens

    @property
    def is_awaiting_state(self) -> bool:
        """Whether a running request has yet to compute the state that it waits for."""
        if self.awaited is None:
            return False
        other, position = self.awaited
        return other.status is RequestStatus.RUNNING and other.num_computed_tokens < position

    @property
    def is_replaying_drafts(self) -> bool:
        """Whether one token is missing besides a few whose K and V are there: accepted drafts, whose states were not kept."""
        if self.states is None:
            return False
        num_known = self.states.num_kv_tokens
        return self.num_target_tokens - num_known == 1 and num_known - self.num_computed_tokens <= MAX_REPLAYED_DRAFTS

    @property
    def num_output_tokens(self) -> int:
        return len(self.token_ids) - self.num_prompt_tokens

    @property
    def output_token_ids(self) -> list[int]:
        return self.token_ids[self.num_prompt_tokens :]

    @property
    def has_limited_thought(self) -> bool:
        """Whether its text is free but for its thought, so that it has a session only until that ends."""
        return self.spec.constraint is None and self.spec.params.max_thought_tokens is not None

    @property
    def num_target_tokens(self) -> int:
        """Number of tokens that need K and V before the next token (or the last score) is available."""
        return len(self.token_ids) - 1 if self.spec.score_only else len(self.token_ids) + self.pending.num_tokens

    @property
    def next_score(self) -> int | None:
        """Index of the next prompt token to score; None if none is left."""
        if self.spec.score_from is None:
            return None
        index = self.spec.score_from + len(self.results.scores) + self.pending.num_scores
        return index if index < self.num_scorable_tokens else None

    @property
    def num_scorable_tokens(self) -> int:
        """Number of leading tokens that can be scored: the prompt, and given output tokens whose log-probabilities are wanted."""
        return self.num_prompt_tokens + (len(self.spec.given_ids) if self.spec.params.logprobs is not None else 0)

    @property
    def num_score_top(self) -> int:
        """Number of most likely tokens to compute with each score."""
        wanted = self.spec.params.prompt_logprobs or 0
        return max(wanted, self.spec.params.logprobs or 0) if self.spec.given_ids else wanted

    @property
    def prompt_scores(self) -> list[TokenLogprob]:
        """The scores of prompt tokens."""
        num_scores = self.num_prompt_tokens - (self.spec.score_from or 0)
        return _with_top(self.results.scores[:num_scores], self.spec.params.prompt_logprobs or 0)

    def take_given_logprobs(self) -> None:
        """Move on from the scores of the given output tokens to the log-probabilities of the output, once all are there."""
        if self.spec.given_ids and self.spec.score_from is not None and not self.results.logprobs:
            start = self.num_prompt_tokens - self.spec.score_from
            if len(self.results.scores) == start + len(self.spec.given_ids):
                self.results.logprobs = _with_top(self.results.scores[start:], self.spec.params.logprobs or 0)

    @property
    def is_ending(self) -> bool:
        """Whether its last token is sampled but not yet seen by the host."""
        return self.pending.num_tokens > 0 and self.num_output_tokens + self.pending.num_tokens >= self.max_tokens

    @property
    def is_awaiting_mask(self) -> bool:
        """Whether its constraint works outside the steps, on its last token or its next mask; the request sits out steps until then."""
        session = self.session
        return self.late is not None or (session is not None and session.is_preparing)

    @property
    def is_constraint_busy(self) -> bool:
        """Whether another thread works on its constraint."""
        return self.session is not None and self.session.is_preparing

    @property
    def match_limit(self) -> int:
        """Maximum number of tokens taken from the cache; the rest must be computed for their logits."""
        index, end = self.next_score, len(self.token_ids) - self.spec.score_only
        return min(end, index if index is not None else end) - 1

    def bans_after(self, num_more: int) -> tuple[int, ...]:
        """Tokens that must not be sampled after `num_more` further tokens: `first_banned_ids`, and those that would end the text before
        min_tokens. For a request with a session and min_tokens left, only after none.
        """
        num_output = self.num_output_tokens + self.pending.num_tokens + num_more
        if num_output == 0 and self.spec.first_banned_ids:
            return self.spec.first_banned_ids  # end tokens are among them
        if num_output >= self.spec.params.min_tokens:
            return ()
        session = self.session
        assert not num_more or session is None, "a session must have taken the tokens before"
        if session is None:
            return tuple(self.stop_ids)
        return tuple(each for each in self.stop_ids & self.eos_ids if not session.takes(each))  # others are text

    @property
    def may_draft(self) -> bool:
        """Whether its next tokens may be drafted: it needs a sample and no scores, and its masks are quick and alone decide the bans.

        Logits processors may have a state, so they see each token of the text once, and no draft.
        """
        session = self.session
        params = self.spec.params
        if self.spec.score_only or self.next_score is not None or params.x_fault is not None:
            return False
        if params.mirostat or params.logits_processors:
            return False
        return session is None or (self.num_output_tokens >= params.min_tokens and session.may_draft)


def _with_top(scores: Sequence[TokenLogprob], num_top: int) -> list[TokenLogprob]:
    return [score if len(score.top) <= num_top else replace(score, top=score.top[:num_top]) for score in scores]
