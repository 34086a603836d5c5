"""One running sequence: what was asked, how far it is, and what it holds.

A request is a number of computed tokens catching up with a number of tokens; whether it is "in prefill" or "in decode" is not a state.
Computed tokens, pages and the place in the tree are written by the scheduler alone; the engine sets the session and appends what a step
gave (token ids, scores, log-probabilities).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from rtlang.cache.node import RadixNode
from rtlang.contract.errors import RtlangError
from rtlang.contract.events import TokenLogprob
from rtlang.contract.params import Constraint, FinishReason, SamplingParams
from rtlang.engine.constraints.session import ConstraintSession
from rtlang.engine.detokenizer import IncrementalDetokenizer


class RequestStatus(Enum):
    """Where a request stands."""

    COMPILING = auto()  # its constraint is being compiled; not yet in the queue
    WAITING = auto()
    RUNNING = auto()
    PREEMPTED = auto()  # waiting again; what it generated is kept
    FINISHED = auto()


@dataclass(slots=True)
class RequestOutput:
    """What one step brought for one request. The last one has a finish reason, and an error where the request failed."""

    request: Request
    text: str = ""
    token_ids: Sequence[int] = ()
    finish_reason: FinishReason | None = None
    error: RtlangError | None = None

    @property
    def is_last(self) -> bool:
        return self.finish_reason is not None or self.error is not None


@dataclass(slots=True, eq=False)
class Request:
    """A sequence to be continued, or (score_from set) one whose tokens are to be scored and nothing generated.

    Attributes:
        token_ids: prompt, then output; grows by sampled tokens.
        program_time, arrival_time: when its program and itself came, in seconds of the engine's clock.
        listener: gets every RequestOutput, the last one included; called from the thread that steps the engine.
        score_from: index of the first token whose log-probability is wanted; only the prompt is ever scored.
        generates: False for pure scoring.
        num_computed_tokens: tokens whose K and V are in pages.
        num_cached_tokens: of the prompt, taken from the prefix cache at first admission.
        num_pending_tokens, num_pending_scores: what launched steps will give and the host has not seen; 0 unless steps overlap.
        num_in_flight_tokens: of the computed tokens, those of launched steps whose results the host has not seen; likewise.
        node, num_tree_tokens: the deepest tree node this request holds a lock on, and how many tokens lie on its path.
        stop_ids: tokens that end the text.
    """

    request_id: int
    token_ids: list[int]
    params: SamplingParams
    listener: Callable[[RequestOutput], None]
    output_text: IncrementalDetokenizer
    constraint: Constraint | None = None
    seed: int = 0
    choice: int = 0
    priority: int = 0
    program_time: float = 0.0
    arrival_time: float = 0.0
    score_from: int | None = None
    generates: bool = True
    stop_ids: frozenset[int] = frozenset()
    eos_ids: frozenset[int] = frozenset()
    max_tokens: int = 0

    num_prompt_tokens: int = 0
    status: RequestStatus = RequestStatus.WAITING
    session: ConstraintSession | None = None
    num_computed_tokens: int = 0
    num_cached_tokens: int = 0
    num_pending_tokens: int = 0
    num_pending_scores: int = 0
    num_in_flight_tokens: int = 0
    page_ids: list[int] = field(default_factory=list)
    node: RadixNode | None = None
    num_tree_tokens: int = 0
    num_preemptions: int = 0
    scores: list[TokenLogprob] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    first_step_time: float | None = None
    output_stop: str | int | None = None

    def __post_init__(self) -> None:
        self.num_prompt_tokens = len(self.token_ids)
        self.max_tokens = self.params.max_tokens

    @property
    def num_output_tokens(self) -> int:
        return len(self.token_ids) - self.num_prompt_tokens

    @property
    def output_token_ids(self) -> list[int]:
        return self.token_ids[self.num_prompt_tokens :]

    @property
    def num_target_tokens(self) -> int:
        """How many tokens need K and V before the next token (or the last score) is there."""
        return len(self.token_ids) + self.num_pending_tokens if self.generates else len(self.token_ids) - 1

    @property
    def next_score(self) -> int | None:
        """Index of the next prompt token to be scored; None when none is left."""
        if self.score_from is None:
            return None
        index = self.score_from + len(self.scores) + self.num_pending_scores
        return index if index < self.num_prompt_tokens else None

    @property
    def is_ending(self) -> bool:
        """The last token that it may have is drawn, and the host has not seen it."""
        return self.num_pending_tokens > 0 and self.num_output_tokens + self.num_pending_tokens >= self.max_tokens

    @property
    def is_held(self) -> bool:
        """Its next mask is being made out of the steps: it takes part in none until then."""
        return self.session is not None and self.session.is_preparing

    @property
    def match_limit(self) -> int:
        """How many tokens may come from the cache: logits are needed after the others."""
        index = self.next_score
        return min(len(self.token_ids), index if index is not None else len(self.token_ids)) - 1

    @property
    def needs_history(self) -> bool:
        params = self.params
        return bool(params.presence_penalty or params.frequency_penalty or params.repetition_penalty != 1.0)

    @property
    def banned_token_ids(self) -> tuple[int, ...]:
        """Tokens that must not be drawn next: those that would end the text before min_tokens."""
        if self.num_output_tokens + self.num_pending_tokens < self.params.min_tokens:
            return tuple(self.stop_ids)
        return ()
