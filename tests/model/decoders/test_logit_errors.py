"""Errors of logits by definition, and nudges against the spacing of floats."""

from __future__ import annotations

import pytest
import torch

from rtlang.model.decoders.logit_errors import nudged, relative_errors


def test_an_error_is_relative_to_the_spread_of_a_token_and_not_to_its_mean() -> None:
    expected = torch.tensor([[1.0, -1.0, 0.0], [3.0, 3.0, 3.0]])
    logits = expected + torch.tensor([[0.3, 0.0, 0.4], [0.0, 0.0, 0.0]])
    errors = relative_errors(logits + 100, expected + 100)
    torch.testing.assert_close(errors, torch.tensor([0.5 / 2**0.5, 0.0]), rtol=1e-4, atol=1e-5)
    assert bool(relative_errors(torch.full((1, 3), torch.nan), expected[:1]).isnan())


@pytest.mark.parametrize(("dtype", "amount"), [(torch.float32, 2e-6), (torch.bfloat16, 2.0**-7)], ids=str)
def test_nudges_change_most_lanes_by_at_most_their_amount(dtype: torch.dtype, amount: float) -> None:
    embeddings = torch.randn(1, 8, 64, generator=torch.Generator().manual_seed(0)).to(dtype)
    found = nudged(embeddings, amount)
    assert found.dtype is dtype
    changes = ((found.double() - embeddings.double()) / embeddings.double()).abs()
    assert float(changes.max()) <= amount * 2
    assert 0.5 < float((changes > 0).float().mean()) < 0.8  # a third of the signs is 0
