"""Vector code that multiplies weights of few bits out: 16 outputs of a block, into the layout of layers of floats.

A weight is rounded once, to the type of the inputs. It is computed by the operations of `reference.low_bit` in their order, as float32.
Most formats have at most one that is not exact; a few more operations give its error, and the bfloat16 is that of the exact sum of both.
Other formats are computed as float64.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from rtlang_kernels.contract.low_bit import INPUT_GROUP, ScaleType
from rtlang_kernels.cpu.codegen.linear_vectors import STEP
from rtlang_kernels.cpu.codegen.llvm_bridge import INT32, round_to_bf16
from rtlang_kernels.cpu.codegen.low_bit_vectors import LANES, LINE, OFFSETS, WORD, ZERO_POINTS, BlockPart, LowBitCode
from rtlang_kernels.cpu.codegen.pair_vectors import SECOND, at, prefetch
from rtlang_kernels.cpu.codegen.vector_builder import INT64, literal_values, load, splat, store, typed_intrinsic

_AHEAD = 4096  # bytes of codes that are requested ahead
_MAX_SUPER_BITS = 6  # of codes whose products with 11 bits of a super-scale and 7 of a scale are float32
EXACT, WITH_ERROR, FLOAT64 = range(3)  # how weights are computed


def arithmetic_of(code: LowBitCode, *, has_row_scales: bool) -> int:
    """How weights of a format are computed, by the number of operations whose results may not be float32."""
    is_long = code.scale_type is ScaleType.SUPER and (bool(code.has_table) or code.bits > _MAX_SUPER_BITS)
    scale = code.scale_type is ScaleType.FLOAT32 or is_long
    return min(scale + (code.extra == OFFSETS) + has_row_scales, FLOAT64)


class _Weights(BlockPart):
    """Emits the weights of some outputs."""

    def values(self, codes: Any, index: int, zero: Any) -> list[Any]:
        """Emit the integers of word `index` of the chunk at `codes`: words [4 inputs], `zero` subtracted if there is one."""
        builder, word, found = self.builder, self.operands(codes, index), []
        for byte in range(WORD):
            if self.code.is_signed:
                value = builder.ashr(builder.shl(word, self.repeated(24 - 8 * byte)), self.repeated(24))
            else:
                moved = builder.lshr(word, self.repeated(8 * byte)) if byte else word
                value = builder.and_(moved, self.repeated(255)) if byte < WORD - 1 else moved
            found.append(value if zero is None else builder.sub(value, zero))
        return found

    def exact(self, value: Any, scale: Any, other: Any, row_scale: Any) -> Any:
        """Emit a weight as float64; arguments are float64, or None and left out."""
        builder = self.builder
        found = builder.sitofp(value, ir.VectorType(ir.DoubleType(), self.code.width))
        if self.code.extra == ZERO_POINTS:
            found = builder.fsub(found, other)
        if scale is not None:
            found = builder.fmul(found, scale)
        if self.code.extra == OFFSETS:
            found = builder.fadd(found, other)
        return found if row_scale is None else builder.fmul(found, row_scale)

    def nearest(self, value: Any, scale: Any, other: Any, row_scale: Any) -> tuple[Any, Any]:
        """Emit a weight as float32, and its error; arguments are float32, or None and left out. Of two operations none has an error."""
        builder, error = self.builder, None
        found = builder.sitofp(value, self.floats)
        if self.code.extra == ZERO_POINTS:
            found = builder.fsub(found, other)
        for factor in (scale, row_scale):
            if factor is not None:
                product = builder.fmul(found, factor)
                error = self.fma(found, factor, builder.fneg(product))
                found = product
        if self.code.extra == OFFSETS:
            total = builder.fadd(found, other)
            added = builder.fsub(total, found)
            kept = builder.fsub(total, added)
            error = builder.fadd(builder.fsub(found, kept), builder.fsub(other, added))
            found = total
        return found, error

    def widened(self, value: Any) -> Any:
        """Emit a float32 vector as float64."""
        return self.builder.fpext(value, ir.VectorType(ir.DoubleType(), self.code.width))

    def to_odd(self, found: Any, error: Any) -> Any:
        """Emit a float32 that rounds to the bfloat16 of `found` + `error`: rounded toward zero, the last bit set if that changed it.

        Args:
            found: the nearest float32.  error: float32 or float64.
        """
        builder, bits = self.builder, self.builder.bitcast(found, self.words)
        zero = ir.Constant(error.type, [0.0] * self.code.width)
        is_beyond = builder.xor(
            builder.fcmp_ordered("<", error, zero), builder.icmp_signed("<", bits, self.repeated(0))
        )
        is_inexact = builder.fcmp_ordered("!=", error, zero)
        moved = builder.add(bits, builder.sext(is_beyond, self.words))
        odd = builder.or_(moved, self.repeated(1))
        return builder.bitcast(builder.select(is_inexact, odd, bits), self.floats)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def multiply_out(
    typing_context: Any,
    codes: Any,
    records: Any,
    table: Any,
    zero: Any,
    row_scales: Any,
    num_spans: Any,
    target: Any,
    bits: Any,
    group: Any,
    scales: Any,
    extra: Any,
    has_table: Any,
    has_start: Any,
    is_signed: Any,
    is_shifted: Any,
    products: Any,
    is_bf16: Any,
    arithmetic: Any,
    has_row_scales: Any,
) -> Any:
    """Write a block of LANES outputs to its half of the steps at `target`, with the padding of the last record.

    Args (addresses, unless said otherwise):
        codes, records: of the block.  table: see `low_bit_tile`.  zero: the operand that stands for 0.
        row_scales: float32 [LANES].  num_spans: number of records (of chunks, without scales).
        bits and what follows: compile-time constants, `LowBitCode` in order; is_bf16 is the type of the target, arithmetic that of
            `arithmetic_of`, has_row_scales whether row_scales are applied.
    """
    fixed = literal_values(
        bits,
        group,
        scales,
        extra,
        has_table,
        has_start,
        is_signed,
        is_shifted,
        products,
        is_bf16,
        arithmetic,
        has_row_scales,
    )
    if fixed is None:
        return None
    code, has_halves, has_rows = LowBitCode(*fixed[:-3]), bool(fixed[-3]), bool(fixed[-1])
    has_error, is_wide = fixed[-2] == WITH_ERROR, fixed[-2] == FLOAT64
    kind, chunks, halves = code.scale_type, code.span // INPUT_GROUP, code.halves
    word_bytes = STEP * (2 if has_halves else 4)  # of the target, for a word of codes
    words = INPUT_GROUP // WORD // halves

    def emit(
        builder: Any, codes: Any, records: Any, table: Any, zero: Any, row_scales: Any, num_spans: Any, target: Any
    ) -> None:
        origin = None if code.extra == ZERO_POINTS else splat(builder, builder.trunc(zero, INT32), code.width)

        def rounded(part: _Weights, value: Any, scale: Any, other: Any, row_scale: Any) -> Any:
            """A weight as float32, or as words whose upper halves are bfloat16."""
            if is_wide:
                exact = part.exact(value, scale, other, row_scale)
                found = builder.fptrunc(exact, part.floats)
                error = builder.fsub(exact, part.widened(found)) if has_halves else None
            else:
                found, error = part.nearest(value, scale, other, row_scale)
            if not has_halves:
                return found
            return round_to_bf16(builder, part.to_odd(found, error) if is_wide or has_error else found)

        def write(part: _Weights, weights: list[Any], place: Any, index: int) -> None:
            """Write the weights of a word."""
            skip = index * word_bytes + part.first * WORD
            if not has_halves:
                for number, weight in enumerate(weights):
                    store(builder, weight, place, skip + number * STEP)
                return
            for number in range(0, WORD, 2):
                low, high = builder.lshr(weights[number], part.repeated(16)), weights[number + 1]
                pair = builder.or_(low, builder.and_(high, part.repeated(0xFFFF0000)))
                store(builder, pair, place, skip + number // 2 * STEP)

        def write_chunk(part: _Weights, row_scale: Any, record: Any, index: Any, inside: Any) -> None:
            """Write chunk `index` of the inputs, chunk `inside` of the record."""
            here = at(builder, codes, (index, code.chunk_bytes))
            place = at(builder, target, (index, word_bytes * (INPUT_GROUP // WORD)))
            if part.first == 0:
                for line in range(code.bits):
                    prefetch(builder, builder.add(here, INT64(_AHEAD + LINE * line)), SECOND)
            for half in range(halves):
                number = INT64(half)
                if kind is ScaleType.SUPER:
                    number = builder.udiv(
                        at(builder, INT64(half * code.group), (inside, INPUT_GROUP)), INT64(code.group)
                    )
                scale, other = (
                    part.widened(each) if is_wide and each is not None else each for each in part.scales(record, number)
                )
                for word in range(half * words, (half + 1) * words):
                    values = part.values(here, word, origin)
                    write(part, [rounded(part, each, scale, other, row_scale) for each in values], place, word)

        for first in range(0, LANES, code.width):
            part = _Weights(builder, code, first, table)
            row_scale = None
            if has_rows:
                row_scale = load(builder, part.floats, row_scales, first * 4)
                row_scale = part.widened(row_scale) if is_wide else row_scale
            with cgutils.for_range(builder, num_spans) as loop:
                record = at(builder, records, (loop.index, code.record_bytes))
                if chunks == 1:
                    write_chunk(part, row_scale, record, loop.index, INT64(0))
                else:
                    with cgutils.for_range(builder, INT64(chunks)) as inner:
                        index = at(builder, inner.index, (loop.index, chunks))
                        write_chunk(part, row_scale, record, index, inner.index)

    constants = (
        bits,
        group,
        scales,
        extra,
        has_table,
        has_start,
        is_signed,
        is_shifted,
        products,
        is_bf16,
        arithmetic,
        has_row_scales,
    )
    return typed_intrinsic(types.void, (*(types.int64,) * 7, *constants), len(constants), emit)
