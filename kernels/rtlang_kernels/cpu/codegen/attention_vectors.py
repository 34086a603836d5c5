"""Inner steps of CPU attention as straight-line vector code for one head geometry.

numba's automatic vectoriser leaves these short loops scalar (20 times slower, measured), so they are written as vectors. Every function
takes integer addresses; its last arguments must be compile-time constants: whether elements are bfloat16 (0 or 1), the number of elements
of a line, and so on. They are constants rather than closures because numba's disk cache cannot recognise such closures in another process.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from rtlang_kernels.cpu.codegen.llvm_bridge import FLOAT, INT32
from rtlang_kernels.cpu.codegen.vector_builder import (
    INT64,
    TWICE_LOG2_E,
    Lanes,
    call,
    constant,
    exp2,
    literal_values,
    load,
    maximum,
    multiply_add,
    reduce_to,
    splat,
    store,
    typed_intrinsic,
)


def _offset(builder: Any, address: Any, slots: Any, index: int) -> Any:
    """Emit base address + the byte offset slots[index]."""
    return builder.add(address, load(builder, INT64, slots, 8 * index))


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def load_scaled(typing_context: Any, source: Any, target: Any, factor: Any, is_bf16: Any, size: Any) -> Any:
    """load_scaled(source, target, factor, is_bf16, size): float32 line target := stored line * factor."""
    constants = literal_values(is_bf16, size)
    if constants is None:
        return None
    lanes = Lanes(bool(constants[0]), constants[1])

    def emit(builder: Any, source: Any, target: Any, factor: Any) -> None:
        factors = splat(builder, factor, lanes.width)
        vectors = [builder.fmul(vector, factors) for vector in lanes.load(builder, source)]
        lanes.store_float(builder, vectors, target)

    return typed_intrinsic(types.void, (types.int64, types.int64, types.float32, is_bf16, size), 2, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def clear(typing_context: Any, target: Any, size: Any) -> Any:
    """clear(target, size): float32 line target := 0."""
    constants = literal_values(size)
    if constants is None:
        return None
    lanes = Lanes(False, constants[0])

    def emit(builder: Any, target: Any) -> None:
        lanes.store_float(builder, [constant(0.0, lanes.width)] * (lanes.size // lanes.width), target)

    return typed_intrinsic(types.void, (types.int64, size), 1, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def blend(typing_context: Any, state: Any, old: Any, part: Any, new: Any, is_bf16: Any, size: Any) -> Any:
    """blend(state, old, part, new, is_bf16, size): float32 line state := state * old + (stored line) part * new."""
    constants = literal_values(is_bf16, size)
    if constants is None:
        return None
    lanes = Lanes(bool(constants[0]), constants[1])

    def emit(builder: Any, state: Any, old: Any, part: Any, new: Any) -> None:
        olds, news = splat(builder, old, lanes.width), splat(builder, new, lanes.width)
        pairs = zip(lanes.load_float(builder, state), lanes.load(builder, part), strict=True)
        vectors = [multiply_add(builder, a, olds, builder.fmul(b, news)) for a, b in pairs]
        lanes.store_float(builder, vectors, state)

    arguments = (types.int64, types.float32, types.int64, types.float32, is_bf16, size)
    return typed_intrinsic(types.void, arguments, 2, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def store_scaled(typing_context: Any, state: Any, target: Any, factor: Any, is_bf16: Any, size: Any) -> Any:
    """store_scaled(state, target, factor, is_bf16, size): stored line target := float32 line * factor."""
    constants = literal_values(is_bf16, size)
    if constants is None:
        return None
    lanes = Lanes(bool(constants[0]), constants[1])

    def emit(builder: Any, state: Any, target: Any, factor: Any) -> None:
        factors = splat(builder, factor, lanes.width)
        vectors = [builder.fmul(vector, factors) for vector in lanes.load_float(builder, state)]
        lanes.store(builder, vectors, target)

    return typed_intrinsic(types.void, (types.int64, types.int64, types.float32, is_bf16, size), 2, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def score(
    typing_context: Any,
    query: Any,
    keys: Any,
    slots: Any,
    scores: Any,
    is_bf16: Any,
    size: Any,
    heads: Any,
    stride: Any,
) -> Any:
    """score(query, keys, slots, scores, is_bf16, size, heads, stride): scores of one vector of keys for `heads` queries.

    query: consecutive float32 lines. keys: address to which each int64 byte offset in `slots` is added. scores: float32,
    `stride` elements from head to head.
    """
    constants = literal_values(is_bf16, size, heads, stride)
    if constants is None:
        return None
    lanes, num_heads, step = Lanes(bool(constants[0]), constants[1]), constants[2], constants[3]

    def emit(builder: Any, query: Any, keys: Any, slots: Any, scores: Any) -> None:
        lines = [
            lanes.load_float(builder, builder.add(query, INT64(4 * lanes.size * head))) for head in range(num_heads)
        ]
        products: list[list[Any]] = [[] for _ in lines]
        for index in range(lanes.width):
            key = lanes.load(builder, _offset(builder, keys, slots, index))
            for line, sums in zip(lines, products, strict=True):
                total = builder.fmul(key[0], line[0])
                for a, b in zip(key[1:], line[1:], strict=True):
                    total = multiply_add(builder, a, b, total)
                sums.append(total)
        for head, sums in enumerate(products):
            store(builder, reduce_to(builder, sums, lanes.width), scores, 4 * step * head)

    arguments = (types.int64, types.int64, types.int64, types.int64, is_bf16, size, heads, stride)
    return typed_intrinsic(types.void, arguments, 4, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def gather(
    typing_context: Any,
    state: Any,
    values: Any,
    slots: Any,
    weights: Any,
    is_bf16: Any,
    size: Any,
    keys: Any,
    heads: Any,
    stride: Any,
) -> Any:
    """gather(state, values, slots, weights, is_bf16, size, keys, heads, stride): state[head] += sum_i weights[head, i] * value[i].

    `keys` values for `heads` heads; other arguments as in `score`. `state` is consecutive float32 lines.
    """
    constants = literal_values(is_bf16, size, keys, heads, stride)
    if constants is None:
        return None
    lanes = Lanes(bool(constants[0]), constants[1])
    num_keys, num_heads, step = constants[2:]

    def emit(builder: Any, state: Any, values: Any, slots: Any, weights: Any) -> None:
        addresses = [builder.add(state, INT64(4 * lanes.size * head)) for head in range(num_heads)]
        sums = [lanes.load_float(builder, address) for address in addresses]
        for index in range(num_keys):
            value = lanes.load(builder, _offset(builder, values, slots, index))
            for head in range(num_heads):
                factor = splat(builder, load(builder, FLOAT, weights, 4 * (step * head + index)), lanes.width)
                sums[head] = [multiply_add(builder, a, factor, b) for a, b in zip(value, sums[head], strict=True)]
        for address, vectors in zip(addresses, sums, strict=True):
            lanes.store_float(builder, vectors, address)

    arguments = (types.int64, types.int64, types.int64, types.int64, is_bf16, size, keys, heads, stride)
    return typed_intrinsic(types.void, arguments, 5, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def largest(typing_context: Any, scores: Any, width: Any) -> Any:
    """largest(scores, width): the maximum of `width` float32."""
    constants = literal_values(width)
    if constants is None:
        return None
    kind = ir.VectorType(FLOAT, constants[0])

    def emit(builder: Any, scores: Any) -> Any:
        vector = load(builder, kind, scores, 0)
        while vector.type.count > 1:
            half = vector.type.count // 2
            mask = ir.VectorType(INT32, half)
            low = builder.shuffle_vector(vector, vector, ir.Constant(mask, list(range(half))))
            high = builder.shuffle_vector(vector, vector, ir.Constant(mask, list(range(half, 2 * half))))
            vector = maximum(builder, low, high)
        return builder.extract_element(vector, INT32(0))

    return typed_intrinsic(types.float32, (types.int64, width), 1, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def weigh(typing_context: Any, scores: Any, top: Any, width: Any) -> Any:
    """weigh(scores, top, width): scores := 2**(scores - top) for `width` float32; returns their sum."""
    constants = literal_values(width)
    if constants is None:
        return None
    kind = ir.VectorType(FLOAT, constants[0])

    def emit(builder: Any, scores: Any, top: Any) -> Any:
        weights = exp2(builder, builder.fsub(load(builder, kind, scores, 0), splat(builder, top, kind.count)))
        store(builder, weights, scores, 0)
        return builder.extract_element(reduce_to(builder, [weights], 1), INT32(0))

    return typed_intrinsic(types.float32, (types.int64, types.float32, width), 1, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def cap(typing_context: Any, scores: Any, limit: Any, width: Any) -> Any:
    """cap(scores, limit, width): scores := limit * tanh(scores / limit) for `width` float32."""
    constants = literal_values(width)
    if constants is None:
        return None
    count = constants[0]

    def emit(builder: Any, scores: Any, limit: Any) -> None:
        limits, one, two = splat(builder, limit, count), constant(1.0, count), constant(2.0, count)
        slope = splat(builder, builder.fdiv(ir.Constant(FLOAT, TWICE_LOG2_E), limit), count)
        power = exp2(builder, builder.fmul(load(builder, limits.type, scores, 0), slope))  # e**(2 x / limit)
        tanh = builder.fsub(one, builder.fdiv(two, builder.fadd(power, one)))
        store(builder, builder.fmul(limits, tanh), scores, 0)

    return typed_intrinsic(types.void, (types.int64, types.float32, width), 1, emit)


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
def prefetch(typing_context: Any, address: Any) -> Any:
    """prefetch(address): prefetch a cache line; any address is allowed."""

    def emit(builder: Any, address: Any) -> None:
        pointer = builder.inttoptr(address, ir.IntType(8).as_pointer())
        call(builder, "llvm.prefetch.p0", ir.VoidType(), pointer, INT32(0), INT32(2), INT32(1))

    return typed_intrinsic(types.void, (types.int64,), 0, emit)
