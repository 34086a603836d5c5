"""Modules of `transformers` models over weights of few bits: linear layers and experts.

The self-check of a decoder compares two ways to compute attention in float32. Layers of few bits round their inputs, which turns a
difference in the last bits into a hundredth, and to multiply all weights out takes longer than to load them. So during that check a
function of the inputs, in float32 and without weights, stands in for each layer; the layers are compared with some rows of their weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from rtlang.model.layers.linear import Linear, PackedModule
from rtlang.model.layers.packed_experts import PackedExperts
from rtlang_kernels.reference.experts import ReferenceExperts

_NUM_ROWS, _NUM_TOKENS = 32, 3  # outputs of a layer that are checked, and inputs
_LARGEST_ERROR = 0.05  # of a layer on normal inputs; rounding them to bytes gives 0.006


class LowBitModule(PackedModule):
    """Stands in for a `torch.nn.Linear` whose weight has few bits; accepts any number of leading dimensions.

    Attributes:
        stand_in: the number of the function that stands in for the layer; see `stand_ins`.
    """

    stand_in: int | None = None

    def forward(self, x: Tensor) -> Tensor:
        """x [..., in_features] -> [..., out_features]."""
        if self.stand_in is None:
            return super().forward(x)
        return _stand_in(x, self.out_features, self.stand_in)

    def obstacle(self) -> str | None:
        """Where the layer differs from its weight, or None."""
        return _difference(self.linear, self.bias)

    def multiplied_out(self) -> torch.nn.Linear:
        """A float layer with the same weight, for code that does more with a weight than multiply inputs by it."""
        dtype, device = self.weight.dtype, self.weight.device
        weight = self.linear.rows(torch.arange(self.out_features, device=device))
        with torch.device("meta"):
            made = torch.nn.Linear(weight.shape[1], len(weight), bias=self.bias is not None, dtype=dtype)
        made.weight = torch.nn.Parameter(weight.to(dtype), requires_grad=False)
        if self.bias is not None:
            made.bias = torch.nn.Parameter(self.bias, requires_grad=False)
        return made.train(self.training)


class LowBitExperts(PackedExperts):
    """Stands in for a module of experts of `transformers` whose matrices have few bits, or some of them.

    Attributes:
        stand_in: see `LowBitModule`; each layer of each expert has a function of its own.
    """

    stand_in: int | None = None

    def __init__(
        self,
        stock: Any,
        up: Sequence[tuple[Linear, Tensor | None]],
        down: Sequence[tuple[Linear, Tensor | None]],
        *,
        is_split: bool = False,
    ) -> None:
        """As `PackedExperts`; each layer with its bias, and none is gated."""
        super().__init__(stock, [layer for layer, _ in up], [layer for layer, _ in down], is_split=is_split)
        self._up, self._down = tuple(up), tuple(down)

    def forward(self, hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor) -> Tensor:
        """Hidden states [T, hidden], and experts with their weights [T, k], -> [T, hidden]."""
        if self.stand_in is None:
            return super().forward(hidden_states, top_k_index, top_k_weights)
        first = self.stand_in * 2 * self.num_experts
        up, down = (
            [_StandIn(linear, first + 2 * expert + place) for expert, (linear, _) in enumerate(layers)]
            for place, layers in enumerate((self._up, self._down))
        )
        experts = ReferenceExperts(up, down, hidden_states.dtype)
        return self._computed(experts, hidden_states, top_k_index, top_k_weights)

    def obstacle(self) -> str | None:
        """Where a layer of the first or the last expert differs from its weight, or None."""
        for expert in {0, self.num_experts - 1}:
            for layer in (self._up[expert], self._down[expert]):
                found = _difference(*layer)
                if found is not None:
                    return f"expert {expert}: {found}"
        return None


@contextmanager
def stand_ins(model: torch.nn.Module) -> Iterator[None]:
    """While it is open, functions without weights stand in for the layers of few bits in `model`."""
    modules = low_bit_modules(model)
    for number, module in enumerate(modules):
        module.stand_in = number
    try:
        yield
    finally:
        for module in modules:
            module.stand_in = None


def low_bit_modules(model: torch.nn.Module) -> list[LowBitModule | LowBitExperts]:
    """The modules of few bits inside a model."""
    return [each for each in model.modules() if isinstance(each, LowBitModule | LowBitExperts)]


def wrong_layer(model: torch.nn.Module) -> str | None:
    """A layer of few bits that does not compute with the weight whose rows it hands out, and its relative error; None if there is none."""
    for name, module in model.named_modules():
        if isinstance(module, LowBitModule | LowBitExperts) and (found := module.obstacle()) is not None:
            return f"{name}: {found}"
    return None


class _StandIn:
    """The function that stands in for a layer, as a layer."""

    def __init__(self, linear: Linear, number: int) -> None:
        self.in_features, self.out_features, self._number = linear.in_features, linear.out_features, number

    def __call__(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        return _stand_in(x, self.out_features, self._number)

    def rows(self, indices: Tensor) -> Tensor:
        raise NotImplementedError("a stand-in has no weight")


def _stand_in(x: Tensor, num_outputs: int, number: int) -> Tensor:
    """x [..., in] -> [..., num_outputs] in float32: outputs are sums of inputs in a random order with random signs; all inputs are used.

    Outputs of a token have a mean square of 1, so norms and biases that belong to other weights cannot make attention too sharp.
    """
    x = x.float()
    num_inputs, parts = x.shape[-1], math.ceil(x.shape[-1] / num_outputs)
    generator = torch.Generator().manual_seed(number)
    copies = math.ceil(parts * num_outputs / num_inputs)
    order = torch.cat([torch.randperm(num_inputs, generator=generator) for _ in range(copies)])[: parts * num_outputs]
    signs = torch.randint(0, 2, order.shape, generator=generator).float() * 2 - 1
    signed = x[..., order.to(x.device)] * signs.to(x.device)
    y = signed.view(*x.shape[:-1], parts, num_outputs).sum(-2)
    return functional.rms_norm(y, (num_outputs,), eps=1e-12)


def _difference(linear: Linear, bias: Tensor | None) -> str | None:
    """Compares some outputs of a layer with the rows of its weight."""
    rows = torch.linspace(0, linear.out_features - 1, min(_NUM_ROWS, linear.out_features)).long()
    device = torch.device("cpu") if bias is None else bias.device
    weight = linear.rows(rows.to(device))
    x = torch.randn(_NUM_TOKENS, linear.in_features, generator=torch.Generator().manual_seed(0))
    x = x.to(weight.device, weight.dtype)
    expected = functional.linear(x.float(), weight.float(), None if bias is None else bias[rows.to(device)].float())
    found = linear(x)[:, rows.to(weight.device)].float()
    error = float((found - expected).norm() / expected.norm().clamp_min(1e-30))
    return None if error <= _LARGEST_ERROR else f"relative error {error:.2g}"
