"""Products of CPU attention in matrix tiles (`tile_vectors`), for up to 16 query lines at once.

16 steps of packed keys or values (`page_vectors`) are tiles of weights as they lie in memory: pairs of elements by keys for the scores,
pairs of keys by elements for the sums. The sums of query lines are tiles in their states. A tile has a row per query line.

All 64 keys of a block are multiplied, whichever a line sees: invisible ones have weight 0 and must have finite values. Thus the bits of a
line, which sees some key of the block, do not depend on the lines beside it.
"""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.extending import intrinsic

from rtlang_kernels.cpu.codegen.attention.attention_vectors import request
from rtlang_kernels.cpu.codegen.attention.page_vectors import BLOCK, GROUP, PAIRED, PageForm
from rtlang_kernels.cpu.codegen.llvm_bridge import INT32
from rtlang_kernels.cpu.codegen.pair_vectors import at
from rtlang_kernels.cpu.codegen.tile_vectors import (
    HEIGHT,
    INPUTS,
    LINE,
    WEIGHTS,
    configure_shapes,
    configure_tiles,
    configured_heights,
    heights_word,
    tiles_of,
)
from rtlang_kernels.cpu.codegen.vector_builder import INT64, literal_values, load, typed_intrinsic

PAIRS = LINE // 2  # elements of a line of a tile
SUMS = 4  # tiles of sums
# One line alone: the keys of the pool are inputs, the query is a column of weights; then sums of the line are tiles of one line.
SCORES, ONE_SUMS, ONE_INPUT, QUERY = 0, 2, 4, 5
_COLUMN, _ROW, _WHOLE = (HEIGHT, 4), (1, LINE), (HEIGHT, LINE)
ONE_SHAPES = [_COLUMN, _COLUMN, _ROW, _ROW, _ROW, _COLUMN, _WHOLE, _WHOLE]
_ONE_HEIGHTS = int.from_bytes([height for height, _ in ONE_SHAPES], "little")
SCORE_BYTES, WEIGHT_BYTES = 4 * BLOCK, 2 * BLOCK  # of a query line


def fits_tiles(form: PageForm) -> bool:
    """Whether keys and values are whole tiles."""
    return form.is_paired and form.head_dim % PAIRS == 0 and form.v_head_dim % HEIGHT == 0


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def set_height(typing_context: Any, work: Any, height: Any, tiles: Any) -> Any:
    """set_height(work, height, tiles): configure tiles of `height` lines, unless they are. work: of `tile_vectors`, at first zeros."""
    constants = literal_values(tiles)
    if constants is None:
        return None

    def emit(builder: Any, work: Any, height: Any) -> None:
        is_other = builder.icmp_signed("!=", heights_word(builder, height), configured_heights(builder, work))
        with builder.if_then(is_other):
            configure_tiles(builder, constants[0], work, height)

    return typed_intrinsic(types.void, (types.int64, types.int64, tiles), 1, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def set_one(typing_context: Any, work: Any, tiles: Any) -> Any:
    """set_one(work, tiles): configure tiles for `score_one`, unless they are."""
    constants = literal_values(tiles)
    if constants is None:
        return None

    def emit(builder: Any, work: Any) -> None:
        with builder.if_then(builder.icmp_signed("!=", INT64(_ONE_HEIGHTS), configured_heights(builder, work))):
            configure_shapes(builder, constants[0], work, ONE_SHAPES)

    return typed_intrinsic(types.void, (types.int64, tiles), 1, emit)


class _Requests:
    """Requests of a block's keys or values, see `attention_vectors.request`, an equal share after each product of tiles."""

    def __init__(self, builder: Any, coming: Any, lines: int, num_products: int) -> None:
        self._builder, self._coming, self._lines = builder, coming, lines
        self._left = [GROUP * lines * i // num_products for i in range(num_products, -1, -1)]

    def emit(self) -> None:
        """Emit the share of a product."""
        builder, first = self._builder, self._left.pop()
        is_any = builder.icmp_signed("!=", self._coming, INT64(0))
        last = builder.select(is_any, INT64(self._left[-1]), INT64(first))
        with cgutils.for_range_slice(builder, INT64(first), last, INT64(1)) as (index, _):
            request(builder, self._coming, index, self._lines)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def score(
    typing_context: Any,
    query: Any,
    keys: Any,
    target: Any,
    coming: Any,
    work: Any,
    tiles: Any,
    head_dim: Any,
    key_lines: Any,
) -> Any:
    """score(query, keys, target, coming, work, tiles, head_dim, key_lines): products of query lines and the keys of a block.

    query: consecutive lines, as many as the tiles' height. keys: packed. target: [lines, 64] float32. coming, key_lines: see
    `attention_vectors.request`.
    """
    constants = literal_values(tiles, head_dim, key_lines)
    if constants is None:
        return None
    kind, size, num_requests = constants

    def emit(builder: Any, query: Any, keys: Any, target: Any, coming: Any, work: Any) -> None:
        registers, num_steps = tiles_of(kind, work), size // PAIRS
        requests = _Requests(builder, coming, num_requests, num_steps * SUMS)
        for part in range(SUMS):
            registers.clear(builder, part)
        for step in range(num_steps):
            inputs = INPUTS + step % 2
            registers.load(builder, inputs, at(builder, query, LINE * step), INT64(2 * size))
            for part in range(SUMS):
                block = at(builder, keys, HEIGHT * 4 * BLOCK * step, LINE * part)
                registers.load(builder, WEIGHTS + part % 2, block, INT64(4 * BLOCK))
                registers.multiply(builder, part, inputs, WEIGHTS + part % 2)
                requests.emit()
        for part in range(SUMS):
            registers.store(builder, part, at(builder, target, LINE * part), INT64(SCORE_BYTES))

    return typed_intrinsic(types.void, ((types.int64,) * 5 + (tiles, head_dim, key_lines)), 3, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def score_one(
    typing_context: Any,
    query: Any,
    sources: Any,
    target: Any,
    coming: Any,
    work: Any,
    tiles: Any,
    head_dim: Any,
    key_lines: Any,
) -> Any:
    """score_one(query, sources, target, coming, work, tiles, head_dim, key_lines): the same of one line, with the same bits.

    sources: address of the addresses of four groups of 16 keys as in the pool, then of four distances from key to key.
    query, target: `Emulated` reads and writes 60 bytes behind them.
    """
    constants = literal_values(tiles, head_dim, key_lines)
    if constants is None:
        return None
    kind, size, num_requests = constants

    def emit(builder: Any, query: Any, sources: Any, target: Any, coming: Any, work: Any) -> None:
        registers, num_steps, num_groups = tiles_of(kind, work), size // PAIRS, BLOCK // GROUP
        requests = _Requests(builder, coming, num_requests, num_steps * num_groups)
        for first in range(0, num_groups, 2):
            groups = [
                tuple(load(builder, INT64, sources, 8 * (side + g)) for side in (0, num_groups))
                for g in (first, first + 1)
            ]
            for part in range(2):
                registers.clear(builder, SCORES + part)
            for step in range(num_steps):
                registers.load(builder, QUERY, at(builder, query, LINE * step), INT64(4))
                for part, (keys, stride) in enumerate(groups):
                    registers.load(builder, WEIGHTS + part, at(builder, keys, LINE * step), stride)
                    registers.multiply(builder, SCORES + part, WEIGHTS + part, QUERY)
                    requests.emit()
            for part in range(2):
                registers.store(builder, SCORES + part, at(builder, target, LINE * (first + part)), INT64(4))

    return typed_intrinsic(types.void, ((types.int64,) * 5 + (tiles, head_dim, key_lines)), 3, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def gather(
    typing_context: Any,
    state: Any,
    values: Any,
    weights: Any,
    coming: Any,
    work: Any,
    tiles: Any,
    v_head_dim: Any,
    value_lines: Any,
    is_one: Any,
) -> Any:
    """gather(state, values, weights, coming, work, tiles, v_head_dim, value_lines, is_one): each line's sums += weights * values.

    state: of the first line; the others follow. weights: [lines, 64] bfloat16. coming, value_lines: see `attention_vectors.request`.
    is_one: whether tiles are configured by `set_one`.
    """
    constants = literal_values(tiles, v_head_dim, value_lines, is_one)
    if constants is None:
        return None
    kind, form, num_requests = constants[0], PageForm(PAIRED, 0, constants[1]), constants[2]
    num_inputs = BLOCK // PAIRS
    first_sum, num_sums = (ONE_SUMS, 2) if constants[3] else (0, SUMS)

    def emit(builder: Any, state: Any, values: Any, weights: Any, coming: Any, work: Any) -> None:
        registers, step_bytes, state_bytes = tiles_of(kind, work), form.value_step_bytes, form.state_bytes
        requests = _Requests(builder, coming, num_requests, num_inputs * form.value_vectors)

        def load_inputs(i: int) -> int:
            tile = ONE_INPUT if constants[3] else INPUTS + i
            registers.load(builder, tile, at(builder, weights, LINE * i), INT64(WEIGHT_BYTES))
            return tile

        inputs = [] if constants[3] else [load_inputs(i) for i in range(num_inputs)]
        for first in range(0, form.value_vectors, num_sums):
            count = min(num_sums, form.value_vectors - first)
            places = [at(builder, state, LINE * (first + part)) for part in range(count)]
            for part, place in enumerate(places):
                registers.load(builder, first_sum + part, place, INT64(state_bytes))
            for i in range(num_inputs):
                tile = load_inputs(i) if constants[3] else inputs[i]
                for part in range(count):
                    block = at(builder, values, HEIGHT * step_bytes * i, LINE * (first + part))
                    registers.load(builder, WEIGHTS + part % 2, block, INT64(step_bytes))
                    registers.multiply(builder, first_sum + part, tile, WEIGHTS + part % 2)
                    requests.emit()
            for part, place in enumerate(places):
                registers.store(builder, first_sum + part, place, INT64(state_bytes))

    return typed_intrinsic(types.void, ((types.int64,) * 5 + (tiles, v_head_dim, value_lines, is_one)), 4, emit)


@intrinsic  # type: ignore[untyped-decorator]
def int32_at(typing_context: Any, address: Any) -> Any:
    """int32_at(address): load an int32 as int64."""

    def emit(builder: Any, address: Any) -> Any:
        return builder.sext(load(builder, INT32, address, 0), INT64)

    return typed_intrinsic(types.int64, (types.int64,), 0, emit)
