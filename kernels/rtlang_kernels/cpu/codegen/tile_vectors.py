"""Matrix tiles (AMX) for linear layers: up to 32 rows times a block of outputs in eight registers of 16 lines of 64 bytes.

Of layers of bfloat16, tiles 0 to 3 hold sums, 4 and 5 the inputs of half the rows each, 6 and 7 the weights of half the
outputs (of few bits: see `low_bit_tiles`). 16 steps of a block of weights (`linear_vectors`) are two tiles of weights as
they lie in memory, and 64 bytes of each row are a tile of inputs. Inputs that do not fill the last tiles are copied and
padded with zeros. Each sum is one chain over the tiles of its inputs, whatever the number of rows; within a tile of
bfloat16, the processor adds the products of the first elements of the pairs, those of the second ones, and both sums to
the total.

`Amx` emits the instructions. `Emulated` has the same interface and the documented results of the instructions on any
processor, so that the code around them can be tested without AMX: float32 multiply-adds rounded to nearest even,
denormal numbers as zeros; exact products of bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from rtlang_kernels.contract.fused_step import BLOCK
from rtlang_kernels.cpu.codegen.llvm_bridge import FLOAT, INT16, INT32
from rtlang_kernels.cpu.codegen.pair_vectors import INT8, at, dot_bytes, high_floats, low_floats, prefetch
from rtlang_kernels.cpu.codegen.vector_builder import (
    INT64,
    call,
    literal_values,
    load,
    splat,
    stack_memory,
    store,
    typed_intrinsic,
)

NO_TILES, AMX, EMULATED = range(3)  # kinds of tiles
HEIGHT = 16  # lines of a tile
LANES = 16  # words of a line
LINE = 4 * LANES
STEP = 4 * BLOCK  # bytes of a step of weights
HALVES = STEP // LINE  # tiles of weights per block
INPUTS, WEIGHTS = 4, 6  # first tiles of either
# Working memory: the configuration of the tiles, inputs and weights of the padded last steps, registers of `Emulated`.
_PALETTE, _WIDTHS, _HEIGHTS = 0, 16, 48  # bytes of the configuration; a width has two bytes, a height one
_LAST_INPUTS = 64
_LAST_WEIGHTS = _LAST_INPUTS + 2 * HEIGHT * LINE
_REGISTERS = _LAST_WEIGHTS + HEIGHT * STEP
_FLOATS, _WORDS = ir.VectorType(FLOAT, LANES), ir.VectorType(INT32, LANES)
_LEAST_NORMAL = 0x0080_0000  # bits of the least normal float32


class Tiles(Protocol):
    """The instructions over tiles. Tiles are numbered; `stride` is the distance of lines in memory in bytes."""

    def configure(self, builder: Any) -> None:
        """Emit the use of the configuration in working memory; all tiles are zero afterwards."""

    def release(self, builder: Any) -> None:
        """Emit the end of the use of tiles."""

    def clear(self, builder: Any, tile: int) -> None:
        """Emit tile := 0."""

    def load(self, builder: Any, tile: int, address: Any, stride: Any) -> None:
        """Emit the load of the lines of a tile."""

    def store(self, builder: Any, tile: int, address: Any, stride: Any) -> None:
        """Emit the store of the lines of a tile."""

    def multiply(self, builder: Any, sums: int, inputs: int, weights: int) -> None:
        """Emit sums += inputs times weights, of bfloat16."""

    def multiply_bytes(self, builder: Any, sums: int, inputs: int, weights: int) -> None:
        """Emit sums += inputs times weights: int32, of signed and of unsigned bytes."""


class Amx:
    """The instructions of the processor. Registers are constants of the instructions, so none is ever spilled."""

    def __init__(self, work: Any) -> None:
        self._work = work

    def configure(self, builder: Any) -> None:
        """See `Tiles`."""
        call(builder, "llvm.x86.ldtilecfg", ir.VoidType(), _pointer(builder, self._work))

    def release(self, builder: Any) -> None:
        """See `Tiles`."""
        call(builder, "llvm.x86.tilerelease", ir.VoidType())

    def clear(self, builder: Any, tile: int) -> None:
        """See `Tiles`."""
        call(builder, "llvm.x86.tilezero", ir.VoidType(), INT8(tile))

    def load(self, builder: Any, tile: int, address: Any, stride: Any) -> None:
        """See `Tiles`."""
        call(builder, "llvm.x86.tileloadd64", ir.VoidType(), INT8(tile), _pointer(builder, address), stride)

    def store(self, builder: Any, tile: int, address: Any, stride: Any) -> None:
        """See `Tiles`."""
        call(builder, "llvm.x86.tilestored64", ir.VoidType(), INT8(tile), _pointer(builder, address), stride)

    def multiply(self, builder: Any, sums: int, inputs: int, weights: int) -> None:
        """See `Tiles`."""
        call(builder, "llvm.x86.tdpbf16ps", ir.VoidType(), INT8(sums), INT8(inputs), INT8(weights))

    def multiply_bytes(self, builder: Any, sums: int, inputs: int, weights: int) -> None:
        """See `Tiles`."""
        call(builder, "llvm.x86.tdpbsud", ir.VoidType(), INT8(sums), INT8(inputs), INT8(weights))


class Emulated:
    """The same results by vector code over registers in working memory. Each operation is a function of its own, which is compiled once."""

    def __init__(self, work: Any) -> None:
        self._work = work

    def configure(self, builder: Any) -> None:
        """See `Tiles`."""
        for tile in range(8):
            self.clear(builder, tile)

    def release(self, builder: Any) -> None:
        """See `Tiles`."""

    def clear(self, builder: Any, tile: int) -> None:
        """See `Tiles`."""
        _call_own(builder, _emulated_clear, self._work, INT64(tile))

    def load(self, builder: Any, tile: int, address: Any, stride: Any) -> None:
        """See `Tiles`."""
        _call_own(builder, _emulated_load, self._work, INT64(tile), address, stride)

    def store(self, builder: Any, tile: int, address: Any, stride: Any) -> None:
        """See `Tiles`."""
        _call_own(builder, _emulated_store, self._work, INT64(tile), address, stride)

    def multiply(self, builder: Any, sums: int, inputs: int, weights: int) -> None:
        """See `Tiles`."""
        _call_own(builder, _emulated_pairs, self._work, INT64(sums), INT64(inputs), INT64(weights))

    def multiply_bytes(self, builder: Any, sums: int, inputs: int, weights: int) -> None:
        """See `Tiles`."""
        _call_own(builder, _emulated_bytes, self._work, INT64(sums), INT64(inputs), INT64(weights))


def _call_own(builder: Any, emit: Callable[..., None], *args: Any) -> None:
    """Emit a call of a function of int64, whose body `emit(builder, *arguments)` emits once per module."""
    name, module = f"rtlang{emit.__name__}", builder.module
    function = module.globals.get(name)
    if function is None:
        function = ir.Function(module, ir.FunctionType(ir.VoidType(), [INT64] * len(args)), name)
        function.linkage = "internal"
        function.attributes.add("noinline")
        body = ir.IRBuilder(function.append_basic_block())
        emit(body, *function.args)
        body.ret_void()
    builder.call(function, args)


def _height(builder: Any, work: Any, tile: Any) -> Any:
    heights = load(builder, INT64, work, _HEIGHTS)
    return builder.and_(builder.lshr(heights, builder.mul(tile, INT64(8))), INT64(255))


def _line(builder: Any, work: Any, tile: Any, line: Any) -> Any:
    return at(builder, work, _REGISTERS, (tile, HEIGHT * LINE), (line, LINE))


def _emulated_clear(builder: Any, work: Any, tile: Any) -> None:
    with cgutils.for_range(builder, INT64(HEIGHT)) as loop:
        store(builder, ir.Constant(_WORDS, [0] * LANES), _line(builder, work, tile, loop.index), 0)


def _emulated_load(builder: Any, work: Any, tile: Any, address: Any, stride: Any) -> None:
    with cgutils.for_range(builder, _height(builder, work, tile)) as loop:
        line = load(builder, _WORDS, at(builder, address, (loop.index, stride)), 0)
        store(builder, line, _line(builder, work, tile, loop.index), 0)


def _emulated_store(builder: Any, work: Any, tile: Any, address: Any, stride: Any) -> None:
    with cgutils.for_range(builder, _height(builder, work, tile)) as loop:
        line = load(builder, _WORDS, _line(builder, work, tile, loop.index), 0)
        store(builder, line, at(builder, address, (loop.index, stride)), 0)


def _emulated_pairs(builder: Any, work: Any, sums: Any, inputs: Any, weights: Any) -> None:
    with cgutils.for_range(builder, _height(builder, work, sums)) as row:
        place, chains = _line(builder, work, sums, row.index), [cgutils.alloca_once(builder, _FLOATS) for _ in range(2)]
        for chain in chains:
            builder.store(ir.Constant(_FLOATS, [0] * LANES), chain)
        with cgutils.for_range(builder, _height(builder, work, weights)) as step:
            pairs = _factors(builder, work, inputs, row.index, weights, step.index)
            for chain, floats in zip(chains, (low_floats, high_floats), strict=True):
                factors = [_flushed(builder, floats(builder, words)) for words in pairs]
                found = call(builder, "llvm.fma.v16f32", _FLOATS, *factors, builder.load(chain))
                builder.store(_flushed(builder, found), chain)
        products = _flushed(builder, builder.fadd(*(builder.load(chain) for chain in chains)))
        total = _flushed(builder, load(builder, _FLOATS, place, 0))
        store(builder, _flushed(builder, builder.fadd(total, products)), place, 0)


def _emulated_bytes(builder: Any, work: Any, sums: Any, inputs: Any, weights: Any) -> None:
    with cgutils.for_range(builder, _height(builder, work, sums)) as row:
        place = _line(builder, work, sums, row.index)
        with cgutils.for_range(builder, _height(builder, work, weights)) as step:
            signed, unsigned = _factors(builder, work, inputs, row.index, weights, step.index)
            total = load(builder, _WORDS, place, 0)
            store(builder, dot_bytes(builder, total, unsigned, signed, is_native=False), place, 0)


def _factors(builder: Any, work: Any, inputs: Any, row: Any, weights: Any, step: Any) -> tuple[Any, Any]:
    """Emit the word of a row of inputs at a step, 16 times, and the line of weights of the step."""
    word = load(builder, INT32, at(builder, _line(builder, work, inputs, row), (step, 4)), 0)
    return splat(builder, word, LANES), load(builder, _WORDS, _line(builder, work, weights, step), 0)


def _flushed(builder: Any, floats: Any) -> Any:
    """Emit float32 with zeros, of the same sign, for denormal numbers."""
    words = builder.bitcast(floats, _WORDS)
    magnitude = builder.and_(words, ir.Constant(_WORDS, [0x7FFF_FFFF] * LANES))
    is_denormal = builder.icmp_unsigned("<", magnitude, ir.Constant(_WORDS, [_LEAST_NORMAL] * LANES))
    sign = builder.and_(words, ir.Constant(_WORDS, [0x8000_0000] * LANES))
    return builder.bitcast(builder.select(is_denormal, sign, words), _FLOATS)


def _pointer(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, INT8.as_pointer())


def tiles_of(kind: int, work: Any) -> Tiles:
    """The instructions of a kind of tiles."""
    return Amx(work) if kind == AMX else Emulated(work)


def work_bytes(kind: int) -> int:
    """Bytes of the working memory, at a multiple of a cache line."""
    return _REGISTERS + (8 * HEIGHT * LINE if kind == EMULATED else 0)


def configure_tiles(builder: Any, kind: int, work: Any, height: Any) -> None:
    """Emit the configuration of tiles of `height` lines for sums and inputs (int64), and of all lines for weights."""
    store(builder, ir.Constant(_WORDS, [0] * LANES), work, 0)
    store(builder, INT8(1), work, _PALETTE)
    store(builder, ir.Constant(ir.VectorType(INT16, 8), [LINE] * 8), work, _WIDTHS)
    store(builder, heights_word(builder, height), work, _HEIGHTS)
    tiles_of(kind, work).configure(builder)


def configure_shapes(builder: Any, kind: int, work: Any, shapes: list[tuple[int, int]]) -> None:
    """Emit the configuration of tiles with these lines and bytes of a line. `Emulated` loads and stores whole lines nevertheless."""
    store(builder, ir.Constant(_WORDS, [0] * LANES), work, 0)
    store(builder, INT8(1), work, _PALETTE)
    for tile, (height, width) in enumerate(shapes):
        store(builder, INT16(width), work, _WIDTHS + 2 * tile)
        store(builder, INT8(height), work, _HEIGHTS + tile)
    tiles_of(kind, work).configure(builder)


def heights_word(builder: Any, height: Any) -> Any:
    """Emit what `configured_heights` is after `configure_tiles`."""
    heights = builder.mul(height, INT64(0x0101_0101_0101))  # of tiles 0 to 5
    return builder.or_(heights, INT64((HEIGHT << 8 | HEIGHT) << 48))


def configured_heights(builder: Any, work: Any) -> Any:
    """Emit the numbers of lines in the configuration: int64, a byte per tile."""
    return load(builder, INT64, work, _HEIGHTS)


def half_rows(builder: Any, num_rows: Any, num_halves: int) -> Any:
    """Emit the number of rows of a tile. If two tiles share an odd number of rows, both have the middle one."""
    return builder.udiv(builder.add(num_rows, INT64(num_halves - 1)), INT64(num_halves))


def multiply_in_tiles(
    builder: Any,
    kind: int,
    num_halves: int,
    num_lines: int,
    level: int,
    x: Any,
    x_stride: Any,
    num_rows: Any,
    weights: Any,
    coming: Any,
    num_steps: Any,
    sums: Any,
    work: Any,
) -> None:
    """Emit the sums of a block for `num_rows` rows: one tile of rows, or two if `num_halves` is 2.

    work: of `open_tiles`, called with the same number of rows.  num_lines: prefetches per 16 steps.
    The others: see `linear_vectors.multiply_tile`.
    """
    tiles, height = tiles_of(kind, work), half_rows(builder, num_rows, num_halves)
    starts = [INT64(0), builder.sub(num_rows, height)][:num_halves]
    for tile in range(HALVES * num_halves):
        tiles.clear(builder, tile)

    def step(inputs: Any, stride: Any, block: Any) -> None:
        for part in range(HALVES):
            tiles.load(builder, WEIGHTS + part, at(builder, block, LINE * part), INT64(STEP))
        for half, start in enumerate(starts):
            tiles.load(builder, INPUTS + half, at(builder, inputs, (start, stride)), stride)
            for part in range(HALVES):
                tiles.multiply(builder, HALVES * half + part, INPUTS + half, WEIGHTS + part)

    whole, rest = builder.udiv(num_steps, INT64(HEIGHT)), builder.urem(num_steps, INT64(HEIGHT))
    with cgutils.for_range(builder, whole) as loop:
        for line in range(num_lines):
            prefetch(builder, at(builder, coming, (loop.index, LINE * num_lines), LINE * line), level)
        step(at(builder, x, (loop.index, LINE)), x_stride, at(builder, weights, (loop.index, HEIGHT * STEP)))
    with builder.if_then(builder.icmp_signed("!=", rest, INT64(0))):
        inputs, block = at(builder, work, _LAST_INPUTS), at(builder, work, _LAST_WEIGHTS)
        _padded(builder, at(builder, x, (whole, LINE)), x_stride, inputs, LINE, num_rows, builder.mul(rest, INT64(4)))
        rows_at = at(builder, weights, (whole, HEIGHT * STEP))
        _padded(builder, rows_at, INT64(0), block, HEIGHT * STEP, INT64(1), builder.mul(rest, INT64(STEP)))
        step(inputs, INT64(LINE), block)
    for half, start in enumerate(starts):
        for part in range(HALVES):
            target = at(builder, sums, (start, STEP), LINE * part)
            tiles.store(builder, HALVES * half + part, target, INT64(STEP))


def _padded(builder: Any, source: Any, stride: Any, target: Any, size: int, count: Any, num_bytes: Any) -> None:
    """Emit copies of the first `num_bytes` (whole words) of `count` lines, padded with zeros to lines of `size` bytes."""
    with cgutils.for_range(builder, count) as line:
        here, there = at(builder, source, (line.index, stride)), at(builder, target, (line.index, size))
        for offset in range(0, size, LINE):
            store(builder, ir.Constant(_WORDS, [0] * LANES), there, offset)
        with cgutils.for_range(builder, builder.udiv(num_bytes, INT64(4))) as word:
            found = load(builder, INT32, at(builder, here, (word.index, 4)), 0)
            store(builder, found, at(builder, there, (word.index, 4)), 0)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def open_tiles(typing_context: Any, num_rows: Any, kind: Any, num_halves: Any) -> Any:
    """open_tiles(num_rows, kind, num_halves): configure tiles for products of `num_rows` rows; address of working memory on the stack.

    The memory is valid until the function returns, and `close_tiles` must be called before. 0 and no code for NO_TILES.
    """
    constants = literal_values(kind, num_halves)
    if constants is None:
        return None

    def emit(builder: Any, num_rows: Any) -> Any:
        if constants[0] == NO_TILES:
            return INT64(0)
        work = stack_memory(builder, work_bytes(constants[0]))
        configure_tiles(builder, constants[0], work, half_rows(builder, num_rows, constants[1]))
        return work

    return typed_intrinsic(types.int64, (types.int64, kind, num_halves), 2, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def close_tiles(typing_context: Any, work: Any, kind: Any) -> Any:
    """close_tiles(work, kind): end the use of tiles, so that the thread holds no state of theirs."""
    constants = literal_values(kind)
    if constants is None:
        return None

    def emit(builder: Any, work: Any) -> None:
        if constants[0] != NO_TILES:
            tiles_of(constants[0], work).release(builder)

    return typed_intrinsic(types.void, (types.int64, kind), 1, emit)
