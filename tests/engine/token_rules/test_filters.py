"""Which options make which filters."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang.contract.params import SamplingParams
from rtlang.engine.token_rules.filters import filters_of
from tests.support.engine.fake_runner import FakeTokenizer

TOKENIZER: Any = FakeTokenizer()


def made(**options: Any) -> Any:
    return filters_of(SamplingParams(**options), [100, 101], TOKENIZER)


def test_ordinary_options_make_no_filters() -> None:
    assert made() is None
    assert made(temperature=0.8, top_k=5, top_p=0.9, min_p=0.1, repetition_penalty=1.2, logit_bias={3: 1.0}) is None
    assert made(dry_base=2.0, mirostat_tau=3.0, xtc_threshold=0.2) is None


@pytest.mark.parametrize("name", ["typical_p", "top_n_sigma"])
def test_without_a_temperature_truncation_changes_nothing(name: str) -> None:
    assert made(**{name: 0.5}) is None
    assert made(**{name: 0.5, "temperature": 1e-6}) is None  # the sampler takes the most likely token
    assert made(**{name: 0.5, "temperature": 0.5}).truncates


def test_each_option_makes_its_filter() -> None:
    assert made(allowed_token_ids=[5, 7]).allowed_token_ids == (5, 7)
    for options in ({"xtc_probability": 0.5}, {"mirostat": 2}, {"dynatemp_range": 0.5}):
        found = made(temperature=1.0, **options)
        assert found.truncates
        assert not found.rules
    found = made(bad_words="cat", no_repeat_ngram_size=3, dry_multiplier=0.8)
    assert len(found.rules) == 3
    assert found.rules[0] is made(bad_words="cat").rules[0], "encoded once"
    assert not found.truncates
