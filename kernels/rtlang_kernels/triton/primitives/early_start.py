"""Early start of kernels on NVIDIA from sm_90 on (programmatic dependent launch).

A kernel that is launched with it starts while the one before it in the stream ends, and waits before it reads anything: its launch and the
start of its programs overlap with the end of the other. All programs wait first and return only then, so a kernel that has ended implies
that those before it have; kernels launched as usual need not know. Where a kernel is not launched so, both instructions do nothing.
RTLANG_EARLY_START=0, read at the first launch on a device, turns it off. Ahead-of-time compilation checks that nothing is read or written
before the wait.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import torch

from rtlang_kernels.planning.tile_sizes import SM_90, gpu_properties
from rtlang_kernels.triton.primitives.jit import is_interpreting, jit

try:
    from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait
except ImportError:  # a triton without NVIDIA's part, whose kernels do not call them
    gdc_launch_dependents = gdc_wait = None


@jit
def wait_for_inputs() -> None:
    """Wait for the kernel before this one, then let the next one start. Must be the first statement of a kernel."""
    gdc_wait()
    gdc_launch_dependents()


LATE: Mapping[str, Any] = MappingProxyType({"EARLY": False})
"""Arguments of a launch that begins after the kernel before it."""
EARLY: Mapping[str, Any] = MappingProxyType({"EARLY": True, "launch_pdl": True})


def early_start(device: torch.device) -> Mapping[str, Any]:
    """Arguments of a launch on this device: EARLY where the processor can start kernels early, else LATE."""
    if is_interpreting() or gpu_properties(device).arch != SM_90:
        return LATE
    return LATE if _is_off(device) else EARLY


@cache
def _is_off(device: torch.device) -> bool:
    del device
    return os.environ.get("RTLANG_EARLY_START") == "0"
