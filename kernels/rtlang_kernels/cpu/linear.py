"""Linear layers over weights that are packed once: one layout and one order of summation for every number of rows.

With few rows the time goes to reading the weights, with many to the multipliers. One kernel serves both: tiles of up to 8 rows by 32
outputs, whose sums stay in registers; several tiles pass over a block of weights while it is in the cache and ask for the next block
meanwhile. Every sum is one chain over the inputs, so the bits of a row do not depend on other rows, on their number, or on threads.

Where the processor has matrix tiles (AMX), a tile has up to 32 rows and its sums are in tiles (`tile_vectors`). The bits of bfloat16 layers
then differ from those of vectors, so a layer uses either for all numbers of rows; `linear_tuning` decides.

A kernel is compiled on first use for a height of its tiles; numba's disk cache keeps it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numba.core import types
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from rtlang_kernels.contract.fused_step import BLOCK
from rtlang_kernels.cpu.codegen.linear_vectors import (
    BFLOAT16,
    FLOAT32,
    LINE,
    STEP,
    UNROLL,
    WORD,
    finish_line,
    multiply_tile,
    stack_sums,
)
from rtlang_kernels.cpu.codegen.llvm_bridge import address_of, invoke, source_digest
from rtlang_kernels.cpu.codegen.pair_vectors import NEAREST, SECOND
from rtlang_kernels.cpu.codegen.tile_vectors import AMX, HEIGHT, NO_TILES, close_tiles, open_tiles
from rtlang_kernels.cpu.threads import run_chunks, share_out
from rtlang_kernels.host.huge_pages import zeros_in_huge_pages
from rtlang_kernels.host.numba_jit import kernel
from rtlang_kernels.host.processor import Processor, processor

MAX_PASSES, MAX_ROWS = 8, 128  # tiles, and their rows, over one block; their inputs have to stay in the second cache
GATE = BLOCK // 2  # outputs of a gated block
_INT = types.int64
_PACKED_BYTES = 4 << 20  # of a weight that a thread packs at a time
_WORDS = 64  # of a row that are packed at a time: 4 cache lines
_STEP_LINES = STEP * UNROLL // LINE  # cache lines of weights per iteration
# Steps times tiles from which threads gain: some 100 us of work, while waking a thread costs 30 us.
WORTH_THREADS = 20_000


class Code(NamedTuple):
    """Machine code of linear layers: constants of the compiled kernels.

    Attributes:
        element: FLOAT32 or BFLOAT16, the type of the weights.
        is_bf16: whether inputs and results are bfloat16, else float32.
        is_native: whether the processor has the product of packed elements.
        rounds_natively: whether it has the conversion to bfloat16.
        parts: vectors of a block at once.
        max_rows: highest tile.
        tiles: kind of matrix tiles, see `tile_vectors`.
    """

    element: int
    is_bf16: int
    is_native: int
    rounds_natively: int
    parts: int
    max_rows: int
    tiles: int = NO_TILES


def code_for(weights: torch.dtype, inputs: torch.dtype, machine: Processor | None = None) -> Code:
    """The code for these dtypes on a processor; by default the one at hand."""
    machine = machine or processor()
    element = {torch.float32: FLOAT32, torch.bfloat16: BFLOAT16}[weights]
    is_native = machine.has_bf16_dot and element == BFLOAT16
    # 32 vectors of 16 lanes hold 8 x 2 sums; with 16 vectors of 8 lanes, or 32 of 4, it is 4 x 1.
    parts, max_rows = (2, 8) if machine.has_avx512 else (1, 4)
    return Code(element, int(inputs == torch.bfloat16), int(is_native), int(machine.has_bf16_dot), parts, max_rows)


def tile_code(code: Code, tiles: int = AMX) -> Code | None:
    """The code with matrix tiles for the same weights; None if tiles have no products of their type."""
    return None if code.element == FLOAT32 else code._replace(max_rows=2 * HEIGHT, tiles=tiles)


class PrefetchDistance(NamedTuple):
    """Prefetch: how many bytes ahead, and into the cache of which level (see `pair_vectors`)."""

    num_bytes: int
    level: int


class Tiling(NamedTuple):
    """How rows are cut: chunks of `passes` tiles of `rows` rows."""

    rows: int
    passes: int


class Prefetch(NamedTuple):
    """Prefetch by number of rows: up to `FEW_ROWS`, a single tile, several tiles (always the next block). The defaults are not measured."""

    few: PrefetchDistance = PrefetchDistance(8192, NEAREST)
    tile: PrefetchDistance = PrefetchDistance(8192, NEAREST)
    several: PrefetchDistance = PrefetchDistance(0, SECOND)

    def ahead(self, cut: Tiling) -> PrefetchDistance:
        """The prefetch for rows that are cut like this."""
        if cut.passes > 1:
            return self.several
        return self.few if cut.rows <= FEW_ROWS else self.tile


FEW_ROWS = 2
UNMEASURED = Prefetch()
# Numbers of rows whose tilings, with tiles of 8 rows, are all that there are: one tile, two or three, four and more.
ROW_COUNTS = (*range(1, 9), 9, 11, 13, 15, 25, 29)
TILED_ROW_COUNTS = (1, 17, 33, 97)  # likewise of matrix tiles


@cache
def tiling(num_rows: int, max_rows: int) -> Tiling:
    """Cut `num_rows` rows into equal tiles, and these into equal chunks."""
    tiles = -(-num_rows // max_rows)
    chunks = -(-tiles // min(MAX_PASSES, MAX_ROWS // max_rows))
    passes = -(-tiles // chunks)
    return Tiling(-(-num_rows // (chunks * passes)), passes)


@cache
def finish_kernel(has_scales: int, is_bf16: int, native: int) -> Any:
    """Compile the end of the lines of a tile, see `finish_line`: one code for all tiles, so that their bits agree."""
    digest = source_digest()

    @kernel(is_exact=True)
    def finish(
        sums: Any, count: Any, constants: Any, residual: Any, target: Any, stride: Any, valid: Any, is_gated: Any
    ) -> None:
        if digest < 0:  # never true; ties the disk cache to the sources
            return
        for row in range(count):
            added = residual + row * stride if residual != 0 else residual
            out = target + row * stride
            finish_line(sums + row * STEP, constants, added, out, valid, is_gated, has_scales, is_bf16, native)

    return finish


@cache
def linear_kernel(code: Code, rows: int, lines: int, level: int) -> Callable[..., None]:
    """Compile a linear layer for tiles of `rows` rows (of matrix tiles: at most), with `lines` prefetches per iteration into the cache of
    `level`.

    Args of the kernel: `Call` in order, then the range of blocks.
    """
    digest = source_digest()
    element, is_native, parts, tiles, halves = code.element, code.is_native, code.parts, code.tiles, rows // HEIGHT
    item = 2 if code.is_bf16 else 4
    is_single = lines == _STEP_LINES
    covering = _STEP_LINES // lines  # tiles that ask for the whole next block

    @kernel(is_exact=True)
    def linear(
        x: Any,
        x_stride: Any,
        weights: Any,
        constants: Any,
        residual: Any,
        target: Any,
        target_stride: Any,
        num_steps: Any,
        num_outputs: Any,
        num_tokens: Any,
        passes: Any,
        ahead: Any,
        is_gated: Any,
        finish: Any,
        first: Any,
        last: Any,
    ) -> None:
        if digest < 0:  # never true; ties the disk cache to the sources
            return
        sums = stack_sums(rows)
        width = GATE if is_gated else BLOCK
        height = rows
        if tiles:  # as in `tiling`: rows are the most
            height = (num_tokens + rows - 1) // rows
            height = (height + passes - 1) // passes * passes
            height = (num_tokens + height - 1) // height
        work = open_tiles(height, tiles, halves)
        for start in range(0, num_tokens, height * passes):
            for block in range(first, last):
                here = weights + block * num_steps * STEP
                skip, valid = block * width * item, min(width, num_outputs - block * width)
                for i in range(passes):
                    token = start + i * height
                    if token >= num_tokens:
                        break
                    count = min(height, num_tokens - token)
                    # A matrix tile is never short: the last one repeats rows before it.
                    back = height - count if tiles else 0
                    coming = here + ahead
                    if not is_single:
                        share = num_steps // UNROLL * lines * LINE
                        coming = here + num_steps * STEP + min(i, covering - 1) * share
                    source = x + (token - back) * x_stride
                    multiply_tile(
                        source,
                        x_stride,
                        count + back,
                        here,
                        coming,
                        num_steps,
                        sums,
                        work,
                        element,
                        is_native,
                        parts,
                        rows,
                        lines,
                        level,
                        tiles,
                    )
                    place = token * target_stride + skip
                    added = residual + place if residual != 0 else residual
                    line = constants + block * STEP
                    invoke(
                        finish,
                        (
                            sums + back * STEP,
                            count,
                            line,
                            added,
                            target + place,
                            target_stride,
                            valid,
                            is_gated,
                        ),
                    )
        close_tiles(work, tiles)

    return linear


@cache
def linear_address(code: Code, cut: Tiling, ahead: PrefetchDistance) -> int:
    """Address of the machine code of `linear_kernel` for tiles of a height."""
    return address_of(_kernel_for(code, cut, ahead), (_INT,) * 16)


def _kernel_for(code: Code, cut: Tiling, ahead: PrefetchDistance) -> Callable[..., None]:
    """The kernel for a tiling."""
    # Tiles need not be full: their height is known at run time.
    rows = -(-cut.rows // HEIGHT) * HEIGHT if code.tiles else cut.rows
    return linear_kernel(code, rows, lines_of(cut.passes), ahead.level)


def finish_address(code: Code) -> int:
    """Address of the machine code that ends the lines of a layer of floats."""
    return line_end_address(0, code.is_bf16, code.rounds_natively)


@cache
def line_end_address(has_scales: int, is_bf16: int, native: int) -> int:
    """Address of the machine code of `finish_kernel`."""
    return address_of(finish_kernel(has_scales, is_bf16, native), (_INT,) * 8)


def lines_of(passes: int) -> int:
    """Prefetches per iteration: one tile asks for as much as it reads, several share the next block."""
    return max(1, -(-_STEP_LINES // passes))


def steps_of(num_inputs: int, dtype: torch.dtype) -> int:
    """Number of words of a line of inputs, padded with zeros."""
    return -(-num_inputs * dtype.itemsize // 4)


def pack_blocks(weight: Tensor | Sequence[Tensor], *, is_gated: bool = False) -> Tensor:
    """Reorder a weight [out, in] into blocks of BLOCK outputs: [blocks, steps, BLOCK, elements of a word], padded with zeros.

    The result is the only copy: the weight may be as large as the memory that is left.

    Args:
        weight: one, or some whose outputs follow one another.
        is_gated: the outputs are gates, then as many factors; a block holds GATE of each.
    """
    weights = [weight] if isinstance(weight, Tensor) else list(weight)
    num_outputs, num_inputs, dtype = sum(map(len, weights)), weights[0].shape[1], weights[0].dtype
    size, width = (num_outputs // 2, GATE) if is_gated else (num_outputs, BLOCK)
    shape = -(-size // width), steps_of(num_inputs, dtype), BLOCK, 4 // dtype.itemsize
    packed = zeros_in_huge_pages(shape, dtype)
    target = packed.view(torch.int32).view(shape[:3]).numpy()
    step = max(1, _PACKED_BYTES // max(1, num_inputs * dtype.itemsize) // BLOCK) * BLOCK
    chunks: list[tuple[Tensor, int]] = []
    start = 0
    for each in weights:
        chunks.extend((each[first : first + step], start + first) for first in range(0, len(each), step))
        start += len(each)
    share_out(
        lambda chunk: _pack_rows(_words_of(chunk[0]), target, chunk[1], size, width), chunks, torch.get_num_threads()
    )
    return packed


def _words_of(rows: Tensor) -> NDArray[np.int32]:
    """The inputs of some rows as words [n, steps], without a copy where they lie so."""
    per_word = 4 // rows.dtype.itemsize
    if padding := -rows.shape[1] % per_word:
        rows = functional.pad(rows, (0, padding))
    elif not rows.is_contiguous() or rows.data_ptr() % 4 or rows.storage_offset() % per_word:
        rows = rows.clone(memory_format=torch.contiguous_format)
    words: NDArray[np.int32] = rows.detach().view(torch.int32).numpy()
    return words


@kernel()
def _pack_rows(words: Any, blocks: Any, first: Any, size: Any, width: Any) -> None:
    """Copy words [n, steps] of the outputs from `first` on to blocks [blocks, steps, BLOCK]; see `pack_blocks`.

    size: outputs of each half of a gated weight, or all.  width: those of them in a block.
    """
    num_steps = words.shape[1]
    row = 0
    while row < len(words):
        half, within = (first + row) // size, (first + row) % size
        block, lane = within // width, half * width + within % width
        count = min(width - within % width, min(size - within, len(words) - row))
        for start in range(0, num_steps, _WORDS):
            for i in range(count):
                for step in range(start, min(start + _WORDS, num_steps)):
                    blocks[block, step, lane + i] = words[row + i, step]
        row += count


@kernel()
def _gather_rows(words: Any, indices: Any, num_rows: Any, out: Any) -> int:
    """Copy rows of words [blocks, steps, BLOCK, 1] to out [indices, steps]; returns the number of copied rows before an invalid index."""
    for i in range(len(indices)):
        row = indices[i]
        if row < 0 or row >= num_rows:
            return i
        block, lane = row // BLOCK, row % BLOCK
        for step in range(words.shape[1]):
            out[i, step] = words[block, step, lane, 0]
    return len(indices)


def block_outputs(values: Tensor, *, is_gated: bool = False) -> Tensor:
    """Order values of outputs [out, ...] by blocks: [blocks * BLOCK, ...], padded with zeros."""
    if is_gated:
        halves = [block_outputs_of(half, GATE) for half in values.chunk(2)]
        return torch.stack(halves, 1).reshape(-1, *values.shape[1:])
    return block_outputs_of(values, BLOCK).reshape(-1, *values.shape[1:])


def block_outputs_of(values: Tensor, size: int) -> Tensor:
    """Cut values [out, ...] into blocks [blocks, size, ...], padded with zeros."""
    padding = (0, 0) * (values.ndim - 1) + (0, -len(values) % size)
    return functional.pad(values, padding).view(-1, size, *values.shape[1:])


@dataclass(slots=True)
class PackedLinear:
    """y = x @ weight.T + bias with packed weights; calls from several threads are safe.

    Attributes:
        in_features, out_features: of the layer; with `is_gated`, out_features is half the rows of the weight.
        dtype: of inputs and results.
        prefetch: see `linear_tuning`.
    """

    in_features: int
    out_features: int
    dtype: torch.dtype
    is_gated: bool
    code: Code
    weight: Tensor
    constants: Tensor  # float32 [blocks, BLOCK]: biases
    prefetch: Prefetch = UNMEASURED

    @classmethod
    def pack(
        cls,
        weight: Tensor | Sequence[Tensor],
        bias: Tensor | None = None,
        is_gated: bool = False,
        *,
        machine: Processor | None = None,
    ) -> PackedLinear:
        """Copy `weight` [out, in], float32 or bfloat16, and `bias` [out] into the layout of the kernels.

        Args:
            weight: one, or some of one dtype whose outputs follow one another.
            is_gated: results are silu(gate) * up, where weight holds the rows of the gate, then those of up.
            machine: compile for a processor other than the one at hand.
        """
        weights = [weight] if isinstance(weight, Tensor) else weight
        num_outputs, num_inputs, dtype = sum(map(len, weights)), weights[0].shape[1], weights[0].dtype
        code = code_for(dtype, dtype, machine)
        bias = torch.zeros(num_outputs, dtype=torch.float32) if bias is None else bias.float()
        return cls(
            num_inputs,
            num_outputs // 2 if is_gated else num_outputs,
            dtype,
            is_gated,
            code,
            pack_blocks(weights, is_gated=is_gated),
            block_outputs(bias, is_gated=is_gated).view(-1, BLOCK),
        )

    def rows(self, indices: Tensor) -> Tensor:
        """Rows of the weight, not gated, at int64 `indices` [n]: [n, in_features], contiguous.

        Raises:
            IndexError: an index is not from 0 to out_features - 1.
        """
        num_steps, per_word = self.weight.shape[1], self.weight.shape[3]
        out = torch.empty((len(indices), num_steps * per_word), dtype=self.dtype)
        words, target = self.weight.view(torch.int32).numpy(), out.view(torch.int32).numpy()
        copied = _gather_rows(words, indices.numpy(), self.out_features, target)
        if copied < len(indices):
            raise IndexError(f"indices[{copied}] = {int(indices[copied])}: expected 0 to {self.out_features - 1}")
        return out if out.shape[1] == self.in_features else out[:, : self.in_features].contiguous()

    @property
    def nbytes(self) -> int:
        """Bytes that a call reads of the weight."""
        return self.weight.nbytes

    def is_worth_threads(self, num_rows: int) -> bool:
        """Whether several threads are faster than one."""
        num_blocks, num_steps = self.weight.shape[:2]
        return num_steps * num_blocks * -(-num_rows // self.code.max_rows) >= WORTH_THREADS

    def __call__(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """Multiply x [num_rows, in_features] of `dtype`, contiguous in its rows. Returns [num_rows, out_features], contiguous.

        Args:
            residual: [num_rows, out_features], contiguous, to which the result is added in place; returned.
        Raises:
            ValueError: x or residual has another shape, dtype or layout.
        """
        return self.multiply(x, residual, self.prefetch)

    def multiply(self, x: Tensor, residual: Tensor | None, prefetch: Prefetch) -> Tensor:
        """The same with another prefetch."""
        num_rows = len(x)
        if x.shape[1:] != (self.in_features,) or x.dtype != self.dtype:
            raise ValueError(f"x = {x.dtype} {list(x.shape)}: expected {self.dtype} [any, {self.in_features}]")
        shape = num_rows, self.out_features
        if residual is None:
            out = x.new_empty(shape)
        elif (
            residual.shape == shape and residual.dtype == self.dtype and residual.is_contiguous() and not self.is_gated
        ):
            out = residual
        else:
            raise ValueError(
                f"residual = {residual.dtype} {list(residual.shape)}: expected contiguous {self.dtype} {list(shape)}"
            )
        if num_rows == 0:
            return out
        item = self.dtype.itemsize
        if x.stride(1) != 1 or x.stride(0) < self.in_features:
            x = x.contiguous()
        if self.in_features * item % WORD:
            x = functional.pad(x, (0, -self.in_features * item % WORD // item))
        cut = tiling(num_rows, self.code.max_rows)
        ahead = prefetch.ahead(cut)
        run = _kernel_for(self.code, cut, ahead)
        num_blocks, num_steps = self.weight.shape[:2]
        call = (
            x.data_ptr(),
            x.stride(0) * x.itemsize,
            self.weight.data_ptr(),
            self.constants.data_ptr(),
            0 if residual is None else out.data_ptr(),
            out.data_ptr(),
            self.out_features * item,
            num_steps,
            self.out_features,
            num_rows,
            cut.passes,
            ahead.num_bytes,
            int(self.is_gated),
            finish_address(self.code),
        )
        num_threads = torch.get_num_threads()
        if num_threads == 1 or not self.is_worth_threads(num_rows):
            run(*call, 0, num_blocks)
        else:
            cuts = [num_blocks * i // num_threads for i in range(num_threads + 1)]
            run_chunks(run, [(*call, a, b) for a, b in itertools.pairwise(cuts) if a < b])
        return out
