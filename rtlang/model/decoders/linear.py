"""Linear layers of the decoders: packed for the kernels of the CPU, or plain.

A packed layer holds one copy of its weight in the order in which the kernel reads it; the plain one is dropped. One layout and one order
of summation serve every number of rows, so a row has the same bits whatever other rows a step has, and a new number of rows costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.nn import functional

from rtlang_kernels import ops
from rtlang_kernels.contract.fused_step import LinearLayer


class Linear:
    """y = x @ weight.T + bias, for x [num_rows, in_features] of the weight's dtype.

    Attributes:
        in_features, out_features: sizes of the layer; if gated and packed, out_features is half the rows of the weight.
        packed: the layer of the kernels, or None if the weight is plain.
        is_int8: whether weights and inputs are multiplied as int8.
    """

    __slots__ = ("bias", "in_features", "is_int8", "out_features", "packed", "weight")

    def __init__(self, weight: Tensor, bias: Tensor | None = None, *, is_gated: bool = False) -> None:
        """Take over `weight` [out_features, in_features] and `bias` [out_features], on the CPU or not.

        Args:
            is_gated: a packed layer returns silu(first half) * second half; a plain one leaves that to the caller.
        """
        self.is_int8 = False
        self.packed: LinearLayer | None = None
        self.weight: Tensor | None = None
        self.bias: Tensor | None = None
        make = ops.backend_for(weight.device, weight.dtype).packed_linear
        if make is not None:
            self.packed = make(weight, bias, is_gated)
            self.out_features, self.in_features = self.packed.out_features, self.packed.in_features
            return
        self.out_features, self.in_features = weight.shape
        self.weight = own_memory(weight.contiguous())
        self.bias = own_memory(bias.contiguous()) if bias is not None else None

    @classmethod
    def int8(
        cls, weight: Tensor, scale: Tensor, bias: Tensor | None, *, dtype: torch.dtype, is_gated: bool = False
    ) -> Linear:
        """Pack an int8 weight with a scale [out_features] per row, on a backend that has int8 layers; inputs have `dtype`."""
        make = ops.backend_for(weight.device, dtype).packed_int8_linear
        assert make is not None
        made = cls.__new__(cls)
        made.is_int8, made.weight, made.bias = True, None, None
        made.packed = make(weight, scale, bias, is_gated, dtype)
        made.out_features, made.in_features = made.packed.out_features, made.packed.in_features
        return made

    def __call__(self, x: Tensor) -> Tensor:
        """x [num_rows, in_features] -> [num_rows, out_features], same dtype."""
        if self.packed is not None:
            return self.packed(x)
        assert self.weight is not None
        return functional.linear(x, self.weight, self.bias)

    def add_to(self, residual: Tensor, x: Tensor) -> Tensor | None:
        """Add the result to `residual` [num_rows, out_features] in place and return None; a plain layer returns the result instead, since
        the norm that follows adds it."""
        if self.packed is None:
            return self(x)
        self.packed(x, residual)
        return None


class PackedModule(torch.nn.Module):
    """Stands in for a `torch.nn.Linear` of a model of `transformers`; accepts any number of leading dimensions.

    `weight` is an empty tensor with the right dtype and device, for code that reads these; computing with it fails.
    """

    weight: Tensor

    def __init__(self, linear: Linear, dtype: torch.dtype, bias: Tensor | None) -> None:
        super().__init__()
        self.linear = linear
        self.in_features, self.out_features, self.bias = linear.in_features, linear.out_features, bias
        self.register_buffer("weight", torch.empty(0, dtype=dtype), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """x [..., in_features] -> [..., out_features]."""
        if not x.numel():
            return x.new_empty((*x.shape[:-1], self.out_features))
        return self.linear(x.reshape(-1, x.shape[-1])).view(*x.shape[:-1], self.out_features)


def own_memory(tensor: Tensor) -> Tensor:
    """Return the tensor, or a copy if its memory is a mapped file.

    A tensor read from safetensors is backed by the file until it is copied: overwriting the file in place would change the model, or kill
    the process with a bus error.
    """
    return tensor if tensor.untyped_storage().resizable() else tensor.clone()


def tune_linears(linears: Iterable[Linear]) -> None:
    """Let the kernels measure what depends on the machine, for the packed layers of a model; at most a second, see `rtlang_kernels`."""
    packed = [linear.packed for linear in linears if linear.packed is not None]
    tune = ops.backend_named("cpu").tune if packed else None
    if tune is not None:
        tune(packed)


def pack_linears(module: torch.nn.Module) -> int:
    """Replace every `torch.nn.Linear` inside `module` by a packed one, in place; returns the number of replacements.

    Subclasses of `torch.nn.Linear` are not replaced, since they may compute something else. The weight of a tied head is packed as a copy;
    the embedding keeps its own. Modules that use `.weight` of a replaced layer fail, which the self-check at load time detects.
    """
    made = []
    for parent in list(module.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is not torch.nn.Linear:
                continue
            weight, bias = child.weight.detach(), child.bias.detach() if child.bias is not None else None
            if ops.backend_for(weight.device, weight.dtype).packed_linear is None:
                continue
            made.append(Linear(weight, bias))
            setattr(parent, name, PackedModule(made[-1], weight.dtype, bias))
    tune_linears(made)
    return len(made)
