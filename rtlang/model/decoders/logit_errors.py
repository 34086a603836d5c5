"""Measures of a decoder's self-check: errors of logits, and embeddings whose last bits are changed."""

from __future__ import annotations

import torch
from torch import Tensor


def relative_errors(logits: Tensor, expected: Tensor) -> Tensor:
    """Relative error of each token: [N, vocab_size] twice -> [N]. The mean of a token's logits does not count as their size."""
    spread = (expected - expected.mean(-1, keepdim=True)).norm(dim=-1).clamp_min(1e-6)
    errors: Tensor = (logits - expected).norm(dim=-1) / spread
    return errors


def nudged(embeddings: Tensor, amount: float) -> Tensor:
    """Embeddings whose last bits are changed by up to `amount` times their size, differently in each lane."""
    signs: Tensor = torch.arange(embeddings.numel(), device=embeddings.device).view_as(embeddings) * 7919 % 3 - 1
    return (embeddings + embeddings * signs.mul(amount)).to(embeddings.dtype)
