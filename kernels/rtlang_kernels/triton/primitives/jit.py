"""The typed wrapper of triton's untyped decorator, and checks of where kernels can run.

With TRITON_INTERPRET=1 set before triton is first imported, kernels run on CPU tensors in Python: slowly, but accurately enough for tests.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import torch
import triton
from triton import knobs

from rtlang_kernels.planning.tile_sizes import PRETENDED

# Integers that change between steps or requests. By default triton recompiles a kernel, during serving, for an integer that is 1 or
# becomes a multiple of 16.
UNSPECIALIZED = frozenset(
    {
        *("num_rows", "num_parts", "num_tokens", "num_states", "num_top", "num_words", "num_chunks", "num_entries"),
        *("pairs_per_row", "num_sets", "reach"),
    }
)


def jit(function: Callable[..., Any]) -> Any:
    """`triton.jit` without specialization on UNSPECIALIZED. The result is launched as kernel[grid](...), or called from other kernels."""
    names = [name for name in signature(function).parameters if name in UNSPECIALIZED]
    return triton.jit(function, do_not_specialize=names)


def is_interpreting() -> bool:
    """Whether kernels run in triton's interpreter."""
    return bool(knobs.runtime.interpret)


def current_device() -> torch.device:
    """The device that kernels of this thread run on: the current GPU, the CPU in the interpreter, or meta while launches are recorded."""
    if PRETENDED.get() is not None:
        return torch.device("meta")
    return torch.device("cpu") if is_interpreting() else torch.device("cuda", torch.cuda.current_device())


def check_device(device: torch.device) -> None:
    """Raise ValueError unless kernels can run on tensors of this device, or be recorded."""
    is_recorded = device.type == "meta" and PRETENDED.get() is not None
    if device.type != "cuda" and not is_recorded and not (device.type == "cpu" and is_interpreting()):
        raise ValueError(
            f"device = {device}: the triton backend supports cuda, and cpu if TRITON_INTERPRET=1 was set before triton was imported"
        )
