"""Vector code of linear layers over weights of few bits: a tile of rows times 16 outputs, whose codes are unpacked in registers.

Codes lie in chunks of 32 inputs: a 32-bit lane per output, four inputs to a word. A chunk of 4 bits is four lines of 64 bytes, of which
each holds two words of all outputs, one above the other; odd widths are several planes. What belongs to groups (scales, offsets, zero
points) lies apart, in records. Both are read in order, so both are requested ahead.

Inputs are bytes with a scale per row and chunk, `[chunks, rows, 32]`: one address, and offsets that the compiler knows. The sum of products
of a group is an exact integer D; then, in float32 and in order of groups,

    y := fma(round(D * d), s, y)       and with offsets        y := fma(b, round(s * sum of inputs), y),

d and b of the weights, s of the inputs. So the bits of a result depend neither on the instructions nor on other rows.

The integer sum starts at the bits of `MAGIC`, less zero times the sum of inputs: as a float32, the bits of the sum are MAGIC + D. If d
has at most 22 significant bits, MAGIC * d is exact, and fma(MAGIC + D, d, -MAGIC * d) is round(D * d).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from rtlang_kernels.contract.low_bit import INPUT_GROUP, SUPER_GROUP, ScaleType
from rtlang_kernels.cpu.codegen.llvm_bridge import FLOAT, INT16, INT32
from rtlang_kernels.cpu.codegen.pair_vectors import INT8, at, dot_bytes, prefetch
from rtlang_kernels.cpu.codegen.vector_builder import (
    INT64,
    call,
    constant,
    literal_values,
    load,
    splat,
    store,
    typed_intrinsic,
)

LANES = 16  # outputs of a block of codes
LINE = 64  # bytes of a cache line
WORD = 4  # inputs of a word
MAGIC = 1.5 * 2**23  # a float32 to whose bits an integer of less than 22 bits can be added
PLAIN, AVX2, VNNI_256, VNNI_512 = range(4)  # products of bytes
NO_EXTRA, OFFSETS, ZERO_POINTS = range(3)
SCALES = tuple(ScaleType)
_PLANES = {2: (2,), 3: (2, 1), 4: (4,), 5: (4, 1), 6: (4, 2), 8: (8,)}
_ITEMS = {ScaleType.NONE: 0, ScaleType.FLOAT16: 2, ScaleType.BFLOAT16: 2, ScaleType.FLOAT32: 4, ScaleType.SUPER: 1}
_MAX_INPUT, _MAX_PAIR = 127, 32767  # of a byte of inputs; of the sum of two products in 16 bits
_NARROW_TABLE = 31  # width of tables whose products are summed like those of 5 bits


class Field(NamedTuple):
    """What a record holds of its groups: `vectors` vectors of LANES values of `item` bytes, from byte `start` on."""

    start: int
    vectors: int
    item: int


class LowBitCode(NamedTuple):
    """Machine code over weights of few bits: constants of the compiled kernels.

    Attributes:
        bits: of a stored code.
        group: inputs of a scale.
        scales: index in SCALES.
        extra: NO_EXTRA, OFFSETS or ZERO_POINTS.
        has_table: whether codes are indices of a table.
        has_start: whether the integer sums start at values of `starts`.
        is_signed: whether operands are signed bytes.
        is_shifted: whether MAGIC times a scale is exact and finite.
        products: PLAIN, AVX2, VNNI_256 or VNNI_512.
    """

    bits: int
    group: int
    scales: int
    extra: int
    has_table: int
    has_start: int
    is_signed: int
    is_shifted: int
    products: int

    @property
    def scale_type(self) -> ScaleType:
        """How scales are stored."""
        return SCALES[self.scales]

    @property
    def planes(self) -> tuple[int, ...]:
        """Bits of the planes of a code, the lowest first."""
        return _PLANES[self.bits]

    @property
    def chunk_bytes(self) -> int:
        """Bytes of the codes of a chunk."""
        return self.bits * LINE

    @property
    def span(self) -> int:
        """Inputs of a record."""
        if self.scale_type is ScaleType.SUPER:
            return SUPER_GROUP
        return INPUT_GROUP if self.scale_type is ScaleType.NONE else max(self.group, INPUT_GROUP)

    @property
    def halves(self) -> int:
        """Groups of a chunk: 2 or 1."""
        return 2 if self.scale_type is not ScaleType.NONE and self.group < INPUT_GROUP else 1

    @property
    def fields(self) -> dict[str, Field]:
        """Fields of a record by their name in `GroupedRows`."""
        kind, sizes = self.scale_type, []
        if kind is ScaleType.NONE:
            return {}
        is_super, groups = kind is ScaleType.SUPER, max(1, self.span // self.group)
        if is_super:
            sizes.append(("super_scales", 1, 2))
            if self.extra == OFFSETS:
                sizes.append(("super_offsets", 1, 2))
        sizes.append(("scales", groups, _ITEMS[kind]))
        if self.extra == OFFSETS:
            sizes.append(("offsets", groups, 1 if is_super else 2))
        elif self.extra == ZERO_POINTS:
            sizes.append(("zero_points", groups, 1))
        found, start = {}, 0
        for name, count, item in sizes:
            found[name] = Field(start, count, item)
            start += LANES * count * item
        return found

    @property
    def record_bytes(self) -> int:
        """Bytes of a record."""
        return sum(LANES * field.vectors * field.item for field in self.fields.values())

    @property
    def width(self) -> int:
        """Lanes of a vector."""
        return LANES if self.products == VNNI_512 else LANES // 2

    @property
    def max_rows(self) -> int:
        """Rows of the highest tile whose sums fit the registers."""
        return 8 if self.products == VNNI_512 else 4

    @property
    def words_at_once(self) -> int:
        """Words whose products are added up in 16 bits before they are widened."""
        if self.products != AVX2 or self.is_signed:
            return 1
        largest = _NARROW_TABLE if self.has_table else (1 << self.bits) - 1
        return min(INPUT_GROUP // WORD // self.halves, _MAX_PAIR // (2 * largest * _MAX_INPUT))


class BlockPart:
    """Emits code for `width` outputs of a block, from lane `first` on."""

    def __init__(self, builder: Any, code: LowBitCode, first: int, table: Any) -> None:
        self.builder, self.code, self.first = builder, code, first
        width = code.width
        self.floats, self.words = ir.VectorType(FLOAT, width), ir.VectorType(INT32, width)
        self.bytes, self.shorts = ir.VectorType(INT8, WORD * width), ir.VectorType(INT16, 2 * width)
        self.table = load(builder, self.bytes, table, 0) if code.has_table else None

    def repeated(self, number: int) -> Any:
        """A vector of words."""
        signed = number - (1 << 32) if number >= 1 << 31 else number
        return ir.Constant(self.words, [signed] * self.code.width)

    def operands(self, codes: Any, index: int) -> Any:
        """Emit the operands of products of word `index` of the chunk at `codes`."""
        builder, found, shift, start = self.builder, None, 0, 0
        for plane in self.code.planes:
            per_line = 8 // plane
            place = start + index // per_line * LINE + self.first * WORD
            word, delta = load(builder, self.words, codes, place), index % per_line * plane - shift
            if delta:
                move = builder.lshr if delta > 0 else builder.shl
                word = move(word, self.repeated(abs(delta)))
            if plane < 8:
                word = builder.and_(word, self.repeated(0x01010101 * (((1 << plane) - 1) << shift)))
            found = word if found is None else builder.or_(found, word)
            shift, start = shift + plane, start + plane * LINE
        if self.table is not None:
            name = "llvm.x86.avx512.pshuf.b.512" if self.code.width == LANES else "llvm.x86.avx2.pshuf.b"
            return builder.bitcast(
                call(builder, name, self.bytes, self.table, builder.bitcast(found, self.bytes)), self.words
            )
        return builder.xor(found, self.repeated(0x80808080)) if self.code.is_signed else found

    def add_products(self, total: Any, operands: list[Any], inputs: list[Any]) -> Any:
        """Emit total + the products of some words."""
        builder, products, is_signed = self.builder, self.code.products, self.code.is_signed
        if products == AVX2:
            pairs = None
            for word, other in zip(operands, inputs, strict=True):
                a, b = builder.bitcast(word, self.bytes), builder.bitcast(other, self.bytes)
                if is_signed:  # |a| times b with the sign of a
                    b = call(builder, "llvm.x86.avx2.psign.b", self.bytes, b, a)
                    negative = builder.sub(ir.Constant(self.bytes, [0] * self.bytes.count), a)
                    a = builder.select(builder.icmp_signed("<", a, negative), negative, a)
                found = call(builder, "llvm.x86.avx2.pmadd.ub.sw", self.shorts, a, b)
                pairs = found if pairs is None else builder.add(pairs, found)
            ones = ir.Constant(self.shorts, [1] * self.shorts.count)
            return builder.add(total, call(builder, "llvm.x86.avx2.pmadd.wd", self.words, pairs, ones))
        for word, other in zip(operands, inputs, strict=True):
            total = dot_bytes(builder, total, word, other, is_native=products != PLAIN)
        return total

    def of_half(self, address: Any, start: int) -> Any:
        """Emit the load of float16 values of a record as float32."""
        builder = self.builder
        if self.code.products != PLAIN:
            return builder.fpext(
                load(builder, ir.VectorType(ir.HalfType(), self.code.width), address, start + 2 * self.first),
                self.floats,
            )
        # By hand, since processors without the conversion call a function that may be missing.
        kind = ir.VectorType(INT16, self.code.width)
        bits = builder.zext(load(builder, kind, address, start + 2 * self.first), self.words)
        magnitude = builder.shl(builder.and_(bits, self.repeated(0x7FFF)), self.repeated(13))
        scaled = builder.fmul(builder.bitcast(magnitude, self.floats), constant(2.0**112, self.code.width))
        is_finite = builder.icmp_unsigned("<", magnitude, self.repeated(0x7C00 << 13))
        special = builder.or_(magnitude, self.repeated(0x7F800000))
        magnitude = builder.select(is_finite, builder.bitcast(scaled, self.words), special)
        sign = builder.shl(builder.and_(bits, self.repeated(0x8000)), self.repeated(16))
        return builder.bitcast(builder.or_(magnitude, sign), self.floats)

    def of_bytes(self, address: Any, start: int, *, is_signed: bool) -> Any:
        """Emit the load of bytes of a record as float32."""
        found = load(self.builder, ir.VectorType(INT8, self.code.width), address, start + self.first)
        if is_signed:
            return self.builder.sitofp(self.builder.sext(found, self.words), self.floats)
        return self.builder.uitofp(self.builder.zext(found, self.words), self.floats)

    def scales(self, record: Any, group: Any) -> tuple[Any, Any]:
        """Emit the scale and the offset or zero point of a group of a record; None for what there is not."""
        builder, code = self.builder, self.code
        fields, kind = code.fields, code.scale_type
        if kind is ScaleType.NONE:
            return None, None

        def place(name: str) -> tuple[Any, int]:
            field = fields[name]
            return at(builder, record, (group, LANES * field.item)), field.start

        if kind is ScaleType.SUPER:
            whole = self.of_half(record, fields["super_scales"].start)
            scale = builder.fmul(whole, self.of_bytes(*place("scales"), is_signed=True))
        elif kind is ScaleType.FLOAT16:
            scale = self.of_half(*place("scales"))
        elif kind is ScaleType.BFLOAT16:
            address, start = place("scales")
            halves = load(builder, ir.VectorType(INT16, code.width), address, start + 2 * self.first)
            scale = builder.bitcast(builder.shl(builder.zext(halves, self.words), self.repeated(16)), self.floats)
        else:
            address, start = place("scales")
            scale = load(builder, self.floats, address, start + 4 * self.first)
        if code.extra == ZERO_POINTS:
            zero = self.of_bytes(*place("zero_points"), is_signed=False)
            return scale, builder.fsub(zero, constant(128.0, code.width)) if code.is_signed else zero
        if code.extra == NO_EXTRA:
            return scale, None
        if kind is not ScaleType.SUPER:
            return scale, self.of_half(*place("offsets"))
        whole = self.of_half(record, fields["super_offsets"].start)
        return scale, builder.fneg(builder.fmul(whole, self.of_bytes(*place("offsets"), is_signed=False)))

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        """Emit a * b + c, rounded once."""
        return call(self.builder, f"llvm.fma.v{self.code.width}f32", self.floats, a, b, c)

    def repeat(self, kind: Any, address: Any, start: int) -> Any:
        """Emit the load of one value for all lanes."""
        return self.repeated_value(load(self.builder, kind, address, start))

    def repeated_value(self, value: Any) -> Any:
        """Emit a vector of one value."""
        return splat(self.builder, value, self.code.width)

    def start(self, address: Any, row: int) -> Any:
        """Emit what the integer sums of a row start at; `address` has a word per row, if the code has starts."""
        if self.code.has_start:
            return self.repeat(INT32, address, 4 * row)
        return self.builder.bitcast(constant(MAGIC, self.code.width), self.words)

    def group_of(self, inside: Any, half: int) -> Any:
        """Emit the group, in a record, of a half of its chunk `inside`."""
        if self.code.scale_type is not ScaleType.SUPER:
            return INT64(half)
        group = self.code.group
        return self.builder.udiv(at(self.builder, INT64(half * group), (inside, INPUT_GROUP)), INT64(group))

    def add_sums(
        self,
        totals: list[Any],
        dot_of: Callable[[int], Any],
        record: Any,
        inside: Any,
        half: int,
        input_scales: Any,
        extras: Any,
    ) -> None:
        """Emit totals += what a half of chunk `inside` of a record gives.

        Args:
            totals: addresses of a vector per row.
            dot_of: emits the integer sums of a row, which began at `start`.
            input_scales, extras: addresses of a float32 per row.
        """
        builder, code = self.builder, self.code
        scale, other = self.scales(record, self.group_of(inside, half))
        shift = None
        if scale is not None and code.is_shifted:
            shift = builder.fmul(scale, constant(-MAGIC, code.width))
        for row, total in enumerate(totals):
            found = builder.bitcast(dot_of(row), self.floats)
            if code.extra == ZERO_POINTS:
                found = self.fma(builder.fneg(other), self.repeat(FLOAT, extras, 4 * row), found)
            if shift is not None:
                found = self.fma(found, scale, shift)
            else:
                found = builder.fsub(found, constant(MAGIC, code.width))
                found = found if scale is None else builder.fmul(found, scale)
            result = self.fma(found, self.repeat(FLOAT, input_scales, 4 * row), builder.load(total))
            if code.extra == OFFSETS:
                result = self.fma(other, self.repeat(FLOAT, extras, 4 * row), result)
            builder.store(result, total)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def low_bit_tile(
    typing_context: Any,
    x: Any,
    input_scales: Any,
    starts: Any,
    extras: Any,
    codes: Any,
    records: Any,
    coming: Any,
    coming_records: Any,
    num_spans: Any,
    table: Any,
    sums: Any,
    bits: Any,
    group: Any,
    scales: Any,
    extra: Any,
    has_table: Any,
    has_start: Any,
    is_signed: Any,
    is_shifted: Any,
    products: Any,
    rows: Any,
    lines: Any,
    level: Any,
) -> Any:
    """Compute float32 sums of a block of LANES outputs: a row of them every 128 bytes from `sums` on.

    Args (addresses, unless said otherwise):
        x: int8 [chunks, rows, 32].  input_scales: float32 [chunks, rows].
        starts, extras: float32 [chunks, halves, rows], planes of `low_bit_inputs`; used if the code has starts, and an extra.
        codes, records: of the block.  coming, coming_records: what to request: `lines` lines per chunk, and as much as a record.
        num_spans: number of records (of chunks, without scales).  table: the table's bytes, repeated to a line.
        bits and what follows: compile-time constants, `LowBitCode` in order, then rows of the tile, and of the prefetch.
    """
    fixed = literal_values(
        bits, group, scales, extra, has_table, has_start, is_signed, is_shifted, products, rows, lines, level
    )
    if fixed is None:
        return None
    code, (num_rows, num_lines, cache_level) = LowBitCode(*fixed[:-3]), fixed[-3:]
    chunks, halves = code.span // INPUT_GROUP, code.halves

    def emit(
        builder: Any,
        x: Any,
        input_scales: Any,
        starts: Any,
        extras: Any,
        codes: Any,
        records: Any,
        coming: Any,
        coming_records: Any,
        num_spans: Any,
        table: Any,
        sums: Any,
    ) -> None:
        def add_chunk(part: BlockPart, totals: list[Any], record: Any, index: Any, inside: Any) -> None:
            """Add chunk `index` of the inputs, chunk `inside` of the record."""
            here, row_bytes = at(builder, codes, (index, code.chunk_bytes)), num_rows * 4
            if part.first == 0:
                for line in range(num_lines):
                    prefetch(builder, at(builder, coming, (index, LINE * num_lines), LINE * line), cache_level)
            x_at = at(builder, x, (index, num_rows * INPUT_GROUP))
            s_at = at(builder, input_scales, (index, row_bytes))
            words = INPUT_GROUP // WORD // halves
            for half in range(halves):
                skip = half * row_bytes
                start_at, extra_at = (at(builder, each, (index, halves * row_bytes), skip) for each in (starts, extras))
                dots = [part.start(start_at, row) for row in range(num_rows)]
                for first in range(half * words, (half + 1) * words, code.words_at_once):
                    indices = range(first, min(first + code.words_at_once, (half + 1) * words))
                    operands = [part.operands(here, each) for each in indices]
                    for row in range(num_rows):
                        inputs = [part.repeat(INT32, x_at, row * INPUT_GROUP + WORD * each) for each in indices]
                        dots[row] = part.add_products(dots[row], operands, inputs)
                part.add_sums(totals, dots.__getitem__, record, inside, half, s_at, extra_at)

        for first in range(0, LANES, code.width):
            part = BlockPart(builder, code, first, table)
            totals = [cgutils.alloca_once(builder, part.floats) for _ in range(num_rows)]
            for total in totals:
                builder.store(constant(0.0, code.width), total)
            with cgutils.for_range(builder, num_spans) as loop:
                record = at(builder, records, (loop.index, code.record_bytes))
                if first == 0:
                    for place in range(0, code.record_bytes, LINE):
                        asked = at(builder, coming_records, (loop.index, code.record_bytes), place)
                        prefetch(builder, asked, cache_level)
                if chunks == 1:
                    add_chunk(part, totals, record, loop.index, INT64(0))
                else:
                    with cgutils.for_range(builder, INT64(chunks)) as inner:
                        index = at(builder, inner.index, (loop.index, chunks))
                        add_chunk(part, totals, record, index, inner.index)
            for row, total in enumerate(totals):
                store(builder, builder.load(total), at(builder, sums, row * 2 * LANES * 4), first * 4)

    constants = (bits, group, scales, extra, has_table, has_start, is_signed, is_shifted, products, rows, lines, level)
    return typed_intrinsic(types.void, (*(types.int64,) * 11, *constants), len(constants), emit)
