"""Sampling options of the OpenAI API, with the extensions that other servers have, as `SamplingParams`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.contract.params import MAX_MAX_TOKENS, MAX_PRIORITY, SamplingParams
from rtlang.serve.openai.fields import read_int

SAME_NAME = (
    "n",
    "stop",
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "top_k",
    "min_p",
    "repetition_penalty",
    "min_tokens",
    "stop_token_ids",
    "ignore_eos",
    "include_stop_str_in_output",
    "truncate_prompt_tokens",
)
FILTERS = (
    "bad_words",
    "allowed_token_ids",
    "no_repeat_ngram_size",
    "typical_p",
    "top_n_sigma",
    "xtc_probability",
    "xtc_threshold",
    "dry_multiplier",
    "dry_base",
    "dry_allowed_length",
    "dry_sequence_breakers",
    "dry_range",
    "mirostat",
    "mirostat_tau",
    "mirostat_eta",
    "dynatemp_range",
    "dynatemp_exponent",
)
"""Filters by the names that vLLM, transformers and llama.cpp have for them, which are those of `SamplingParams`."""
_DRY_LAST = "dry_penalty_last_n"  # how llama.cpp writes dry_range: -1 for all tokens, 0 for none
FILTER_FIELDS = frozenset((*FILTERS, _DRY_LAST))
"""The fields that `read_filters` reads."""
FIELDS = frozenset((*SAME_NAME, *FILTER_FIELDS, "seed", "logit_bias", "max_tokens", "priority"))
"""The fields that `read_sampling`, `read_max_tokens` and `read_priority` read."""
FIXED: dict[str, tuple[Any, ...]] = {
    "skip_special_tokens": (True,),
    "spaces_between_special_tokens": (True,),
    "use_beam_search": (False,),
    "length_penalty": (1.0, 1),
    "early_stopping": (False,),
    "detokenize": (True,),
    "return_tokens_as_token_ids": (False,),
    "add_special_tokens": (True,),
    "logits_processors": ([],),
}
_DEFAULT_TEMPERATURE = 1.0


def read_sampling(given: Mapping[str, Any], max_tokens: int, **more: Any) -> SamplingParams:
    """The sampling parameters of a request.

    Args:
        given: the accepted fields of the body.
        max_tokens: the maximum number of tokens.
        more: parameters that the route determines; these win over the fields.
    Raises:
        ParameterError: an option is invalid; names it.
    """
    options: dict[str, Any] = {"temperature": _DEFAULT_TEMPERATURE, "max_tokens": max_tokens}
    options |= {name: given[name] for name in SAME_NAME if name in given} | read_filters(given)
    if options.get("stop") == []:
        del options["stop"]
    if options.get("top_k") == -1:  # how other servers write "all"
        options["top_k"] = 0
    if "seed" in given:
        seed = read_int(given, "seed", -(1 << 63), (1 << 64) - 1)
        assert seed is not None
        options["seed"] = seed & ((1 << 64) - 1)
    if "logit_bias" in given:
        options["logit_bias"] = read_biases(given["logit_bias"])
    if options.get("min_tokens", 0) == 0:
        options.pop("min_tokens", None)
    return SamplingParams(**options | more)


def read_filters(given: Mapping[str, Any]) -> dict[str, Any]:
    """The filters of a request, as options of `SamplingParams`, which checks them.

    Raises:
        ParameterError: the number of tokens in which DRY looks for repetitions is given twice, or invalid; names it.
    """
    options = {name: given[name] for name in FILTERS if name in given}
    if options.get("top_n_sigma") == -1:  # how llama.cpp writes "all"
        options["top_n_sigma"] = 0.0
    last = read_int(given, _DRY_LAST, -1, MAX_MAX_TOKENS)
    if last is not None:
        if "dry_range" in options:
            raise ParameterError(_DRY_LAST, last, "expected only one of dry_penalty_last_n and dry_range")
        if last == 0:
            options.pop("dry_multiplier", None)
        options["dry_range"] = max(0, last)
    return options


def read_priority(given: Mapping[str, Any]) -> int:
    """The priority of a request; lower is served first."""
    return read_int(given, "priority", -MAX_PRIORITY, MAX_PRIORITY, 0) or 0


def read_max_tokens(given: Mapping[str, Any], *names: str, default: int, low: int = 1) -> int:
    """The maximum number of tokens, which may be given under one of several names."""
    named = [name for name in names if name in given]
    if len({given[name] for name in named if isinstance(given[name], int)}) > 1:
        raise ParameterError(named[1], given[named[1]], f"differs from {named[0]}; give one of them")
    if not named:
        return default
    found = read_int(given, named[0], low, MAX_MAX_TOKENS)
    assert found is not None
    return found


def read_biases(given: Any) -> list[tuple[int, float]]:
    """The biases of a map from token ids, as texts, to numbers.

    Raises:
        ParameterError: it is not a map, or a key is no token id.
    """
    if not isinstance(given, Mapping):
        raise ParameterError("logit_bias", given, "expected an object of token ids and biases")
    biases = []
    for token, bias in given.items():
        if not (token.isascii() and token.isdecimal() and len(token) <= 10):
            raise ParameterError("logit_bias", token, "expected token ids as keys")
        biases.append((int(token), bias))
    return biases
