"""The sampling options as keywords, for signatures of functions that take them.

Type checkers cannot take the keywords from the fields of `SamplingParams`; here they have the forms in which they are accepted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypedDict

from rtlang.contract.params import LogitsProcessor


class SamplingKeywords(TypedDict, total=False):
    """The options of one generation besides `max_tokens` and `n`; None leaves an option as it is."""

    min_tokens: int | None
    stop: str | Iterable[str] | None
    stop_token_ids: Iterable[int] | None
    stop_regex: str | re.Pattern[str] | Iterable[str | re.Pattern[str]] | None
    temperature: float | None
    top_k: int | None
    top_p: float | None
    min_p: float | None
    presence_penalty: float | None
    frequency_penalty: float | None
    repetition_penalty: float | None
    bad_words: str | Iterable[str] | None
    allowed_token_ids: Iterable[int] | None
    no_repeat_ngram_size: int | None
    typical_p: float | None
    top_n_sigma: float | None
    xtc_probability: float | None
    xtc_threshold: float | None
    dry_multiplier: float | None
    dry_base: float | None
    dry_allowed_length: int | None
    dry_sequence_breakers: str | Iterable[str] | None
    dry_range: int | None
    mirostat: int | None
    mirostat_tau: float | None
    mirostat_eta: float | None
    dynatemp_range: float | None
    dynatemp_exponent: float | None
    logit_bias: Mapping[int, float] | Iterable[tuple[int, float]] | None
    seed: int | None
    logprobs: int | None
    prompt_logprobs: int | None
    ignore_eos: bool | None
    include_stop_str_in_output: bool | None
    truncate_prompt_tokens: int | None
    logits_processors: Iterable[LogitsProcessor] | None
    priority: int | None
    deadline_s: float | None
    max_retries: int | None
    token_healing: bool | None
    distortion: bool | None


SAMPLING_KEYWORDS = frozenset(SamplingKeywords.__annotations__)
