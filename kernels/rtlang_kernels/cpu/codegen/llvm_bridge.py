"""Scalar LLVM instructions that compiled CPU kernels need and Python cannot express, and calls of kernels by address.

bfloat16 is stored as uint16, since numpy has no such type: `widen` and `narrow` convert at load and store.
"""

from __future__ import annotations

import zlib
from functools import cache
from pathlib import Path
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.types.misc import unliteral
from numba.extending import intrinsic

INT16, INT32, FLOAT = ir.IntType(16), ir.IntType(32), ir.FloatType()


@cache
def source_digest() -> int:
    """Return a non-negative checksum of all sources of the CPU backend.

    numba's disk cache checks the modification time of the file that defines a kernel, not of the files it inlines from. A kernel whose
    closure contains this number is recompiled after any change to these sources.
    """
    return zlib.crc32(b"".join(path.read_bytes() for path in sorted(Path(__file__).parents[1].rglob("*.py"))))


@intrinsic  # type: ignore[untyped-decorator]
def widen(typing_context: Any, value: Any) -> Any:
    """The float32 value of a stored element: bfloat16 bits (uint16), or float32 itself."""
    is_bf16 = value == types.uint16

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if not is_bf16:
            return args[0]
        return builder.bitcast(builder.shl(builder.zext(args[0], INT32), INT32(16)), FLOAT)

    return types.float32(value), generate


@intrinsic  # type: ignore[untyped-decorator]
def narrow(typing_context: Any, value: Any, like: Any) -> Any:
    """A float32 as an element of the type of `like`: bfloat16 bits rounded to nearest even (uint16), or float32 itself."""
    is_bf16 = like == types.uint16

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if not is_bf16:
            return args[0]
        return builder.trunc(builder.lshr(round_to_bf16(builder, args[0]), INT32(16)), INT16)

    return like(types.float32, like), generate


def round_to_bf16(builder: Any, value: Any) -> Any:
    """Emit float32 bits (scalar or vector) whose upper half is the nearest bfloat16, ties to even; the lower half is undefined."""
    kind = ir.VectorType(INT32, value.type.count) if isinstance(value.type, ir.VectorType) else INT32

    def constant(number: int) -> Any:
        return ir.Constant(kind, [number] * kind.count if isinstance(kind, ir.VectorType) else number)

    word = builder.bitcast(value, kind)
    odd = builder.and_(builder.lshr(word, constant(16)), constant(1))
    rounded = builder.add(word, builder.add(odd, constant(0x7FFF)))
    is_nan = builder.fcmp_unordered("uno", value, value)
    return builder.select(is_nan, constant(0x7FC00000), rounded)


@intrinsic  # type: ignore[untyped-decorator]
def as_bits(typing_context: Any, value: Any) -> Any:
    """The int32 with the bits of a float32."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], INT32)

    return types.int32(types.float32), generate


@intrinsic  # type: ignore[untyped-decorator]
def from_bits(typing_context: Any, value: Any) -> Any:
    """The float32 with the bits of an int32."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], FLOAT)

    return types.float32(types.int32), generate


def address_of(compiled: Any, arguments: tuple[Any, ...]) -> int:
    """Address of the machine code of a kernel for these numba types, for `invoke`. Compiles it or loads it from the disk cache.

    Valid for the lifetime of the kernel.
    """
    if arguments not in compiled.overloads:
        compiled.compile(arguments)
    overload = compiled.overloads[arguments]
    return int(overload.library.get_pointer_to_function(overload.fndesc.llvm_func_name))


@intrinsic  # type: ignore[untyped-decorator]
def invoke(typing_context: Any, address: Any, arguments: Any) -> Any:
    """invoke(address, (argument, ...)): call a kernel that returns nothing and raises nothing, at an address from `address_of`.

    Argument types are not checked, so compile the caller for one signature only. A call by name would inline the kernel into the caller and
    prevent the caller from being cached on disk.
    """
    kinds = [unliteral(kind) for kind in arguments]

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = [
            context.cast(builder, builder.extract_value(args[1], index), kind, unliteral(kind))
            for index, kind in enumerate(signature.args[1])
        ]
        function = context.call_conv.get_function_type(types.none, kinds)
        callee = builder.inttoptr(args[0], function.as_pointer())
        context.call_conv.call_function(builder, callee, types.none, kinds, values)
        return context.get_dummy_value()

    return types.none(types.int64, arguments), generate
