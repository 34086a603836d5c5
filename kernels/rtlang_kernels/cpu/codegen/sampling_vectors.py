"""Vector code of sampling: mask and scale logits, compare noise with a bound, exponentials. Nothing is fused or reordered.

The arithmetic repeats `reference.noise`, operation by operation. The last arguments are compile-time constants.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from rtlang_kernels.cpu.codegen.llvm_bridge import FLOAT, INT32
from rtlang_kernels.cpu.codegen.vector_builder import (
    INT64,
    Lanes,
    call,
    constant,
    literal_values,
    load,
    maximum,
    splat,
    store,
    typed_intrinsic,
)
from rtlang_kernels.reference import noise

WORD = 32  # tokens per word of a bitmask
GROUP = 64  # tokens that share one bound: 16 Philox blocks
BLOCKS = GROUP // 4


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def masked(typing_context: Any, line: Any, word: Any, factor: Any, target: Any, is_bf16: Any) -> Any:
    """masked(line, word, factor, target, is_bf16): float32 target := 32 logits * factor, -inf where a bit of the word is 0.

    Returns a non-zero int32 if one of the logits is NaN.
    """
    constants = literal_values(is_bf16)
    if constants is None:
        return None
    lanes = Lanes(bool(constants[0]), WORD, is_ordered=True)

    def emit(builder: Any, line: Any, word: Any, factor: Any, target: Any) -> Any:
        factors, lowest = splat(builder, factor, 16), constant(float("-inf"), 16)
        bits = builder.bitcast(word, ir.VectorType(ir.IntType(1), WORD))
        flags = INT32(0)
        for i, vector in enumerate(lanes.load(builder, line)):
            lane = ir.Constant(ir.VectorType(INT32, 16), list(range(16 * i, 16 * i + 16)))
            allowed = builder.shuffle_vector(bits, bits, lane)
            is_nan = builder.bitcast(builder.fcmp_unordered("uno", vector, vector), ir.IntType(16))
            flags = builder.or_(flags, builder.zext(is_nan, INT32))
            store(builder, builder.select(allowed, builder.fmul(vector, factors), lowest), target, 64 * i)
        return flags

    return typed_intrinsic(types.int32, (types.int64, types.int32, types.float32, types.int64, is_bf16), 1, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def element_at(typing_context: Any, address: Any, is_bf16: Any) -> Any:
    """element_at(address, is_bf16): load one stored element as float32."""
    constants = literal_values(is_bf16)
    if constants is None:
        return None

    def emit(builder: Any, address: Any) -> Any:
        if not constants[0]:
            return load(builder, FLOAT, address, 0)
        half = builder.zext(load(builder, ir.IntType(16), address, 0), INT32)
        return builder.bitcast(builder.shl(half, INT32(16)), FLOAT)

    return typed_intrinsic(types.float32, (types.int64, is_bf16), 1, emit)


@intrinsic  # type: ignore[untyped-decorator]
def noise_below(typing_context: Any, key: Any, step: Any, block: Any, limit: Any, target: Any) -> Any:
    """noise_below(key, step, block, limit, target): store Philox words of 16 counters from `block` on as uint32 [4, 16] (lane first).

    Returns one bit per word, in the stored order: whether the word is at most `limit`.
    """

    def emit(builder: Any, key: Any, step: Any, block: Any, limit: Any, target: Any) -> Any:
        wide, narrow = ir.VectorType(INT64, BLOCKS), ir.VectorType(INT32, BLOCKS)

        def number(value: int) -> Any:
            return ir.Constant(wide, [value] * BLOCKS)

        low, shift = number(noise.MASK_32), number(32)
        words = [
            builder.add(splat(builder, block, BLOCKS), ir.Constant(wide, list(range(BLOCKS)))),
            splat(builder, builder.and_(step, INT64(noise.MASK_32)), BLOCKS),
            splat(builder, builder.lshr(step, INT64(32)), BLOCKS),
            number(0),
        ]
        k0, k1 = builder.and_(key, INT64(noise.MASK_32)), builder.lshr(key, INT64(32))
        for _ in range(10):
            first = builder.mul(words[0], number(noise.PHILOX_M0))
            second = builder.mul(words[2], number(noise.PHILOX_M1))
            words = [
                builder.xor(builder.xor(builder.lshr(second, shift), words[1]), splat(builder, k0, BLOCKS)),
                builder.and_(second, low),
                builder.xor(builder.xor(builder.lshr(first, shift), words[3]), splat(builder, k1, BLOCKS)),
                builder.and_(first, low),
            ]
            k0 = builder.and_(builder.add(k0, INT64(noise.PHILOX_W0)), INT64(noise.MASK_32))
            k1 = builder.and_(builder.add(k1, INT64(noise.PHILOX_W1)), INT64(noise.MASK_32))
        limits = splat(builder, limit, BLOCKS)
        result = INT64(0)
        for lane, word in enumerate(words):
            store(builder, builder.trunc(word, narrow), target, 4 * BLOCKS * lane)
            below = builder.bitcast(builder.icmp_unsigned("<=", word, limits), ir.IntType(BLOCKS))
            result = builder.or_(result, builder.shl(builder.zext(below, INT64), INT64(BLOCKS * lane)))
        return result

    return typed_intrinsic(types.int64, (types.int64,) * 5, 0, emit)


@intrinsic  # type: ignore[untyped-decorator]
def exponentials(typing_context: Any, scaled: Any, top: Any, target: Any) -> Any:
    """exponentials(scaled, top, target): exp(scaled - top) of 16 float32, as in `noise.exp`."""

    def emit(builder: Any, scaled: Any, top: Any, target: Any) -> None:
        kind, integers = ir.VectorType(FLOAT, 16), ir.VectorType(INT32, 16)
        floor = constant(float(noise.EXP_FLOOR), 16)
        x = builder.fsub(load(builder, kind, scaled, 0), splat(builder, top, 16))
        is_low = builder.fcmp_ordered("<", x, floor)
        clamped = builder.fmul(builder.select(is_low, floor, x), constant(float(noise.LOG2_E), 16))
        whole = call(builder, "llvm.rint.v16f32", kind, clamped)
        rest = builder.fsub(clamped, whole)
        series = constant(float(noise.EXP2_COEFFICIENTS[-1]), 16)
        for coefficient in noise.EXP2_COEFFICIENTS[-2::-1]:
            series = builder.fadd(builder.fmul(series, rest), constant(float(coefficient), 16))
        power = builder.add(builder.fptosi(whole, integers), ir.Constant(integers, [127] * 16))
        factor = builder.bitcast(builder.shl(power, ir.Constant(integers, [23] * 16)), kind)
        store(builder, builder.select(is_low, constant(0.0, 16), builder.fmul(series, factor)), target, 0)

    return typed_intrinsic(types.void, (types.int64, types.float32, types.int64), 0, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def largest(typing_context: Any, scores: Any, width: Any) -> Any:
    """largest(scores, width): the maximum of `width` float32."""
    constants = literal_values(width)
    if constants is None:
        return None
    kind = ir.VectorType(FLOAT, constants[0])

    def emit(builder: Any, scores: Any) -> Any:
        vector = load(builder, kind, scores, 0)
        while vector.type.count > 1:
            half = vector.type.count // 2
            mask = ir.VectorType(INT32, half)
            low = builder.shuffle_vector(vector, vector, ir.Constant(mask, list(range(half))))
            high = builder.shuffle_vector(vector, vector, ir.Constant(mask, list(range(half, 2 * half))))
            vector = maximum(builder, low, high)
        return builder.extract_element(vector, INT32(0))

    return typed_intrinsic(types.float32, (types.int64, width), 1, emit)
