"""Linear layers over weights of few bits in matrix tiles (AMX), for many rows.

Results have the bits of vectors, so a layer may use tiles for many rows and vectors for few; `linear_tuning` decides.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from rtlang_kernels.contract.fused_step import BLOCK
from rtlang_kernels.contract.low_bit import INPUT_GROUP
from rtlang_kernels.cpu.codegen.linear_vectors import STEP, stack_sums
from rtlang_kernels.cpu.codegen.llvm_bridge import invoke, source_digest
from rtlang_kernels.cpu.codegen.low_bit_tiles import UNPACKED_CHUNK, low_bit_matrix_tile, open_byte_tiles, unpack_block
from rtlang_kernels.cpu.codegen.low_bit_vectors import LINE, VNNI_512, LowBitCode
from rtlang_kernels.cpu.codegen.tile_vectors import HEIGHT, close_tiles
from rtlang_kernels.cpu.linear import GATE, Tiling, tiling
from rtlang_kernels.cpu.low_bit_layout import HALVES
from rtlang_kernels.host.numba_jit import kernel

LEAST_ROWS = HEIGHT  # of which tiles are used: fewer rows take about as long as a tile
_STEP = 4  # heights of tiles are multiples of it: each one is a kernel


def has_tiles(code: LowBitCode) -> bool:
    """Whether tiles can compute what this code does."""
    return code.products == VNNI_512


def tiled_cut(num_rows: int) -> Tiling:
    """Cut rows, at least LEAST_ROWS, into equal tiles; missing ones are copies."""
    cut = tiling(num_rows, HEIGHT)
    return cut._replace(rows=-(-cut.rows // _STEP) * _STEP)


def scratch_bytes(num_chunks: int) -> int:
    """Memory that a thread needs for the unpacked codes of a block, whose start is at a multiple of a cache line."""
    return HALVES * num_chunks * UNPACKED_CHUNK


@cache
def tiled_low_bit_kernel(code: LowBitCode, rows: int, kind: int) -> Callable[..., None]:
    """Compile a layer for tiles of `rows` rows of a kind, see `tile_vectors`.

    Args of the kernel: as of `low_bit_linear.low_bit_kernel` without the distances of prefetches, and before the range of blocks the
    address of `scratch_bytes`.
    """
    digest = source_digest()
    bits, group, scales, extra, has_table, has_start, is_signed, is_shifted, products = code
    chunk_bytes, record_bytes, halves = code.chunk_bytes, code.record_bytes, code.halves

    @kernel(is_exact=True)
    def tiled_low_bit(
        values: Any,
        input_scales: Any,
        starts: Any,
        extras: Any,
        codes: Any,
        records: Any,
        table: Any,
        constants: Any,
        residual: Any,
        target: Any,
        stride: Any,
        item: Any,
        num_spans: Any,
        num_chunks: Any,
        num_outputs: Any,
        num_tokens: Any,
        passes: Any,
        is_gated: Any,
        finish: Any,
        scratch: Any,
        first: Any,
        last: Any,
    ) -> None:
        if digest < 0:  # never true; ties the disk cache to the sources
            return
        sums = stack_sums(rows)
        width = GATE if is_gated else BLOCK
        block_bytes, block_records = num_chunks * chunk_bytes, num_spans * record_bytes
        work = open_byte_tiles(kind, rows, halves)
        for start in range(0, num_tokens, rows * passes):
            for block in range(first, last):
                skip, valid = block * width * item, min(width, num_outputs - block * width)
                for half in range(HALVES):
                    here = codes + (block * HALVES + half) * block_bytes
                    beside = records + (block * HALVES + half) * block_records
                    unpack_block(
                        here,
                        here + HALVES * block_bytes,
                        beside + HALVES * block_records,
                        num_spans,
                        table,
                        scratch + half * num_chunks * UNPACKED_CHUNK,
                        bits,
                        group,
                        scales,
                        extra,
                        has_table,
                        has_start,
                        is_signed,
                        is_shifted,
                        products,
                    )
                for i in range(passes):
                    token = start + i * rows
                    if token >= num_tokens:
                        break
                    place = token // rows * num_chunks * rows  # of the tile in scales
                    for half in range(HALVES):
                        low_bit_matrix_tile(
                            values + place * INPUT_GROUP,
                            input_scales + place * 4,
                            starts + place * halves * 4,
                            extras + place * halves * 4,
                            scratch + half * num_chunks * UNPACKED_CHUNK,
                            records + (block * HALVES + half) * block_records,
                            num_spans,
                            sums + half * LINE,
                            work,
                            bits,
                            group,
                            scales,
                            extra,
                            has_table,
                            has_start,
                            is_signed,
                            is_shifted,
                            products,
                            rows,
                            kind,
                        )
                    count = min(rows, num_tokens - token)
                    line = constants + block * 2 * STEP
                    start_at = token * stride + skip
                    added = residual + start_at if residual != 0 else residual
                    invoke(finish, (sums, count, line, added, target + start_at, stride, valid, is_gated))
        close_tiles(work, kind)

    return tiled_low_bit
