"""One forward pass in plain integers: the contract between deciding (engine) and computing (model)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rtlang.contract.events import TokenLogprob
from rtlang.contract.params import SamplingParams


@dataclass(frozen=True, slots=True)
class Row:
    """One request's part in a step.

    Attributes:
        request_id: whose row this is.
        token_ids: tokens to compute now; at least one.
        num_computed_tokens: how many tokens of the sequence came before; the position of token_ids[0].
        page_ids: pages of the whole sequence so far, these tokens included. Token t lies in page_ids[t // page_size].
        num_shared_tokens: leading tokens, in whole pages, whose pages are the same as the previous row's. Rows come in tree order,
            so this describes sharing at every depth.
        samples: whether a token is drawn from the logits of the last token.
        params: the request's options.
        seed, choice, num_output_tokens: together the key of the noise of the token drawn now.
        mask_row: row of the step's bitmask, None where every token is allowed.
        banned_token_ids: tokens that must not be drawn now (end tokens below min_tokens).
        prompt_token_ids, output_token_ids: history for penalties; empty where no penalty needs it.
        score_offset, score_token_ids: the logits of token_ids[score_offset + i] are to be scored against score_token_ids[i].
        num_score_top: report that many likeliest tokens beside each score.
        input_is_pending: token_ids[-1] is not known yet: it is what the request drew in the step launched before. Only where steps overlap.
    """

    request_id: int
    token_ids: Sequence[int]
    num_computed_tokens: int
    page_ids: Sequence[int]
    num_shared_tokens: int
    samples: bool
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
    """One pass: first `copies` (source page, destination page) are done, then all rows are computed together."""

    step_id: int
    rows: tuple[Row, ...]
    copies: tuple[tuple[int, int], ...] = ()
    num_mask_rows: int = 0


@dataclass(frozen=True, slots=True)
class SampledRow:
    """What a step gave for one row, at the same index as the row.

    Attributes:
        token_id: the drawn token; None where the row does not sample or `is_finite` is False.
        logprob: its log-probability (with `top` as many as params.logprobs), where params.logprobs is not None.
        scores: one entry per score_token_ids.
        is_finite: False where the row's logits held NaN, or no allowed finite value; fails that request alone.
    """

    token_id: int | None = None
    logprob: TokenLogprob | None = None
    scores: tuple[TokenLogprob, ...] = ()
    is_finite: bool = True


@dataclass(frozen=True, slots=True)
class StepOutput:
    """The outputs of a step's rows, in row order."""

    step_id: int
    rows: tuple[SampledRow, ...] = field(default=())
