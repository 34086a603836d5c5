"""The filters of a request, from its parameters, its prompt and the tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rtlang.contract.params import SamplingParams
from rtlang.contract.step import LogitFilters, TokenRule
from rtlang.engine.token_rules.bad_words import BadWords
from rtlang.engine.token_rules.dry import Dry, SequenceBreakers
from rtlang.engine.token_rules.repeated_ngrams import RepeatedNgrams
from rtlang.model.text.tokenizer import Tokenizer


def filters_of(params: SamplingParams, prompt_token_ids: Sequence[int], tokenizer: Tokenizer) -> LogitFilters | None:
    """The filters that the parameters ask for; None if they ask for none."""
    rules: list[TokenRule] = []
    encode = partial(tokenizer.encode, is_start=False)
    if params.bad_words:
        rules.append(BadWords(params.bad_words, encode))
    if params.no_repeat_ngram_size:
        rules.append(RepeatedNgrams(params.no_repeat_ngram_size, prompt_token_ids))
    if params.dry_multiplier:

        def spelled(token_id: int) -> bytes:  # special tokens by their names
            return tokenizer.token_bytes(token_id) or tokenizer.token_name(token_id).encode()

        breakers = SequenceBreakers(params.dry_sequence_breakers, spelled, encode)
        rules.append(Dry(params, prompt_token_ids, breakers))
    truncates = params.temperature > 0 and bool(
        params.typical_p < 1 or params.top_n_sigma or params.xtc_probability or params.mirostat or params.dynatemp_range
    )
    if not rules and params.allowed_token_ids is None and not truncates:
        return None
    return LogitFilters(tuple(rules), params.allowed_token_ids, truncates)
