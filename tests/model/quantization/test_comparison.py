"""Differences of predictions: against sums over the vocabulary, and of a model with itself."""

from __future__ import annotations

import math

import pytest
import torch

from rtlang.contract.config import EMBEDDED_MODEL
from rtlang.model.quantization.comparison import compared, compared_logits, difference


def test_the_figures_are_their_definitions() -> None:
    ours, theirs = (torch.randn(4, 5, generator=torch.Generator().manual_seed(seed)).log_softmax(-1) for seed in (1, 2))
    token_ids = [0, 3, 1, 4]
    found = compared(ours, theirs, token_ids)
    divergence = agreement = 0.0
    losses = [0.0, 0.0]
    for place in range(4):
        p, q = theirs[place].exp().tolist(), ours[place].exp().tolist()
        divergence += sum(a * math.log(a / b) for a, b in zip(p, q, strict=True)) / 4
        agreement += (p.index(max(p)) == q.index(max(q))) / 4
        if place < 3:
            losses[0] -= math.log(q[token_ids[place + 1]]) / 3
            losses[1] -= math.log(p[token_ids[place + 1]]) / 3
    assert found.divergence == pytest.approx(divergence, rel=1e-5)
    assert found.agreement == agreement
    assert found.perplexity == pytest.approx(math.exp(losses[0]), rel=1e-5)
    assert found.other_perplexity == pytest.approx(math.exp(losses[1]), rel=1e-5)
    assert found.num_tokens == 4


def test_a_model_agrees_with_itself() -> None:
    found = difference(EMBEDDED_MODEL, EMBEDDED_MODEL, list(range(40, 80)))
    assert found.divergence == 0.0
    assert found.agreement == 1.0
    assert found.perplexity == found.other_perplexity > 1.0


def test_logits_of_another_program_may_be_padded_and_shifted() -> None:
    ours = torch.randn(5, 7, generator=torch.Generator().manual_seed(1))
    theirs = torch.cat([ours + 3.0, torch.full((5, 2), 9.0)], dim=1).numpy()
    found = compared_logits(ours, theirs, [1, 2, 3, 4, 5])
    assert abs(found.divergence) < 1e-6
    assert found.perplexity == pytest.approx(found.other_perplexity, rel=1e-6)
    assert compared_logits(ours, -theirs, [1, 2, 3, 4, 5]).divergence > 0.1
