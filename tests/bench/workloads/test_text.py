"""Texts have the number of tokens that was asked for."""

from __future__ import annotations

import pytest

from rtlang.bench.workloads.text import Encoder, TextMaker
from tests.support.engine.encoders import Bytes, Words


@pytest.mark.parametrize("encoder", [Words(), Bytes()], ids=["words", "bytes"])
@pytest.mark.parametrize("num_tokens", [1, 2, 7, 48, 333])
def test_text_has_the_wanted_number_of_tokens(encoder: Encoder, num_tokens: int) -> None:
    maker = TextMaker(encoder, seed=3)
    assert len(encoder.encode(maker.text(num_tokens), is_start=False)) == num_tokens
    started = maker.text(num_tokens + 1, is_start=True)
    assert len(encoder.start_ids()) + len(encoder.encode(started, is_start=True)) == num_tokens + 1


def test_a_length_that_no_text_has_is_refused() -> None:
    with pytest.raises(ValueError, match="0 tokens"):
        TextMaker(Bytes(), seed=0).text(0, is_start=True)
