"""The keywords are the fields of the sampling parameters, but for those that only other layers set."""

from __future__ import annotations

from dataclasses import fields

from rtlang.contract.params import SamplingParams
from rtlang.contract.sampling_keywords import SAMPLING_KEYWORDS

SET_ELSEWHERE = {"best_of", "x_fault", "thought_marks", "max_thought_tokens", "shows_special", "keeps_invalid"}


def test_the_keywords_are_the_fields() -> None:
    names = {item.name for item in fields(SamplingParams)}
    assert names - SET_ELSEWHERE == SAMPLING_KEYWORDS | {"max_tokens", "n"}
