"""Vector code of linear layers over float8 weights (e4m3): a tile of rows times 16 outputs, whose codes are widened in registers.

Inputs stay as they are. A product is that of layers of floats: pairs of bfloat16 by one instruction where the processor has it, else
float32 multiply-adds; the float32 sum of a group is one chain over its inputs, and y := fma(sum, scale, y) group by group. Weights are not
rounded. Codes lie as `low_bit_vectors` describes, with the middle two of four inputs exchanged, so that the bytes of a pair are two apart.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from rtlang_kernels.contract.low_bit import INPUT_GROUP, ScaleType
from rtlang_kernels.cpu.codegen.llvm_bridge import FLOAT, INT16, INT32
from rtlang_kernels.cpu.codegen.low_bit_vectors import LANES, LINE, NO_EXTRA, WORD, BlockPart, LowBitCode
from rtlang_kernels.cpu.codegen.pair_vectors import at, dot, prefetch
from rtlang_kernels.cpu.codegen.vector_builder import (
    INT64,
    call,
    constant,
    literal_values,
    load,
    store,
    typed_intrinsic,
)

ORDER = (0, 2, 1, 3)  # inputs of the bytes of a word; its own inverse
_WORDS = INPUT_GROUP // WORD
_DENORMAL = tuple(
    0 if i == 0 else (118 + i.bit_length() - 1 << 7) + ((i << 7 >> i.bit_length() - 1) & 127) for i in range(8)
)


class _Widening(BlockPart):
    """Emits the widening of codes."""

    def pairs(self, codes: Any, index: int) -> list[Any]:
        """Emit both pairs of bfloat16 of word `index` of the chunk at `codes`; by instructions of AVX-512."""
        builder, shorts = self.builder, self.shorts
        word = load(builder, self.words, codes, index * LINE + self.first * WORD)

        def repeated(number: int) -> Any:
            return ir.Constant(shorts, [number] * shorts.count)

        # What a bfloat16 cannot make of the code by moving bits, because its exponent is 0.
        table = [each & 255 for each in _DENORMAL] + [each >> 8 for each in _DENORMAL]
        found = []
        for shift in (0, 8):
            moved = builder.lshr(word, self.repeated(shift)) if shift else word
            halves = builder.bitcast(builder.and_(moved, self.repeated(0x00FF00FF)), shorts)
            magnitude = builder.and_(halves, repeated(127))
            normal = builder.add(builder.shl(magnitude, repeated(4)), repeated(120 << 7))
            places = builder.add(builder.or_(magnitude, builder.shl(magnitude, repeated(8))), repeated(8 << 8))
            bytes_ = ir.Constant(self.bytes, table * (self.bytes.count // len(table)))
            name = "llvm.x86.avx512.pshuf.b.512"
            small = builder.bitcast(
                call(builder, name, self.bytes, bytes_, builder.bitcast(places, self.bytes)), shorts
            )
            value = builder.select(builder.icmp_unsigned("<", magnitude, repeated(8)), small, normal)
            sign = builder.shl(builder.and_(halves, repeated(128)), repeated(8))
            found.append(builder.bitcast(builder.or_(value, sign), self.words))
        return found

    def floats_of(self, codes: Any, index: int) -> list[Any]:
        """Emit the four weights of each output of word `index` as float32, in order of the inputs."""
        builder = self.builder
        word, found = load(builder, self.words, codes, index * LINE + self.first * WORD), []
        for byte in ORDER:
            moved = builder.lshr(word, self.repeated(8 * byte)) if byte else word
            magnitude = builder.shl(builder.and_(moved, self.repeated(127)), self.repeated(20))
            scaled = builder.fmul(builder.bitcast(magnitude, self.floats), constant(2.0**120, self.code.width))
            sign = builder.shl(builder.and_(moved, self.repeated(128)), self.repeated(24))
            found.append(builder.bitcast(builder.or_(builder.bitcast(scaled, self.words), sign), self.floats))
        return found


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def float8_tile(
    typing_context: Any,
    x: Any,
    x_stride: Any,
    count: Any,
    codes: Any,
    records: Any,
    coming: Any,
    coming_records: Any,
    num_spans: Any,
    num_chunks: Any,
    sums: Any,
    group: Any,
    scales: Any,
    products: Any,
    is_bf16: Any,
    is_native: Any,
    rows: Any,
    lines: Any,
    level: Any,
) -> Any:
    """Compute float32 sums of a block of LANES outputs: a row of them every 128 bytes from `sums` on.

    Args (addresses, unless said otherwise):
        x: the first row; the next are x_stride bytes apart. Only the first `count` of `rows` rows exist; the others repeat the last one.
        codes, records, coming, coming_records: see `low_bit_tile`.
        num_spans, num_chunks: numbers of records (1 without scales), and of chunks of each.
        group and what follows it: compile-time constants, see `LowBitCode`; is_bf16 is the type of x, is_native whether the processor
            has the product of pairs.
    """
    fixed = literal_values(group, scales, products, is_bf16, is_native, rows, lines, level)
    if fixed is None:
        return None
    code = LowBitCode(8, fixed[0], fixed[1], NO_EXTRA, 0, 0, 0, 0, fixed[2])
    has_halves, native, (num_rows, num_lines, cache_level) = bool(fixed[3]), bool(fixed[4]), fixed[5:]
    item = 2 if has_halves else 4

    def emit(
        builder: Any,
        x: Any,
        x_stride: Any,
        count: Any,
        codes: Any,
        records: Any,
        coming: Any,
        coming_records: Any,
        num_spans: Any,
        num_chunks: Any,
        sums: Any,
    ) -> None:
        last, rows_at = builder.sub(count, INT64(1)), []
        for row in range(num_rows):
            index = builder.select(builder.icmp_signed("<", INT64(row), count), INT64(row), last)
            rows_at.append(at(builder, x, (index, x_stride)))

        def add_chunk(part: _Widening, chains: list[Any], index: Any) -> None:
            here, skip = at(builder, codes, (index, code.chunk_bytes)), builder.mul(index, INT64(INPUT_GROUP * item))
            if part.first == 0:
                for line in range(num_lines):
                    prefetch(builder, at(builder, coming, (index, LINE * num_lines), LINE * line), cache_level)
            for word in range(_WORDS):
                if native and has_halves:
                    pairs = part.pairs(here, word)
                    for row_at, chain in zip(rows_at, chains, strict=True):
                        for number, pair in enumerate(pairs):
                            inputs = part.repeat(INT32, at(builder, row_at, skip), 8 * word + 4 * number)
                            builder.store(dot(builder, builder.load(chain), pair, inputs, is_native=True), chain)
                    continue
                for number, weights in enumerate(part.floats_of(here, word)):
                    for row_at, chain in zip(rows_at, chains, strict=True):
                        place = (WORD * word + number) * item
                        if has_halves:
                            bits = builder.zext(load(builder, INT16, at(builder, row_at, skip), place), INT32)
                            value = builder.bitcast(builder.shl(bits, INT32(16)), FLOAT)
                        else:
                            value = load(builder, FLOAT, at(builder, row_at, skip), place)
                        builder.store(part.fma(weights, part.repeated_value(value), builder.load(chain)), chain)

        for first in range(0, LANES, code.width):
            part = _Widening(builder, code, first, None)
            totals, chains = ([cgutils.alloca_once(builder, part.floats) for _ in range(num_rows)] for _ in range(2))
            for total in totals:
                builder.store(constant(0.0, code.width), total)
            with cgutils.for_range(builder, num_spans) as loop:
                record = at(builder, records, (loop.index, code.record_bytes))
                if first == 0:
                    for place in range(0, code.record_bytes, LINE):
                        asked = at(builder, coming_records, (loop.index, code.record_bytes), place)
                        prefetch(builder, asked, cache_level)
                for chain in chains:
                    builder.store(constant(0.0, code.width), chain)
                with cgutils.for_range(builder, num_chunks) as inner:
                    add_chunk(part, chains, at(builder, inner.index, (loop.index, num_chunks)))
                scale, _ = part.scales(record, INT64(0))
                for total, chain in zip(totals, chains, strict=True):
                    found = builder.load(chain)
                    if code.scale_type is not ScaleType.NONE:
                        found = part.fma(found, scale, builder.load(total))
                    builder.store(found, total)
            for row, total in enumerate(totals):
                store(builder, builder.load(total), at(builder, sums, row * 2 * LANES * 4), first * 4)

    constants = group, scales, products, is_bf16, is_native, rows, lines, level
    return typed_intrinsic(types.void, (*(types.int64,) * 10, *constants), len(constants), emit)
