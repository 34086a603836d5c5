"""Permission to use matrix tiles (AMX), which Linux gives a process on request.

Tiles are large, so the system saves them only for processes that ask. Without permission, the first instruction ends the process. A child
inherits the permission.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Callable
from functools import cache

# Linux on x86-64: number of arch_prctl, two of its operations, and the component of the processor's state that holds tiles.
_ARCH_PRCTL, _GET_PERMISSION, _REQUEST_PERMISSION, _TILE_DATA = 158, 0x1022, 0x1023, 18


@cache
def tile_refusal() -> str | None:
    """Request permission for this process. Returns the reason why it has none, or None if it has."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return "tiles are used on Linux for x86-64 only"
    try:
        return _refusal(ctypes.CDLL(None, use_errno=True).syscall)
    except (OSError, AttributeError) as error:
        return f"the C library has no syscall function: {error}"


def _refusal(syscall: Callable[..., int]) -> str | None:
    """The same through a function of the C library."""
    request, granted = ctypes.c_ulong(_REQUEST_PERMISSION), ctypes.c_uint64(0)
    if syscall(ctypes.c_long(_ARCH_PRCTL), request, ctypes.c_ulong(_TILE_DATA)):
        # Also if the stack for signals of a thread is too small for tiles.
        return f"Linux refused permission: {os.strerror(ctypes.get_errno())}"
    if syscall(ctypes.c_long(_ARCH_PRCTL), ctypes.c_ulong(_GET_PERMISSION), ctypes.byref(granted)):
        return f"Linux did not confirm permission: {os.strerror(ctypes.get_errno())}"
    return None if granted.value >> _TILE_DATA & 1 else "Linux did not confirm permission"
