"""Products of CPU attention over pools of int8, with exact sums of products of bytes (AVX512-VNNI).

A query line becomes integers of at most 32512 = 127 * 256 in magnitude, `rint(element / step)` with `step = largest magnitude / 32512`. A
score is their product with the bytes of a key, an exact int32, times the step and then times the scale of the key.

The weights of a line for a block of 64 keys, times the scales of their values, become integers of at most 65280 = 255 * 256,
`rint(weight * (65280 / largest))`. An element of the sums grows by their product with the bytes of 64 values, an exact int32, times
`largest * (1 / 65280)`, in one multiply-add. All other operations are single float32 operations. Magnitudes below 2**-100 count as 0, and a
line or block with a number that is not finite has the step NaN.

Integers are split into two bytes, which are multiplied one after the other: high bytes, a shift by 8 bits, low bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from rtlang_kernels.cpu.codegen.attention.page_vectors import (
    BLOCK,
    BYTES_BFLOAT16,
    FLOATS,
    GROUP,
    WORDS,
    PageForm,
    shuffle,
)
from rtlang_kernels.cpu.codegen.llvm_bridge import FLOAT, INT16, INT32
from rtlang_kernels.cpu.codegen.pair_vectors import INT8, at, dot_bytes, fused_add
from rtlang_kernels.cpu.codegen.vector_builder import INT64, call, constant, load, splat, store

QUERY_LIMIT, WEIGHT_LIMIT = 32512.0, 65280.0
WEIGHT_ROW = 2 * BLOCK + 64  # bytes of the weights of a line: high bytes, low bytes, the step
_SMALLEST, _INFINITY = 27 << 23, 0x7F800000  # bits of 2**-100 and of infinity
_BYTES = ir.VectorType(INT8, 16)
_STEP, _START = 8, 12  # in the constants of a query, whose first eight bytes tell whether there is one

Ask = Callable[[Any], None]


def _words(number: int) -> Any:
    return ir.Constant(WORDS, [number] * 16)


def _magnitude(builder: Any, vectors: list[Any]) -> Any:
    """Emit the bits of the largest magnitude as an int32: magnitudes are in the order of their bits, NaN above infinity."""
    largest = _words(0)
    for vector in vectors:
        bits = builder.and_(builder.bitcast(vector, WORDS), _words(0x7FFFFFFF))
        largest = builder.select(builder.icmp_signed(">", bits, largest), bits, largest)
    while largest.type.count > 1:
        half = largest.type.count // 2
        low, high = (shuffle(builder, largest, largest, list(range(side, side + half))) for side in (0, half))
        largest = builder.select(builder.icmp_signed(">", low, high), low, high)
    return builder.extract_element(largest, INT32(0))


def _step(builder: Any, largest: Any, step: Any) -> tuple[Any, Any]:
    """Emit whether numbers of this largest magnitude (bits) are multiples of `step`, and the step, NaN or 0 if they are not."""
    is_finite = builder.icmp_signed("<", largest, INT32(_INFINITY))
    is_used = builder.and_(is_finite, builder.icmp_signed(">=", largest, INT32(_SMALLEST)))
    other = builder.select(is_finite, ir.Constant(FLOAT, 0.0), ir.Constant(FLOAT, float("nan")))
    return is_used, builder.select(is_used, step, other)


def _integers(builder: Any, quotients: Any, is_used: Any) -> Any:
    """Emit the nearest integers, ties to even, or zeros."""
    nearest = call(builder, "llvm.rint.v16f32", FLOATS, quotients)
    nearest = builder.select(splat(builder, is_used, 16), nearest, constant(0.0, 16))
    return builder.fptosi(nearest, WORDS)


def _query_bytes(form: PageForm) -> tuple[int, int]:
    """Offsets in a state of the high and of the low bytes of its query."""
    first = form.query_place + 64
    return first, first + -(-form.head_dim // 32) * 32


def emit_query(builder: Any, form: PageForm, query: Any, state: Any) -> None:
    """Emit the conversion of a query line to bytes in its state, unless it has been done."""
    place = at(builder, state, form.query_place)
    with builder.if_then(builder.icmp_signed("==", load(builder, INT64, place, 0), INT64(0)), likely=False):
        vectors = []
        for i in range(0, form.head_dim, 16):
            if form.kind == BYTES_BFLOAT16:
                halves = builder.zext(load(builder, ir.VectorType(INT16, 16), query, 2 * i), WORDS)
                vectors.append(builder.bitcast(builder.shl(halves, _words(16)), FLOATS))
            else:
                vectors.append(load(builder, FLOATS, query, 4 * i))
        largest = _magnitude(builder, vectors)
        exact = builder.fdiv(builder.bitcast(largest, FLOAT), ir.Constant(FLOAT, QUERY_LIMIT))
        is_used, step = _step(builder, largest, exact)
        steps, total = splat(builder, exact, 16), _words(0)
        for i, vector in enumerate(vectors):
            number = _integers(builder, builder.fdiv(vector, steps), is_used)
            total = builder.add(total, number)
            high = builder.ashr(builder.add(number, _words(128)), _words(8))
            for offset, part in zip(_query_bytes(form), (high, number), strict=True):
                store(builder, builder.trunc(part, _BYTES), state, offset + 16 * i)
        lanes = [builder.extract_element(total, INT32(i)) for i in range(16)]
        while len(lanes) > 1:
            lanes = [builder.add(a, b) for a, b in zip(lanes[::2], lanes[1::2], strict=True)]
        store(builder, step, place, _STEP)
        store(builder, builder.mul(lanes[0], INT32(-128)), place, _START)  # packed keys are larger by 128
        store(builder, INT64(1), place, 0)


def _sums(builder: Any, count: int) -> list[Any]:
    """Emit variables of integer sums, at first 0."""
    slots = [cgutils.alloca_once(builder, WORDS) for _ in range(count)]
    for slot in slots:
        builder.store(_words(0), slot)
    return slots


def emit_score(
    builder: Any, form: PageForm, states: Any, keys: Any, target: Any, num_lines: int, num_groups: int, ask: Ask
) -> None:
    """Emit the scores of query lines, whose states follow one another, for groups of 16 keys, without the scales of keys.

    Args:
        ask: emits a request for the next block, given its number.
    """
    lines = [at(builder, states, form.state_bytes * line) for line in range(num_lines)]
    sums = [_sums(builder, num_groups) for _ in lines]
    for part, offset in enumerate(_query_bytes(form)):
        for line, slots in zip(lines, sums, strict=True):
            start = splat(builder, load(builder, INT32, line, form.query_place + _START), 16)
            for slot in slots if part else ():
                builder.store(builder.add(builder.shl(builder.load(slot), _words(8)), start), slot)
        with cgutils.for_range(builder, INT64(form.key_steps)) as loop:
            ask(builder.add(loop.index, INT64(form.key_steps * part)))
            step = at(builder, keys, (loop.index, 4 * BLOCK))
            vectors = [load(builder, WORDS, step, 64 * g) for g in range(num_groups)]
            for line, slots in zip(lines, sums, strict=True):
                query = splat(builder, load(builder, INT32, at(builder, line, (loop.index, 4)), offset), 16)
                for slot, vector in zip(slots, vectors, strict=True):
                    builder.store(dot_bytes(builder, builder.load(slot), vector, query, is_native=True), slot)
    for i, (line, slots) in enumerate(zip(lines, sums, strict=True)):
        step = splat(builder, load(builder, FLOAT, line, form.query_place + _STEP), 16)
        for g, slot in enumerate(slots):
            numbers = builder.sitofp(builder.load(slot), FLOATS)
            store(builder, builder.fmul(numbers, step), target, 4 * BLOCK * i + 64 * g)


def emit_weights(builder: Any, weights: list[Any], target: Any) -> None:
    """Emit the conversion of four vectors of weights to a row of WEIGHT_ROW bytes."""
    largest = _magnitude(builder, weights)
    top = builder.bitcast(largest, FLOAT)
    is_used, step = _step(builder, largest, builder.fmul(top, ir.Constant(FLOAT, 1.0 / WEIGHT_LIMIT)))
    rate = splat(builder, builder.fdiv(ir.Constant(FLOAT, WEIGHT_LIMIT), top), 16)
    for i, vector in enumerate(weights):
        number = _integers(builder, builder.fmul(vector, rate), is_used)
        store(builder, builder.trunc(builder.lshr(number, _words(8)), _BYTES), target, GROUP * i)
        store(builder, builder.trunc(number, _BYTES), target, BLOCK + GROUP * i)
    store(builder, step, target, 2 * BLOCK)


def emit_gather(
    builder: Any,
    form: PageForm,
    state: Any,
    values: Any,
    weights: Any,
    steps: tuple[Any, Any],
    vectors: tuple[int, int],
    num_lines: int,
    ask: Ask,
) -> None:
    """Emit the growth of sums of lines, for a range of steps of packed values and a range of vectors.

    Args:
        ask: emits a request for the next block, given its number.
    """
    low, high = vectors
    rows = [at(builder, weights, WEIGHT_ROW * line) for line in range(num_lines)]
    sums = [_sums(builder, high - low) for _ in rows]
    for part in range(2):
        for slots in sums if part else ():
            for slot in slots:
                builder.store(builder.shl(builder.load(slot), _words(8)), slot)
        with cgutils.for_range_slice(builder, *steps, INT64(1)) as (index, _):
            ask(builder.add(index, INT64(form.value_steps * part)))
            step = at(builder, values, (index, form.value_step_bytes), 64 * low)
            found = [load(builder, WORDS, step, 64 * i) for i in range(high - low)]
            for row, slots in zip(rows, sums, strict=True):
                weight = splat(builder, load(builder, INT32, at(builder, row, (index, 4)), BLOCK * part), 16)
                for slot, vector in zip(slots, found, strict=True):
                    builder.store(dot_bytes(builder, builder.load(slot), weight, vector, is_native=True), slot)
    for line, (row, slots) in enumerate(zip(rows, sums, strict=True)):
        step = splat(builder, load(builder, FLOAT, row, 2 * BLOCK), 16)
        place = at(builder, state, form.state_bytes * line + 64 * low)
        for i, slot in enumerate(slots):
            total = load(builder, FLOATS, place, 64 * i)
            store(builder, fused_add(builder, builder.sitofp(builder.load(slot), FLOATS), step, total), place, 64 * i)


def lanes_exchanged(builder: Any, vectors: list[Any]) -> list[Any]:
    """Emit the sums of 64 elements in order, from four vectors in the order of packed bytes."""
    found = []
    for lane in range(0, 16, 4):
        pick = [*range(lane, lane + 4), *range(16 + lane, 20 + lane)]
        first, second = (shuffle(builder, vectors[i], vectors[i + 1], pick) for i in (0, 2))
        found.append(shuffle(builder, first, second, list(range(16))))
    return found
