"""The one place where triton's untyped decorator meets typed code, and the question whether its interpreter runs.

With TRITON_INTERPRET=1 set before triton is first imported, kernels run on CPU tensors in Python: slow, and exact enough to test with.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import torch
import triton
from triton import knobs

# Whole numbers that change from step to step, or from one request to the next: triton would compile a kernel anew, in the middle of
# serving, for one that is 1 or becomes a multiple of 16.
VARYING = frozenset({"num_rows", "num_tokens", "num_states", "num_top", "num_words", "num_chunks", "num_entries"})


def jit(function: Callable[..., Any]) -> Any:
    """`triton.jit`; the result is launched as kernel[grid](...), or called from other kernels. Code does not depend on VARYING."""
    names = [name for name in signature(function).parameters if name in VARYING]
    return triton.jit(function, do_not_specialize=names)


def is_interpreting() -> bool:
    """Whether kernels run in triton's interpreter."""
    return bool(knobs.runtime.interpret)


def check_device(device: torch.device) -> None:
    """Raise ValueError unless kernels can run on tensors of this device."""
    if device.type != "cuda" and not (device.type == "cpu" and is_interpreting()):
        raise ValueError(
            f"the triton backend needs a GPU, not {device}; on CPU tensors it runs with TRITON_INTERPRET=1 "
            "set before triton is imported"
        )
