"""One forward pass in plain integers: the contract between the engine, which schedules, and the model, which computes.

Rows and results are named tuples, since there are some for every token: a `Row` takes 1.6 us to build and 1.4 us to copy with a change; a
frozen dataclass takes 4.3 and 10.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from rtlang.contract.errors import RtlangError
from rtlang.contract.events import TokenLogprob
from rtlang.contract.params import SamplingParams


class TokenRule(Protocol):
    """A rule of one request about its next token: a pure function of the prompt, which the rule knows, and of the output so far."""

    def biases(self, output_token_ids: Sequence[int]) -> Mapping[int, float]:
        """The tokens concerned, and what is added to the logit of each; -inf where the token must not be sampled."""
        ...


@dataclass(frozen=True, slots=True)
class LogitFilters:
    """What a request asks for beside penalties, bias, temperature, top-k, top-p and min-p.

    Attributes:
        rules: their biases are added to the logits.
        allowed_token_ids: the only tokens that may be sampled; None for all.
        truncates: whether the row's parameters have filters of `rtlang.model.filters`.
    """

    rules: tuple[TokenRule, ...] = ()
    allowed_token_ids: tuple[int, ...] | None = None
    truncates: bool = False


class RowStates(NamedTuple):
    """The state slots that a row reads and writes; see docs/design/states.md.

    A step writes no slot twice, and no slot that is the source of another of its rows.

    Attributes:
        source: slot of the state before the row's first token; None at the start of a sequence.
        marks: (number of tokens of the row, slot), ascending: the slot gets the state after so many tokens. The last mark lies before the
            row's drafts.
    """

    source: int | None
    marks: tuple[tuple[int, int], ...]


class Row(NamedTuple):
    """One request's row in a step.

    Attributes:
        request_id: id of the request.
        token_ids: tokens to compute in this step; at least one. The last `num_draft_tokens` of them are drafts.
        num_computed_tokens: number of tokens already computed; the position of token_ids[0].
        page_ids: pages of the sequence up to and including these tokens. Token t is stored in page_ids[t // page_size].
        num_shared_tokens: number of leading tokens, in whole pages, shared with the previous row. Rows come in tree order, so this
            describes sharing at every depth.
        needs_sample: whether a token is sampled from the logits of the last token that is no draft, and one after each draft.
        params: the sampling parameters.
        seed, choice, num_output_tokens: the noise key of the first sampled token; the number grows by one for each further one.
        mask_row: the first of the row's `num_sampled` rows of the step's bitmask; None if every token is allowed.
        banned_token_ids: tokens that must not be sampled (end tokens before min_tokens).
        draft_bans: the same after each draft; empty if nothing is banned there.
        prompt_token_ids, output_token_ids: history for penalties, without the drafts; empty if no penalty is set. The output is there for
            the rules of `filters`, too.
        score_offset, score_token_ids: score_token_ids[i] is scored under the logits of token_ids[score_offset + i].
        num_score_top: number of most likely tokens to report with each score.
        input_is_pending: token_ids[-1] is not known yet: it is the token that the previously launched step samples for this request.
        num_draft_tokens: tokens at the end of `token_ids` that are only expected to follow. A row with scores has none.
        filters: of the sampled tokens; None for a row with none.
        max_surprise: the limit that Mirostat has learned, in bits; a row with it has no drafts, whose surprise it would depend on.
        states: its slots, for a model with recurrent layers; None for others.
        num_replayed_tokens: leading tokens whose K and V are in the pages already. They are computed again for their states and outputs,
            and their K and V are not written.
        temperatures: for each sampled token the temperature that its grammar sets in place of that of `params`; None where it sets none.
            Empty if it sets none at all.
    """

    request_id: int
    token_ids: Sequence[int]
    num_computed_tokens: int
    page_ids: Sequence[int]
    num_shared_tokens: int
    needs_sample: bool
    params: SamplingParams
    seed: int = 0
    choice: int = 0
    num_output_tokens: int = 0
    mask_row: int | None = None
    banned_token_ids: tuple[int, ...] = ()
    prompt_token_ids: Sequence[int] = ()
    output_token_ids: Sequence[int] = ()
    score_offset: int = 0
    score_token_ids: Sequence[int] = ()
    num_score_top: int = 0
    input_is_pending: bool = False
    num_draft_tokens: int = 0
    draft_bans: tuple[tuple[int, ...], ...] = ()
    filters: LogitFilters | None = None
    max_surprise: float = 0.0
    states: RowStates | None = None
    num_replayed_tokens: int = 0
    temperatures: tuple[float | None, ...] = ()

    @property
    def temperature(self) -> float:
        """The temperature of the first sampled token."""
        own = self.temperatures[0] if self.temperatures else None
        return self.params.temperature if own is None else own

    @property
    def num_sampled(self) -> int:
        """Number of tokens sampled for the row."""
        return self.num_draft_tokens + 1 if self.needs_sample else 0

    @property
    def draft_token_ids(self) -> Sequence[int]:
        """The drafts."""
        return self.token_ids[len(self.token_ids) - self.num_draft_tokens :]

    def sampled_after(self, num_drafts: int) -> Row:
        """The row after its first `num_drafts` drafts, as if they were output tokens: with noise key, mask, bans, history, temperature."""
        if not num_drafts:
            return self
        has_history = bool(self.prompt_token_ids) or (self.filters is not None and bool(self.filters.rules))
        return self._replace(
            num_output_tokens=self.num_output_tokens + num_drafts,
            mask_row=None if self.mask_row is None else self.mask_row + num_drafts,
            banned_token_ids=self.draft_bans[num_drafts - 1] if self.draft_bans else (),
            output_token_ids=(
                [*self.output_token_ids, *self.draft_token_ids[:num_drafts]] if has_history else self.output_token_ids
            ),
            temperatures=self.temperatures[num_drafts:],
        )


@dataclass(frozen=True, slots=True)
class Step:
    """One forward pass: `copies` (source page, destination page) come first, then all rows are computed together."""

    step_id: int
    rows: tuple[Row, ...]
    copies: tuple[tuple[int, int], ...] = ()
    num_mask_rows: int = 0


class SampledToken(NamedTuple):
    """One sampled token.

    Attributes:
        logprob: its log-probability with params.logprobs top entries; None if params.logprobs is None.
        distortion: -log of the probability of the tokens that the mask allowed; None if params.distortion is False or it is not known.
        surprise: -log2 of its probability among the tokens that the filters left; None without Mirostat.
    """

    token_id: int
    logprob: TokenLogprob | None = None
    distortion: float | None = None
    surprise: float | None = None


class SampledRow(NamedTuple):
    """The result of a row; same index as the row.

    Attributes:
        tokens: the sampled tokens: the first, and one after each draft. Each one counts only if all drafts before it turn out right. Fewer
            if the logits after some draft contain NaN, or no allowed token has a finite logit there; such a place is computed again
            without a draft. Empty if the row needs no sample or `is_finite` is False.
        scores: one entry per score_token_ids.
        is_finite: False if this holds for the first sampled token, or a score is not finite; fails that request alone.
        error: of one of its logits processors, or of the script of a scripted model; fails that request alone.
        is_lost: the device could not make the mask of this row; nothing was sampled yet, see `Runner.sample_again`.
    """

    tokens: tuple[SampledToken, ...] = ()
    scores: tuple[TokenLogprob, ...] = ()
    is_finite: bool = True
    error: RtlangError | None = None
    is_lost: bool = False

    @property
    def token_id(self) -> int | None:
        """The first sampled token."""
        return self.tokens[0].token_id if self.tokens else None

    @property
    def logprob(self) -> TokenLogprob | None:
        """The log-probability of the first sampled token."""
        return self.tokens[0].logprob if self.tokens else None


@dataclass(frozen=True, slots=True)
class StepOutput:
    """The results of a step's rows, in row order.

    Attributes:
        device_s: seconds from the beginning of the step on the device to its end, without the steps before it; None on the host.
    """

    step_id: int
    rows: tuple[SampledRow, ...] = field(default=())
    device_s: float | None = None
