"""Straight-line vector code for one head geometry, emitted as LLVM instructions that compiled kernels call.

numba's automatic vectoriser leaves the short inner loops of attention scalar (40 times slower, measured), so the five inner steps are
written here as vectors. Every function takes integer addresses; its last arguments must be compile-time constants: whether elements are
bfloat16 (0 or 1), the elements of a line, and so on. Constants, not closures, because numba's disk cache tells closures of such functions
apart only within one process.

bfloat16 is unpacked two elements per 32-bit word: the low half by a shift, the high half by a mask. The elements of a line are thus held in
an order of their own (even ones, then odd ones, per 32), the same in every load and undone by `store_scaled`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic

from rtlang_kernels.cpu.compiled import FLOAT, INT16, INT32, round_to_bf16

INT64 = ir.IntType(64)
FAST = ("reassoc", "contract", "nsz")
EXP2_SERIES = (1.0, 0.69314718, 0.24022646, 0.05550329, 0.0096185195, 0.00133998604, 0.000153375768)
EXP2_FLOOR, EXP2_CEILING = -126.0, 126.0
TWICE_LOG2_E = 2.8853900432586670  # a float32


def splat(builder: Any, value: Any, count: int) -> Any:
    """Emit a vector of `count` times the scalar."""
    vector = ir.VectorType(value.type, count)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), value, INT32(0))
    zeros = ir.Constant(ir.VectorType(INT32, count), [0] * count)
    return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), zeros)


def constant(number: float, count: int) -> Any:
    """A constant float32 vector."""
    return ir.Constant(ir.VectorType(FLOAT, count), [number] * count)


def multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """Emit a * b + c, fused where the machine can."""
    return builder.fadd(builder.fmul(a, b, flags=FAST), c, flags=FAST)


def load(builder: Any, kind: Any, address: Any, offset_bytes: int) -> Any:
    """Emit a load that needs no alignment beyond two bytes."""
    pointer = builder.inttoptr(builder.add(address, INT64(offset_bytes)), kind.as_pointer())
    return builder.load(pointer, align=2, typ=kind)


def store(builder: Any, value: Any, address: Any, offset_bytes: int) -> None:
    """Emit a store that needs no alignment beyond two bytes."""
    pointer = builder.inttoptr(builder.add(address, INT64(offset_bytes)), value.type.as_pointer())
    builder.store(value, pointer, align=2)


def call(builder: Any, name: str, result: Any, *args: Any) -> Any:
    """Emit a call of an LLVM intrinsic."""
    signature = ir.FunctionType(result, [arg.type for arg in args])
    return builder.call(builder.module.declare_intrinsic(name, fnty=signature), args)


def maximum(builder: Any, a: Any, b: Any) -> Any:
    """Emit the larger of each pair; b where either is NaN."""
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


def reduce_to(builder: Any, vectors: list[Any], count: int) -> Any:
    """Emit the sums of each of `count` (a power of two) vectors as one vector, adding neighbours pairwise."""
    while len(vectors) > 1 or vectors[0].type.count > count:
        width = vectors[0].type.count
        pairs = vectors if len(vectors) == 1 else vectors[0::2]
        others = vectors if len(vectors) == 1 else vectors[1::2]
        reach = width if len(vectors) == 1 else 2 * width
        mask = ir.VectorType(INT32, reach // 2)
        even = ir.Constant(mask, list(range(0, reach, 2)))
        odd = ir.Constant(mask, list(range(1, reach, 2)))
        vectors = [
            builder.fadd(builder.shuffle_vector(a, b, even), builder.shuffle_vector(a, b, odd), flags=FAST)
            for a, b in zip(pairs, others, strict=True)
        ]
    return vectors[0]


def exp2(builder: Any, x: Any) -> Any:
    """Emit 2**x of a float32 vector; below -126 the result is about 1e-38 instead of smaller."""
    count = x.type.count
    integers = ir.VectorType(INT32, count)
    name = f"llvm.rint.v{count}f32"
    clamped = maximum(builder, x, constant(EXP2_FLOOR, count))
    clamped = builder.select(
        builder.fcmp_ordered("<", clamped, constant(EXP2_CEILING, count)), clamped, constant(EXP2_CEILING, count)
    )
    clamped = builder.select(builder.fcmp_unordered("uno", x, x), x, clamped)
    whole = call(builder, name, x.type, clamped)
    rest = builder.fsub(clamped, whole)
    series = constant(EXP2_SERIES[-1], count)
    for coefficient in EXP2_SERIES[-2::-1]:
        series = multiply_add(builder, series, rest, constant(coefficient, count))
    safe = builder.select(builder.fcmp_ordered("ord", whole, whole), whole, constant(0.0, count))
    power = builder.add(builder.fptosi(safe, integers), ir.Constant(integers, [127] * count))
    return builder.fmul(series, builder.bitcast(builder.shl(power, ir.Constant(integers, [23] * count)), x.type))


@dataclass(frozen=True, slots=True)
class Lanes:
    """Vectors over a line of `size` elements of one type; `is_ordered` keeps bfloat16 in memory order at some cost."""

    is_bf16: bool
    size: int
    is_ordered: bool = False

    @property
    def width(self) -> int:
        """Elements of one vector."""
        return next(width for width in (16, 8, 4, 2, 1) if self.size % width == 0)

    @property
    def is_paired(self) -> bool:
        """Whether bfloat16 is unpacked two per word."""
        return self.is_bf16 and self.size % 32 == 0 and not self.is_ordered

    def load(self, builder: Any, address: Any) -> list[Any]:
        """Emit the loads of a stored line as float32 vectors, in the order of their own."""
        width, result = self.width, []
        if not self.is_bf16:
            return self.load_float(builder, address)
        words = ir.VectorType(INT32, width)
        floats = ir.VectorType(FLOAT, width)
        sixteen = ir.Constant(words, [16] * width)
        if self.is_paired:
            high = ir.Constant(words, [0xFFFF0000] * width)
            for i in range(self.size // 32):
                word = load(builder, words, address, 64 * i)
                result += [builder.shl(word, sixteen), builder.and_(word, high)]
        else:
            for i in range(self.size // width):
                word = builder.zext(load(builder, ir.VectorType(INT16, width), address, 2 * width * i), words)
                result.append(builder.shl(word, sixteen))
        return [builder.bitcast(word, floats) for word in result]

    def load_float(self, builder: Any, address: Any) -> list[Any]:
        """Emit the loads of a float32 line, as held by the kernel."""
        kind = ir.VectorType(FLOAT, self.width)
        return [load(builder, kind, address, 4 * self.width * i) for i in range(self.size // self.width)]

    def store_float(self, builder: Any, vectors: list[Any], address: Any) -> None:
        """Emit the stores of a float32 line, as held by the kernel."""
        for i, vector in enumerate(vectors):
            store(builder, vector, address, 4 * self.width * i)

    def store(self, builder: Any, vectors: list[Any], address: Any) -> None:
        """Emit the stores of a line in its stored type and order."""
        if not self.is_bf16:
            self.store_float(builder, vectors, address)
            return
        words = ir.VectorType(INT32, self.width)
        sixteen = ir.Constant(words, [16] * self.width)
        rounded = [round_to_bf16(builder, vector) for vector in vectors]
        if self.is_paired:
            high = ir.Constant(words, [0xFFFF0000] * self.width)
            for i in range(self.size // 32):
                word = builder.or_(builder.lshr(rounded[2 * i], sixteen), builder.and_(rounded[2 * i + 1], high))
                store(builder, word, address, 64 * i)
        else:
            for i, word in enumerate(rounded):
                half = builder.trunc(builder.lshr(word, sixteen), ir.VectorType(INT16, self.width))
                store(builder, half, address, 2 * self.width * i)


Emitter = Callable[..., Any]


def lowered(result: Any, arguments: tuple[Any, ...], num_constants: int, emit: Emitter) -> Any:
    """What numba wants of an intrinsic: a signature, and code that calls emit(builder, *values before the constants)."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        value = emit(builder, *values[: len(values) - num_constants])
        return context.get_dummy_value() if value is None else value

    return result(*arguments), generate


def literals(*arguments: Any) -> list[int] | None:
    """The values of compile-time constants; None while numba tries the call without them."""
    if not all(isinstance(argument, types.IntegerLiteral) for argument in arguments):
        return None
    return [argument.literal_value for argument in arguments]


def _offset(builder: Any, address: Any, slots: Any, index: int) -> Any:
    """Emit base address + the byte offset slots[index]."""
    return builder.add(address, load(builder, INT64, slots, 8 * index))


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def load_scaled(typing_context: Any, source: Any, target: Any, factor: Any, is_bf16: Any, size: Any) -> Any:
    """load_scaled(source, target, factor, is_bf16, size): a stored line times the factor, as a float32 line."""
    constants = literals(is_bf16, size)
    if constants is None:
        return None
    lanes = Lanes(bool(constants[0]), constants[1])

    def emit(builder: Any, source: Any, target: Any, factor: Any) -> None:
        factors = splat(builder, factor, lanes.width)
        vectors = [builder.fmul(vector, factors) for vector in lanes.load(builder, source)]
        lanes.store_float(builder, vectors, target)

    return lowered(types.void, (types.int64, types.int64, types.float32, is_bf16, size), 2, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def clear(typing_context: Any, target: Any, size: Any) -> Any:
    """clear(target, size): zeros in a float32 line."""
    constants = literals(size)
    if constants is None:
        return None
    lanes = Lanes(False, constants[0])

    def emit(builder: Any, target: Any) -> None:
        lanes.store_float(builder, [constant(0.0, lanes.width)] * (lanes.size // lanes.width), target)

    return lowered(types.void, (types.int64, size), 1, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def blend(typing_context: Any, state: Any, old: Any, part: Any, new: Any, is_bf16: Any, size: Any) -> Any:
    """blend(state, old, part, new, is_bf16, size): float32 line state := state * old + (stored line) part * new."""
    constants = literals(is_bf16, size)
    if constants is None:
        return None
    lanes = Lanes(bool(constants[0]), constants[1])

    def emit(builder: Any, state: Any, old: Any, part: Any, new: Any) -> None:
        olds, news = splat(builder, old, lanes.width), splat(builder, new, lanes.width)
        pairs = zip(lanes.load_float(builder, state), lanes.load(builder, part), strict=True)
        vectors = [multiply_add(builder, a, olds, builder.fmul(b, news)) for a, b in pairs]
        lanes.store_float(builder, vectors, state)

    arguments = (types.int64, types.float32, types.int64, types.float32, is_bf16, size)
    return lowered(types.void, arguments, 2, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def store_scaled(typing_context: Any, state: Any, target: Any, factor: Any, is_bf16: Any, size: Any) -> Any:
    """store_scaled(state, target, factor, is_bf16, size): a float32 line times the factor, as a stored line."""
    constants = literals(is_bf16, size)
    if constants is None:
        return None
    lanes = Lanes(bool(constants[0]), constants[1])

    def emit(builder: Any, state: Any, target: Any, factor: Any) -> None:
        factors = splat(builder, factor, lanes.width)
        vectors = [builder.fmul(vector, factors) for vector in lanes.load_float(builder, state)]
        lanes.store(builder, vectors, target)

    return lowered(types.void, (types.int64, types.int64, types.float32, is_bf16, size), 2, emit)


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
    """score(query, keys, slots, scores, is_bf16, size, heads, stride): as many keys as a vector has lanes, for `heads` queries.

    query: float32 lines, one after the other. keys: address to which each int64 byte offset in `slots` is added. scores: float32,
    `stride` elements from head to head.
    """
    constants = literals(is_bf16, size, heads, stride)
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
    return lowered(types.void, arguments, 4, emit)


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

    `keys` values for `heads` heads; arguments otherwise as in `score`. `state` is float32 lines, one after the other.
    """
    constants = literals(is_bf16, size, keys, heads, stride)
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
    return lowered(types.void, arguments, 5, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def largest(typing_context: Any, scores: Any, width: Any) -> Any:
    """largest(scores, width): the maximum of `width` float32."""
    constants = literals(width)
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

    return lowered(types.float32, (types.int64, width), 1, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def weigh(typing_context: Any, scores: Any, top: Any, width: Any) -> Any:
    """weigh(scores, top, width): scores := 2**(scores - top) for `width` float32; returns their sum."""
    constants = literals(width)
    if constants is None:
        return None
    kind = ir.VectorType(FLOAT, constants[0])

    def emit(builder: Any, scores: Any, top: Any) -> Any:
        weights = exp2(builder, builder.fsub(load(builder, kind, scores, 0), splat(builder, top, kind.count)))
        store(builder, weights, scores, 0)
        return builder.extract_element(reduce_to(builder, [weights], 1), INT32(0))

    return lowered(types.float32, (types.int64, types.float32, width), 1, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def cap(typing_context: Any, scores: Any, limit: Any, width: Any) -> Any:
    """cap(scores, limit, width): scores := limit * tanh(scores / limit) for `width` float32."""
    constants = literals(width)
    if constants is None:
        return None
    count = constants[0]

    def emit(builder: Any, scores: Any, limit: Any) -> None:
        limits, one, two = splat(builder, limit, count), constant(1.0, count), constant(2.0, count)
        slope = splat(builder, builder.fdiv(ir.Constant(FLOAT, TWICE_LOG2_E), limit), count)
        power = exp2(builder, builder.fmul(load(builder, limits.type, scores, 0), slope))  # e**(2 x / limit)
        tanh = builder.fsub(one, builder.fdiv(two, builder.fadd(power, one)))
        store(builder, builder.fmul(limits, tanh), scores, 0)

    return lowered(types.void, (types.int64, types.float32, width), 1, emit)


@intrinsic  # type: ignore[untyped-decorator]
def float_at(typing_context: Any, address: Any) -> Any:
    """float_at(address): the float32 there."""

    def emit(builder: Any, address: Any) -> Any:
        return load(builder, FLOAT, address, 0)

    return lowered(types.float32, (types.int64,), 0, emit)


@intrinsic  # type: ignore[untyped-decorator]
def put_float(typing_context: Any, address: Any, value: Any) -> Any:
    """put_float(address, value): write a float32."""

    def emit(builder: Any, address: Any, value: Any) -> None:
        store(builder, value, address, 0)

    return lowered(types.void, (types.int64, types.float32), 0, emit)


@intrinsic  # type: ignore[untyped-decorator]
def prefetch(typing_context: Any, address: Any) -> Any:
    """prefetch(address): ask for a cache line; any address is allowed."""

    def emit(builder: Any, address: Any) -> None:
        pointer = builder.inttoptr(address, ir.IntType(8).as_pointer())
        call(builder, "llvm.prefetch.p0", ir.VoidType(), pointer, INT32(0), INT32(2), INT32(1))

    return lowered(types.void, (types.int64,), 0, emit)
