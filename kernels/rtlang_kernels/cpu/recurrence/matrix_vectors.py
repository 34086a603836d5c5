"""Vector code of the gated recurrence over a block of a matrix [k_dim, lanes]: value lanes lie in vectors, keys follow one another.

With S the state before a token, a its decay, k its key and u its update, the state after it is S' = a S + k u^T, and its output is
S'^T q = S^T (a q) + (k.q) u. So one sweep over the block updates it for one token and, while a line is in registers, adds it to the two
sums of the next token, S'^T (a' k') and S'^T (a' q'): the block is read and written once a token. Each sum is one chain over the keys in
order.

The *lines* of a token are float32 [4, padded k_dim]: decays a, keys k, a k, and a q.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from rtlang_kernels.cpu.codegen.llvm_bridge import FLOAT, INT16, INT32
from rtlang_kernels.cpu.codegen.pair_vectors import at, fused_add
from rtlang_kernels.cpu.codegen.vector_builder import (
    INT64,
    Lanes,
    call,
    constant,
    literal_values,
    load,
    reduce_to,
    splat,
    store,
    typed_intrinsic,
)
from rtlang_kernels.cpu.recurrence.state_vectors import exp

WIDTH = 16  # keys of a vector of the lines; k_dim is padded with zeros
FLOATS = ir.VectorType(FLOAT, WIDTH)


def _element(builder: Any, source: Any, is_bf16: bool) -> Any:
    """Emit the load of one stored element as float32."""
    if not is_bf16:
        return load(builder, FLOAT, source, 0)
    word = builder.zext(load(builder, INT16, source, 0), INT32)
    return builder.bitcast(builder.shl(word, INT32(16)), FLOAT)


def _widened(builder: Any, source: Any, target: Any, count: Any, is_bf16: bool) -> None:
    """Emit target := `count` stored elements as float32, padded with zeros to whole vectors."""
    item, lanes = 2 if is_bf16 else 4, Lanes(is_bf16, WIDTH, is_ordered=True)
    whole = builder.udiv(count, INT64(WIDTH))
    with cgutils.for_range(builder, whole) as loop:
        vectors = lanes.load(builder, at(builder, source, (loop.index, WIDTH * item)))
        lanes.store_float(builder, vectors, at(builder, target, (loop.index, WIDTH * 4)))
    rest = builder.urem(count, INT64(WIDTH))
    with builder.if_then(builder.icmp_signed(">", rest, INT64(0))):
        source, target = at(builder, source, (whole, WIDTH * item)), at(builder, target, (whole, WIDTH * 4))
        store(builder, constant(0.0, WIDTH), target, 0)
        with cgutils.for_range(builder, rest) as loop:
            value = _element(builder, at(builder, source, (loop.index, item)), is_bf16)
            store(builder, value, at(builder, target, (loop.index, 4)), 0)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def prepared(
    typing_context: Any,
    q: Any,
    k: Any,
    log_decay: Any,
    is_keyed: Any,
    lines: Any,
    k_dim: Any,
    scale: Any,
    eps: Any,
    is_bf16: Any,
) -> Any:
    """Write the lines of a token for one head; returns scale * k.q, of normalized vectors if eps is not negative.

    Args:
        q, k: addresses of stored lines.  log_decay: address of one float32, or of a line with `is_keyed`.
        lines: address of float32 [4, padded k_dim].
    """
    constants = literal_values(is_bf16)
    if constants is None:
        return None
    has_halves = bool(constants[0])

    def emit(
        builder: Any, q: Any, k: Any, log_decay: Any, is_keyed: Any, lines: Any, k_dim: Any, scale: Any, eps: Any
    ) -> Any:
        num = builder.udiv(builder.add(k_dim, INT64(WIDTH - 1)), INT64(WIDTH))
        decays, keys, decayed_keys, queries = (
            at(builder, lines, (builder.mul(num, INT64(i)), WIDTH * 4)) for i in range(4)
        )
        _widened(builder, q, queries, k_dim, has_halves)
        _widened(builder, k, keys, k_dim, has_halves)
        totals = [cgutils.alloca_once(builder, FLOATS) for _ in range(3)]
        for total in totals:
            builder.store(constant(0.0, WIDTH), total)
        with cgutils.for_range(builder, num) as loop:
            a, b = (load(builder, FLOATS, at(builder, line, (loop.index, WIDTH * 4)), 0) for line in (queries, keys))
            for total, pair in zip(totals, ((a, a), (b, b), (a, b)), strict=True):
                builder.store(fused_add(builder, *pair, builder.load(total)), total)
        zero, one = FLOAT(0.0), FLOAT(1.0)
        q_squares, k_squares, product = (
            builder.extract_element(reduce_to(builder, [builder.load(total)], 1, ()), INT32(0)) for total in totals
        )
        is_normed = builder.fcmp_ordered(">=", eps, zero)

        def factor(squares: Any) -> Any:
            return builder.select(
                is_normed, builder.fdiv(one, call(builder, "llvm.sqrt.f32", FLOAT, builder.fadd(squares, eps))), one
            )

        q_factor, k_factor = builder.fmul(factor(q_squares), scale), factor(k_squares)
        has_line = builder.icmp_signed("!=", is_keyed, INT64(0))
        with builder.if_else(has_line) as (keyed, plain):
            with keyed:
                _widened(builder, log_decay, decays, k_dim, False)
                with cgutils.for_range(builder, num) as loop:
                    place = at(builder, decays, (loop.index, WIDTH * 4))
                    store(builder, exp(builder, load(builder, FLOATS, place, 0)), place, 0)
            with plain:
                decay = exp(builder, splat(builder, load(builder, FLOAT, log_decay, 0), WIDTH))
                with cgutils.for_range(builder, num) as loop:
                    store(builder, decay, at(builder, decays, (loop.index, WIDTH * 4)), 0)
        q_factors, k_factors = splat(builder, q_factor, WIDTH), splat(builder, k_factor, WIDTH)
        with cgutils.for_range(builder, num) as loop:
            places = [at(builder, line, (loop.index, WIDTH * 4)) for line in (decays, keys, decayed_keys, queries)]
            decay, key, query = (load(builder, FLOATS, places[i], 0) for i in (0, 1, 3))
            key = builder.fmul(key, k_factors)
            store(builder, key, places[1], 0)
            store(builder, builder.fmul(decay, key), places[2], 0)
            store(builder, builder.fmul(decay, builder.fmul(query, q_factors)), places[3], 0)
        return builder.fmul(builder.fmul(product, q_factor), k_factor)

    arguments = (*(types.int64,) * 6, types.float32, types.float32, is_bf16)
    return typed_intrinsic(types.float32, arguments, 1, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def swept(
    typing_context: Any,
    source: Any,
    source_stride: Any,
    target: Any,
    target_stride: Any,
    lines: Any,
    update: Any,
    coming: Any,
    sums: Any,
    k_dim: Any,
    lanes: Any,
    writes: Any,
    reads: Any,
    is_delta: Any,
) -> Any:
    """Sweep over a block: update it for one token if `writes`, and add up the sums of the next token if `reads`.

    Args:
        source, target: addresses of float32 blocks [k_dim, lanes], with bytes from line to line; target is only used with `writes`.
        lines, update: of the token whose update is written: see above, and float32 [lanes].
        coming: lines of the token whose sums are added up.
        sums: address of float32 [2, lanes], written: S^T (a q) and, with `is_delta`, S^T (a k).
        lanes, writes, reads, is_delta: compile-time constants.
    """
    constants = literal_values(lanes, writes, reads, is_delta)
    if constants is None:
        return None
    line, does_write, does_read, needs_keys = Lanes(False, constants[0]), *(bool(each) for each in constants[1:])
    count = line.size // line.width
    floats = ir.VectorType(FLOAT, line.width)

    def emit(
        builder: Any,
        source: Any,
        source_stride: Any,
        target: Any,
        target_stride: Any,
        lines: Any,
        update: Any,
        coming: Any,
        sums: Any,
        k_dim: Any,
    ) -> None:
        padded = builder.mul(builder.udiv(builder.add(k_dim, INT64(WIDTH - 1)), INT64(WIDTH)), INT64(WIDTH * 4))
        updates = line.load_float(builder, update) if does_write else []
        totals = [
            [cgutils.alloca_once(builder, floats) for _ in range(count)]
            for _ in range((2 if needs_keys else 1) if does_read else 0)
        ]
        for total in (total for group in totals for total in group):
            builder.store(constant(0.0, line.width), total)

        def repeated(base: Any, number: int, index: Any) -> Any:
            place = at(builder, base, (padded, number), (index, 4))
            return splat(builder, load(builder, FLOAT, place, 0), line.width)

        with cgutils.for_range(builder, k_dim) as loop:
            state = line.load_float(builder, at(builder, source, (loop.index, source_stride)))
            if does_write:
                decay, key = repeated(lines, 0, loop.index), repeated(lines, 1, loop.index)
                state = [
                    fused_add(builder, key, own, builder.fmul(decay, each))
                    for own, each in zip(updates, state, strict=True)
                ]
                line.store_float(builder, state, at(builder, target, (loop.index, target_stride)))
            for group, number in zip(totals, (3, 2), strict=False):
                factor = repeated(coming, number, loop.index)
                for total, each in zip(group, state, strict=True):
                    builder.store(fused_add(builder, each, factor, builder.load(total)), total)
        for i, group in enumerate(totals):
            line.store_float(builder, [builder.load(total) for total in group], at(builder, sums, i * 4 * line.size))

    arguments = (*(types.int64,) * 9, lanes, writes, reads, is_delta)
    return typed_intrinsic(types.void, arguments, 4, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def finished(
    typing_context: Any,
    v: Any,
    beta: Any,
    product: Any,
    sums: Any,
    update: Any,
    out: Any,
    is_bf16: Any,
    lanes: Any,
    is_delta: Any,
) -> Any:
    """Write the update u = beta * v, or beta * (v - S^T (a k)) with `is_delta`, and the stored line out := S^T (a q) + product * u.

    Args:
        v: address of a stored line of values.  product: scale * k.q.
        sums, update: see `swept`; update is written.
    """
    constants = literal_values(is_bf16, lanes, is_delta)
    if constants is None:
        return None
    line, needs_keys = Lanes(bool(constants[0]), constants[1], is_ordered=True), bool(constants[2])

    def emit(builder: Any, v: Any, beta: Any, product: Any, sums: Any, update: Any, out: Any) -> None:
        values = line.load(builder, v)
        if needs_keys:
            seen = line.load_float(builder, at(builder, sums, 4 * line.size))
            values = [builder.fsub(value, each) for value, each in zip(values, seen, strict=True)]
        betas, products = splat(builder, beta, line.width), splat(builder, product, line.width)
        values = [builder.fmul(betas, value) for value in values]
        line.store_float(builder, values, update)
        pairs = zip(values, line.load_float(builder, sums), strict=True)
        line.store(builder, [fused_add(builder, products, value, total) for value, total in pairs], out)

    arguments = (types.int64, *(types.float32,) * 2, *(types.int64,) * 3, is_bf16, lanes, is_delta)
    return typed_intrinsic(types.void, arguments, 3, emit)
