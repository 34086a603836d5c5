"""Linear layers with weights packed once for the CPU's matrix units.

oneDNN reorders a weight into the blocks that its kernels read. With packing at load time, decoding in bfloat16 is 1.3 to 2.5 times as
fast as `torch.nn.functional.linear`. The operators are private to torch, so a probe at load time checks that they exist and are correct;
otherwise plain weights are used. A layer holds one copy of its weight: the plain one is dropped after packing.
"""

from __future__ import annotations

import logging
from typing import cast

import torch
from torch import Tensor
from torch.nn import functional

logger = logging.getLogger(__name__)

# Batch size hint for the packed layout, used for every batch size: 32 was within 5% of the best hint from 1 to 1024 rows, while a hint
# of 1 slows float32 down by up to 1.8x from 2 rows on.
_PACK_ROWS = 32
# Smaller float32 weights stay plain: their call takes 3 us instead of 14 us, more than packing gains.
_PLAIN_FLOAT32_ELEMENTS = 1 << 17


class Linear:
    """y = x @ weight.T + bias, for x [num_rows, in_features] of the weight's dtype.

    Attributes:
        in_features, out_features: sizes of the layer.
        is_packed: whether the weight is stored in the blocked layout.
    """

    __slots__ = ("_apply", "bias", "in_features", "is_packed", "out_features", "weight")

    def __init__(self, weight: Tensor, bias: Tensor | None = None, *, pack: bool = True) -> None:
        """Take over `weight` [out_features, in_features] and `bias` [out_features], float32 or bfloat16, on the CPU or not.

        Args:
            pack: pack the weight if that is faster and supported; False keeps it plain.
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

    `weight` is an empty tensor with the right dtype and device, for code that reads these; computing with it fails.
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
    """Return the tensor, or a copy if its memory is a mapped file.

    A tensor read from safetensors is backed by the file until it is copied: overwriting the file in place would change the model, or kill
    the process with a bus error.
    """
    return tensor if tensor.untyped_storage().resizable() else tensor.clone()


def can_pack(dtype: torch.dtype) -> bool:
    """Whether packed linear layers of this dtype work on this machine; probed once per dtype."""
    if dtype not in _PROBED:
        _PROBED[dtype] = _probe(dtype)
        if not _PROBED[dtype]:
            logger.warning("packed linear layers are not available for %s; using plain ones", dtype)
    return _PROBED[dtype]


def pack_linears(module: torch.nn.Module) -> int:
    """Replace every `torch.nn.Linear` inside `module` by a packed one, in place; returns the number of replacements.

    Subclasses of `torch.nn.Linear` are not replaced, since they may compute something else. The weight of a tied head is packed as a copy;
    the embedding keeps its own. Modules that use `.weight` of a replaced layer fail, which the self-check at load time detects.
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


_PROBED: dict[torch.dtype, bool] = {}  # cached properties of the installed torch, not a setting


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
