"""Experts of `transformers` models over packed matrices, in one call of the kernels.

The library keeps the matrices of all experts of a layer in one parameter, and computes them in a loop or as one product that reads a
chosen expert once for each token. A module of experts declares what it needs: whether experts have gates and biases, whether rows of gates
and of the other half take turns, whether a parameter is transposed. So one class serves all model types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from rtlang.cache.system_memory import release, trim_heap
from rtlang.model.layers.linear import Linear, own_memory, tune_linears
from rtlang_kernels import ops
from rtlang_kernels.contract.experts import ExpertGate, Experts, StackedLayer
from rtlang_kernels.contract.fused_step import LinearLayer

BOTH, UP, DOWN = "gate_up_proj", "up_proj", "down_proj"
"""The stacked parameters of the library's modules of experts: gates with the other half, that half alone, and the second layer."""
_TRIM_BYTES = 128 << 20  # of weights that are freed until the C library gives them back
_PROBES, _PROBE_WIDTH = 8, 64


def is_experts(module: Any) -> bool:
    """Whether a module has the experts interface of `transformers`."""
    return hasattr(module, "is_transposed") and hasattr(module, "has_post_expert_norm")


class PackedExperts(torch.nn.Module):
    """Stands in for a module of experts of `transformers` whose matrices are packed.

    The results of a token are added in float32 in the order of its top-k slots, and an activation of the library sees all tokens and slots
    in their order: the bits of a token depend on no other token in a step of a fixed number of tokens.

    Attributes:
        stock: the module that it stands in for, without its matrices.
        num_experts: how many there are.
    """

    def __init__(self, stock: Any, up: Sequence[Linear], down: Sequence[Linear], *, is_split: bool = False) -> None:
        """Stand in for `stock`, a module with the experts interface of the library.

        Args:
            up: a layer for each expert: gate and up projection in the order of the stock module's rows, gated or not.
            down: a layer for each expert.
            is_split: whether the outputs of `up` are all gates, then all ups, although the stock module has them in turns.
        """
        super().__init__()
        self.stock, self.num_experts = stock, len(up)
        self._layers = [kernel_layer(each) for each in up], [kernel_layer(each) for each in down]
        self._is_split, self._has_silu_gate = is_split, has_silu_gate(stock)
        self._experts: Experts | None = None  # made by the first call, when the layers are tuned
        self._is_stacked = False

    @classmethod
    def of_stacks(cls, stock: Any) -> PackedExperts | None:
        """Stand in for `stock`, whose stacked matrices a backend computes as they are; None if it has no such kernels.

        The matrices stay in their memory, or are copied if they are transposed.
        """
        names = (BOTH if stock.has_gate else UP), DOWN
        stacks = [getattr(stock, name).detach() for name in names]
        make = ops.backend_for(stacks[0].device, stacks[0].dtype).stacked_experts
        if make is None:
            return None
        layers = []
        for name, stack in zip(names, stacks, strict=True):
            bias = own_memory(getattr(stock, f"{name}_bias").detach()).flatten() if stock.has_bias else None
            weight = stack.transpose(1, 2) if stock.is_transposed else stack
            layers.append(StackedLayer(own_memory(weight.contiguous()).flatten(0, 1), bias))
        made = cls(stock, (), ())
        made.num_experts, made._is_stacked = len(stacks[0]), True
        gate = ExpertGate() if made._has_silu_gate else None
        made._experts = make(layers[0], layers[1], made.num_experts, gate, stacks[0].dtype)
        return made

    def forward(self, hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor) -> Tensor:
        """Hidden states [T, hidden], and experts with their weights [T, k], -> [T, hidden]."""
        if self._experts is None:
            backend = ops.backend_for(hidden_states.device, hidden_states.dtype)
            self._experts = backend.experts(*self._layers, hidden_states.dtype)
        return self._computed(self._experts, hidden_states, top_k_index, top_k_weights)

    def _computed(self, experts: Experts, x: Tensor, expert_ids: Tensor, weights: Tensor) -> Tensor:
        """The results of some experts with the activation and the norm of the stock module."""
        # On a device, an activation of the library is fewer operations than the reference's for separate layers.
        has_gate = self._has_silu_gate and (self._is_stacked or x.device.type == "cpu")
        activation = None if has_gate else self._activated
        norm = self.stock.post_expert_norm if self.stock.has_post_expert_norm else None
        return experts(x, expert_ids.long(), weights, activation, norm)

    def _activated(self, up: Tensor) -> Tensor:
        if self._is_split:
            gate, linear = up.chunk(2, -1)
            up = torch.stack([gate, linear], -1).flatten(-2)
        activated: Tensor = self.stock._apply_gate(up) if self.stock.has_gate else self.stock.act_fn(up)
        return activated


def has_silu_gate(stock: Any) -> bool:
    """Whether a module of experts computes silu(first half) * second half, which kernels have, at inputs of any size."""
    if not stock.has_gate or not getattr(stock, "is_concatenated", True):
        return False
    generator = torch.Generator().manual_seed(0)
    # up to thousands: gates that are clamped differ there
    sizes = 10.0 ** torch.randint(-2, 4, (_PROBES, 2 * _PROBE_WIDTH), generator=generator)
    both = torch.randn(sizes.shape, generator=generator) * sizes
    gate, linear = both.chunk(2, -1)
    try:
        return bool(torch.allclose(stock._apply_gate(both), functional.silu(gate) * linear, rtol=1e-4, atol=1e-6))
    except Exception:  # third-party code, which may need inputs of its own size
        return False


def pack_experts(model: torch.nn.Module) -> int:
    """Replace every module of experts inside `model` whose matrices are floats, in place; returns the number of replacements.

    An expert is packed at a time, and the parameters of a layer are freed after it. On a device, the experts of a layer are computed from
    their stack.
    """
    made: list[Linear] = []
    count, freed_bytes = 0, 0
    for path in [path for path, each in model.named_modules() if is_experts(each)]:
        stock: Any = model.get_submodule(path)
        parameters = (BOTH if stock.has_gate else UP), DOWN
        stacks = [getattr(stock, parameter, None) for parameter in parameters]
        if not all(isinstance(each, Tensor) and each.ndim == 3 and _is_packable(each) for each in stacks):
            continue
        replacement = PackedExperts.of_stacks(stock)
        if replacement is None:
            is_gated = has_silu_gate(stock)
            up, down = (_packed(stock, each, is_gated=is_gated and each == BOTH) for each in parameters)
            replacement = PackedExperts(stock, up, down)
            made += [*up, *down]
        _put(model, path, replacement)
        count += 1
        for parameter in parameters:
            freed_bytes += _drop(stock, parameter)
        del stacks
        if freed_bytes >= _TRIM_BYTES:
            trim_heap()
            freed_bytes = 0
    tune_linears(made)
    return count


def _is_packable(stack: Tensor) -> bool:
    backend = ops.backend_for(stack.device, stack.dtype)
    return backend.packed_linear is not None or backend.stacked_experts is not None


def _packed(stock: Any, parameter: str, *, is_gated: bool) -> list[Linear]:
    """The layers of a stacked parameter [experts, out, in], or [experts, in, out] if the module says so."""
    stack = getattr(stock, parameter).detach()
    biases = getattr(stock, f"{parameter}_bias").detach() if stock.has_bias else None
    layers = []
    for expert, weight in enumerate(stack):
        bias = None if biases is None else own_memory(biases[expert].contiguous())
        layers.append(Linear(weight.T if stock.is_transposed else weight, bias, is_gated=is_gated))
    return layers


def _drop(stock: Any, parameter: str) -> int:
    """Free a parameter; returns its size in bytes."""
    stack: Tensor = getattr(stock, parameter)
    delattr(stock, parameter)
    if not stack.untyped_storage().resizable():  # part of a mapped file, which nothing reads any more
        release(stack.data_ptr(), stack.nbytes)
    return stack.nbytes


def _put(model: torch.nn.Module, path: str, made: PackedExperts) -> None:
    """Put a module in the place of its stock module, with what ranks do before and after it."""
    for before in made.stock._forward_pre_hooks.values():
        made.register_forward_pre_hook(before)
    for after in made.stock._forward_hooks.values():
        made.register_forward_hook(after)
    model.set_submodule(path, made)


def kernel_layer(linear: Linear) -> LinearLayer:
    """What kernels compute of a layer; a plain one is called itself."""
    packed: LinearLayer | None = getattr(linear, "packed", None)
    return linear if packed is None else packed  # type: ignore[return-value]
