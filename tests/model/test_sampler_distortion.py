"""The probability that masks remove, against float64 softmax."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row
from rtlang.model.sampler import sample_tokens

VOCAB = 75  # no multiple of 32


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_it_is_the_log_of_the_allowed_probability_under_the_models_own_distribution(dtype: torch.dtype) -> None:
    rng = np.random.default_rng(3)
    logits = torch.from_numpy(rng.normal(0, 4, (6, VOCAB))).to(dtype)
    allowed = rng.random((6, VOCAB)) < 0.3
    allowed[:, 7] = True
    allowed[1] = True
    allowed[2] = False
    allowed[2, 70] = True
    words = np.zeros((6, 96), dtype=np.uint8)
    words[:, :VOCAB] = allowed
    words[:, VOCAB:] = 1  # bits beyond the vocabulary mean nothing
    bitmask = np.packbits(words, axis=1, bitorder="little").view(np.int32)
    options = [
        SamplingParams(distortion=True),
        SamplingParams(distortion=True, temperature=2.0, top_k=3),
        SamplingParams(distortion=True, logit_bias=((7, 5.0),)),
        SamplingParams(distortion=True, repetition_penalty=2.0),
        SamplingParams(),
        SamplingParams(distortion=True),
    ]
    rows = [
        Row(index, (1,), 0, (0,), 0, True, each, mask_row=index if index < 5 else None)
        for index, each in enumerate(options)
    ]
    found = [each.distortion for each in sample_tokens(logits, rows, bitmask)]
    probabilities = torch.softmax(logits.double(), dim=1).numpy()
    for index in range(4):
        expected = -np.log(probabilities[index][allowed[index]].sum())
        assert found[index] == pytest.approx(expected, abs=1e-12)
    assert found[1] == pytest.approx(0.0, abs=1e-12)
    assert found[4] is None
    assert found[5] == 0.0
