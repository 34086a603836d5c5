"""The one place where triton's untyped decorator meets typed code, and the question whether its interpreter runs.

With TRITON_INTERPRET=1 set before triton is first imported, kernels run on CPU tensors in Python: slow, and exact enough to test with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
from triton import knobs


def jit(function: Callable[..., Any]) -> Any:
    """`triton.jit`; the result is launched as kernel[grid](...), or called from other kernels."""
    return triton.jit(function)


def is_interpreting() -> bool:
    """Whether kernels run in triton's interpreter."""
    return bool(knobs.runtime.interpret)


def check_device(device: torch.device) -> None:
    """Raise ValueError unless kernels can run on tensors of this device."""
    if device.type != "cuda" and not (device.type == "cpu" and is_interpreting()):
        raise ValueError(
            f"the triton column needs a GPU, not {device}; on CPU tensors it runs with TRITON_INTERPRET=1 "
            "set before triton is imported"
        )
