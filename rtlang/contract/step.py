"""One forward pass in plain integers: the contract between the engine, which schedules, and the model, which computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rtlang.contract.events import TokenLogprob
from rtlang.contract.params import SamplingParams


@dataclass(frozen=True, slots=True)
class Row:
    """One request's row in a step.

    Attributes:
        request_id: id of the request.
        token_ids: tokens to compute in this step; at least one.
        num_computed_tokens: number of tokens already computed; the position of token_ids[0].
        page_ids: pages of the sequence up to and including these tokens. Token t is stored in page_ids[t // page_size].
        num_shared_tokens: number of leading tokens, in whole pages, shared with the previous row. Rows come in tree order, so this
            describes sharing at every depth.
        needs_sample: whether a token is sampled from the logits of the last token.
        params: the sampling parameters.
        seed, choice, num_output_tokens: the noise key of the sampled token.
        mask_row: row of the step's bitmask; None if every token is allowed.
        banned_token_ids: tokens that must not be sampled (end tokens before min_tokens).
        prompt_token_ids, output_token_ids: history for penalties; empty if no penalty is set.
        score_offset, score_token_ids: score_token_ids[i] is scored under the logits of token_ids[score_offset + i].
        num_score_top: number of most likely tokens to report with each score.
        input_is_pending: token_ids[-1] is not known yet: it is the token that the previously launched step samples for this request.
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


@dataclass(frozen=True, slots=True)
class Step:
    """One forward pass: `copies` (source page, destination page) come first, then all rows are computed together."""

    step_id: int
    rows: tuple[Row, ...]
    copies: tuple[tuple[int, int], ...] = ()
    num_mask_rows: int = 0


@dataclass(frozen=True, slots=True)
class SampledRow:
    """The result of a row; same index as the row.

    Attributes:
        token_id: the sampled token; None if the row needs no sample or `is_finite` is False.
        logprob: its log-probability with params.logprobs top entries; None if params.logprobs is None.
        scores: one entry per score_token_ids.
        distortion: -log of the probability of the tokens that the mask allowed; None if params.distortion is False or it is not known.
        is_finite: False if the logits contain NaN or no allowed token has a finite logit; fails that request alone.
    """

    token_id: int | None = None
    logprob: TokenLogprob | None = None
    scores: tuple[TokenLogprob, ...] = ()
    is_finite: bool = True
    distortion: float | None = None


@dataclass(frozen=True, slots=True)
class StepOutput:
    """The results of a step's rows, in row order."""

    step_id: int
    rows: tuple[SampledRow, ...] = field(default=())
