"""Sampling options: names and defaults of the OpenAI API, the extensions of other servers, and errors that name the field."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang.contract.errors import ParameterError
from rtlang.contract.params import SamplingParams
from rtlang.serve.openai.sampling import FIELDS, read_max_tokens, read_priority, read_sampling


def test_the_defaults_are_those_of_the_api() -> None:
    assert read_sampling({}, 7) == SamplingParams(max_tokens=7, temperature=1.0)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"stop": "a"}, {"stop": ("a",)}),
        ({"stop": []}, {}),
        ({"seed": -1}, {"seed": (1 << 64) - 1}),
        ({"top_k": -1}, {"top_k": 0}),
        ({"logit_bias": {"5": -100, "7": 1.5}}, {"logit_bias": ((5, -100), (7, 1.5))}),
        ({"n": 3, "top_p": 0.5, "frequency_penalty": 1}, {"n": 3, "top_p": 0.5, "frequency_penalty": 1}),
        (
            {"temperature": 0, "min_p": 0.1, "repetition_penalty": 1.2},
            {"temperature": 0, "min_p": 0.1, "repetition_penalty": 1.2},
        ),
        (
            {"min_tokens": 2, "stop_token_ids": [1], "ignore_eos": True},
            {"min_tokens": 2, "stop_token_ids": (1,), "ignore_eos": True},
        ),
        (
            {"bad_words": ["a"], "allowed_token_ids": [3, 4], "no_repeat_ngram_size": 3, "typical_p": 0.9},
            {"bad_words": ("a",), "allowed_token_ids": (3, 4), "no_repeat_ngram_size": 3, "typical_p": 0.9},
        ),
        ({"bad_words": [], "top_n_sigma": -1, "mirostat": 0}, {}),
        (
            {"top_n_sigma": 1.5, "xtc_probability": 0.5, "xtc_threshold": 0.2, "dynatemp_range": 0.3},
            {"top_n_sigma": 1.5, "xtc_probability": 0.5, "xtc_threshold": 0.2, "dynatemp_range": 0.3},
        ),
        (
            {"mirostat": 2, "mirostat_tau": 4, "mirostat_eta": 0.2, "dynatemp_exponent": 2},
            {"mirostat": 2, "mirostat_tau": 4, "mirostat_eta": 0.2, "dynatemp_exponent": 2},
        ),
        (
            {"dry_multiplier": 0.8, "dry_base": 2, "dry_allowed_length": 3, "dry_sequence_breakers": ["x"]},
            {"dry_multiplier": 0.8, "dry_base": 2, "dry_allowed_length": 3, "dry_sequence_breakers": ("x",)},
        ),
        ({"dry_multiplier": 0.8, "dry_penalty_last_n": -1}, {"dry_multiplier": 0.8}),
        ({"dry_multiplier": 0.8, "dry_penalty_last_n": 64}, {"dry_multiplier": 0.8, "dry_range": 64}),
        ({"dry_multiplier": 0.8, "dry_range": 64}, {"dry_multiplier": 0.8, "dry_range": 64}),
        ({"dry_multiplier": 0.8, "dry_penalty_last_n": 0}, {}),
    ],
)
def test_options_are_read(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert given.keys() <= FIELDS
    assert read_sampling(given, 7) == SamplingParams(**{"max_tokens": 7, "temperature": 1.0} | expected)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"n": 0}, "n"),
        ({"temperature": -1}, "temperature"),
        ({"seed": 1.5}, "seed"),
        ({"seed": 1 << 64}, "seed"),
        ({"logit_bias": {"x": 1}}, "logit_bias"),
        ({"logit_bias": [1]}, "logit_bias"),
        ({"logit_bias": {"1": "2"}}, "logit_bias"),
        ({"stop": [""]}, "stop"),
        ({"top_p": 0}, "top_p"),
        ({"allowed_token_ids": []}, "allowed_token_ids"),
        ({"bad_words": [""]}, "bad_words"),
        ({"mirostat": 1}, "mirostat"),
        ({"mirostat": 2, "temperature": 0}, "mirostat"),
        ({"xtc_probability": 2}, "xtc_probability"),
        ({"dry_penalty_last_n": -2}, "dry_penalty_last_n"),
        ({"dry_penalty_last_n": 5, "dry_range": 5}, "dry_penalty_last_n"),
    ],
)
def test_an_invalid_option_is_named(given: dict[str, Any], field: str) -> None:
    with pytest.raises(ParameterError) as caught:
        read_sampling(given, 7)
    assert caught.value.field == field


def test_max_tokens_has_two_names_that_must_agree() -> None:
    names = ("max_completion_tokens", "max_tokens")
    assert read_max_tokens({}, *names, default=9) == 9
    assert read_max_tokens({"max_tokens": 3}, *names, default=9) == 3
    assert read_max_tokens({"max_tokens": 3, "max_completion_tokens": 3}, *names, default=9) == 3
    with pytest.raises(ParameterError, match="differs"):
        read_max_tokens({"max_tokens": 3, "max_completion_tokens": 4}, *names, default=9)
    for value in (0, "3", True):
        with pytest.raises(ParameterError):
            read_max_tokens({"max_tokens": value}, *names, default=9)


def test_a_priority_is_an_integer() -> None:
    assert (read_priority({}), read_priority({"priority": -3})) == (0, -3)
    with pytest.raises(ParameterError):
        read_priority({"priority": "high"})
