"""Matrix tiles (AMX) for linear layers over weights of few bits: up to 16 rows times 16 outputs times the inputs of a group.

The codes of a block are unpacked to bytes once for all tiles of rows: words of four inputs, 16 outputs to a line, which is the order that
products of tiles expect. Bytes of inputs lie as tiles already. Their products are integer sums, exact as those of vectors, and go through
a little memory to the float32 arithmetic of `low_bit_vectors`. So a result has the bits that vectors give.

A chunk of 32 inputs is one product of tiles; of groups of 16 inputs it is two.
"""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.extending import intrinsic

from rtlang_kernels.contract.low_bit import INPUT_GROUP
from rtlang_kernels.cpu.codegen.low_bit_vectors import LANES, LINE, WORD, BlockPart, LowBitCode
from rtlang_kernels.cpu.codegen.pair_vectors import SECOND, at, prefetch
from rtlang_kernels.cpu.codegen.tile_vectors import configure_shapes, tiles_of, work_bytes
from rtlang_kernels.cpu.codegen.vector_builder import (
    INT64,
    constant,
    literal_values,
    load,
    stack_memory,
    store,
    typed_intrinsic,
)

UNPACKED_CHUNK = INPUT_GROUP // WORD * LINE  # bytes of an unpacked chunk
_SUMS, _INPUTS, _WEIGHTS = 0, 4, 6  # tiles
_SLOTS = 4  # integer sums of chunks in memory
_AHEAD = 2  # chunks whose products are made before they are needed
_SUMS_ROW = 2 * LANES * 4  # bytes of the float32 sums of a row, of a block of outputs


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def open_byte_tiles(typing_context: Any, kind: Any, rows: Any, halves: Any) -> Any:
    """Configure tiles for `rows` rows and groups of 32 / `halves` inputs; address of their working memory.

    As of `tile_vectors.open_tiles`: it is valid until the function returns, and `close_tiles` must be called before.
    """
    constants = literal_values(kind, rows, halves)
    if constants is None:
        return None
    tiles, height, parts = constants

    def emit(builder: Any) -> Any:
        work = stack_memory(builder, work_bytes(tiles))
        shapes = [(0, 0)] * 8
        shapes[_SUMS], shapes[_INPUTS] = (height, LINE), (height, INPUT_GROUP // parts)
        shapes[_WEIGHTS] = INPUT_GROUP // WORD // parts, LINE
        configure_shapes(builder, tiles, work, shapes)
        return work

    return typed_intrinsic(types.int64, (kind, rows, halves), 3, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def unpack_block(
    typing_context: Any,
    codes: Any,
    coming: Any,
    coming_records: Any,
    num_spans: Any,
    table: Any,
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
) -> Any:
    """Write the operands of a block of LANES outputs as bytes [chunks, words, LANES, 4], and request another block and its records.

    Args: addresses, and then the constants, as of `low_bit_tile`.
    """
    constants = bits, group, scales, extra, has_table, has_start, is_signed, is_shifted, products
    fixed = literal_values(*constants)
    if fixed is None:
        return None
    code = LowBitCode(*fixed)
    chunks = code.span // INPUT_GROUP

    def emit(
        builder: Any, codes: Any, coming: Any, coming_records: Any, num_spans: Any, table: Any, target: Any
    ) -> None:
        part = BlockPart(builder, code, 0, table)
        with cgutils.for_range(builder, num_spans) as loop:
            for place in range(0, code.record_bytes, LINE):
                prefetch(builder, at(builder, coming_records, (loop.index, code.record_bytes), place), SECOND)
        with cgutils.for_range(builder, builder.mul(num_spans, INT64(chunks))) as loop:
            for line in range(0, code.chunk_bytes, LINE):
                prefetch(builder, at(builder, coming, (loop.index, code.chunk_bytes), line), SECOND)
            here = at(builder, codes, (loop.index, code.chunk_bytes))
            there = at(builder, target, (loop.index, UNPACKED_CHUNK))
            for word in range(INPUT_GROUP // WORD):
                store(builder, part.operands(here, word), there, word * LINE)

    return typed_intrinsic(types.void, (*(types.int64,) * 6, *constants), len(constants), emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def low_bit_matrix_tile(
    typing_context: Any,
    x: Any,
    input_scales: Any,
    starts: Any,
    extras: Any,
    unpacked: Any,
    records: Any,
    num_spans: Any,
    sums: Any,
    work: Any,
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
    kind: Any,
) -> Any:
    """Compute what `low_bit_tile` does, of the same inputs and records, and of codes that `unpack_block` wrote.

    Args (addresses, unless said otherwise):
        work: of `open_byte_tiles`, with the same rows.
        bits and what follows: compile-time constants, `LowBitCode` in order, then rows of the tile, and the kind of tiles.
    """
    constants = bits, group, scales, extra, has_table, has_start, is_signed, is_shifted, products, rows, kind
    fixed = literal_values(*constants)
    if fixed is None:
        return None
    code, (num_rows, tiles_kind) = LowBitCode(*fixed[:-2]), fixed[-2:]
    chunks, halves = code.span // INPUT_GROUP, code.halves
    half_bytes = num_rows * LINE  # of integer sums

    def emit(
        builder: Any,
        x: Any,
        input_scales: Any,
        starts: Any,
        extras: Any,
        unpacked: Any,
        records: Any,
        num_spans: Any,
        sums: Any,
        work: Any,
    ) -> None:
        # A table is in the unpacked bytes.
        part, tiles = BlockPart(builder, code._replace(has_table=0), 0, None), tiles_of(tiles_kind, work)
        found = stack_memory(builder, _SLOTS * halves * half_bytes)
        last = builder.sub(builder.mul(num_spans, INT64(chunks)), INT64(1))

        def slot(index: Any) -> Any:
            return at(builder, found, (builder.and_(index, INT64(_SLOTS - 1)), halves * half_bytes))

        def multiply(index: Any) -> None:
            """Make the integer sums of a chunk; behind the last one, those of the last one again, which nothing reads."""
            inside = builder.select(builder.icmp_signed("<", index, last), index, last)
            x_at = at(builder, x, (inside, num_rows * INPUT_GROUP))
            weights_at, target = at(builder, unpacked, (inside, UNPACKED_CHUNK)), slot(index)
            for half in range(halves):
                tiles.clear(builder, _SUMS)
                tiles.load(builder, _INPUTS, at(builder, x_at, half * INPUT_GROUP // halves), INT64(INPUT_GROUP))
                tiles.load(builder, _WEIGHTS, at(builder, weights_at, half * UNPACKED_CHUNK // halves), INT64(LINE))
                tiles.multiply_bytes(builder, _SUMS, _INPUTS, _WEIGHTS)
                tiles.store(builder, _SUMS, at(builder, target, half * half_bytes), INT64(LINE))

        def add_chunk(record: Any, index: Any, inside: Any) -> None:
            multiply(at(builder, index, _AHEAD))
            row_bytes, sums_at = num_rows * 4, slot(index)
            scales_at = at(builder, input_scales, (index, row_bytes))
            for half in range(halves):
                skip = half * row_bytes
                start_at, extra_at = (at(builder, each, (index, halves * row_bytes), skip) for each in (starts, extras))

                def dot_of(row: int, half: int = half, start_at: Any = start_at) -> Any:
                    # Loaded when it is needed: sums of all rows at once do not fit the registers.
                    dots = load(builder, part.words, sums_at, half * half_bytes + row * LINE)
                    return builder.add(dots, part.start(start_at, row))

                part.add_sums(totals, dot_of, record, inside, half, scales_at, extra_at)

        totals = [cgutils.alloca_once(builder, part.floats) for _ in range(num_rows)]
        for total in totals:
            builder.store(constant(0.0, code.width), total)
        for index in range(_AHEAD):
            multiply(INT64(index))
        with cgutils.for_range(builder, num_spans) as loop:
            record = at(builder, records, (loop.index, code.record_bytes))
            if chunks == 1:
                add_chunk(record, loop.index, INT64(0))
            else:
                with cgutils.for_range(builder, INT64(chunks)) as inner:
                    add_chunk(record, at(builder, inner.index, (loop.index, chunks)), inner.index)
        for row, total in enumerate(totals):
            store(builder, builder.load(total), sums, row * _SUMS_ROW)

    return typed_intrinsic(types.void, (*(types.int64,) * 9, *constants), len(constants), emit)
