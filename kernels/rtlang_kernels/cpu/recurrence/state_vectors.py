"""Vector code that the recurrent kernels share: exponentials, and lines of elements as float32.

No instruction has a flag that allows another order or another rounding, so the same numbers have the same bits wherever the code is
emitted: in the loop over whole vectors, for the rest of a line, for one token or for many.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from rtlang_kernels.cpu.codegen.llvm_bridge import INT32
from rtlang_kernels.cpu.codegen.pair_vectors import at, fused_add
from rtlang_kernels.cpu.codegen.vector_builder import (
    Lanes,
    call,
    constant,
    literal_values,
    maximum,
    typed_intrinsic,
)

LOG2_E = 1.44269502162933  # a float32
LN_2_HIGH, LN_2_LOW = (
    0.693145751953125,
    1.42860677e-6,
)  # the first has few bits, so its products with whole numbers are exact
EXP_SERIES = (1.0, 1.0, 0.5, 0.1666666716, 0.0416666679, 0.0083333338, 0.0013888889, 0.0001984127)
EXP_FLOOR, EXP_CEILING = -87.0, 88.0


def exp(builder: Any, x: Any) -> Any:
    """Emit exp(x) of a float32 vector, within 2 units in the last place; 0 below -87, exp(88) above 88, exactly 1 for 0."""
    count = x.type.count
    integers = ir.VectorType(INT32, count)
    floor, ceiling = constant(EXP_FLOOR, count), constant(EXP_CEILING, count)
    is_nan = builder.fcmp_unordered("uno", x, x)
    clamped = builder.select(builder.fcmp_ordered("<", x, ceiling), maximum(builder, x, floor), ceiling)
    whole = call(builder, f"llvm.rint.v{count}f32", x.type, builder.fmul(clamped, constant(LOG2_E, count)))
    rest = fused_add(builder, whole, constant(-LN_2_HIGH, count), clamped)
    rest = fused_add(builder, whole, constant(-LN_2_LOW, count), rest)
    series = constant(EXP_SERIES[-1], count)
    for coefficient in EXP_SERIES[-2::-1]:
        series = fused_add(builder, series, rest, constant(coefficient, count))
    power = builder.add(builder.fptosi(whole, integers), ir.Constant(integers, [127] * count))
    factor = builder.bitcast(builder.shl(power, ir.Constant(integers, [23] * count)), x.type)
    result = builder.select(builder.fcmp_ordered("<", x, floor), constant(0.0, count), builder.fmul(series, factor))
    return builder.select(is_nan, x, result)


def silu(builder: Any, x: Any) -> Any:
    """Emit x / (1 + exp(-x)) of a float32 vector."""
    count = x.type.count
    power = exp(builder, builder.fsub(constant(-0.0, count), x))
    return builder.fdiv(x, builder.fadd(constant(1.0, count), power))


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def as_floats(typing_context: Any, source: Any, target: Any, is_bf16: Any, size: Any) -> Any:
    """as_floats(source, target, is_bf16, size): float32 line target := stored line source."""
    constants = literal_values(is_bf16, size)
    if constants is None:
        return None
    lanes = Lanes(bool(constants[0]), constants[1], is_ordered=True)

    def emit(builder: Any, source: Any, target: Any) -> None:
        lanes.store_float(builder, lanes.load(builder, source), target)

    return typed_intrinsic(types.void, (types.int64, types.int64, is_bf16, size), 2, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def zero_block(typing_context: Any, target: Any, count: Any, lanes: Any) -> Any:
    """zero_block(target, count, lanes): `count` float32 lines of `lanes` numbers := 0."""
    constants = literal_values(lanes)
    if constants is None:
        return None
    line = Lanes(False, constants[0])

    def emit(builder: Any, target: Any, count: Any) -> None:
        zeros = [constant(0.0, line.width)] * (line.size // line.width)
        with cgutils.for_range(builder, count) as loop:
            line.store_float(builder, zeros, at(builder, target, (loop.index, 4 * line.size)))

    return typed_intrinsic(types.void, (types.int64, types.int64, lanes), 1, emit)
