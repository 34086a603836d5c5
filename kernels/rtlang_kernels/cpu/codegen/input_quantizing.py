"""Vector code that quantizes inputs in groups: 32 of a row become bytes with one float32 scale.

Kernels that use this code must be compiled with `is_exact`.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from rtlang_kernels.contract.low_bit import INPUT_GROUP
from rtlang_kernels.cpu.codegen.llvm_bridge import FLOAT, INT16, INT32
from rtlang_kernels.cpu.codegen.pair_vectors import at
from rtlang_kernels.cpu.codegen.vector_builder import (
    INT64,
    Lanes,
    call,
    constant,
    literal_values,
    load,
    splat,
    store,
    typed_intrinsic,
)

LARGEST = 127  # magnitude of a byte
SMALLEST = 2.0**-119  # groups of smaller inputs are zeros: 127 / x would be infinite for some
_INT8 = ir.IntType(8)
_SIGNLESS, _INFINITE = 0x7FFF_FFFF, 0x7F80_0000  # bits of a float32
_SMALLEST = int(np.float32(SMALLEST).view(np.int32))


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def quantized_group(typing_context: Any, line: Any, target: Any, is_bf16: Any) -> Any:
    """quantized_group(line, target, is_bf16): write 32 inputs as int8; returns their scale and the sums of either half, float32.

    Byte q of input x is rint(x * (127 / largest)), the scale is largest * float32(1 / 127), with the largest magnitude of the group. If an
    input is not finite, the scale is NaN and the bytes are zeros.
    """
    constants = literal_values(is_bf16)
    if constants is None:
        return None
    lanes = Lanes(bool(constants[0]), INPUT_GROUP, is_ordered=True)

    def emit(builder: Any, line: Any, target: Any) -> Any:
        width = lanes.width
        words, vectors = ir.VectorType(INT32, width), lanes.load(builder, line)
        largest = None
        for vector in vectors:
            bits = builder.and_(builder.bitcast(vector, words), ir.Constant(words, [_SIGNLESS] * width))
            if largest is not None:
                bits = builder.select(builder.icmp_signed(">", bits, largest), bits, largest)
            largest = bits
        most_bits = call(builder, f"llvm.vector.reduce.smax.v{width}i32", INT32, largest)
        most, is_finite = builder.bitcast(most_bits, FLOAT), builder.icmp_signed("<", most_bits, INT32(_INFINITE))
        is_usable = builder.and_(is_finite, builder.icmp_signed(">=", most_bits, INT32(_SMALLEST)))
        inverse = builder.select(is_usable, builder.fdiv(FLOAT(LARGEST), most), FLOAT(0.0))
        factors, sums = splat(builder, inverse, width), []
        for index, vector in enumerate(vectors):
            scaled = builder.fmul(vector, factors)
            scaled = builder.select(builder.fcmp_ordered("ord", scaled, scaled), scaled, constant(0.0, width))
            whole = builder.fptosi(call(builder, f"llvm.rint.v{width}f32", vector.type, scaled), words)
            store(builder, builder.trunc(whole, ir.VectorType(_INT8, width)), target, width * index)
            total = call(builder, f"llvm.vector.reduce.add.v{width}i32", INT32, whole)
            sums.append(builder.sitofp(total, FLOAT))
        scale = builder.fmul(most, FLOAT(float(np.float32(1 / LARGEST))))
        scale = builder.select(is_finite, scale, FLOAT(float("nan")))
        return cgutils.pack_array(builder, [scale, *sums])

    return typed_intrinsic(cast(Any, types).UniTuple(types.float32, 3), (types.int64, types.int64, is_bf16), 1, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def gathered_group(typing_context: Any, row: Any, order: Any, target: Any, is_bf16: Any) -> Any:
    """gathered_group(row, order, target, is_bf16): copy 32 inputs of a row, at the int64 places from `order` on, to `target`."""
    constants = literal_values(is_bf16)
    if constants is None:
        return None
    kind, item = (INT16, 2) if constants[0] else (INT32, 4)

    def emit(builder: Any, row: Any, order: Any, target: Any) -> None:
        with cgutils.for_range(builder, INT64(INPUT_GROUP)) as loop:
            place = load(builder, INT64, at(builder, order, (loop.index, 8)), 0)
            value = load(builder, kind, at(builder, row, (place, item)), 0)
            store(builder, value, at(builder, target, (loop.index, item)), 0)

    return typed_intrinsic(types.void, (types.int64, types.int64, types.int64, is_bf16), 1, emit)


@intrinsic  # type: ignore[untyped-decorator]
def write_float(typing_context: Any, address: Any, value: Any) -> Any:
    """write_float(address, value): store a float32."""
    return typed_intrinsic(
        types.void, (types.int64, types.float32), 0, lambda builder, address, value: store(builder, value, address, 0)
    )


@intrinsic  # type: ignore[untyped-decorator]
def read_float(typing_context: Any, address: Any) -> Any:
    """read_float(address): load a float32."""
    return typed_intrinsic(types.float32, (types.int64,), 0, lambda builder, address: load(builder, FLOAT, address, 0))
