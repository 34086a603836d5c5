"""Repeated n-grams, against transformers."""

from __future__ import annotations

import math
import random

import pytest
import torch
from transformers import NoRepeatNGramLogitsProcessor

from rtlang.engine.token_rules.repeated_ngrams import RepeatedNgrams


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_the_tokens_that_would_repeat_an_ngram_are_those_of_transformers(size: int) -> None:
    rng = random.Random(size)
    num_banned = 0
    for _ in range(400):
        history = [rng.randrange(3) for _ in range(rng.randint(1, 60))]
        cut = rng.randint(0, len(history))
        processor = NoRepeatNGramLogitsProcessor(size)
        wanted = processor(torch.tensor([history]), torch.zeros(1, 3))[0]
        found = RepeatedNgrams(size, history[:cut]).biases(history[cut:])
        assert set(found.values()) <= {-math.inf}
        assert sorted(found) == torch.nonzero(wanted == -math.inf)[:, 0].tolist()
        num_banned += len(found)
    assert num_banned > 100
