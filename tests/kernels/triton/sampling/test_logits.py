"""GPU log-probabilities, masks and penalties against float64 and the reference."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rtlang_kernels import ops
from rtlang_kernels.triton.sampling import logits as logits_ops
from tests.support.kernels.attention_cases import use_backend
from tests.support.kernels.gpu import DEVICE


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several chunks for a small vocabulary."""
    monkeypatch.setattr(logits_ops, "CHUNK", 128)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("num_top", [0, 5, 70])
def test_logprobs_are_the_log_softmax(dtype: torch.dtype, num_top: int) -> None:
    logits = (torch.randn(4, 300, generator=torch.Generator().manual_seed(5)) * 4).to(dtype)
    logits[0, 7] = logits[0, 230] = 19.0
    logits[1, 150:] = float("-inf")
    token_ids = torch.tensor([3, 0, 299, 128])
    with use_backend("triton"):
        chosen, top_ids, top_values = ops.logprobs(logits.to(DEVICE), token_ids, num_top)
    want = torch.log_softmax(logits.double(), dim=-1)
    torch.testing.assert_close(chosen.cpu().double(), want[torch.arange(4), token_ids], atol=1e-5, rtol=1e-6)
    with use_backend("reference"):
        _, want_ids, _ = ops.logprobs(logits, token_ids, num_top)
    assert torch.equal(top_ids.cpu(), want_ids)
    torch.testing.assert_close(top_values.cpu().double(), want.gather(1, want_ids), atol=1e-5, rtol=1e-6)


@pytest.mark.filterwarnings(
    "ignore:(invalid value|divide by zero):RuntimeWarning"
)  # numpy warns in the interpreter at the first NaN
def test_logprobs_of_an_invalid_row_are_nan() -> None:
    logits = torch.zeros(4, 300)
    logits[0, 200], logits[1, 200], logits[2] = float("nan"), float("inf"), float("-inf")
    with use_backend("triton"):
        chosen, _, _ = ops.logprobs(logits.to(DEVICE), torch.zeros(4, dtype=torch.int64), 0)
    assert torch.isnan(chosen).tolist() == [True, True, True, False]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_masks_change_forbidden_logits_only(dtype: torch.dtype) -> None:
    logits = torch.randn(3, 333, generator=torch.Generator().manual_seed(1)).to(dtype)
    words = np.random.default_rng(0).integers(-(2**31), 2**31, (2, 11)).astype(np.int32)
    changed, want = logits.to(DEVICE, copy=True), logits.clone()
    with use_backend("triton"):
        ops.apply_token_mask(changed, words, [1, -1, 0])
    with use_backend("reference"):
        ops.apply_token_mask(want, words, [1, -1, 0])
    assert torch.equal(changed.cpu(), want)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("repetition", "presence", "frequency"), [(1.3, 0.0, 0.0), (1.0, 0.5, 0.1), (1.7, 0.3, 0.2)])
def test_penalties_match_the_reference(
    dtype: torch.dtype, repetition: float, presence: float, frequency: float
) -> None:
    rng = np.random.default_rng(0)
    row = (torch.randn(800, generator=torch.Generator().manual_seed(2)) * 3).to(dtype)
    given = {
        "prompt_token_ids": rng.integers(0, 800, 300).tolist(),
        "output_token_ids": rng.integers(0, 100, 200).tolist(),
        "repetition_penalty": repetition,
        "presence_penalty": presence,
        "frequency_penalty": frequency,
    }
    changed, want = row.to(DEVICE, copy=True), row.clone()
    with use_backend("triton"):
        ops.apply_penalties(changed, **given)
        ops.apply_penalties(changed)  # no tokens seen, nothing changed
    with use_backend("reference"):
        ops.apply_penalties(want, **given)
    assert torch.equal(changed.cpu(), want)
