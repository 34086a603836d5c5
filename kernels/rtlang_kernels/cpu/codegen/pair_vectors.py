"""Vector code over packed elements: pairs of bfloat16 (the first in the low half) or four bytes in a 32-bit word.

`dot` multiplies the pairs of two vectors of words and adds both products to one float32 lane. With `is_native` it is one instruction
(vdpbf16ps of AVX512-BF16, 16 lanes); otherwise the elements are widened to float32 and added by multiply-adds. Either way a sum is one
chain over its pairs, so its bits depend on the pairs only; the two forms round differently. Emitted code must not be reordered: compile
kernels that use it with `is_exact`.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from rtlang_kernels.cpu.codegen.llvm_bridge import FLOAT, INT16, INT32, round_to_bf16
from rtlang_kernels.cpu.codegen.vector_builder import INT64, call

INT8 = ir.IntType(8)
NATIVE_WIDTH = 16  # lanes of the native instructions
NEAREST, SECOND = 3, 2  # cache levels of `prefetch`


class BFloat16(ir.Type):  # type: ignore[misc]
    """LLVM's type bfloat, which llvmlite lacks; only its name is needed."""

    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BFloat16)

    def __hash__(self) -> int:
        return hash("bfloat")


def dot(builder: Any, total: Any, a: Any, b: Any, *, is_native: bool) -> Any:
    """Emit total + a.low * b.low + a.high * b.high per lane.

    Args:
        total: float32 vector.  a, b: vectors of words with as many lanes, 16 if `is_native`.
    """
    if is_native:
        return call(builder, f"llvm.x86.avx512bf16.dpbf16ps.{32 * NATIVE_WIDTH}", total.type, total, a, b)
    total = fused_add(builder, low_floats(builder, a), low_floats(builder, b), total)
    return fused_add(builder, high_floats(builder, a), high_floats(builder, b), total)


def dot_bytes(builder: Any, total: Any, unsigned: Any, signed: Any, *, is_native: bool) -> Any:
    """Emit total + the products of the four bytes of two words, per lane; exact, modulo 2**32.

    Args:
        total: int32 vector.  unsigned, signed: vectors of words, whose bytes are 0 to 255 and -128 to 127.
        is_native: use vpdpbusd, on 256 or 512 bits.
    """
    if is_native:
        return call(builder, f"llvm.x86.avx512.vpdpbusd.{32 * total.type.count}", total.type, total, unsigned, signed)

    def words(number: int) -> Any:
        return ir.Constant(total.type, [number] * total.type.count)

    for byte in range(4):
        a = builder.and_(builder.lshr(unsigned, words(8 * byte)), words(255))
        b = builder.ashr(builder.shl(signed, words(24 - 8 * byte)), words(24))
        total = builder.add(total, builder.mul(a, b))
    return total


def fused_add(builder: Any, a: Any, b: Any, total: Any) -> Any:
    """Emit total + a * b of float32 vectors: one rounding if the target has multiply-add, else two."""
    return call(builder, f"llvm.fmuladd.v{total.type.count}f32", total.type, a, b, total)


def low_floats(builder: Any, words: Any) -> Any:
    """Emit the first elements of the pairs as float32."""
    sixteen = ir.Constant(words.type, [16] * words.type.count)
    return builder.bitcast(builder.shl(words, sixteen), ir.VectorType(FLOAT, words.type.count))


def high_floats(builder: Any, words: Any) -> Any:
    """Emit the second elements of the pairs as float32."""
    mask = ir.Constant(words.type, [0xFFFF0000] * words.type.count)
    return builder.bitcast(builder.and_(words, mask), ir.VectorType(FLOAT, words.type.count))


def narrow(builder: Any, floats: Any, *, is_native: bool) -> Any:
    """Emit the bits (int16) of the nearest bfloat16 of each lane in order, ties to even: the pairs of a line as they lie in memory.

    The native instruction flushes denormal numbers to zero.
    """
    count = floats.type.count
    if is_native:
        result = ir.VectorType(BFloat16(), count)
        found = call(builder, f"llvm.x86.avx512bf16.cvtneps2bf16.{32 * count}", result, floats)
        return builder.bitcast(found, ir.VectorType(INT16, count))
    words = ir.VectorType(INT32, count)
    high = builder.lshr(round_to_bf16(builder, floats), ir.Constant(words, [16] * count))
    return builder.trunc(high, ir.VectorType(INT16, count))


def prefetch(builder: Any, address: Any, level: int) -> None:
    """Emit a request for the cache line at an address (int64), into the cache of `level`. The address need not be valid."""
    pointer = builder.inttoptr(address, INT8.as_pointer())
    call(builder, "llvm.prefetch.p0", ir.VoidType(), pointer, INT32(0), INT32(level), INT32(1))


def at(builder: Any, base: Any, *terms: Any) -> Any:
    """Emit an address: base plus each term, which is an int, or a pair (index, bytes per index)."""
    for term in terms:
        if isinstance(term, tuple):
            index, size = term
            term = builder.mul(index, INT64(size) if isinstance(size, int) else size)
        base = builder.add(base, INT64(term) if isinstance(term, int) else term)
    return base
