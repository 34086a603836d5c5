"""Linear layers whose weights are laid out once for the CPU's matrix units.

oneDNN reorders a weight into the blocks that its kernels read; done once at load, decode in bfloat16 is 1.3 to 2.5 times as fast
as `torch.nn.functional.linear`. The operators are private to torch, so a probe decides at load whether they are there and right,
and a plain weight is used otherwise. A layer holds one copy of its weight: the plain one is given up after packing.
"""

from __future__ import annotations

import logging
from typing import cast

import torch
from torch import Tensor
from torch.nn import functional

logger = logging.getLogger(__name__)

# Rows that the packed layout is chosen for. One layout serves every batch size: 32 was within 5% of the best hint from 1 to 1024
# rows, where a hint of 1 costs fp32 up to 1.8x from 2 rows on.
_PACK_ROWS = 32
# float32 weights up to so many elements stay plain: the call is 3 us instead of 14 us, which is more than packing gains.
_PLAIN_FLOAT32_ELEMENTS = 1 << 17


class Linear:
    """y = x @ weight.T + bias, for x [num_rows, in_features] of the weight's dtype.

    Attributes:
        in_features, out_features: of the layer.
        is_packed: whether the weight is held in the blocked layout.
    """

    __slots__ = ("_apply", "bias", "in_features", "is_packed", "out_features", "weight")

    def __init__(self, weight: Tensor, bias: Tensor | None = None, *, pack: bool = True) -> None:
        """Take over `weight` [out_features, in_features] and `bias` [out_features], float32 or bfloat16, on the CPU or not.

        Args:
            pack: lay the weight out in blocks where that pays and works; False keeps it as it is.
        """
        self.out_features, self.in_features = weight.shape
        self.bias = own_memory(bias.contiguous()) if bias is not None else None
        is_small = weight.dtype is torch.float32 and weight.numel() <= _PLAIN_FLOAT32_ELEMENTS
        self.is_packed = pack and not is_small and weight.device.type == "cpu" and can_pack(weight.dtype)
        self.weight = _pack(weight) if self.is_packed else own_memory(weight.contiguous())
        self._apply = torch.ops.mkldnn._linear_pointwise.default if self.is_packed else None

    def __call__(self, x: Tensor) -> Tensor:
        """x [num_rows, in_features] -> [num_rows, out_features], same dtype."""
        if self._apply is not None:
            return cast(Tensor, self._apply(x, self.weight, self.bias, "none", [], ""))
        return functional.linear(x, self.weight, self.bias)


class PackedModule(torch.nn.Module):
    """Stands in for a `torch.nn.Linear` of a model of `transformers`; accepts any number of leading dimensions.

    `weight` is an empty tensor of the right dtype and device, for code that asks a layer for these; whoever computes with it fails.
    """

    weight: Tensor

    def __init__(self, linear: Linear, dtype: torch.dtype) -> None:
        super().__init__()
        self.linear = linear
        self.in_features, self.out_features, self.bias = linear.in_features, linear.out_features, linear.bias
        self.register_buffer("weight", torch.empty(0, dtype=dtype), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """x [..., in_features] -> [..., out_features]."""
        if not x.numel():
            return x.new_empty((*x.shape[:-1], self.out_features))
        return self.linear(x.reshape(-1, x.shape[-1])).view(*x.shape[:-1], self.out_features)


def own_memory(tensor: Tensor) -> Tensor:
    """The tensor itself, or a copy of it if its memory is that of a file.

    A tensor read from safetensors is the mapped file until it is copied: whoever overwrites the file in place would change the model,
    or end the process with a bus error.
    """
    return tensor if tensor.untyped_storage().resizable() else tensor.clone()


def can_pack(dtype: torch.dtype) -> bool:
    """Whether packed linears of this dtype exist here and agree with plain ones; probed once per dtype."""
    if dtype not in _PROBED:
        _PROBED[dtype] = _probe(dtype)
        if not _PROBED[dtype]:
            logger.warning("packed linear layers are not available for %s here; plain ones are used", dtype)
    return _PROBED[dtype]


def pack_linears(module: torch.nn.Module) -> int:
    """Replace every `torch.nn.Linear` inside `module` by a packed one, in place; returns how many.

    Only exact `torch.nn.Linear` are replaced (a subclass may compute something else), and only those whose weight is reached
    through that one module or is an embedding's: the weight of a tied head is packed as a copy, the embedding keeps its own.
    Modules that look at `.weight` of a replaced linear afterwards would fail; the load-time self-check finds these.
    """
    count = 0
    for parent in list(module.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is not torch.nn.Linear or not can_pack(child.weight.dtype):
                continue
            bias = child.bias.detach() if child.bias is not None else None
            linear = Linear(child.weight.detach(), bias)
            if linear.is_packed:
                setattr(parent, name, PackedModule(linear, child.weight.dtype))
                count += 1
    return count


_PROBED: dict[torch.dtype, bool] = {}  # a cache of facts about the installed torch, not a setting


def _pack(weight: Tensor) -> Tensor:
    return cast(Tensor, torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), _PACK_ROWS))


def _probe(dtype: torch.dtype) -> bool:
    if dtype not in (torch.float32, torch.bfloat16):
        return False
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(96, 64, generator=generator).to(dtype)
    bias = torch.randn(96, generator=generator).to(dtype)
    tolerance = 1e-5 if dtype is torch.float32 else 1e-2
    try:
        packed = _pack(weight)
        for num_rows in (1, 3, 33):
            x = torch.randn(num_rows, 64, generator=generator).to(dtype)
            y = torch.ops.mkldnn._linear_pointwise.default(x, packed, bias, "none", [], "")
            exact = x.double() @ weight.double().T + bias.double()
            if not bool((y.double() - exact).norm() <= tolerance * exact.norm()):
                return False
    except (RuntimeError, AttributeError, NotImplementedError):
        return False
    return True
