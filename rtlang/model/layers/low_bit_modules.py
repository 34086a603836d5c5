"""Modules of `transformers` models over weights of few bits: linear layers and experts.

Both compute with the codes, or, for the self-check of a decoder, exactly: a few rows at a time are multiplied out and float32 inputs stay
float32. So two ways to compute attention can be compared without the rounding of inputs that kernels of few bits do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from rtlang.model.layers.linear import Linear, PackedModule

_BLOCK = 1 << 23  # elements that are multiplied out at a time: 32 MB


class LowBitModule(PackedModule):
    """Stands in for a `torch.nn.Linear` whose weight has few bits; accepts any number of leading dimensions.

    Attributes:
        is_exact: whether weights are multiplied out and computed with in float32; see `exact_weights`.
    """

    is_exact = False

    def forward(self, x: Tensor) -> Tensor:
        """x [..., in_features] -> [..., out_features]."""
        if not self.is_exact or not x.numel():
            return super().forward(x)
        return _exactly(self.linear, x, self.bias)


class LowBitExperts(torch.nn.Module):
    """Stands in for a module of experts of `transformers` whose matrices have few bits.

    Each expert computes the tokens that are routed to it. The results of a token are added in float32 in the order of its top-k slots, and
    the activation sees all tokens and slots in their order: if layers give a row the same bits whatever other rows there are, then so do
    experts in a step of a fixed number of tokens.

    Attributes:
        num_experts: how many there are.
        is_exact: see `LowBitModule`.
    """

    is_exact = False

    def __init__(
        self,
        stock: Any,
        up: Sequence[tuple[Linear, Tensor | None]],
        down: Sequence[tuple[Linear, Tensor | None]],
        *,
        is_split: bool = False,
    ) -> None:
        """Stand in for `stock`, a module with the experts interface of the library, without its matrices.

        Args:
            up: a layer for each expert with its bias: gate and up projection in the order of the stock module's rows.
            down: a layer for each expert with its bias.
            is_split: whether the outputs of `up` are all gates, then all ups, although the stock module has them in turns.
        """
        super().__init__()
        self.stock, self.num_experts = stock, len(up)
        self._up, self._down, self._is_split = tuple(up), tuple(down), is_split

    def forward(self, hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor) -> Tensor:
        """Hidden states [T, hidden], and experts with their weights [T, k], -> [T, hidden]."""
        x, (num_tokens, num_slots) = hidden_states, top_k_index.shape
        chosen = top_k_index.reshape(-1)
        # [T * k], the pairs of a token and a slot by expert
        order = torch.argsort(chosen, stable=True)
        # an index that is no expert stands for none
        counts = torch.bincount(chosen, minlength=self.num_experts).tolist()
        pairs_of = {
            expert: pairs
            for expert, pairs in enumerate(torch.split(order, counts))
            if expert < self.num_experts and len(pairs)
        }
        up = x.new_zeros((len(chosen), self._up[0][0].out_features))
        for expert, pairs in pairs_of.items():
            up[pairs] = self._computed(self._up[expert], x[pairs // num_slots])
        if self._is_split:
            gate, linear = up.chunk(2, -1)
            up = torch.stack([gate, linear], -1).flatten(-2)
        activated = self.stock._apply_gate(up) if self.stock.has_gate else self.stock.act_fn(up)
        y = x.new_zeros((len(chosen), self._down[0][0].out_features))
        for expert, pairs in pairs_of.items():
            y[pairs] = self._computed(self._down[expert], activated[pairs])
        if self.stock.has_post_expert_norm:
            y = self.stock.post_expert_norm(y)
        slots = y.view(num_tokens, num_slots, -1).float() * top_k_weights.float()[..., None]
        total = slots[:, 0]
        for slot in range(1, num_slots):
            total = total + slots[:, slot]
        return total.to(x.dtype)

    def _computed(self, layer: tuple[Linear, Tensor | None], x: Tensor) -> Tensor:
        linear, bias = layer
        return _exactly(linear, x, bias) if self.is_exact else linear(x)


@contextmanager
def exact_weights(model: torch.nn.Module) -> Iterator[None]:
    """While it is open, layers of few bits in `model` multiply their weights out and compute in float32."""
    modules = low_bit_modules(model)
    for module in modules:
        module.is_exact = True
    try:
        yield
    finally:
        for module in modules:
            module.is_exact = False


def low_bit_modules(model: torch.nn.Module) -> list[LowBitModule | LowBitExperts]:
    """The modules of few bits inside a model."""
    return [each for each in model.modules() if isinstance(each, LowBitModule | LowBitExperts)]


def _exactly(linear: Linear, x: Tensor, bias: Tensor | None) -> Tensor:
    """The result of a layer for x [..., in_features] in float32, whose weight is multiplied out a few rows at a time."""
    step, end = max(1, _BLOCK // linear.in_features), linear.out_features
    x = x.float()
    parts = [
        functional.linear(x, linear.rows(torch.arange(first, min(first + step, end), device=x.device)).float())
        for first in range(0, end, step)
    ]
    y = torch.cat(parts, -1) if len(parts) > 1 else parts[0]
    return y if bias is None else y + bias.float()
