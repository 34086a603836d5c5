"""Packing of KV pages in registers: 16 keys at a time, from the pool's layout into the one that `attention_vectors` reads.

A block holds 64 keys as four groups of 16. Keys become [steps][64 keys] words, so that one vector holds the same elements of 16 keys:
a word is a pair of elements if the form is paired, else one float32. Values become [steps][vectors] words: a paired step is two keys, whose
elements lie side by side, in the order in which the processor unpacks 32 elements (`PageForm.is_unpacked`); a float32 step is one key.

Bytes of a pool of int8 (`contract.kv_lines`) are packed as the numbers that they are, which these forms hold exactly, or stay bytes: then a
word of keys is four elements, plus 128 each, and a step of values is four keys, in the order in which the processor unpacks 64 elements.
The scales of the 64 keys follow the packed keys as 64 float32, and then those of the 64 values.

Source: the 16 x 16 transposition is the usual one in four stages of 16 shuffles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from rtlang_kernels.contract.kv_lines import LARGEST, line_bytes, scale_offset
from rtlang_kernels.cpu.codegen.llvm_bridge import FLOAT, INT16, INT32
from rtlang_kernels.cpu.codegen.pair_vectors import INT8, at, high_floats, low_floats
from rtlang_kernels.cpu.codegen.vector_builder import (
    INT64,
    Lanes,
    call,
    constant,
    literal_values,
    load,
    splat,
    store,
    typed_intrinsic,
)

GROUP, BLOCK = 16, 64  # keys of a group and of a block
# Kinds: float32; bfloat16 computed in float32; bfloat16 by products of pairs. INT8_POOL is added if the pool is int8, else it has that type
# too. And a pool of int8 by products of bytes, with queries in float32 or bfloat16.
FLOAT32, WIDENED, PAIRED = range(3)
INT8_POOL = 3
BYTES_FLOAT32, BYTES_BFLOAT16 = 6, 7
MAX_BYTES_SIZE = 512  # of a head by products of bytes, whose sums must fit an int32
_INFINITY, _NAN = 0x7F800000, 0x7FC00000  # bits of float32
WORDS, FLOATS, HALVES = ir.VectorType(INT32, 16), ir.VectorType(FLOAT, 16), ir.VectorType(INT16, 32)


@dataclass(frozen=True, slots=True)
class PageForm:
    """Element kind and head sizes of packed keys and values; sizes in bytes."""

    kind: int
    head_dim: int
    v_head_dim: int

    @property
    def arithmetic(self) -> int:
        """The kind without INT8_POOL; of products of bytes, the kind of the results."""
        return self.kind % INT8_POOL

    @property
    def is_int8(self) -> bool:
        """Whether the pool holds lines of int8 with their scales."""
        return self.kind >= INT8_POOL

    @property
    def is_bytes(self) -> bool:
        """Whether bytes are multiplied as bytes."""
        return self.kind >= BYTES_FLOAT32

    @property
    def fits_bytes(self) -> bool:
        """Whether heads of these sizes can be multiplied as bytes."""
        return self.head_dim % 16 == self.v_head_dim % 16 == 0 and self.head_dim <= MAX_BYTES_SIZE

    @property
    def is_paired(self) -> bool:
        """Whether a word holds two bfloat16."""
        return self.arithmetic == PAIRED

    @property
    def item(self) -> int:
        """Bytes of an element of queries and results."""
        return 4 if self.arithmetic == FLOAT32 else 2

    def head_bytes(self, size: int) -> int:
        """A head of `size` elements in the pool."""
        return line_bytes(size) if self.is_int8 else size * self.item

    def num_requests(self, size: int) -> int:
        """Requests of memory for a head of `size` elements; 16 times as many fit the steps of a block (`attention_vectors.request`)."""
        return max(1, size * (2 if self.is_bytes else self.item) // 64)

    @property
    def key_steps(self) -> int:
        """Words of a key."""
        return self.head_dim // (4 if self.is_bytes else 2 if self.is_paired else 1)

    @property
    def value_steps(self) -> int:
        """Steps over the values of a block."""
        return BLOCK // (4 if self.is_bytes else 2 if self.is_paired else 1)

    @property
    def value_vectors(self) -> int:
        """Vectors of 16 words of the values of a step, and of 16 sums of a query line."""
        whole, rest = divmod(self.v_head_dim, 32)
        return 2 * whole + (rest > 0) + (rest > 16)

    @property
    def scales(self) -> int:
        """Offset in the packed keys of a block of the scales of its keys, before those of its values."""
        return 4 * BLOCK * self.key_steps

    @property
    def key_bytes(self) -> int:
        """Packed keys of a block, with scales if there are any."""
        return self.scales + (8 * BLOCK if self.is_int8 else 0)

    @property
    def value_step_bytes(self) -> int:
        """Packed values of a step."""
        return 64 * self.value_vectors

    @property
    def value_bytes(self) -> int:
        """Packed values of a block."""
        return self.value_step_bytes * self.value_steps

    @property
    def state_bytes(self) -> int:
        """State of a query line: the sums, 16 lanes of masses, the peak 16 times; by products of bytes, also the query as bytes."""
        return self.query_place + (64 + -(-self.head_dim // 32) * 64 if self.is_bytes else 0)

    @property
    def query_place(self) -> int:
        """Offset in a state of the query as bytes: a cache line of constants, then the high and the low bytes of all elements."""
        return 64 * (self.value_vectors + 2)

    def is_unpacked(self, vector: int) -> bool:
        """Whether this vector of values belongs to 32 elements in unpacking order (low and high halves of every 128 bits)."""
        return self.kind == PAIRED and (vector // 2 < self.v_head_dim // 32 or self.v_head_dim % 32 > 16)


def shuffle(builder: Any, a: Any, b: Any, order: list[int]) -> Any:
    """Emit the elements of a, then b, at these indices."""
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(INT32, len(order)), order))


def load_part(builder: Any, kind: Any, address: Any, count: int) -> Any:
    """Emit the load of `count` elements into the first lanes of a vector of type `kind`; the others are zero. Reads nothing else."""
    if count >= kind.count:
        return load(builder, kind, address, 0)
    vector, done = ir.Constant(kind, [0] * kind.count), 0
    for size in (16, 8, 4, 2, 1):
        if count & size:
            part = load(
                builder, ir.VectorType(kind.element, size), at(builder, address, done * _width(kind.element)), 0
            )
            wide = shuffle(builder, part, part, [min(i, size - 1) for i in range(kind.count)])
            order = [kind.count + i - done if done <= i < done + size else i for i in range(kind.count)]
            vector = shuffle(builder, vector, wide, order)
            done += size
    return vector


def store_part(builder: Any, vector: Any, address: Any, count: int) -> None:
    """Emit the store of the first `count` lanes."""
    if count >= vector.type.count:
        store(builder, vector, address, 0)
        return
    done = 0
    for size in (16, 8, 4, 2, 1):
        if count & size:
            part = shuffle(builder, vector, vector, list(range(done, done + size)))
            store(builder, part, at(builder, address, done * _width(vector.type.element)), 0)
            done += size


def _width(element: Any) -> int:
    """Bytes of an element."""
    return 4 if element == FLOAT else element.width // 8


def halves_order(high: bool) -> list[int]:
    """Order in which the processor unpacks two vectors of 32 halves: the low or high half of every 128 bits, alternating."""
    first = 4 if high else 0
    return [32 * side + 8 * quarter + first + i for quarter in range(4) for i in range(4) for side in (0, 1)]


def transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """Emit the transposition of 16 vectors of 16 words."""
    quarters: list[list[Any]] = []  # [4 row groups][4]: quarter q of vector c holds word 4 q + c of the 4 rows
    for group in range(0, 16, 4):
        a, b, c, d = rows[group : group + 4]
        low, high = ([v for q in range(0, 16, 4) for v in (q + h, 16 + q + h, q + h + 1, 17 + q + h)] for h in (0, 2))
        ab, cd = (
            (shuffle(builder, a, b, low), shuffle(builder, a, b, high)),
            (shuffle(builder, c, d, low), shuffle(builder, c, d, high)),
        )
        first = [v for q in range(0, 16, 4) for v in (q, q + 1, 16 + q, 17 + q)]
        second = [v for q in range(0, 16, 4) for v in (q + 2, q + 3, 18 + q, 19 + q)]
        quarters.append(
            [shuffle(builder, x, y, order) for x, y in zip(ab, cd, strict=True) for order in (first, second)]
        )
    columns: list[Any] = [None] * 16

    def pick(a: Any, b: Any, order: tuple[int, int, int, int]) -> Any:
        return shuffle(builder, a, b, [4 * quarter + i for quarter in order for i in range(4)])

    for c in range(4):
        a, b, x, y = (group[c] for group in quarters)
        even, odd = (0, 2, 4, 6), (1, 3, 5, 7)
        parts = [(pick(a, b, order), pick(x, y, order)) for order in (even, odd)]
        for q in range(4):
            columns[4 * q + c] = pick(*parts[q % 2], even if q < 2 else odd)
    return columns


def _numbers(builder: Any, words: Any) -> list[Any]:
    """Emit the four signed bytes of every word as float32, the first in the lowest bits: put into the low bits of 2**23 or 2**15."""
    biased = builder.xor(words, ir.Constant(WORDS, [0x80808080] * 16))
    halves = biased, builder.lshr(biased, ir.Constant(WORDS, [16] * 16))
    found = []
    for half in halves:
        for mask, unit in ((0xFF, 23), (0xFF00, 15)):
            byte = builder.and_(half, ir.Constant(WORDS, [mask] * 16))
            number = builder.or_(byte, ir.Constant(WORDS, [(127 + unit) << 23] * 16))
            found.append(builder.fsub(builder.bitcast(number, FLOATS), constant(2.0**unit + 128, 16)))
    return found


def _pair(builder: Any, low: Any, high: Any) -> Any:
    """Emit pairs of bfloat16 of two float32 vectors that are bfloat16."""
    upper = builder.and_(builder.bitcast(high, WORDS), ir.Constant(WORDS, [0xFFFF0000] * 16))
    return builder.or_(builder.lshr(builder.bitcast(low, WORDS), ir.Constant(WORDS, [16] * 16)), upper)


def _pack_scales(builder: Any, lines: Any, stride: Any, size: int, target: Any) -> None:
    """Emit the packing of the scales of 16 lines of int8 as float32."""
    halves = ir.Constant(ir.VectorType(INT16, GROUP), [0] * GROUP)
    for i in range(GROUP):
        scale = load(builder, INT16, at(builder, lines, (INT64(i), stride)), scale_offset(size))
        halves = builder.insert_element(halves, scale, INT32(i))
    store(builder, low_floats(builder, builder.zext(halves, WORDS)), target, 0)


def _pack_int8_keys(builder: Any, form: PageForm, keys: Any, stride: Any, target: Any) -> None:
    """Emit the packing of 16 keys of int8."""

    def emit(first: Any, count: int, num_steps: int) -> None:
        rows = [at(builder, keys, (INT64(i), stride), (first, 4)) for i in range(GROUP)]
        steps: list[Any] = []
        for column in transposed(builder, [load_part(builder, WORDS, row, count) for row in rows])[:count]:
            if form.is_bytes:
                steps.append(builder.xor(column, ir.Constant(WORDS, [0x80808080] * 16)))
                continue
            a, b, c, d = _numbers(builder, column)
            steps += [_pair(builder, a, b), _pair(builder, c, d)] if form.is_paired else [a, b, c, d]
        place = at(builder, target, (first, 4 * BLOCK * per_word))
        for i, step in enumerate(steps[:num_steps]):
            store(builder, step, place, 4 * BLOCK * i)

    per_word = 1 if form.is_bytes else 2 if form.is_paired else 4
    whole, rest = divmod(form.key_steps, 16 * per_word)
    if whole:
        with cgutils.for_range(builder, INT64(whole)) as loop:
            emit(builder.mul(loop.index, INT64(16)), 16, 16 * per_word)
    if rest:
        emit(INT64(16 * whole), -(-rest // per_word), rest)


def _pack_keys(builder: Any, form: PageForm, keys: Any, stride: Any, target: Any) -> None:
    """Emit the packing of 16 keys."""
    if form.is_int8:
        _pack_scales(builder, keys, stride, form.head_dim, at(builder, target, form.scales))
        _pack_int8_keys(builder, form, keys, stride, target)
        return
    words, tail = divmod(form.head_dim * form.item, 4)  # of a key in the pool; tail: one bfloat16 after the last word

    def emit(first: Any, count: int, has_tail: bool) -> None:
        rows = []
        for i in range(GROUP):
            row = at(builder, keys, (INT64(i), stride), (first, 4))
            words = load_part(builder, WORDS, row, count)
            if has_tail:
                half = builder.zext(load(builder, INT16, row, 4 * count), INT32)
                words = builder.insert_element(words, half, INT32(count))
            rows.append(words)
        for i, column in enumerate(transposed(builder, rows)[: count + has_tail]):
            if form.kind != WIDENED:
                store(builder, column, at(builder, target, (first, 4 * BLOCK), 4 * BLOCK * i), 0)
                continue
            place = at(builder, target, (first, 8 * BLOCK), 8 * BLOCK * i)
            store(builder, low_floats(builder, column), place, 0)
            if i < count:
                store(builder, high_floats(builder, column), place, 4 * BLOCK)

    if words >= 16:
        with cgutils.for_range(builder, INT64(words // 16)) as loop:
            emit(builder.mul(loop.index, INT64(16)), 16, False)
    if words % 16 or tail:
        emit(INT64(words // 16 * 16), words % 16, tail > 0)


def byte_order(size: int) -> list[int]:
    """Order of 64 or 16 elements in packed words of four keys."""
    return [v for j in range(4) for lane in range(0, size, 16) for v in range(lane + 4 * j, lane + 4 * j + 4)]


def _pack_bytes(builder: Any, form: PageForm, values: Any, stride: Any, target: Any) -> None:
    """Emit the packing of 16 values as words of the bytes of four keys."""
    with cgutils.for_range(builder, INT64(GROUP // 4)) as loop:
        first = builder.mul(loop.index, INT64(4))
        rows = [at(builder, values, (builder.add(first, INT64(i)), stride)) for i in range(4)]
        there, done = at(builder, target, (loop.index, form.value_step_bytes)), 0
        while done < form.v_head_dim:
            size = 64 if form.v_head_dim - done >= 64 else 16
            a, b, c, d = (load(builder, ir.VectorType(INT8, size), row, done) for row in rows)
            unit, order = ir.VectorType(INT16, size // 2), range(size)
            halves = []  # of every 16 elements, the first and the second eight: two keys side by side
            for x, y in ((a, b), (c, d)):
                for high in (0, 8):
                    pair = [
                        v for lane in order[::16] for i in range(8) for v in (lane + high + i, size + lane + high + i)
                    ]
                    halves.append(builder.bitcast(shuffle(builder, x, y, pair), unit))
            words, quarters = ir.VectorType(INT32, size // 4), []
            for high in (0, 1):
                for part in (0, 4):
                    pair = [
                        v
                        for lane in order[: size // 2 : 8]
                        for i in range(4)
                        for v in (lane + part + i, size // 2 + lane + part + i)
                    ]
                    quarters.append(builder.bitcast(shuffle(builder, halves[high], halves[2 + high], pair), words))
            if size == 16:
                low, upper = (shuffle(builder, quarters[i], quarters[i + 1], list(range(8))) for i in (0, 2))
                quarters = [shuffle(builder, low, upper, list(range(16)))]
            for i, quarter in enumerate(quarters):
                store(builder, quarter, there, 4 * done + 64 * i)
            done += size


def _pack_values(builder: Any, form: PageForm, values: Any, stride: Any, target: Any) -> None:
    """Emit the packing of 16 values."""
    if form.is_bytes:
        _pack_bytes(builder, form, values, stride, target)
        return
    num_keys = 2 if form.is_paired else 1  # of a step
    with cgutils.for_range(builder, INT64(GROUP // num_keys)) as loop:
        first = builder.mul(loop.index, INT64(num_keys))
        rows = [at(builder, values, (builder.add(first, INT64(i)), stride)) for i in range(num_keys)]
        there, vector = at(builder, target, (loop.index, form.value_step_bytes)), 0
        while form.is_int8 and vector < form.value_vectors:
            count = min(16, form.v_head_dim - 16 * vector)
            parts = [load_part(builder, ir.VectorType(INT8, 16), at(builder, row, 16 * vector), count) for row in rows]
            numbers = [builder.sitofp(builder.sext(part, WORDS), FLOATS) for part in parts]
            store(builder, _pair(builder, *numbers) if form.is_paired else numbers[0], there, 64 * vector)
            vector += 1
        while vector < form.value_vectors:
            is_wide = form.is_unpacked(vector)
            count = min(32 if is_wide else 16, form.v_head_dim - 16 * vector)
            kind = FLOATS if form.kind == FLOAT32 else HALVES if is_wide else ir.VectorType(INT16, 16)
            parts = [load_part(builder, kind, at(builder, row, 16 * form.item * vector), count) for row in rows]
            if is_wide:
                found = [shuffle(builder, parts[0], parts[-1], halves_order(high)) for high in (False, True)]
            elif form.is_paired:
                found = [shuffle(builder, parts[0], parts[-1], [v for j in range(16) for v in (j, 16 + j)])]
            else:
                found = parts if form.kind == FLOAT32 else [low_floats(builder, builder.zext(parts[0], WORDS))]
            for packed in found:
                store(builder, packed, there, 64 * vector)
                vector += 1


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def pack_group(
    typing_context: Any,
    keys: Any,
    values: Any,
    k_stride: Any,
    v_stride: Any,
    key_target: Any,
    value_target: Any,
    kind: Any,
    head_dim: Any,
    v_head_dim: Any,
) -> Any:
    """pack_group(keys, values, k_stride, v_stride, key_target, value_target, kind, head_dim, v_head_dim): pack 16 keys and values.

    keys, values: address of the first one; the others follow at equal distances (bytes).
    """
    constants = literal_values(kind, head_dim, v_head_dim)
    if constants is None:
        return None
    form = PageForm(*constants)

    def emit(
        builder: Any, keys: Any, values: Any, k_stride: Any, v_stride: Any, key_target: Any, value_target: Any
    ) -> None:
        _pack_keys(builder, form, keys, k_stride, key_target)
        if form.is_int8:
            _pack_scales(builder, values, v_stride, form.v_head_dim, at(builder, key_target, form.scales + 4 * BLOCK))
        _pack_values(builder, form, values, v_stride, value_target)

    return typed_intrinsic(types.void, ((types.int64,) * 6 + (kind, head_dim, v_head_dim)), 3, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def pack_values(typing_context: Any, values: Any, stride: Any, target: Any, kind: Any, v_head_dim: Any) -> Any:
    """pack_values(values, stride, target, kind, v_head_dim): the values of `pack_group` alone."""
    constants = literal_values(kind, v_head_dim)
    if constants is None:
        return None
    form = PageForm(constants[0], 0, constants[1])

    def emit(builder: Any, values: Any, stride: Any, target: Any) -> None:
        _pack_values(builder, form, values, stride, target)

    return typed_intrinsic(types.void, ((types.int64,) * 3 + (kind, v_head_dim)), 2, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def copy_line(typing_context: Any, source: Any, target: Any, item: Any, size: Any) -> Any:
    """copy_line(source, target, item, size): `size` elements of `item` bytes."""
    constants = literal_values(item, size)
    if constants is None:
        return None
    kind = ir.VectorType(INT16 if constants[0] == 2 else INT32, 16)

    def emit(builder: Any, source: Any, target: Any) -> None:
        for first in range(0, constants[1], 16):
            count = min(16, constants[1] - first)
            part = load_part(builder, kind, at(builder, source, constants[0] * first), count)
            store_part(builder, part, at(builder, target, constants[0] * first), count)

    return typed_intrinsic(types.void, (types.int64, types.int64, item, size), 2, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def quantize_line(typing_context: Any, head: Any, target: Any, is_bf16: Any, size: Any) -> Any:
    """quantize_line(head, target, is_bf16, size): write the line of int8 (`contract.kv_lines`) of a head stored as bfloat16 or float32.

    Compile callers with `is_exact`.
    """
    constants = literal_values(is_bf16, size)
    if constants is None:
        return None
    lanes = Lanes(bool(constants[0]), constants[1], is_ordered=True)
    width, num_elements = lanes.width, constants[1]
    words, floats = ir.VectorType(INT32, width), ir.VectorType(FLOAT, width)

    def emit(builder: Any, head: Any, target: Any) -> None:
        vectors = lanes.load(builder, head)
        largest = ir.Constant(
            words, [0] * width
        )  # magnitudes of floats are in the order of their bits, NaN above infinity
        for vector in vectors:
            bits = builder.and_(builder.bitcast(vector, words), ir.Constant(words, [0x7FFFFFFF] * width))
            largest = builder.select(builder.icmp_signed(">", bits, largest), bits, largest)
        highest = builder.extract_element(largest, INT32(0))
        for lane in range(1, width):
            bits = builder.extract_element(largest, INT32(lane))
            highest = builder.select(builder.icmp_signed(">", bits, highest), bits, highest)
        exact = builder.fdiv(builder.bitcast(highest, FLOAT), ir.Constant(FLOAT, float(LARGEST)))
        rounded = builder.lshr(builder.add(builder.bitcast(exact, INT32), INT32(0xFFFF)), INT32(16))
        is_finite = builder.icmp_signed("<", highest, INT32(_INFINITY))
        scale = builder.select(is_finite, rounded, INT32(_NAN >> 16))
        store(builder, builder.trunc(scale, INT16), target, scale_offset(num_elements))
        has_steps = builder.and_(is_finite, builder.icmp_signed("!=", rounded, INT32(0)))
        steps = splat(builder, builder.bitcast(builder.shl(scale, INT32(16)), FLOAT), width)
        is_used = splat(builder, has_steps, width)
        for i, vector in enumerate(vectors):
            nearest = call(builder, f"llvm.rint.v{width}f32", floats, builder.fdiv(vector, steps))
            nearest = builder.select(is_used, nearest, constant(0.0, width))
            whole = builder.trunc(builder.fptosi(nearest, words), ir.VectorType(INT8, width))
            place = builder.inttoptr(at(builder, target, width * i), whole.type.as_pointer())
            builder.store(whole, place, align=1)

    return typed_intrinsic(types.void, (types.int64, types.int64, is_bf16, size), 2, emit)
