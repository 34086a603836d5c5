"""Routings of tokens to experts, and the formula of experts in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def routed(num_tokens: int, num_experts: int, num_slots: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Experts of each token, no two alike, and their weights: int64 and float32 [T, k]."""
    generator = torch.Generator().manual_seed(seed)
    rows = [torch.randperm(num_experts, generator=generator)[:num_slots] for _ in range(num_tokens)]
    return torch.stack(rows), torch.rand(num_tokens, num_slots, generator=generator)


def routed_in_float64(logits: Tensor, num_slots: int, *, is_normalized: bool) -> tuple[Tensor, Tensor]:
    """The likeliest experts of each token, and their weights in float64."""
    exact = logits.double().softmax(1)
    order = exact.argsort(1, descending=True)[:, :num_slots]
    chosen = exact.gather(1, order)
    return order, chosen / chosen.sum(1, keepdim=True) if is_normalized else chosen


def by_formula(
    x: Tensor,
    expert_ids: Tensor,
    weights: Tensor,
    up: Sequence[Callable[[Tensor], Tensor]],
    down: Sequence[Callable[[Tensor], Tensor]],
    activate: Callable[[Tensor], Tensor],
) -> Tensor:
    """The sum of the results of each token, one pair after another, in float64; an id that is no expert adds nothing."""
    total = torch.zeros((len(x), *down[0](activate(up[0](x[:1].double()))).shape[1:]), dtype=torch.float64)
    for token, slots in enumerate(expert_ids.tolist()):
        for slot, expert in enumerate(slots):
            if 0 <= expert < len(up):
                line = x[token : token + 1].double()
                total[token] += float(weights[token, slot]) * down[expert](activate(up[expert](line)))[0]
    return total


def silu_gate(both: Tensor) -> Tensor:
    """silu(first half) * second half."""
    gate, factor = both.chunk(2, -1)
    return gate / (1 + (-gate).exp()) * factor


def clamped_gate(alpha: float, limit: float) -> Callable[[Tensor], Tensor]:
    """The activation of GPT-OSS: gates and ups take turns."""

    def activate(both: Tensor) -> Tensor:
        gate, factor = both[..., ::2].clamp(max=limit), both[..., 1::2].clamp(-limit, limit)
        return gate * (alpha * gate).sigmoid() * (factor + 1)

    return activate
