"""A feed-forward part of experts: a router, the experts it chooses in one call of the kernels, and an expert of all tokens.

All operations of torch here are such that a row has the same bits whatever other rows there are: softmax and top-k go along rows, and sums
and products of single elements are rounded alike everywhere in a tensor.

Sources: Jiang et al. 2024 (Mixtral), Qwen2 and Qwen3 technical reports.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rtlang.model.decoders.native.layers import FeedForwardPart, LayerStep
from rtlang.model.layers.linear import Linear
from rtlang.model.layers.packed_experts import kernel_layer
from rtlang.model.loading.layer_table import ExpertsConfig
from rtlang_kernels.contract.experts import Experts


@dataclass(frozen=True, slots=True)
class SharedExpert:
    """An expert that computes every token, and its gate [hidden_size] -> [1], whose sigmoid is its weight."""

    part: FeedForwardPart
    gate: Linear

    def __call__(self, h: Tensor, step: LayerStep) -> Tensor:
        """The weighted results of normed states h [num_tokens, hidden_size]."""
        logits = self.gate(h).float()
        # a softmax over a logit and zero is the sigmoid; an operation on a column would depend on the number of rows
        weights = torch.cat([logits, torch.zeros_like(logits)], 1).softmax(1)[:, :1]
        y = self.part.add_to(None, h, step)
        assert y is not None
        return y * weights.to(h.dtype)


class ExpertsPart:
    """The experts of a layer.

    Args:
        config: what they are.
        router: [hidden_size] -> [num_experts].
        up, down: gate and up, and down of each expert.
        shared: the expert of all tokens, or None.
    """

    def __init__(
        self,
        config: ExpertsConfig,
        router: Linear,
        up: tuple[Linear, ...],
        down: tuple[Linear, ...],
        shared: SharedExpert | None,
    ) -> None:
        self.config, self._router, self._up, self._down, self._shared = config, router, up, down, shared
        self._experts: Experts | None = None  # made by the first step, when the layers are tuned

    @property
    def linears(self) -> tuple[Linear, ...]:
        """The linear layers."""
        shared = () if self._shared is None else (*self._shared.part.linears, self._shared.gate)
        return self._router, *self._up, *self._down, *shared

    def add_to(self, residual: Tensor | None, h: Tensor, step: LayerStep) -> Tensor | None:
        """Compute normed states h [num_tokens, hidden_size]. Returns the result, which is not added yet."""
        if self._experts is None:
            up, down = ([kernel_layer(each) for each in layers] for layers in (self._up, self._down))
            self._experts = step.backend.experts(up, down, h.dtype)
        expert_ids, weights = self.routed(h)
        y = self._experts(h, expert_ids, weights)
        return y if self._shared is None else y.add_(self._shared(h, step))

    def routed(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """The experts of each token, the likeliest first, and their weights: int64 and float32 [num_tokens, num_slots]."""
        probabilities = self._router(h).float().softmax(1)  # [T, num_experts]
        weights, expert_ids = probabilities.topk(self.config.num_slots, 1)
        if self.config.is_normalized:
            total = weights[:, 0].clone()
            for slot in range(1, self.config.num_slots):  # in order, where a sum along rows may take another one
                total += weights[:, slot]
            weights = weights / total[:, None]
        return expert_ids, weights
