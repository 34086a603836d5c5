"""Reference experts, for layers of any backend: each expert's layers are called once, for all its tokens. See `contract.experts`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from rtlang_kernels.contract.experts import check_experts
from rtlang_kernels.contract.fused_step import LinearLayer
from rtlang_kernels.reference.layer_ops import silu_and_mul


def route(logits: Tensor, num_slots: int, is_normalized: bool) -> tuple[Tensor, Tensor]:
    """See `Backend.route`.

    A row has the same bits whatever other rows there are: softmax and top-k go along rows, and sums and products of single elements are
    rounded alike everywhere in a tensor.
    """
    weights, expert_ids = logits.float().softmax(1).topk(num_slots, 1)
    if is_normalized:
        total = weights[:, 0].clone()
        for slot in range(1, num_slots):  # in order, where a sum along rows may take another one
            total += weights[:, slot]
        weights = weights / total[:, None]
    return expert_ids, weights


class ReferenceExperts:
    """Experts whose layers are called one after another. Waits for the device, since it reads how many tokens an expert has."""

    def __init__(self, up: Sequence[LinearLayer], down: Sequence[LinearLayer], dtype: torch.dtype) -> None:
        """Take the first and the second layer of each expert, with inputs and results of `dtype`."""
        self._up, self._down, self._dtype, self.num_experts = tuple(up), tuple(down), dtype, len(up)

    def __call__(
        self,
        x: Tensor,
        expert_ids: Tensor,
        weights: Tensor,
        activation: Callable[[Tensor], Tensor] | None = None,
        norm: Callable[[Tensor], Tensor] | None = None,
    ) -> Tensor:
        """See `Experts`."""
        check_experts(x, expert_ids, weights, self._up[0].in_features, self._dtype)
        num_tokens, num_slots = expert_ids.shape
        chosen = expert_ids.reshape(-1)
        is_expert = (chosen >= 0) & (chosen < self.num_experts)
        chosen = torch.where(is_expert, chosen, self.num_experts)
        order = torch.argsort(chosen, stable=True)  # [T * k], the pairs by expert
        counts = torch.bincount(chosen, minlength=self.num_experts + 1).tolist()
        pairs_of = [
            (expert, pairs) for expert, pairs in enumerate(torch.split(order, counts)[: self.num_experts]) if len(pairs)
        ]
        inner = self._down[0].in_features
        up: Tensor | None = None
        for expert, pairs in pairs_of:
            found = self._up[expert](x[pairs // num_slots])
            if activation is None and found.shape[1] != inner:
                found = silu_and_mul(found)
            up = x.new_zeros((len(chosen), found.shape[1])) if up is None else up
            up[pairs] = found
        y = x.new_zeros((len(chosen), self._down[0].out_features))
        if up is None:
            return y[:num_tokens] if num_slots else x.new_zeros((num_tokens, y.shape[1]))
        activated = up if activation is None else activation(up)
        for expert, pairs in pairs_of:
            y[pairs] = self._down[expert](activated[pairs])
        if norm is not None:
            y = norm(y)
        slots = y.view(num_tokens, num_slots, -1).float() * weights.float()[..., None]
        # pairs of no expert add nothing, also where a norm or a weight is not finite
        slots = slots.masked_fill(~is_expert.view(num_tokens, num_slots, 1), 0.0)
        total = slots[:, 0]
        for slot in range(1, num_slots):
            total = total + slots[:, slot]
        return total.to(x.dtype)
