"""Packing of KV pages in registers: 16 keys at a time, from the pool's layout into the one that `attention_vectors` reads.

A block holds 64 keys as four groups of 16. Keys become [steps][64 keys] words, so that one vector holds the same elements of 16 keys:
a word is a pair of elements if the form is paired, else one float32. Values become [steps][vectors] words: a paired step is two keys, whose
elements lie side by side, in the order in which the processor unpacks 32 elements (`PageForm.is_unpacked`); a float32 step is one key.

Source: the 16 x 16 transposition is the usual one in four stages of 16 shuffles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from rtlang_kernels.cpu.codegen.llvm_bridge import FLOAT, INT16, INT32
from rtlang_kernels.cpu.codegen.pair_vectors import at, high_floats, low_floats
from rtlang_kernels.cpu.codegen.vector_builder import INT64, literal_values, load, store, typed_intrinsic

GROUP, BLOCK = 16, 64  # keys of a group and of a block
FLOAT32, WIDENED, PAIRED = (
    0,
    1,
    2,
)  # kinds: float32 pool; bfloat16 pool computed in float32; bfloat16 pool by products of pairs
WORDS, FLOATS, HALVES = ir.VectorType(INT32, 16), ir.VectorType(FLOAT, 16), ir.VectorType(INT16, 32)


@dataclass(frozen=True, slots=True)
class PageForm:
    """Element kind and head sizes of packed keys and values; sizes in bytes."""

    kind: int
    head_dim: int
    v_head_dim: int

    @property
    def is_paired(self) -> bool:
        """Whether a word holds two bfloat16."""
        return self.kind == PAIRED

    @property
    def item(self) -> int:
        """Bytes of an element of the pool."""
        return 4 if self.kind == FLOAT32 else 2

    @property
    def key_steps(self) -> int:
        """Words of a key."""
        return self.head_dim // 2 if self.is_paired else self.head_dim

    @property
    def value_steps(self) -> int:
        """Steps over the values of a block."""
        return BLOCK // 2 if self.is_paired else BLOCK

    @property
    def value_vectors(self) -> int:
        """Vectors of 16 words of the values of a step, and of 16 sums of a query line."""
        whole, rest = divmod(self.v_head_dim, 32)
        return 2 * whole + (rest > 0) + (rest > 16)

    @property
    def key_bytes(self) -> int:
        """Packed keys of a block."""
        return 4 * BLOCK * self.key_steps

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
        """State of a query line: the sums, 16 lanes of masses, the peak 16 times."""
        return 64 * (self.value_vectors + 2)

    def is_unpacked(self, vector: int) -> bool:
        """Whether this vector of values belongs to 32 elements in unpacking order (low and high halves of every 128 bits)."""
        return self.is_paired and (vector // 2 < self.v_head_dim // 32 or self.v_head_dim % 32 > 16)


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
    return 2 if element == INT16 else 4


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


def _pack_keys(builder: Any, form: PageForm, keys: Any, stride: Any, target: Any) -> None:
    """Emit the packing of 16 keys."""
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


def _pack_values(builder: Any, form: PageForm, values: Any, stride: Any, target: Any) -> None:
    """Emit the packing of 16 values."""
    num_keys = 2 if form.is_paired else 1  # of a step
    with cgutils.for_range(builder, INT64(GROUP // num_keys)) as loop:
        first = builder.mul(loop.index, INT64(num_keys))
        rows = [at(builder, values, (builder.add(first, INT64(i)), stride)) for i in range(num_keys)]
        there, vector = at(builder, target, (loop.index, form.value_step_bytes)), 0
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
