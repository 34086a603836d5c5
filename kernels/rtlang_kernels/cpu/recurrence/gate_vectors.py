"""Vector code of gates over short lines: the gated norm of a delta layer, and the sigmoid of gated attention.

Lines stay in memory order, and a line has the same bits wherever it is.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.extending import intrinsic

from rtlang_kernels.cpu.codegen.llvm_bridge import INT32
from rtlang_kernels.cpu.codegen.vector_builder import (
    Lanes,
    constant,
    literal_values,
    reduce_to,
    splat,
    store,
    typed_intrinsic,
)
from rtlang_kernels.cpu.recurrence.state_vectors import exp, silu


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def silu_gated(
    typing_context: Any, line: Any, weight: Any, factor: Any, gate: Any, target: Any, is_bf16: Any, size: Any
) -> Any:
    """silu_gated(line, weight, factor, gate, target, is_bf16, size): target := factor * line * weight * silu(gate).

    Args:
        line, gate, target: addresses of stored lines.  weight: address of a float32 line.  factor: float32.
    """
    constants = literal_values(is_bf16, size)
    if constants is None:
        return None
    lanes = Lanes(bool(constants[0]), constants[1], is_ordered=True)

    def emit(builder: Any, line: Any, weight: Any, factor: Any, gate: Any, target: Any) -> None:
        factors, results = splat(builder, factor, lanes.width), []
        parts = lanes.load(builder, line), lanes.load_float(builder, weight), lanes.load(builder, gate)
        for x, scale, each in zip(*parts, strict=True):
            normed = builder.fmul(builder.fmul(x, factors), scale)
            results.append(builder.fmul(normed, silu(builder, each)))
        lanes.store(builder, results, target)

    arguments = types.int64, types.int64, types.float32, types.int64, types.int64, is_bf16, size
    return typed_intrinsic(types.void, arguments, 2, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def sigmoid_gated(typing_context: Any, line: Any, gate: Any, is_bf16: Any, size: Any) -> Any:
    """sigmoid_gated(line, gate, is_bf16, size): stored line *= sigmoid(gate)."""
    constants = literal_values(is_bf16, size)
    if constants is None:
        return None
    lanes = Lanes(bool(constants[0]), constants[1], is_ordered=True)

    def emit(builder: Any, line: Any, gate: Any) -> None:
        results, ones = [], constant(1.0, lanes.width)
        for x, each in zip(lanes.load(builder, line), lanes.load(builder, gate), strict=True):
            power = exp(builder, builder.fsub(constant(-0.0, lanes.width), each))
            results.append(builder.fdiv(x, builder.fadd(ones, power)))
        lanes.store(builder, results, line)

    return typed_intrinsic(types.void, (types.int64, types.int64, is_bf16, size), 2, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def square_total(typing_context: Any, line: Any, is_bf16: Any, size: Any) -> Any:
    """square_total(line, is_bf16, size): sum of the squares of a stored line, in one order."""
    constants = literal_values(is_bf16, size)
    if constants is None:
        return None
    lanes = Lanes(bool(constants[0]), constants[1], is_ordered=True)

    def emit(builder: Any, line: Any) -> Any:
        squares = [builder.fmul(vector, vector) for vector in lanes.load(builder, line)]
        total = squares[0]
        for each in squares[1:]:
            total = builder.fadd(total, each)
        return builder.extract_element(reduce_to(builder, [total], 1, ()), INT32(0))

    return typed_intrinsic(types.float32, (types.int64, is_bf16, size), 2, emit)


@intrinsic  # type: ignore[untyped-decorator]
def store_float(typing_context: Any, address: Any, value: Any) -> Any:
    """store_float(address, value): store a float32."""

    def emit(builder: Any, address: Any, value: Any) -> None:
        store(builder, value, address, 0)

    return typed_intrinsic(types.void, (types.int64, types.float32), 0, emit)
