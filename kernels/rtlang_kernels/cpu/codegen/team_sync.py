"""Synchronization of threads that run one compiled kernel together: atomic counters and barriers.

A thread spins at a barrier for some tens of microseconds, less than waking a thread costs; then it yields the processor between polls.
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

SPINS_BEFORE_YIELD = 1000
_IS_X86 = platform.machine().lower() in {"x86_64", "amd64"}
_IS_ARM = platform.machine().lower() in {"aarch64", "arm64"}


@cache
def yield_address() -> int:
    """Address of the system's function that yields the processor to other threads; 0 if there is none."""
    if sys.platform == "win32":
        function = ctypes.WinDLL("kernel32").SwitchToThread
    else:
        function = getattr(ctypes.CDLL(None), "sched_yield", None)
    return ctypes.cast(function, ctypes.c_void_p).value or 0 if function is not None else 0


@intrinsic  # type: ignore[untyped-decorator]
def fetch_add(typing_context: Any, address: Any, value: Any) -> Any:
    """fetch_add(address, value): add to an int64 atomically; returns its previous value."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", builder.inttoptr(args[0], INT64.as_pointer()), args[1], "seq_cst")

    return types.int64(types.int64, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def load_acquire(typing_context: Any, address: Any) -> Any:
    """load_acquire(address): load an int64 atomically; what other threads wrote before they changed it is visible afterwards."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(builder.inttoptr(args[0], INT64.as_pointer()), "acquire", 8, typ=INT64)

    return types.int64(types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def pause(typing_context: Any) -> Any:
    """pause(): tell the processor that this thread spins."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if _IS_X86:
            call(builder, "llvm.x86.sse2.pause", ir.VoidType())
        elif _IS_ARM:
            call(builder, "llvm.aarch64.hint", ir.VoidType(), INT32(1))
        return context.get_dummy_value()

    return types.none(), generate


@intrinsic  # type: ignore[untyped-decorator]
def call_void(typing_context: Any, address: Any) -> Any:
    """call_void(address): call a C function without arguments; its result is ignored."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        function = ir.FunctionType(INT32, [])
        builder.call(builder.inttoptr(args[0], function.as_pointer()), [])
        return context.get_dummy_value()

    return types.none(types.int64), generate


@kernel(inline=True)
def barrier(arrivals: Any, expected: Any, num_threads: Any, yield_function: Any) -> Any:
    """Count this thread as arrived and wait for all threads of the team. Returns the arrivals so far.

    arrivals: address of the shared counter.  expected: arrivals at earlier barriers, 0 at first.  yield_function: from `yield_address`.
    """
    expected += num_threads
    fetch_add(arrivals, 1)
    spins = 0
    while load_acquire(arrivals) < expected:
        spins += 1
        if spins > SPINS_BEFORE_YIELD and yield_function != 0:
            call_void(yield_function)
        else:
            pause()
    return expected
