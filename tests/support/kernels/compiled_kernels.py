"""The kernels that a GPU would compile for launches in Triton's interpreter.

There is one for each set of types, constants, and facts about integers and pointers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from triton.runtime.interpreter import GridExecutor

from rtlang_kernels.triton.primitives.jit import UNSPECIALIZED

ALIGNMENT = 16  # of pointers in bytes, and a divisor of integers: triton specializes code on both


@contextmanager
def compiled_kernels() -> Iterator[set[Hashable]]:
    """While open, collect the launched kernels as triton distinguishes them; they run."""
    found: set[Hashable] = set()
    launch = GridExecutor.__call__

    def noted(executor: Any, *args: Any, **given: Any) -> None:
        names = list(executor.arg_names)
        values = dict(zip(names, args, strict=False)) | given
        facts = tuple((name, _facts(executor, name, value)) for name, value in sorted(values.items()))
        found.add((executor.fn.__module__, executor.fn.__qualname__, facts))
        launch(executor, *args, **given)

    GridExecutor.__call__ = noted
    try:
        yield found
    finally:
        GridExecutor.__call__ = launch


def _facts(executor: Any, name: str, value: Any) -> Hashable:
    assert isinstance(value, (torch.Tensor, tuple)) or type(value) in (bool, int, float, str), (
        f"{name}: triton takes no {type(value)}"
    )
    is_constant = "constexpr" in str(executor.fn.__annotations__.get(name, "constexpr"))
    if isinstance(value, torch.Tensor):
        return str(value.dtype), value.data_ptr() % ALIGNMENT == 0
    if is_constant or isinstance(value, (bool, float)):
        return value if is_constant else type(value).__name__
    size = "int32" if -(2**31) <= value < 2**31 else "int64"
    return (size,) if name in UNSPECIALIZED else (size, value == 1, value % ALIGNMENT == 0)
