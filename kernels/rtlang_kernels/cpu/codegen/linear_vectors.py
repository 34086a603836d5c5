"""Vector code of linear layers for a few rows: computes one block of outputs at a time and reads the weights in memory order.

A block holds the weights of `BLOCK` outputs for all inputs: for every pair of inputs, their weights for one output after another (bfloat16:
two in a word; float32: a line of the first input, then one of the second). A vector holds one weight of each of 16 outputs, so each input
needs one broadcast and no sum crosses lanes.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from rtlang_kernels.contract.fused_step import BLOCK
from rtlang_kernels.cpu.codegen.llvm_bridge import FLOAT, INT32
from rtlang_kernels.cpu.codegen.vector_builder import (
    INT64,
    Lanes,
    call,
    constant,
    literal_values,
    load,
    multiply_add,
    splat,
    typed_intrinsic,
)

WIDTH = 16
AHEAD = 2048  # prefetch distance in bytes


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def multiply_block(
    typing_context: Any,
    x: Any,
    x_stride: Any,
    weight: Any,
    num_pairs: Any,
    bias: Any,
    target: Any,
    target_stride: Any,
    is_bf16: Any,
    rows: Any,
) -> Any:
    """multiply_block(x, x_stride, weight, num_pairs, bias, target, target_stride, is_bf16, rows): one block of outputs for `rows` rows.

    x: float32 lines of 2 * num_pairs inputs; bias: float32 line of a block; target: stored lines. Strides in bytes between rows.
    """
    constants = literal_values(is_bf16, rows)
    if constants is None:
        return None
    stored, num_rows = Lanes(bool(constants[0]), BLOCK, is_ordered=True), constants[1]
    floats, words = ir.VectorType(FLOAT, WIDTH), ir.VectorType(INT32, WIDTH)
    parts = BLOCK // WIDTH

    def emit(
        builder: Any, x: Any, x_stride: Any, weight: Any, num_pairs: Any, bias: Any, target: Any, target_stride: Any
    ) -> None:
        def weights_at(address: Any) -> list[Any]:
            """Load the vectors of a pair: all of the first input, then all of the second."""
            if not stored.is_bf16:
                return [load(builder, floats, address, 4 * WIDTH * i) for i in range(2 * parts)]
            loaded = [load(builder, words, address, 4 * WIDTH * i) for i in range(parts)]
            first = [builder.shl(word, ir.Constant(words, [16] * WIDTH)) for word in loaded]
            second = [builder.and_(word, ir.Constant(words, [0xFFFF0000] * WIDTH)) for word in loaded]
            return [builder.bitcast(word, floats) for word in first + second]

        lines = [builder.add(x, builder.mul(x_stride, INT64(row))) for row in range(num_rows)]
        # One row has too few sums to keep the multipliers busy, so each input of a pair gets a sum of its own.
        num_sums = 2 * parts if num_rows == 1 else parts
        sums = [[cgutils.alloca_once(builder, floats) for _ in range(num_sums)] for _ in lines]
        for row_sums in sums:
            for total in row_sums:
                builder.store(constant(0.0, WIDTH), total)
        pair_bytes = 2 * BLOCK * (2 if stored.is_bf16 else 4)
        with cgutils.for_range(builder, num_pairs) as loop:
            address = builder.add(weight, builder.mul(loop.index, INT64(pair_bytes)))
            for skip in range(0, pair_bytes, 64):
                pointer = builder.inttoptr(builder.add(address, INT64(AHEAD + skip)), ir.IntType(8).as_pointer())
                call(builder, "llvm.prefetch.p0", ir.VoidType(), pointer, INT32(0), INT32(3), INT32(1))
            vectors = weights_at(address)
            for line, row_sums in zip(lines, sums, strict=True):
                at = builder.add(line, builder.mul(loop.index, INT64(8)))
                inputs = [splat(builder, load(builder, FLOAT, at, 4 * i), WIDTH) for i in range(2)]
                for i, vector in enumerate(vectors):
                    total = row_sums[i % num_sums]
                    builder.store(multiply_add(builder, vector, inputs[i // parts], builder.load(total)), total)
        for row, row_sums in enumerate(sums):
            results = []
            for i in range(parts):
                result = load(builder, floats, bias, 4 * WIDTH * i)
                for total in row_sums[i::parts]:
                    result = builder.fadd(result, builder.load(total))
                results.append(result)
            stored.store(builder, results, builder.add(target, builder.mul(target_stride, INT64(row))))

    return typed_intrinsic(types.void, (*(types.int64,) * 7, is_bf16, rows), 2, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def widened(typing_context: Any, line: Any, target: Any, is_bf16: Any, size: Any) -> Any:
    """widened(line, target, is_bf16, size): convert the stored line to float32 and write it to target, in memory order."""
    constants = literal_values(is_bf16, size)
    if constants is None:
        return None
    lanes = Lanes(bool(constants[0]), constants[1], is_ordered=True)

    def emit(builder: Any, line: Any, target: Any) -> None:
        lanes.store_float(builder, lanes.load(builder, line), target)

    return typed_intrinsic(types.void, (types.int64, types.int64, is_bf16, size), 2, emit)
