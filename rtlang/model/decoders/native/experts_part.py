"""A feed-forward part of experts: a router, the experts it chooses in one call of the kernels, and an expert of all tokens.

All operations of torch here are such that a row has the same bits whatever other rows there are: products of single elements are rounded
alike everywhere in a tensor.

Sources: Jiang et al. 2024 (Mixtral), Qwen2 and Qwen3 technical reports, OpenAI 2025 (gpt-oss model card).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from rtlang.model.decoders.native.layers import FeedForwardPart, LayerStep
from rtlang.model.layers.linear import Linear
from rtlang.model.layers.packed_experts import kernel_layer
from rtlang.model.loading.layer_table import ExpertsConfig
from rtlang_kernels.contract.experts import ExpertGate, Experts
from rtlang_kernels.dispatch import Backend


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


class SeparateExperts:
    """Experts whose layers are packed one expert at a time; called like `Experts`, with a backend.

    Attributes:
        linears: all layers.
    """

    def __init__(self, up: Sequence[Linear], down: Sequence[Linear], gate: ExpertGate) -> None:
        """Take the first and the second layer of each expert. First layers have a gate only if it is silu(first half) * second half."""
        self.linears, self._gate = (*up, *down), gate
        self._up, self._down = up, down
        self._experts: Experts | None = None  # made by the first step, after the layers were tuned

    def __call__(self, h: Tensor, expert_ids: Tensor, weights: Tensor, backend: Backend) -> Tensor:
        """See `Experts`; `backend` makes them of the layers."""
        if self._experts is None:
            up, down = ([kernel_layer(each) for each in layers] for layers in (self._up, self._down))
            self._experts = backend.experts(up, down, h.dtype)
        activation = None if self._gate == ExpertGate() else partial(gated, gate=self._gate, backend=backend)
        return self._experts(h, expert_ids, weights, activation)


def gated(up: Tensor, gate: ExpertGate, backend: Backend) -> Tensor:
    """Apply a gate to outputs [num_pairs, 2 * width] of first layers. The bits of a row depend on this row only."""
    first, second = (up[:, ::2], up[:, 1::2]) if gate.is_alternating else up.chunk(2, 1)
    first, second = first.float(), second.float()
    if gate.limit is not None:
        first, second = first.clamp(max=gate.limit), second.clamp(-gate.limit, gate.limit)
    # g * sigmoid(alpha * g) is silu(alpha * g) / alpha
    both = torch.cat([first * gate.alpha, (second + gate.offset) / gate.alpha], 1)
    return backend.silu_and_mul(both).to(up.dtype)


class ExpertsPart:
    """The experts of a layer.

    Args:
        config: what they are.
        router: [hidden_size] -> [num_experts].
        experts: of the layer, stacked or separate.
        shared: the expert of all tokens, or None.
    """

    def __init__(
        self, config: ExpertsConfig, router: Linear, experts: Experts | SeparateExperts, shared: SharedExpert | None
    ) -> None:
        self.config, self._router, self._experts, self._shared = config, router, experts, shared

    @property
    def linears(self) -> tuple[Linear, ...]:
        """The linear layers."""
        own = self._experts.linears if isinstance(self._experts, SeparateExperts) else ()
        shared = () if self._shared is None else (*self._shared.part.linears, self._shared.gate)
        return self._router, *own, *shared

    def add_to(self, residual: Tensor | None, h: Tensor, step: LayerStep) -> Tensor | None:
        """Compute normed states h [num_tokens, hidden_size]. Returns the result, which is not added yet."""
        expert_ids, weights = step.backend.route(self._router(h), self.config.num_slots, self.config.is_normalized)
        if isinstance(self._experts, SeparateExperts):
            y = self._experts(h, expert_ids, weights, step.backend)
        else:
            y = self._experts(h, expert_ids, weights)
        return y if self._shared is None else y.add_(self._shared(h, step))
