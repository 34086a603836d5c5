"""Building blocks of vector code: emit LLVM instructions for lines of elements, and wrap them as functions for numba.

bfloat16 is unpacked two elements per 32-bit word: the low half by a shift, the high half by a mask. The elements of a line are therefore
permuted in registers (in each group of 32, even ones, then odd ones). The permutation is the same in every load, and `Lanes.store` reverses
it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba.core import types

from rtlang_kernels.cpu.codegen.llvm_bridge import FLOAT, INT16, INT32, round_to_bf16

INT64 = ir.IntType(64)
FAST = ("reassoc", "contract", "nsz")
EXP2_SERIES = (1.0, 0.69314718, 0.24022646, 0.05550329, 0.0096185195, 0.00133998604, 0.000153375768)
EXP2_FLOOR, EXP2_CEILING = -126.0, 126.0
TWICE_LOG2_E = 2.8853900432586670  # a float32


def splat(builder: Any, value: Any, count: int) -> Any:
    """Emit a vector that repeats the scalar `count` times."""
    vector = ir.VectorType(value.type, count)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), value, INT32(0))
    zeros = ir.Constant(ir.VectorType(INT32, count), [0] * count)
    return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), zeros)


def constant(number: float, count: int) -> Any:
    """Create a constant float32 vector."""
    return ir.Constant(ir.VectorType(FLOAT, count), [number] * count)


def multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """Emit a * b + c, fused if the target supports it."""
    return builder.fadd(builder.fmul(a, b, flags=FAST), c, flags=FAST)


def load(builder: Any, kind: Any, address: Any, offset_bytes: int) -> Any:
    """Emit a load with an alignment of two bytes."""
    pointer = builder.inttoptr(builder.add(address, INT64(offset_bytes)), kind.as_pointer())
    return builder.load(pointer, align=2, typ=kind)


def store(builder: Any, value: Any, address: Any, offset_bytes: int) -> None:
    """Emit a store with an alignment of two bytes."""
    pointer = builder.inttoptr(builder.add(address, INT64(offset_bytes)), value.type.as_pointer())
    builder.store(value, pointer, align=2)


def stack_memory(builder: Any, num_bytes: int) -> Any:
    """Emit the address of memory on the stack, aligned to a cache line and not initialized, that is valid until the function returns.

    numba's `alloca_once` stores a zero per element instead, which takes seconds to compile for some kilobytes.
    """
    with builder.goto_entry_block():
        memory = builder.alloca(ir.ArrayType(ir.IntType(8), num_bytes))
        memory.align = 64
        return builder.ptrtoint(memory, INT64)


def call(builder: Any, name: str, result: Any, *args: Any) -> Any:
    """Emit a call of an LLVM intrinsic."""
    signature = ir.FunctionType(result, [arg.type for arg in args])
    return builder.call(builder.module.declare_intrinsic(name, fnty=signature), args)


def maximum(builder: Any, a: Any, b: Any) -> Any:
    """Emit the larger of each pair; b if either is NaN."""
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


def reduce_to(builder: Any, vectors: list[Any], count: int, flags: tuple[str, ...] = FAST) -> Any:
    """Emit one vector with the sum of each of `count` (a power of two) vectors, by pairwise addition of neighbours.

    Without `flags`, the order of the additions is the same wherever this is emitted.
    """
    while len(vectors) > 1 or vectors[0].type.count > count:
        width = vectors[0].type.count
        pairs = vectors if len(vectors) == 1 else vectors[0::2]
        others = vectors if len(vectors) == 1 else vectors[1::2]
        reach = width if len(vectors) == 1 else 2 * width
        mask = ir.VectorType(INT32, reach // 2)
        even = ir.Constant(mask, list(range(0, reach, 2)))
        odd = ir.Constant(mask, list(range(1, reach, 2)))
        vectors = [
            builder.fadd(builder.shuffle_vector(a, b, even), builder.shuffle_vector(a, b, odd), flags=flags)
            for a, b in zip(pairs, others, strict=True)
        ]
    return vectors[0]


def exp2(builder: Any, x: Any) -> Any:
    """Emit 2**x of a float32 vector; below -126 the result is about 1e-38 instead of a smaller number."""
    count = x.type.count
    integers = ir.VectorType(INT32, count)
    name = f"llvm.rint.v{count}f32"
    clamped = maximum(builder, x, constant(EXP2_FLOOR, count))
    clamped = builder.select(
        builder.fcmp_ordered("<", clamped, constant(EXP2_CEILING, count)), clamped, constant(EXP2_CEILING, count)
    )
    clamped = builder.select(builder.fcmp_unordered("uno", x, x), x, clamped)
    whole = call(builder, name, x.type, clamped)
    rest = builder.fsub(clamped, whole)
    series = constant(EXP2_SERIES[-1], count)
    for coefficient in EXP2_SERIES[-2::-1]:
        series = multiply_add(builder, series, rest, constant(coefficient, count))
    safe = builder.select(builder.fcmp_ordered("ord", whole, whole), whole, constant(0.0, count))
    power = builder.add(builder.fptosi(safe, integers), ir.Constant(integers, [127] * count))
    return builder.fmul(series, builder.bitcast(builder.shl(power, ir.Constant(integers, [23] * count)), x.type))


@dataclass(frozen=True, slots=True)
class Lanes:
    """Vectors over a line of `size` elements of one type. `is_ordered` keeps bfloat16 in memory order, at some cost."""

    is_bf16: bool
    size: int
    is_ordered: bool = False

    @property
    def width(self) -> int:
        """Number of elements of one vector."""
        return next(width for width in (16, 8, 4, 2, 1) if self.size % width == 0)

    @property
    def is_paired(self) -> bool:
        """Whether bfloat16 is unpacked two per word."""
        return self.is_bf16 and self.size % 32 == 0 and not self.is_ordered

    def load(self, builder: Any, address: Any) -> list[Any]:
        """Emit the loads of a stored line as float32 vectors, in the permuted order."""
        width, result = self.width, []
        if not self.is_bf16:
            return self.load_float(builder, address)
        words = ir.VectorType(INT32, width)
        floats = ir.VectorType(FLOAT, width)
        sixteen = ir.Constant(words, [16] * width)
        if self.is_paired:
            high = ir.Constant(words, [0xFFFF0000] * width)
            for i in range(self.size // 32):
                word = load(builder, words, address, 64 * i)
                result += [builder.shl(word, sixteen), builder.and_(word, high)]
        else:
            for i in range(self.size // width):
                word = builder.zext(load(builder, ir.VectorType(INT16, width), address, 2 * width * i), words)
                result.append(builder.shl(word, sixteen))
        return [builder.bitcast(word, floats) for word in result]

    def load_float(self, builder: Any, address: Any) -> list[Any]:
        """Emit the loads of a float32 line in working memory."""
        kind = ir.VectorType(FLOAT, self.width)
        return [load(builder, kind, address, 4 * self.width * i) for i in range(self.size // self.width)]

    def store_float(self, builder: Any, vectors: list[Any], address: Any) -> None:
        """Emit the stores of a float32 line in working memory."""
        for i, vector in enumerate(vectors):
            store(builder, vector, address, 4 * self.width * i)

    def store(self, builder: Any, vectors: list[Any], address: Any) -> None:
        """Emit the stores of a line in its stored type and memory order."""
        if not self.is_bf16:
            self.store_float(builder, vectors, address)
            return
        words = ir.VectorType(INT32, self.width)
        sixteen = ir.Constant(words, [16] * self.width)
        rounded = [round_to_bf16(builder, vector) for vector in vectors]
        if self.is_paired:
            high = ir.Constant(words, [0xFFFF0000] * self.width)
            for i in range(self.size // 32):
                word = builder.or_(builder.lshr(rounded[2 * i], sixteen), builder.and_(rounded[2 * i + 1], high))
                store(builder, word, address, 64 * i)
        else:
            for i, word in enumerate(rounded):
                half = builder.trunc(builder.lshr(word, sixteen), ir.VectorType(INT16, self.width))
                store(builder, half, address, 2 * self.width * i)


Emitter = Callable[..., Any]


def typed_intrinsic(result: Any, arguments: tuple[Any, ...], num_constants: int, emit: Emitter) -> Any:
    """Return the pair that numba expects of an intrinsic: a signature, and code that calls emit(builder, *non-constant values)."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        value = emit(builder, *values[: len(values) - num_constants])
        return context.get_dummy_value() if value is None else value

    return result(*arguments), generate


def literal_values(*arguments: Any) -> list[int] | None:
    """The values of compile-time constants; None while numba types the call without literals."""
    if not all(isinstance(argument, types.IntegerLiteral) for argument in arguments):
        return None
    return [argument.literal_value for argument in arguments]
