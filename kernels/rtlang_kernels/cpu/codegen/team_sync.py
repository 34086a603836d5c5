"""Synchronization of threads that run one compiled kernel together: shared counters, and meeting points at which all wait for all.

A thread waits by polling for some tens of microseconds, which is less than waking a thread costs; then it lets other threads of the system
run between two polls.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from functools import cache
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from rtlang_kernels.cpu.codegen.llvm_bridge import INT32
from rtlang_kernels.cpu.codegen.vector_builder import INT64, call
from rtlang_kernels.host.numba_jit import kernel

POLLS = 1000  # before other threads of the system may run
_IS_X86 = platform.machine().lower() in {"x86_64", "amd64"}
_IS_ARM = platform.machine().lower() in {"aarch64", "arm64"}


@cache
def yield_address() -> int:
    """Address of the system's function by which a thread gives up the rest of its turn; 0 if there is none."""
    if sys.platform == "win32":
        function = ctypes.WinDLL("kernel32").SwitchToThread
    else:
        function = getattr(ctypes.CDLL(None), "sched_yield", None)
    return ctypes.cast(function, ctypes.c_void_p).value or 0 if function is not None else 0


@intrinsic  # type: ignore[untyped-decorator]
def fetch_add(typing_context: Any, address: Any, value: Any) -> Any:
    """fetch_add(address, value): add to a shared int64; returns what it was."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", builder.inttoptr(args[0], INT64.as_pointer()), args[1], "seq_cst")

    return types.int64(types.int64, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def fetch(typing_context: Any, address: Any) -> Any:
    """fetch(address): a shared int64; what other threads wrote before they changed it is visible afterwards."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(builder.inttoptr(args[0], INT64.as_pointer()), "acquire", 8, typ=INT64)

    return types.int64(types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def pause(typing_context: Any) -> Any:
    """pause(): tell the processor that this thread polls."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if _IS_X86:
            call(builder, "llvm.x86.sse2.pause", ir.VoidType())
        elif _IS_ARM:
            call(builder, "llvm.aarch64.hint", ir.VoidType(), INT32(1))
        return context.get_dummy_value()

    return types.none(), generate


@intrinsic  # type: ignore[untyped-decorator]
def call_plain(typing_context: Any, address: Any) -> Any:
    """call_plain(address): call a C function without arguments; its result is ignored."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        function = ir.FunctionType(INT32, [])
        builder.call(builder.inttoptr(args[0], function.as_pointer()), [])
        return context.get_dummy_value()

    return types.none(types.int64), generate


@kernel(inline=True)
def meet(arrivals: Any, expected: Any, give_way: Any) -> None:
    """Count this thread at a meeting point and wait until `expected` have been counted, those of earlier points included.

    arrivals: address of the shared counter.  give_way: from `yield_address`.
    """
    fetch_add(arrivals, 1)
    polls = 0
    while fetch(arrivals) < expected:
        polls += 1
        if polls > POLLS and give_way != 0:
            call_plain(give_way)
        else:
            pause()
