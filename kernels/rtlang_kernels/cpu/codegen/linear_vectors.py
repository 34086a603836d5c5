"""Vector code of linear layers: a tile of rows times a block of outputs, and the end of a line.

A block holds the weights of `BLOCK` outputs for all inputs, one step of 128 bytes after another. A step holds one 32-bit word per output:
a float32 weight or a pair of bfloat16 weights, for as many inputs. The matching inputs of a row are one word of its
line, so a step needs one load of 4 bytes per row, repeated over the lanes. A sum is one chain over the steps whatever the number of rows,
and its bits depend on its row and its output alone. Kernels that use this code must be compiled with `is_exact`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from rtlang_kernels.contract.fused_step import BLOCK
from rtlang_kernels.cpu.codegen.layer_vectors import silu
from rtlang_kernels.cpu.codegen.llvm_bridge import FLOAT, INT16, INT32
from rtlang_kernels.cpu.codegen.pair_vectors import at, dot, fused_add, low_floats, narrow, prefetch
from rtlang_kernels.cpu.codegen.tile_vectors import HEIGHT, NO_TILES, multiply_in_tiles
from rtlang_kernels.cpu.codegen.vector_builder import (
    INT64,
    literal_values,
    load,
    splat,
    stack_memory,
    store,
    typed_intrinsic,
)

WIDTH = 16
PARTS = BLOCK // WIDTH
WORD = 4
STEP = BLOCK * WORD  # bytes of a step of weights
UNROLL = 2  # steps per iteration
LINE = 64  # bytes of a cache line
FLOAT32, BFLOAT16 = range(2)  # element types of weights
FLOATS, WORDS = ir.VectorType(FLOAT, WIDTH), ir.VectorType(INT32, WIDTH)


@dataclass(frozen=True, slots=True)
class _Code:
    """Compile-time constants of a tile: element type of the weights, whether products are one instruction, parts of a block at once."""

    element: int
    is_native: bool
    parts: int

    def add(self, builder: Any, total: Any, weights: Any, inputs: Any) -> Any:
        """Emit total + the products of one step, per lane."""
        if self.element == FLOAT32:
            return fused_add(builder, builder.bitcast(weights, FLOATS), builder.bitcast(inputs, FLOATS), total)
        return dot(builder, total, weights, inputs, is_native=self.is_native)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def multiply_tile(
    typing_context: Any,
    x: Any,
    x_stride: Any,
    count: Any,
    weights: Any,
    coming: Any,
    num_steps: Any,
    sums: Any,
    work: Any,
    element: Any,
    is_native: Any,
    parts: Any,
    rows: Any,
    lines: Any,
    level: Any,
    tiles: Any,
) -> Any:
    """Compute the float32 sums [rows, BLOCK] of a block for rows of `num_steps` words at x, `x_stride` bytes apart.

    Only the first `count` of `rows` rows exist; the sums of the others repeat the last one. In every iteration, `lines` cache lines are
    requested from `coming` on, into the cache of `level`. element and what follows it are compile-time constants.

    With `tiles`, matrix tiles compute the sums; all `count` rows must exist, and work is the address from `open_tiles`.
    """
    constants = literal_values(element, is_native, parts, rows, lines, level, tiles)
    if constants is None:
        return None
    code, (num_rows, num_lines, cache_level, kind) = (
        _Code(constants[0], bool(constants[1]), constants[2]),
        constants[3:],
    )

    def emit(
        builder: Any, x: Any, x_stride: Any, count: Any, weights: Any, coming: Any, num_steps: Any, sums: Any, work: Any
    ) -> None:
        if kind != NO_TILES:
            fixed = kind, num_rows // HEIGHT, num_lines * HEIGHT // UNROLL, cache_level
            multiply_in_tiles(builder, *fixed, x, x_stride, count, weights, coming, num_steps, sums, work)
            return
        last = builder.sub(count, INT64(1))
        rows_at = []
        for row in range(num_rows):
            index = builder.select(builder.icmp_signed("<", INT64(row), count), INT64(row), last)
            rows_at.append(at(builder, x, (index, x_stride)))
        for first in range(0, PARTS, code.parts):
            totals = [[cgutils.alloca_once(builder, FLOATS) for _ in range(code.parts)] for _ in rows_at]
            for total in (total for row in totals for total in row):
                builder.store(ir.Constant(FLOATS, [0] * WIDTH), total)

            def step(index: Any, first: int = first, totals: Any = totals) -> None:
                here = at(builder, weights, (index, STEP))
                vectors = [load(builder, WORDS, here, (first + part) * WIDTH * WORD) for part in range(code.parts)]
                for row_at, row in zip(rows_at, totals, strict=True):
                    inputs = splat(builder, load(builder, INT32, at(builder, row_at, (index, WORD)), 0), WIDTH)
                    for vector, total in zip(vectors, row, strict=True):
                        builder.store(code.add(builder, builder.load(total), vector, inputs), total)

            with cgutils.for_range(builder, builder.udiv(num_steps, INT64(UNROLL))) as loop:
                if first == 0:
                    for line in range(num_lines):
                        asked = at(builder, coming, (loop.index, LINE * num_lines), LINE * line)
                        prefetch(builder, asked, cache_level)
                for skip in range(UNROLL):
                    step(builder.add(builder.mul(loop.index, INT64(UNROLL)), INT64(skip)))
            with builder.if_then(builder.icmp_signed("!=", builder.urem(num_steps, INT64(UNROLL)), INT64(0))):
                step(builder.sub(num_steps, INT64(1)))
            for number, line_totals in enumerate(totals):
                for part, total in enumerate(line_totals):
                    place = (number * PARTS + first + part) * WIDTH * WORD
                    store(builder, builder.load(total), sums, place)

    arguments = (*(types.int64,) * 8, element, is_native, parts, rows, lines, level, tiles)
    return typed_intrinsic(types.void, arguments, 7, emit)


def _stored(builder: Any, vectors: list[Any], target: Any, valid: Any, is_bf16: bool, is_native: bool) -> None:
    """Emit the store of the first `valid` elements of a line."""
    item = INT16 if is_bf16 else INT32
    size = item.width // 8
    kept = [narrow(builder, vector, is_native=is_native) if is_bf16 else vector for vector in vectors]
    with builder.if_else(builder.icmp_signed(">=", valid, INT64(WIDTH * len(vectors)))) as (whole, part):
        with whole:
            for index, vector in enumerate(kept):
                store(builder, vector, target, index * WIDTH * size)
        with part:
            line = _line(builder)
            for index, vector in enumerate(kept):
                store(builder, vector, line, index * WIDTH * size)
            _copied(builder, line, target, valid, item)


def _loaded(builder: Any, source: Any, valid: Any, is_bf16: bool) -> list[Any]:
    """Emit the load of a line of BLOCK elements as float32, of which the first `valid` exist; the others are undefined."""
    item = INT16 if is_bf16 else INT32
    place = cgutils.alloca_once(builder, INT64)
    builder.store(source, place)
    with builder.if_then(builder.icmp_signed("<", valid, INT64(BLOCK))):
        line = _line(builder)
        _copied(builder, source, line, valid, item)
        builder.store(line, place)
    vectors = []
    for part in range(PARTS):
        vector = load(builder, ir.VectorType(item, WIDTH), builder.load(place), part * WIDTH * item.width // 8)
        vectors.append(low_floats(builder, builder.zext(vector, WORDS)) if is_bf16 else builder.bitcast(vector, FLOATS))
    return vectors


def _line(builder: Any) -> Any:
    """Emit the address of a line of BLOCK words on the stack."""
    return builder.ptrtoint(cgutils.alloca_once(builder, ir.ArrayType(INT32, BLOCK)), INT64)


def _copied(builder: Any, source: Any, target: Any, count: Any, item: Any) -> None:
    """Emit a copy of `count` elements."""
    with cgutils.for_range(builder, count) as loop:
        places = (at(builder, base, (loop.index, item.width // 8)) for base in (source, target))
        found = load(builder, item, next(places), 0)
        store(builder, found, next(places), 0)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def finish_line(
    typing_context: Any,
    sums: Any,
    constants: Any,
    residual: Any,
    target: Any,
    valid: Any,
    is_gated: Any,
    has_scales: Any,
    is_bf16: Any,
    is_native: Any,
) -> Any:
    """Write the line of a block: target := sums (* scales) + bias (+ residual), or silu(first half) * second half if `is_gated`.

    Args:
        sums: BLOCK sums of `multiply_tile`.
        constants: a float32 line of biases, and one of scales if `has_scales`.
        residual: line of elements to add, or 0.
        target: line of elements; the first `valid` are written.
        has_scales, is_bf16, is_native: compile-time constants; is_bf16 says what target and residual hold.
    """
    fixed = literal_values(has_scales, is_bf16, is_native)
    if fixed is None:
        return None
    is_scaled, has_halves, native = (bool(each) for each in fixed)

    def emit(builder: Any, sums: Any, constants: Any, residual: Any, target: Any, valid: Any, is_gated: Any) -> None:
        results = []
        for part in range(PARTS):
            place = part * WIDTH * WORD
            result = load(builder, FLOATS, sums, place)
            if is_scaled:
                result = builder.fmul(result, load(builder, FLOATS, constants, STEP + place))
            results.append(builder.fadd(result, load(builder, FLOATS, constants, place)))
        with builder.if_else(builder.icmp_signed("!=", is_gated, INT64(0))) as (gated, plain):
            with gated:
                gate = builder.fmul(silu(builder, results[0]), results[1])
                _stored(builder, [gate], target, valid, has_halves, native)
            with plain:
                added = [cgutils.alloca_once(builder, FLOATS) for _ in results]
                for slot, result in zip(added, results, strict=True):
                    builder.store(result, slot)
                with builder.if_then(builder.icmp_signed("!=", residual, INT64(0))):
                    for slot, other in zip(added, _loaded(builder, residual, valid, has_halves), strict=True):
                        builder.store(builder.fadd(builder.load(slot), other), slot)
                _stored(builder, [builder.load(slot) for slot in added], target, valid, has_halves, native)

    return typed_intrinsic(types.void, (*(types.int64,) * 6, has_scales, is_bf16, is_native), 3, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def stack_sums(typing_context: Any, rows: Any) -> Any:
    """stack_sums(rows): address of memory on the stack for `rows` lines of sums, valid until the function returns."""
    constants = literal_values(rows)
    if constants is None:
        return None

    def emit(builder: Any) -> Any:
        return stack_memory(builder, constants[0] * STEP)

    return typed_intrinsic(types.int64, (rows,), 1, emit)
