"""Inner steps of CPU attention over packed blocks of 64 keys (`page_vectors`), for a few query lines at once.

A query line is one head of one token. Each of its sums is one chain over the elements of its operands in a fixed order, so the bits of a
line do not depend on the lines beside it. Invisible keys have weight 0 exactly, and their values must be finite.

With a pool of int8, a score is multiplied by the scale of its key, and a weight by the scale of its value before it is rounded; the masses
are sums of the weights without scales. Bytes are multiplied as numbers, or as bytes with exact sums (`attention_bytes`).

Every function takes integer addresses; its last arguments are compile-time constants: those of `page_vectors.Form`, the number of lines
of the call, and so on. They are constants rather than closures because numba's disk cache cannot recognise such closures in another
process. Compile callers with `is_exact`: nothing may be reordered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from rtlang_kernels.cpu.codegen.attention.attention_bytes import (
    emit_gather,
    emit_query,
    emit_score,
    emit_weights,
    lanes_exchanged,
)
from rtlang_kernels.cpu.codegen.attention.page_vectors import (
    BLOCK,
    FLOAT32,
    FLOATS,
    PAIRED,
    WORDS,
    PageForm,
    shuffle,
    store_part,
)
from rtlang_kernels.cpu.codegen.llvm_bridge import FLOAT, INT16, INT32
from rtlang_kernels.cpu.codegen.pair_vectors import SECOND, at, dot, fused_add, narrow, prefetch
from rtlang_kernels.cpu.codegen.vector_builder import (
    INT64,
    TWICE_LOG2_E,
    constant,
    literal_values,
    load,
    splat,
    store,
    typed_intrinsic,
)

# 2**x on [-0.5, 0.5], least largest relative error with 2**0 = 1 exactly: 9e-8, less than the rounding of a bfloat16 by far.
EXP2_SERIES = (1.0, 0.69314698, 0.24022242, 0.05550734, 0.00967151, 0.00132647)
EXP2_FLOOR = -127.0  # 2**-127 and less are 0
ROUNDING = 12582912.0  # 1.5 * 2**23: a float32 plus this has the nearest integer in its low bits
NEGATIVE_INFINITY = float("-inf")


def larger(builder: Any, a: Any, b: Any) -> Any:
    """Emit the larger of each pair; b if either is NaN."""
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


def exp2(builder: Any, x: Any) -> Any:
    """Emit 2**x of 16 float32 of at most 0; exactly 0 from -127 on, exactly 1 at 0, NaN if NaN."""
    floor, shift = constant(EXP2_FLOOR, 16), constant(ROUNDING, 16)
    x = builder.select(builder.fcmp_ordered("<", x, floor), floor, x)
    shifted = builder.fadd(x, shift)
    rest = builder.fsub(x, builder.fsub(shifted, shift))
    series = constant(EXP2_SERIES[-1], 16)
    for coefficient in EXP2_SERIES[-2::-1]:
        series = fused_add(builder, series, rest, constant(coefficient, 16))
    power = builder.shl(builder.bitcast(shifted, WORDS), ir.Constant(WORDS, [23] * 16))
    power = builder.add(power, ir.Constant(WORDS, [127 << 23] * 16))
    return builder.fmul(series, builder.bitcast(power, FLOATS))


def lanes_reduced(builder: Any, vector: Any, combine: Callable[[Any, Any, Any], Any]) -> Any:
    """Emit the combination of all lanes as a scalar, halves by halves."""
    while vector.type.count > 1:
        half = vector.type.count // 2
        low, high = (shuffle(builder, vector, vector, list(range(side * half, side * half + half))) for side in (0, 1))
        vector = combine(builder, low, high)
    return builder.extract_element(vector, INT32(0))


def request_bytes(form: PageForm, size: int, lines: int) -> int:
    """Distance of `lines` requests for a head of `size` elements: cache lines, closer where its bytes are fewer."""
    return min(64, -(-form.head_bytes(size) // lines))


def _running(builder: Any, first: list[Any]) -> list[Any]:
    """Emit variables with these first values; the optimizer turns them into registers."""
    slots = []
    for value in first:
        slot = cgutils.alloca_once(builder, FLOATS)
        builder.store(value, slot)
        slots.append(slot)
    return slots


def request(builder: Any, coming: Any, index: Any, lines: int, step_bytes: int = 64) -> None:
    """Emit a request for cache line number `index` of each of four groups of keys, so that reads of memory spread out.

    coming: address (0: none) of the addresses of the groups, then of the distance from key to key; `lines` requests are made for a key,
    `step_bytes` apart.
    They go to the second cache: 64 keys and values of several heads do not fit in the first one, where requests were 1.4 times slower.
    """
    with builder.if_then(builder.icmp_signed("!=", coming, INT64(0))):
        key, line = builder.udiv(index, INT64(lines)), builder.urem(index, INT64(lines))
        offset = at(builder, builder.mul(key, load(builder, INT64, coming, 32)), (line, step_bytes))
        for group in range(4):
            prefetch(builder, at(builder, load(builder, INT64, coming, 8 * group), offset), SECOND)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def prepare(typing_context: Any, query: Any, state: Any, kind: Any, head_dim: Any, v_head_dim: Any) -> Any:
    """prepare(query, state, kind, head_dim, v_head_dim): put a query line into its state for products of bytes, if it is not there."""
    constants = literal_values(kind, head_dim, v_head_dim)
    if constants is None:
        return None
    form = PageForm(*constants)

    def emit(builder: Any, query: Any, state: Any) -> None:
        if form.is_bytes:
            emit_query(builder, form, query, state)

    return typed_intrinsic(types.void, (types.int64, types.int64, kind, head_dim, v_head_dim), 3, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def score(
    typing_context: Any,
    query: Any,
    keys: Any,
    target: Any,
    coming: Any,
    kind: Any,
    head_dim: Any,
    v_head_dim: Any,
    lines: Any,
    groups: Any,
    key_lines: Any,
) -> Any:
    """score(...): float32 products of query lines with groups of 16 keys.

    query: consecutive lines as given, or the states of lines after `prepare` for products of bytes. keys: packed.
    target: [lines, 64] float32. coming, key_lines: see `request`, one request per step.
    """
    constants = literal_values(kind, head_dim, v_head_dim, lines, groups, key_lines)
    if constants is None:
        return None
    form, num_lines, num_groups = PageForm(*constants[:3]), constants[3], constants[4]

    def emit(builder: Any, query: Any, keys: Any, target: Any, coming: Any) -> None:
        def ask(index: Any) -> None:
            request(builder, coming, index, constants[5], request_bytes(form, form.head_dim, constants[5]))

        if form.is_bytes:
            emit_score(builder, form, query, keys, target, num_lines, num_groups, ask)
            return
        zero = constant(0.0, 16)
        sums = [_running(builder, [zero] * num_groups) for _ in range(num_lines)]
        rows = [at(builder, query, form.head_dim * form.item * line) for line in range(num_lines)]
        with cgutils.for_range(builder, INT64(form.key_steps)) as loop:
            ask(loop.index)
            step = at(builder, keys, (loop.index, 4 * BLOCK))
            vectors = [load(builder, WORDS if form.is_paired else FLOATS, step, 64 * g) for g in range(num_groups)]
            for row, slots in zip(rows, sums, strict=True):
                element = _element(builder, form.arithmetic, row, loop.index)
                for slot, vector in zip(slots, vectors, strict=True):
                    builder.store(_product(builder, form, builder.load(slot), vector, element), slot)
        for line, slots in enumerate(sums):
            for g, slot in enumerate(slots):
                store(builder, builder.load(slot), target, 4 * BLOCK * line + 64 * g)

    return typed_intrinsic(
        types.void, ((types.int64,) * 4 + (kind, head_dim, v_head_dim, lines, groups, key_lines)), 6, emit
    )


def _element(builder: Any, kind: int, line: Any, index: Any) -> Any:
    """Emit the element (a pair if paired) number `index` of a line, 16 times."""
    if kind == PAIRED:
        return splat(builder, load(builder, INT32, at(builder, line, (index, 4)), 0), 16)
    if kind == FLOAT32:
        return splat(builder, load(builder, FLOAT, at(builder, line, (index, 4)), 0), 16)
    word = builder.zext(load(builder, INT16, at(builder, line, (index, 2)), 0), INT32)
    return splat(builder, builder.bitcast(builder.shl(word, INT32(16)), FLOAT), 16)


def _product(builder: Any, form: PageForm, total: Any, vector: Any, element: Any) -> Any:
    if form.is_paired:
        return dot(builder, total, vector, element, is_native=True)
    return fused_add(builder, vector, element, total)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def gather(
    typing_context: Any,
    state: Any,
    values: Any,
    weights: Any,
    first: Any,
    last: Any,
    coming: Any,
    kind: Any,
    head_dim: Any,
    v_head_dim: Any,
    lines: Any,
    value_lines: Any,
) -> Any:
    """gather(...): sums of each line's state += weights * values.

    Steps [first, last) of the block, see `PageForm.value_steps`. weights: [lines, 64] as `weigh` writes them. coming,
    value_lines: see `request`.
    """
    constants = literal_values(kind, head_dim, v_head_dim, lines, value_lines)
    if constants is None:
        return None
    form, num_lines = PageForm(*constants[:3]), constants[3]
    weights_kind, row_bytes = (PAIRED, 2 * BLOCK) if form.is_paired else (FLOAT32, 4 * BLOCK)
    num_parts = -(-form.value_vectors // 4)  # registers hold the sums of about four vectors of every line

    def emit(builder: Any, state: Any, values: Any, weights: Any, first: Any, last: Any, coming: Any) -> None:
        rows = [at(builder, weights, row_bytes * line) for line in range(num_lines)]
        for part in range(num_parts):
            low, high = (form.value_vectors * (part + side) // num_parts for side in (0, 1))

            def ask(index: Any, passes: int = part * (2 if form.is_bytes else 1)) -> None:
                number = builder.add(index, INT64(form.value_steps * passes))
                request(builder, coming, number, constants[4], request_bytes(form, form.v_head_dim, constants[4]))

            if form.is_bytes:
                emit_gather(builder, form, state, values, weights, (first, last), (low, high), num_lines, ask)
                continue
            places = [at(builder, state, form.state_bytes * line + 64 * low) for line in range(num_lines)]
            sums = [
                _running(builder, [load(builder, FLOATS, place, 64 * i) for i in range(high - low)]) for place in places
            ]
            with cgutils.for_range_slice(builder, first, last, INT64(1)) as (index, _):
                ask(index)
                step = at(builder, values, (index, form.value_step_bytes), 64 * low)
                vectors = [load(builder, WORDS if form.is_paired else FLOATS, step, 64 * i) for i in range(high - low)]
                for row, slots in zip(rows, sums, strict=True):
                    weight = _element(builder, weights_kind, row, index)
                    for slot, vector in zip(slots, vectors, strict=True):
                        builder.store(_product(builder, form, builder.load(slot), vector, weight), slot)
            for place, slots in zip(places, sums, strict=True):
                for i, slot in enumerate(slots):
                    store(builder, builder.load(slot), place, 64 * i)

    return typed_intrinsic(types.void, ((types.int64,) * 6 + (kind, head_dim, v_head_dim, lines, value_lines)), 5, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def scale_scores(typing_context: Any, scores: Any, scales: Any, kind: Any) -> Any:
    """scale_scores(scores, scales, kind): multiply 64 scores of a line by the scales of their keys, if the pool has them."""
    constants = literal_values(kind)
    if constants is None:
        return None
    form = PageForm(constants[0], 0, 0)

    def emit(builder: Any, scores: Any, scales: Any) -> None:
        for offset in range(0, 4 * BLOCK if form.is_int8 else 0, 64):
            pair = (load(builder, FLOATS, place, offset) for place in (scores, scales))
            store(builder, builder.fmul(*pair), scores, offset)

    return typed_intrinsic(types.void, (types.int64, types.int64, kind), 1, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def weigh(
    typing_context: Any,
    scores: Any,
    weights: Any,
    state: Any,
    scales: Any,
    factor: Any,
    visible: Any,
    kind: Any,
    v_head_dim: Any,
) -> Any:
    """weigh(...): 64 scores of a line -> weights 2**(score * factor - peak), multiplied by `scales` if the pool is int8.

    visible: int64, bit i for key i. The state's masses grow by the weights; peak, masses and sums are rescaled if a score exceeds the peak.
    weights: 64 bfloat16 if paired, a row of `attention_bytes` if bytes, else float32; may be `scores`.
    scales: address of 64 float32, read only if the pool is int8; those of invisible keys may be anything.
    """
    constants = literal_values(kind, v_head_dim)
    if constants is None:
        return None
    form = PageForm(constants[0], 0, constants[1])
    masses, peaks = 64 * form.value_vectors, 64 * form.value_vectors + 64

    def emit(builder: Any, scores: Any, weights: Any, state: Any, scales: Any, factor: Any, visible: Any) -> None:
        factors, hidden = splat(builder, factor, 16), constant(NEGATIVE_INFINITY, 16)
        bits = ir.VectorType(ir.IntType(1), 16)
        xs, masks = [], []
        for i in range(4):
            mask = builder.bitcast(builder.trunc(builder.lshr(visible, INT64(16 * i)), INT16), bits)
            x = builder.fmul(load(builder, FLOATS, scores, 64 * i), factors)
            xs.append(builder.select(mask, x, hidden))
            masks.append(mask)
        top = larger(builder, larger(builder, xs[0], xs[1]), larger(builder, xs[2], xs[3]))
        highest = lanes_reduced(builder, top, larger)
        old = load(builder, FLOAT, state, peaks)
        mass = cgutils.alloca_once(builder, FLOATS)
        builder.store(load(builder, FLOATS, state, masses), mass)
        peak = cgutils.alloca_once(builder, FLOATS)
        builder.store(load(builder, FLOATS, state, peaks), peak)
        with builder.if_then(builder.fcmp_ordered(">", highest, old)):
            level = splat(builder, highest, 16)
            kept = exp2(builder, builder.fsub(builder.load(peak), level))
            for i in range(form.value_vectors):
                store(builder, builder.fmul(load(builder, FLOATS, state, 64 * i), kept), state, 64 * i)
            builder.store(builder.fmul(builder.load(mass), kept), mass)
            builder.store(level, peak)
            store(builder, level, state, peaks)
        level = builder.load(peak)
        ps = [exp2(builder, builder.fsub(x, level)) for x in xs]
        total = builder.fadd(builder.fadd(ps[0], ps[1]), builder.fadd(ps[2], ps[3]))
        store(builder, builder.fadd(builder.load(mass), total), state, masses)
        if form.is_int8:  # the bits of masked weights are 0, whatever the scale
            scaled = [builder.fmul(p, load(builder, FLOATS, scales, 64 * i)) for i, p in enumerate(ps)]
            ps = [builder.select(mask, p, constant(0.0, 16)) for mask, p in zip(masks, scaled, strict=True)]
        if form.is_bytes:
            emit_weights(builder, ps, weights)
            return
        for i, p in enumerate(ps):
            if form.is_paired:
                store(builder, narrow(builder, p, is_native=True), weights, 32 * i)
            else:
                store(builder, p, weights, 64 * i)

    arguments = (*(types.int64,) * 4, types.float32, types.int64, kind, v_head_dim)
    return typed_intrinsic(types.void, arguments, 2, emit)


@intrinsic  # type: ignore[untyped-decorator]
def cap(typing_context: Any, scores: Any, slope: Any, limit: Any) -> Any:
    """cap(scores, slope, limit): 64 scores := limit * tanh(scores * slope)."""

    def emit(builder: Any, scores: Any, slope: Any, limit: Any) -> None:
        limits, one = splat(builder, limit, 16), constant(1.0, 16)
        slopes = splat(builder, builder.fmul(ir.Constant(FLOAT, -TWICE_LOG2_E), slope), 16)
        for i in range(4):
            x = builder.fmul(load(builder, FLOATS, scores, 64 * i), slopes)  # tanh(y) = (1 - e**-2y) / (1 + e**-2y)
            is_negative = builder.fcmp_ordered(">", x, constant(0.0, 16))
            power = exp2(builder, builder.select(is_negative, builder.fneg(x), x))  # of -2 |y|
            tanh = builder.fdiv(builder.fsub(one, power), builder.fadd(one, power))
            tanh = builder.select(is_negative, builder.fneg(tanh), tanh)
            store(builder, builder.fmul(limits, tanh), scores, 64 * i)

    return typed_intrinsic(types.void, (types.int64, types.float32, types.float32), 0, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def clear(typing_context: Any, state: Any, v_head_dim: Any, kind: Any) -> Any:
    """clear(state, v_head_dim, kind): the state of a line that has seen no key."""
    constants = literal_values(v_head_dim, kind)
    if constants is None:
        return None
    form = PageForm(constants[1], 0, constants[0])
    vectors = form.value_vectors

    def emit(builder: Any, state: Any) -> None:
        for i in range(vectors + 1):
            store(builder, constant(0.0, 16), state, 64 * i)
        store(builder, constant(NEGATIVE_INFINITY, 16), state, 64 * vectors + 64)
        if form.is_bytes:
            store(builder, INT64(0), state, form.query_place)

    return typed_intrinsic(types.void, (types.int64, v_head_dim, kind), 2, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def merge(typing_context: Any, state: Any, source: Any, v_head_dim: Any, kind: Any) -> Any:
    """merge(state, source, v_head_dim, kind): state := the state over both sets of keys. One that has seen no key changes nothing."""
    constants = literal_values(v_head_dim, kind)
    if constants is None:
        return None
    vectors = PageForm(constants[1], 0, constants[0]).value_vectors

    def emit(builder: Any, state: Any, source: Any) -> None:
        masses, peaks = 64 * vectors, 64 * vectors + 64
        empty = builder.fcmp_ordered("==", load(builder, FLOAT, source, peaks), ir.Constant(FLOAT, NEGATIVE_INFINITY))
        mass = lanes_reduced(builder, load(builder, FLOATS, source, masses), lambda b, x, y: b.fadd(x, y))
        empty = builder.and_(empty, builder.fcmp_ordered("==", mass, ir.Constant(FLOAT, 0.0)))
        with builder.if_then(builder.not_(empty)):
            a, b = load(builder, FLOATS, state, peaks), load(builder, FLOATS, source, peaks)
            level = larger(builder, a, b)
            kept, added = exp2(builder, builder.fsub(a, level)), exp2(builder, builder.fsub(b, level))
            for offset in range(0, masses + 64, 64):
                mine = builder.fmul(load(builder, FLOATS, state, offset), kept)
                store(builder, fused_add(builder, load(builder, FLOATS, source, offset), added, mine), state, offset)
            store(builder, level, state, peaks)

    return typed_intrinsic(types.void, (types.int64, types.int64, v_head_dim, kind), 2, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def mass_of(typing_context: Any, state: Any, v_head_dim: Any, kind: Any) -> Any:
    """mass_of(state, v_head_dim, kind): the sum of the lanes of masses."""
    constants = literal_values(v_head_dim, kind)
    if constants is None:
        return None
    vectors = PageForm(constants[1], 0, constants[0]).value_vectors

    def emit(builder: Any, state: Any) -> Any:
        return lanes_reduced(builder, load(builder, FLOATS, state, 64 * vectors), lambda b, x, y: b.fadd(x, y))

    return typed_intrinsic(types.float32, (types.int64, v_head_dim, kind), 2, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def peak_of(typing_context: Any, state: Any, v_head_dim: Any, kind: Any) -> Any:
    """peak_of(state, v_head_dim, kind): the largest score so far, an exponent to base 2."""
    constants = literal_values(v_head_dim, kind)
    if constants is None:
        return None
    vectors = PageForm(constants[1], 0, constants[0]).value_vectors

    def emit(builder: Any, state: Any) -> Any:
        return load(builder, FLOAT, state, 64 * vectors + 64)

    return typed_intrinsic(types.float32, (types.int64, v_head_dim, kind), 2, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def put_line(typing_context: Any, state: Any, target: Any, factor: Any, kind: Any, v_head_dim: Any) -> Any:
    """put_line(state, target, factor, kind, v_head_dim): output line in the pool's type := sums * factor, elements in order."""
    constants = literal_values(kind, v_head_dim)
    if constants is None:
        return None
    form = PageForm(constants[0], 0, constants[1])

    def emit(builder: Any, state: Any, target: Any, factor: Any) -> None:
        factors, vector = splat(builder, factor, 16), 0
        sums = [builder.fmul(load(builder, FLOATS, state, 64 * i), factors) for i in range(form.value_vectors)]
        while vector < form.value_vectors:
            if form.is_bytes:
                if form.v_head_dim - 16 * vector >= 64:
                    sums[vector : vector + 4] = lanes_exchanged(builder, sums[vector : vector + 4])
                    vector += 4
                else:
                    vector += 1
            elif form.is_unpacked(vector):  # vectors of the low and the high halves of every eight elements
                low, high = sums[vector : vector + 2]
                for side in (0, 8):
                    order = [v for q in (side, side + 4) for v in (*range(q, q + 4), *range(16 + q, 20 + q))]
                    sums[vector + side // 8] = shuffle(builder, low, high, order)
                vector += 2
            else:
                vector += 1
        for i, floats in enumerate(sums):
            count = min(16, form.v_head_dim - 16 * i)
            if form.arithmetic != FLOAT32:
                floats = narrow(builder, floats, is_native=form.is_paired)
            if count > 0:
                store_part(builder, floats, at(builder, target, 16 * form.item * i), count)

    return typed_intrinsic(types.void, (types.int64, types.int64, types.float32, kind, v_head_dim), 2, emit)


@intrinsic  # type: ignore[untyped-decorator]
def float_at(typing_context: Any, address: Any) -> Any:
    """float_at(address): load a float32."""

    def emit(builder: Any, address: Any) -> Any:
        return load(builder, FLOAT, address, 0)

    return typed_intrinsic(types.float32, (types.int64,), 0, emit)


@intrinsic  # type: ignore[untyped-decorator]
def put_float(typing_context: Any, address: Any, value: Any) -> Any:
    """put_float(address, value): store a float32."""

    def emit(builder: Any, address: Any, value: Any) -> None:
        store(builder, value, address, 0)

    return typed_intrinsic(types.void, (types.int64, types.float32), 0, emit)


@intrinsic  # type: ignore[untyped-decorator]
def put_int(typing_context: Any, address: Any, value: Any) -> Any:
    """put_int(address, value): store an int64."""

    def emit(builder: Any, address: Any, value: Any) -> None:
        store(builder, value, address, 0)

    return typed_intrinsic(types.void, (types.int64, types.int64), 0, emit)
