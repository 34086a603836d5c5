"""Computes a model in float32 while its weights stay in a narrower dtype.

A dispatch mode of torch sees every operation below Python. It converts the arguments that an operation computes with, and changes requests
for a narrow dtype into float32. No weight exists twice: only the operation at hand has float32 copies of its arguments. So two ways to
compute a model can be compared without the rounding of the narrow dtype, which in real models moves logits more than many a mistake does.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

_NARROW = (torch.bfloat16, torch.float16)
_BLOCK = (
    1 << 23
)  # elements of a weight that are converted at a time: 32 MB; an embedding of 262,144 tokens would take as much as its model
_aten: Any = torch.ops.aten
# These look rows up: converting their result instead spares a copy of the whole table.
_LOOKUPS = frozenset((_aten.embedding.default, _aten.index_select.default, _aten.index.Tensor, _aten.gather.default))


class Float32Math(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While active on this thread, operations of torch on bfloat16 and float16 tensors compute in float32 and return float32.

    Views of narrow tensors stay narrow until something computes with them. An operation in place keeps the dtype of its target. Kernels
    that are called with addresses are not seen.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one operation; see the class."""
        args, options = tree_map(_wide_dtype, (args, kwargs or {}))
        schema = func._schema
        if func is _aten.linear.default and args[1].dtype in _NARROW:
            return _linear(_widened(args[0]), *args[1:])
        if func in _LOOKUPS:
            return tree_map(_widened, func(*args, **options))
        if schema.is_mutable:
            return _in_place(func, args, options)
        if func.is_view:
            return func(*args, **options)
        args, options = tree_map(_widened, (args, options))
        return func(*args, **options)


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """A linear layer with a narrow weight [out_features, in_features], of which a few rows at a time are converted."""
    step = max(1, _BLOCK // weight.shape[1])
    parts = [_aten.linear(x, weight[start : start + step].float()) for start in range(0, len(weight), step)]
    y: Tensor = torch.cat(parts, -1) if len(parts) > 1 else parts[0]
    return y if bias is None else y + bias.float()


def _in_place(func: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Run an operation that writes into some of its arguments; the others take the dtype of those."""
    written = {
        entry.name for entry in func._schema.arguments if entry.alias_info is not None and entry.alias_info.is_write
    }
    names = [entry.name for entry in func._schema.arguments]
    given = {**dict(zip(names, args, strict=False)), **options}
    targets = [given[name] for name in written if isinstance(given.get(name), Tensor)]
    if not targets or not targets[0].is_floating_point():
        return func(*args, **options)
    dtype = targets[0].dtype

    def converted(name: str, value: Any) -> Any:
        return value if name in written else tree_map(lambda each: _as_dtype(each, dtype), value)

    args = tuple(converted(name, value) for name, value in zip(names, args, strict=False))
    return func(*args, **{name: converted(name, value) for name, value in options.items()})


def _wide_dtype(value: Any) -> Any:
    return torch.float32 if isinstance(value, torch.dtype) and value in _NARROW else value


def _widened(value: Any) -> Any:
    return value.float() if isinstance(value, Tensor) and value.dtype in _NARROW else value


def _as_dtype(value: Any, dtype: torch.dtype) -> Any:
    return value.to(dtype) if isinstance(value, Tensor) and value.is_floating_point() else value
