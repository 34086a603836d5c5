"""The filters of a request, from its parameters, its prompt and the tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

from rtlang.contract.params import SamplingParams
from rtlang.contract.step import LogitFilters, TokenRule
from rtlang.engine.token_rules.bad_words import BadWords
from rtlang.engine.token_rules.dry import Dry, SequenceBreakers
from rtlang.engine.token_rules.repeated_ngrams import RepeatedNgrams
from rtlang.model.filters.truncation import is_truncated
from rtlang.model.text.tokenizer import Tokenizer


def filters_of(params: SamplingParams, prompt_token_ids: Sequence[int], tokenizer: Tokenizer) -> LogitFilters | None:
    """The filters that the parameters ask for; None if they ask for none."""
    rules: list[TokenRule] = []
    if params.bad_words:
        rules.append(_bad_words(params.bad_words, tokenizer))
    if params.no_repeat_ngram_size:
        rules.append(RepeatedNgrams(params.no_repeat_ngram_size, prompt_token_ids))
    if params.dry_multiplier:
        rules.append(Dry(params, prompt_token_ids, _sequence_breakers(params.dry_sequence_breakers, tokenizer)))
    truncates = is_truncated(params)
    if not rules and params.allowed_token_ids is None and not truncates:
        return None
    return LogitFilters(tuple(rules), params.allowed_token_ids, truncates)


# Requests of one program mostly have the same words, and to encode many of them takes milliseconds.


@lru_cache(maxsize=64)
def _bad_words(words: tuple[str, ...], tokenizer: Tokenizer) -> BadWords:
    return BadWords(words, partial(tokenizer.encode, is_start=False))


@lru_cache(maxsize=64)
def _sequence_breakers(texts: tuple[str, ...], tokenizer: Tokenizer) -> SequenceBreakers:
    def spelled(token_id: int) -> bytes:  # special tokens by their names
        return tokenizer.token_bytes(token_id) or tokenizer.token_name(token_id).encode()

    return SequenceBreakers(texts, spelled, partial(tokenizer.encode, is_start=False))
