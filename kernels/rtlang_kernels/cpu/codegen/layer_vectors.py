"""Vector code of the layer operations: rotation, RMS norm and gated activation over short lines.

The last arguments are compile-time constants, as in `attention_vectors`. Lines stay in memory order, since they are combined with
float32 tables.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.extending import intrinsic

from rtlang_kernels.cpu.codegen.llvm_bridge import INT32
from rtlang_kernels.cpu.codegen.vector_builder import (
    INT64,
    Lanes,
    constant,
    exp2,
    literal_values,
    multiply_add,
    reduce_to,
    splat,
    typed_intrinsic,
)

LOG2_E = 1.4426950216293335  # a float32
GELU_LINEAR, GELU_CUBIC = 0.7978845608028654, 0.044715  # of the tanh form; the former is sqrt(2 / pi)


def _sum(builder: Any, vectors: list[Any]) -> Any:
    """Emit the sum of all elements."""
    total = vectors[0]
    for vector in vectors[1:]:
        total = builder.fadd(total, vector)
    return builder.extract_element(reduce_to(builder, [total], 1), INT32(0))


def silu(builder: Any, x: Any) -> Any:
    """Emit x / (1 + exp(-x)) of a float32 vector."""
    power = exp2(builder, builder.fmul(x, constant(-LOG2_E, x.type.count)))
    return builder.fdiv(x, builder.fadd(constant(1.0, x.type.count), power))


def gelu(builder: Any, x: Any) -> Any:
    """Emit x * (1 + tanh(u)) / 2 = x / (1 + exp(-2 u)) of a float32 vector, with u = GELU_LINEAR * (x + GELU_CUBIC * x ** 3)."""
    count = x.type.count
    square = builder.fmul(x, x)
    slope = multiply_add(builder, square, constant(GELU_CUBIC, count), constant(1.0, count))
    power = exp2(builder, builder.fmul(builder.fmul(x, slope), constant(-2 * GELU_LINEAR * LOG2_E, count)))
    return builder.fdiv(x, builder.fadd(constant(1.0, count), power))


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def square_sum(typing_context: Any, line: Any, is_bf16: Any, size: Any) -> Any:
    """square_sum(line, is_bf16, size): sum of the squares of a stored line."""
    constants = literal_values(is_bf16, size)
    if constants is None:
        return None
    lanes = Lanes(bool(constants[0]), constants[1])

    def emit(builder: Any, line: Any) -> Any:
        return _sum(builder, [builder.fmul(vector, vector) for vector in lanes.load(builder, line)])

    return typed_intrinsic(types.float32, (types.int64, is_bf16, size), 2, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def add_into(typing_context: Any, target: Any, line: Any, is_bf16: Any, size: Any) -> Any:
    """add_into(target, line, is_bf16, size): stored line target += line, rounded."""
    constants = literal_values(is_bf16, size)
    if constants is None:
        return None
    lanes = Lanes(bool(constants[0]), constants[1])

    def emit(builder: Any, target: Any, line: Any) -> None:
        pairs = zip(lanes.load(builder, target), lanes.load(builder, line), strict=True)
        lanes.store(builder, [builder.fadd(a, b) for a, b in pairs], target)

    return typed_intrinsic(types.void, (types.int64, types.int64, is_bf16, size), 2, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def weighted(
    typing_context: Any, line: Any, weight: Any, factor: Any, target: Any, is_bf16: Any, size: Any, is_float: Any
) -> Any:
    """weighted(line, weight, factor, target, is_bf16, size, is_float): stored line target := line * factor * weight.

    The weight is a stored line, or with `is_float` a float32 line.
    """
    constants = literal_values(is_bf16, size, is_float)
    if constants is None:
        return None
    is_float_line = bool(constants[2])
    lanes = Lanes(bool(constants[0]), constants[1], is_ordered=is_float_line)

    def emit(builder: Any, line: Any, weight: Any, factor: Any, target: Any) -> None:
        factors = splat(builder, factor, lanes.width)
        weights = lanes.load_float(builder, weight) if is_float_line else lanes.load(builder, weight)
        pairs = zip(lanes.load(builder, line), weights, strict=True)
        lanes.store(builder, [builder.fmul(builder.fmul(a, factors), b) for a, b in pairs], target)

    arguments = (types.int64, types.int64, types.float32, types.int64, is_bf16, size, is_float)
    return typed_intrinsic(types.void, arguments, 3, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def scaled(typing_context: Any, line: Any, factor: Any, is_bf16: Any, size: Any) -> Any:
    """scaled(line, factor, is_bf16, size): stored line *= factor."""
    constants = literal_values(is_bf16, size)
    if constants is None:
        return None
    lanes = Lanes(bool(constants[0]), constants[1])

    def emit(builder: Any, line: Any, factor: Any) -> None:
        factors = splat(builder, factor, lanes.width)
        lanes.store(builder, [builder.fmul(a, factors) for a in lanes.load(builder, line)], line)

    return typed_intrinsic(types.void, (types.int64, types.float32, is_bf16, size), 2, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def gated(typing_context: Any, gate: Any, up: Any, target: Any, is_bf16: Any, size: Any, is_gelu: Any) -> Any:
    """gated(gate, up, target, is_bf16, size, is_gelu): stored line target := silu(gate) * up, or gelu(gate) * up."""
    constants = literal_values(is_bf16, size, is_gelu)
    if constants is None:
        return None
    lanes, activation = Lanes(bool(constants[0]), constants[1]), gelu if constants[2] else silu

    def emit(builder: Any, gate: Any, up: Any, target: Any) -> None:
        pairs = zip(lanes.load(builder, gate), lanes.load(builder, up), strict=True)
        lanes.store(builder, [builder.fmul(activation(builder, a), b) for a, b in pairs], target)

    return typed_intrinsic(types.void, (types.int64, types.int64, types.int64, is_bf16, size, is_gelu), 3, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def rotated(
    typing_context: Any, line: Any, target: Any, cos: Any, sin: Any, weight: Any, factor: Any, is_bf16: Any, half: Any
) -> Any:
    """rotated(line, target, cos, sin, weight, factor, is_bf16, half): rotate 2 * half elements, first half against second.

    The stored line is first multiplied by `factor` and the float32 line `weight`; cos and sin are float32 lines of `half`.
    """
    constants = literal_values(is_bf16, half)
    if constants is None:
        return None
    lanes = Lanes(bool(constants[0]), constants[1], is_ordered=True)
    item = 2 if constants[0] else 4

    def emit(builder: Any, line: Any, target: Any, cos: Any, sin: Any, weight: Any, factor: Any) -> None:
        factors = splat(builder, factor, lanes.width)

        def scaled(offset: int) -> list[Any]:
            values = lanes.load(builder, builder.add(line, INT64(offset * item)))
            weights = lanes.load_float(builder, builder.add(weight, INT64(offset * 4)))
            return [builder.fmul(builder.fmul(a, factors), b) for a, b in zip(values, weights, strict=True)]

        table = zip(
            scaled(0), scaled(lanes.size), lanes.load_float(builder, cos), lanes.load_float(builder, sin), strict=True
        )
        first, second = [], []
        for a, b, c, s in table:
            first.append(builder.fsub(builder.fmul(a, c), builder.fmul(b, s)))
            second.append(multiply_add(builder, b, c, builder.fmul(a, s)))
        lanes.store(builder, first, target)
        lanes.store(builder, second, builder.add(target, INT64(lanes.size * item)))

    arguments = (types.int64, types.int64, types.int64, types.int64, types.int64, types.float32, is_bf16, half)
    return typed_intrinsic(types.void, arguments, 2, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def copied(typing_context: Any, line: Any, target: Any, weight: Any, factor: Any, is_bf16: Any, size: Any) -> Any:
    """copied(line, target, weight, factor, is_bf16, size): stored line target := line * factor * weight (float32 line)."""
    constants = literal_values(is_bf16, size)
    if constants is None:
        return None
    lanes = Lanes(bool(constants[0]), constants[1], is_ordered=True)

    def emit(builder: Any, line: Any, target: Any, weight: Any, factor: Any) -> None:
        if lanes.size == 0:
            return
        factors = splat(builder, factor, lanes.width)
        pairs = zip(lanes.load(builder, line), lanes.load_float(builder, weight), strict=True)
        lanes.store(builder, [builder.fmul(builder.fmul(a, factors), b) for a, b in pairs], target)

    arguments = (types.int64, types.int64, types.int64, types.float32, is_bf16, size)
    return typed_intrinsic(types.void, arguments, 2, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def accumulated(typing_context: Any, line: Any, factor: Any, total: Any, is_added: Any, is_bf16: Any, size: Any) -> Any:
    """accumulated(line, factor, total, is_added, is_bf16, size): total := line * factor, plus total if `is_added`; nothing is fused.

    total is a float32 line of working memory in an order of its own, for `write_total`.
    """
    constants = literal_values(is_added, is_bf16, size)
    if constants is None:
        return None
    adds, lanes = bool(constants[0]), Lanes(bool(constants[1]), constants[2])

    def emit(builder: Any, line: Any, factor: Any, total: Any) -> None:
        factors = splat(builder, factor, lanes.width)
        found = [builder.fmul(vector, factors) for vector in lanes.load(builder, line)]
        if adds:
            before = lanes.load_float(builder, total)
            found = [builder.fadd(a, b) for a, b in zip(before, found, strict=True)]
        lanes.store_float(builder, found, total)

    arguments = (types.int64, types.float32, types.int64, is_added, is_bf16, size)
    return typed_intrinsic(types.void, arguments, 3, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def write_total(typing_context: Any, total: Any, target: Any, is_bf16: Any, size: Any) -> Any:
    """write_total(total, target, is_bf16, size): stored line target := total, of `accumulated`."""
    constants = literal_values(is_bf16, size)
    if constants is None:
        return None
    lanes = Lanes(bool(constants[0]), constants[1])

    def emit(builder: Any, total: Any, target: Any) -> None:
        lanes.store(builder, lanes.load_float(builder, total), target)

    return typed_intrinsic(types.void, (types.int64, types.int64, is_bf16, size), 2, emit)
