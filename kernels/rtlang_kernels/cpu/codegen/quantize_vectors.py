"""Vector code that quantizes a row of inputs to bytes: the largest magnitude of a line, and its values as multiples of a scale.

Kernels that use this code must be compiled with `is_exact`.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from rtlang_kernels.cpu.codegen.llvm_bridge import INT32
from rtlang_kernels.cpu.codegen.vector_builder import (
    Lanes,
    call,
    constant,
    literal_values,
    maximum,
    splat,
    store,
    typed_intrinsic,
)

ZERO_POINT, LARGEST = 128, 127  # byte of 0, and largest magnitude
INT8 = ir.IntType(8)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def largest_magnitude(typing_context: Any, line: Any, so_far: Any, is_bf16: Any, size: Any) -> Any:
    """largest_magnitude(line, so_far, is_bf16, size): largest of so_far and the magnitudes of a stored line.

    NaN if one of them is not finite.
    """
    constants = literal_values(is_bf16, size)
    if constants is None:
        return None
    lanes = Lanes(bool(constants[0]), constants[1], is_ordered=True)

    def emit(builder: Any, line: Any, so_far: Any) -> Any:
        width = lanes.width
        largest, poison = constant(0.0, width), constant(0.0, width)
        for vector in lanes.load(builder, line):
            magnitude = call(builder, f"llvm.fabs.v{width}f32", vector.type, vector)
            largest = maximum(builder, magnitude, largest)
            poison = builder.fadd(poison, builder.fmul(vector, constant(0.0, width)))
        largest = builder.fadd(largest, poison)
        result = so_far
        for lane in range(width):
            value = builder.extract_element(largest, INT32(lane))
            is_larger = builder.fcmp_unordered(">", value, result)  # or either is NaN
            is_kept = builder.fcmp_unordered("uno", result, result)
            result = builder.select(builder.and_(is_larger, builder.not_(is_kept)), value, result)
        return result

    return typed_intrinsic(types.float32, (types.int64, types.float32, is_bf16, size), 2, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def quantized(typing_context: Any, line: Any, inverse: Any, target: Any, is_bf16: Any, size: Any) -> Any:
    """quantized(line, inverse, target, is_bf16, size): bytes of line * inverse, rounded to nearest even, around ZERO_POINT."""
    constants = literal_values(is_bf16, size)
    if constants is None:
        return None
    lanes = Lanes(bool(constants[0]), constants[1], is_ordered=True)

    def emit(builder: Any, line: Any, inverse: Any, target: Any) -> None:
        width = lanes.width
        factors, words = splat(builder, inverse, width), ir.VectorType(INT32, width)
        low, high = constant(-float(LARGEST), width), constant(float(LARGEST), width)
        for index, vector in enumerate(lanes.load(builder, line)):
            scaled = maximum(builder, builder.fmul(vector, factors), low)  # NaN becomes low
            scaled = builder.select(builder.fcmp_ordered("<", scaled, high), scaled, high)
            whole = builder.fptosi(call(builder, f"llvm.rint.v{width}f32", vector.type, scaled), words)
            shifted = builder.add(whole, ir.Constant(words, [ZERO_POINT] * width))
            store(builder, builder.trunc(shifted, ir.VectorType(INT8, width)), target, width * index)

    return typed_intrinsic(types.void, (types.int64, types.float32, types.int64, is_bf16, size), 2, emit)
