"""What compiled CPU kernels need beside `host_code.kernel`: the few scalar instructions that Python cannot say.

bfloat16 is held as uint16, since numpy has no such type: `widen` and `narrow` convert at load and store.
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
    """float32 of a stored element: bfloat16 bits (uint16) or float32 itself."""
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
    """Emit: bits of float32 (or a vector of them) whose upper half is the nearest bfloat16, ties to even; the lower half is noise."""
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
    """Address of a kernel's machine code for these numba types, for `invoke`; compiles it or takes it from the disk cache.

    Valid for as long as the kernel lives.
    """
    if arguments not in compiled.overloads:
        compiled.compile(arguments)
    overload = compiled.overloads[arguments]
    return int(overload.library.get_pointer_to_function(overload.fndesc.llvm_func_name))


@intrinsic  # type: ignore[untyped-decorator]
def invoke(typing_context: Any, address: Any, arguments: Any) -> Any:
    """invoke(address, (argument, ...)): call a kernel that returns and raises nothing, at what `address_of` gave for these types.

    Nothing checks the types: let the caller be compiled for one signature alone.

    Inside compiled code; a call by name would have the kernel compiled into the caller, and take away the caller's place in the disk cache.
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
