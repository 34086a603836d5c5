"""Linear layers over weights of few bits, multiplied as they are packed.

Inputs are quantized to bytes in groups of 32 (`low_bit_inputs`), sums are computed as `low_bit_vectors` defines, so results have the same
bits on every processor, for any number of rows and threads. Then come the scale of the output, the bias, and what else the end of a line
does in layers of floats.

A joined layer has several weights of the same inputs, which may differ in format; it quantizes the inputs once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numba.core import types
from torch import Tensor

from rtlang_kernels.contract.fused_step import BLOCK, LinearLayer, check_indices
from rtlang_kernels.contract.low_bit import INPUT_GROUP, LowBitWeight, StackedWeight
from rtlang_kernels.cpu.codegen.linear_vectors import STEP, stack_sums
from rtlang_kernels.cpu.codegen.llvm_bridge import address_of, invoke, source_digest
from rtlang_kernels.cpu.codegen.low_bit_vectors import LANES, LINE, LowBitCode, low_bit_tile
from rtlang_kernels.cpu.codegen.tile_vectors import NO_TILES
from rtlang_kernels.cpu.linear import (
    GATE,
    UNMEASURED,
    WORTH_THREADS,
    Prefetch,
    PrefetchDistance,
    Tiling,
    block_outputs,
    line_end_address,
    tiling,
)
from rtlang_kernels.cpu.low_bit_inputs import SCALES_AT, InputPlan, planes_of
from rtlang_kernels.cpu.low_bit_layout import HALVES, LowBitLayout, PackedWeight
from rtlang_kernels.cpu.threads import run_chunks
from rtlang_kernels.cpu.tiled_low_bit import LEAST_ROWS, scratch_bytes, tiled_cut, tiled_low_bit_kernel
from rtlang_kernels.host.numba_jit import kernel
from rtlang_kernels.host.processor import Processor, processor
from rtlang_kernels.reference.low_bit import exact_rows


@cache
def low_bit_kernel(code: LowBitCode, rows: int, lines: int, level: int) -> Callable[..., None]:
    """Compile a layer for tiles of `rows` rows, with `lines` prefetches per chunk of inputs into the cache of `level`.

    Args of the kernel, addresses unless they count something: values, scales and planes of the quantized inputs; codes, records, table,
    constants (float32 [blocks, 2, BLOCK]: biases, scales); residual, target; bytes of a row of either, and of an element; num_spans,
    num_chunks, num_outputs, num_tokens, passes; how far ahead codes and records are requested; is_gated; code of the end of a line; the
    range of blocks.
    """
    digest = source_digest()
    bits, group, scales, extra, has_table, has_start, is_signed, is_shifted, products = code
    chunk_bytes, record_bytes, halves = code.chunk_bytes, code.record_bytes, code.halves
    is_single = lines == bits
    covering = -(-bits // lines)  # tiles that ask for the whole next block

    @kernel(is_exact=True)
    def low_bit_linear(
        values: Any,
        input_scales: Any,
        starts: Any,
        extras: Any,
        codes: Any,
        records: Any,
        table: Any,
        constants: Any,
        residual: Any,
        target: Any,
        stride: Any,
        item: Any,
        num_spans: Any,
        num_chunks: Any,
        num_outputs: Any,
        num_tokens: Any,
        passes: Any,
        ahead: Any,
        records_ahead: Any,
        is_gated: Any,
        finish: Any,
        first: Any,
        last: Any,
    ) -> None:
        if digest < 0:  # never true; ties the disk cache to the sources
            return
        sums = stack_sums(rows)
        width = GATE if is_gated else BLOCK
        block_bytes, block_records = num_chunks * chunk_bytes, num_spans * record_bytes
        for start in range(0, num_tokens, rows * passes):
            for block in range(first, last):
                skip, valid = block * width * item, min(width, num_outputs - block * width)
                for i in range(passes):
                    token = start + i * rows
                    if token >= num_tokens:
                        break
                    place = token // rows * num_chunks * rows  # of the tile in scales
                    for half in range(HALVES):
                        here = codes + (block * HALVES + half) * block_bytes
                        beside = records + (block * HALVES + half) * block_records
                        coming, coming_records = here + ahead, beside + records_ahead
                        if not is_single:
                            share = num_chunks * lines * LINE
                            coming = here + HALVES * block_bytes + min(i, covering - 1) * share
                            coming_records = beside + HALVES * block_records
                        low_bit_tile(
                            values + place * INPUT_GROUP,
                            input_scales + place * 4,
                            starts + place * halves * 4,
                            extras + place * halves * 4,
                            here,
                            beside,
                            coming,
                            coming_records,
                            num_spans,
                            table,
                            sums + half * LINE,
                            bits,
                            group,
                            scales,
                            extra,
                            has_table,
                            has_start,
                            is_signed,
                            is_shifted,
                            products,
                            rows,
                            lines,
                            level,
                        )
                    count = min(rows, num_tokens - token)
                    line = constants + block * 2 * STEP
                    start_at = token * stride + skip
                    added = residual + start_at if residual != 0 else residual
                    invoke(finish, (sums, count, line, added, target + start_at, stride, valid, is_gated))

    return low_bit_linear


def _kernel_for(code: LowBitCode, cut: Tiling, ahead: PrefetchDistance) -> Callable[..., None]:
    """The kernel for a tiling."""
    return low_bit_kernel(code, cut.rows, max(1, -(-code.bits // cut.passes)), ahead.level)


@cache
def low_bit_address(code: LowBitCode, cut: Tiling, ahead: PrefetchDistance) -> int:
    """Address of the machine code of `low_bit_kernel` for a tiling."""
    return address_of(_kernel_for(code, cut, ahead), (types.int64,) * 23)


def records_ahead(code: LowBitCode, ahead: PrefetchDistance) -> int:
    """How many bytes ahead records are requested."""
    return ahead.num_bytes * code.record_bytes // (code.chunk_bytes * code.span // INPUT_GROUP)


def low_bit_finish(dtype: torch.dtype) -> int:
    """Address of the machine code that ends the lines of a layer of few bits with inputs of `dtype`."""
    # Not by the instruction that rounds to bfloat16: it takes denormal numbers for zeros.
    return line_end_address(1, int(dtype == torch.bfloat16), 0)


class LowBitPart(NamedTuple):
    """A packed weight and what is applied to its sums; constants are float32 [blocks, 2, BLOCK]: biases, and scales of outputs."""

    layout: LowBitLayout
    code: LowBitCode
    packed: PackedWeight
    constants: Tensor
    input_order: Tensor | None
    out_features: int
    is_gated: bool

    @classmethod
    def of(
        cls, weights: Sequence[LowBitWeight], bias: Tensor | None, is_gated: bool, machine: Processor | None
    ) -> LowBitPart:
        """Pack weights, see `LowBitLinear.pack`."""
        weight = weights[0] if len(weights) == 1 else StackedWeight(weights)
        num_outputs, num_inputs = weight.shape
        layout = LowBitLayout.of(weight.format, num_inputs, machine or processor())
        packed = layout.pack(weight, is_gated=is_gated)
        bias = torch.zeros(num_outputs) if bias is None else bias.float()
        lines = [block_outputs(values, is_gated=is_gated).view(-1, BLOCK) for values in (bias, packed.row_scales)]
        constants, code = torch.stack(lines, 1).contiguous(), layout.code_for(packed.largest_scale)
        results = num_outputs // 2 if is_gated else num_outputs
        return cls(layout, code, packed, constants, weight.input_order, results, is_gated)

    def first_blocks(self, count: int) -> LowBitPart:
        """The first blocks of outputs as a layer of their own, which shares the memory."""
        codes, records, row_scales, largest = self.packed
        packed = PackedWeight(codes[: count * HALVES], records[: count * HALVES], row_scales, largest)
        most = count * (GATE if self.is_gated else BLOCK)
        return self._replace(packed=packed, constants=self.constants[:count], out_features=min(most, self.out_features))


class Product(Protocol):
    """What multiplies the inputs of a layer; see `LowBitLinear`."""

    def is_worth_threads(self, num_rows: int) -> bool:
        """Whether several threads are faster than one."""

    def multiply(self, x: Tensor, residual: Tensor | None, prefetch: Prefetch) -> Tensor:
        """The results, with a prefetch."""


class PartWork(NamedTuple):
    """What a call needs to know of a part; addresses that are zero belong to what there is not.

    Attributes:
        starts, extras: where the planes of the quantized inputs begin, see `InputPlan.place`.
        column: first result.
        num_blocks: of BLOCK outputs.
    """

    code: LowBitCode
    starts: int
    extras: int
    weights: tuple[int, int, int, int]  # codes, records, table, constants
    sizes: tuple[int, int, int]  # num_spans, num_chunks, out_features
    is_gated: int
    column: int
    num_blocks: int
    num_bytes: int


class Share(NamedTuple):
    """Parts whose inputs are quantized together."""

    plan: InputPlan
    works: tuple[PartWork, ...]


class LowBitProduct:
    """Multiplies inputs by some weights, whose results lie side by side; calls from several threads are safe.

    Attributes:
        in_features, out_features: of all weights together.
        dtype: of inputs and results.
        max_rows: of the highest tile of vectors.
        tiles: kind of matrix tiles that many rows use, see `tile_vectors`: of processors with `tiled_low_bit.has_tiles`.
        shares: the parts by how their inputs are quantized.
    """

    def __init__(self, parts: Sequence[LowBitPart], dtype: torch.dtype) -> None:
        self.in_features, self.out_features = parts[0].layout.num_inputs, sum(part.out_features for part in parts)
        self.dtype, self.max_rows, self.tiles = dtype, parts[0].code.max_rows, NO_TILES
        self._is_gated, self._parts = parts[0].is_gated, tuple(parts)
        shares: list[Share] = []
        columns = list(itertools.accumulate((part.out_features for part in parts), initial=0))
        left = list(zip(parts, columns, strict=False))
        while left:
            first = left[0][0]
            alike = [(part, column) for part, column in left if _have_same_inputs(part, first)]
            left = [(part, column) for part, column in left if not _have_same_inputs(part, first)]
            plan = InputPlan([part.layout for part, _ in alike], first.input_order)
            shares.append(Share(plan, tuple(_work(part, plan, column) for part, column in alike)))
        self.shares = tuple(shares)
        self._num_bytes = sum(work.num_bytes for share in self.shares for work in share.works)

    def is_worth_threads(self, num_rows: int) -> bool:
        """Whether several threads are faster than one."""
        return self._num_bytes * -(-num_rows // self.max_rows) >= WORTH_THREADS * STEP

    def multiply(self, x: Tensor, residual: Tensor | None, prefetch: Prefetch) -> Tensor:
        """See `LowBitLinear.__call__`."""
        num_rows = len(x)
        out = result_of(x, residual, self.in_features, self.out_features, self.dtype, is_gated=self._is_gated)
        if num_rows == 0:
            return out
        kind = self.tiles if num_rows >= LEAST_ROWS else NO_TILES
        cut = tiling(num_rows, self.max_rows) if kind == NO_TILES else tiled_cut(num_rows)
        ahead, place, item = prefetch.ahead(cut), out.data_ptr(), x.itemsize
        finish = low_bit_finish(x.dtype)
        if x.stride(1) != 1 or x.stride(0) < self.in_features:
            x = x.contiguous()
        calls, kept = [], []
        for plan, works in self.shares:
            memory, size = plan.quantized(x, cut.rows)
            kept.append(memory)
            values = memory.ctypes.data
            for work in works:
                target, code = place + work.column * item, work.code
                arguments = (
                    values,
                    values + size * SCALES_AT,
                    values + size * work.starts,
                    values + size * work.extras,
                    *work.weights,
                    0 if residual is None else target,
                    target,
                    self.out_features * item,
                    item,
                    *work.sizes,
                    num_rows,
                    cut.passes,
                )
                if kind == NO_TILES:
                    run, distances = _kernel_for(code, cut, ahead), (ahead.num_bytes, records_ahead(code, ahead))
                    calls.append(_Call(run, (*arguments, *distances, work.is_gated, finish), work.num_blocks))
                else:
                    run, scratch = tiled_low_bit_kernel(code, cut.rows, kind), scratch_bytes(work.sizes[1])
                    calls.append(_Call(run, (*arguments, work.is_gated, finish), work.num_blocks, scratch))
        num_threads = torch.get_num_threads()
        if num_threads == 1 or not self.is_worth_threads(num_rows):
            _run_share(calls, 0, 1)
        else:
            run_chunks(_run_share, [(calls, thread, num_threads) for thread in range(num_threads)])
        return out


class _Call(NamedTuple):
    """Arguments of a kernel, without the memory of `scratch` bytes for each thread, if there is any, and the range of blocks."""

    run: Callable[..., None]
    arguments: tuple[int, ...]
    num_blocks: int
    scratch: int = 0


def result_of(
    x: Tensor, residual: Tensor | None, in_features: int, out_features: int, dtype: torch.dtype, *, is_gated: bool
) -> Tensor:
    """Memory for the results of x: `residual`, or new.

    Raises:
        ValueError: x or residual has another shape, dtype or layout.
    """
    if x.shape[1:] != (in_features,) or x.dtype != dtype:
        raise ValueError(f"x = {x.dtype} {list(x.shape)}: expected {dtype} [any, {in_features}]")
    shape = len(x), out_features
    if residual is None:
        return x.new_empty(shape)
    if residual.shape == shape and residual.dtype == dtype and residual.is_contiguous() and not is_gated:
        return residual
    raise ValueError(f"residual = {residual.dtype} {list(residual.shape)}: expected contiguous {dtype} {list(shape)}")


def _run_share(calls: Sequence[_Call], thread: int, num_threads: int) -> None:
    """Run the part of a thread of each call."""
    scratch = np.empty(max(call.scratch for call in calls) + LINE, np.int8)
    free = -(-scratch.ctypes.data // LINE) * LINE
    for run, arguments, num_blocks, size in calls:
        first, last = (num_blocks * each // num_threads for each in (thread, thread + 1))
        if first < last:
            run(*arguments, *((free,) if size else ()), first, last)


def _work(part: LowBitPart, plan: InputPlan, column: int) -> PartWork:
    layout, packed, table = part.layout, part.packed, part.layout.table
    start, extra = planes_of(layout)
    return PartWork(
        part.code,
        plan.place(start),
        plan.place(extra),
        (
            packed.codes.data_ptr(),
            packed.records.data_ptr(),
            0 if table is None else table.data_ptr(),
            part.constants.data_ptr(),
        ),
        (layout.num_spans, layout.num_chunks, part.out_features),
        int(part.is_gated),
        column,
        len(packed.codes) // HALVES,
        packed.codes.nbytes + packed.records.nbytes,
    )


def _have_same_inputs(a: LowBitPart, b: LowBitPart) -> bool:
    """Whether parts have one order of inputs, and as much padding."""
    if a.layout.num_chunks != b.layout.num_chunks:
        return False
    if a.input_order is None or b.input_order is None:
        return a.input_order is b.input_order
    return torch.equal(a.input_order, b.input_order)


class LowBitLinear:
    """y = x @ weight.T + bias with a weight of few bits; calls from several threads are safe.

    Attributes:
        in_features, out_features: of the layer; with `is_gated`, out_features is half the outputs of the weight.
        dtype: of inputs and results.
        part: the packed weight.
        product: what multiplies it.
        prefetch: see `linear_tuning`.
    """

    def __init__(self, part: LowBitPart, dtype: torch.dtype) -> None:
        self.part, self.dtype = part, dtype
        self.in_features, self.out_features = part.layout.num_inputs, part.out_features
        self.prefetch = UNMEASURED
        self.product: Product = LowBitProduct((part,), dtype)

    @classmethod
    def pack(
        cls,
        weights: Sequence[LowBitWeight],
        bias: Tensor | None,
        is_gated: bool,
        dtype: torch.dtype,
        *,
        machine: Processor | None = None,
    ) -> LowBitLinear:
        """Copy weights of one format, whose outputs follow one another, into the layout of the kernels.

        Args:
            bias: [out], or None.
            is_gated: results are silu(gate) * up, where weights hold the outputs of the gate, then those of up.
            dtype: of inputs and results, float32 or bfloat16.
            machine: compile for a processor other than the one at hand.
        Raises:
            ValueError: the weights differ in format, inputs or order of inputs.
        """
        return cls(LowBitPart.of(weights, bias, is_gated, machine), dtype)

    @property
    def code(self) -> LowBitCode:
        """The machine code."""
        return self.part.code

    @property
    def nbytes(self) -> int:
        """Bytes that a call reads of the weight."""
        return self.part.packed.codes.nbytes + self.part.packed.records.nbytes

    @property
    def max_rows(self) -> int:
        """Rows of the highest tile."""
        return self.code.max_rows

    def is_worth_threads(self, num_rows: int) -> bool:
        """Whether several threads are faster than one."""
        return self.product.is_worth_threads(num_rows)

    def __call__(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """Multiply x [num_rows, in_features] of `dtype`. Returns [num_rows, out_features], contiguous.

        A row with an input that is not finite gives NaN.

        Args:
            residual: [num_rows, out_features], contiguous, to which the result is added in place; returned.
        Raises:
            ValueError: x or residual has another shape, dtype or layout.
        """
        return self.multiply(x, residual, self.prefetch)

    def multiply(self, x: Tensor, residual: Tensor | None, prefetch: Prefetch) -> Tensor:
        """The same with another prefetch."""
        return self.product.multiply(x, residual, prefetch)

    def rows(self, indices: Tensor) -> Tensor:
        """Outputs of the weight, not gated, at int64 `indices` [n], rounded once: `dtype` [n, in_features].

        Raises:
            IndexError: an index is not from 0 to out_features - 1.
        """
        check_indices(indices, self.out_features)
        if not len(indices):
            return torch.empty((0, self.in_features), dtype=self.dtype)
        layout, order = self.part.layout, self.part.input_order
        found = exact_rows(layout.fmt, layout.rows_of(self.part.packed, indices))
        if order is not None:
            found = torch.empty_like(found).index_copy_(1, order, found)
        return rounded(found, self.dtype)


class JoinedLowBitLinear:
    """Layers of the same inputs as one: the outputs of the first, then those of the next. Inputs are quantized once.

    Attributes:
        parts: not gated, of one dtype.
        product: what multiplies them.
        in_features, out_features: of the whole.
    """

    def __init__(self, parts: Sequence[LowBitLinear]) -> None:
        self.parts = tuple(parts)
        self.product = LowBitProduct([each.part for each in parts], parts[0].dtype)
        self.in_features, self.out_features = self.product.in_features, self.product.out_features

    def __call__(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """See `LowBitLinear`."""
        return self.product.multiply(x, residual, self.parts[0].prefetch)

    def rows(self, indices: Tensor) -> Tensor:
        """See `LowBitLinear`."""
        check_indices(indices, self.out_features)
        found, start = torch.empty((len(indices), self.in_features), dtype=self.parts[0].dtype), 0
        for part in self.parts:
            inside = (indices >= start) & (indices < start + part.out_features)
            found[inside] = part.rows(indices[inside] - start)
            start += part.out_features
        return found


def rounded(exact: Tensor, dtype: torch.dtype) -> Tensor:
    """Round float64 to the nearest numbers of `dtype`, at once: through float32, halves of bfloat16 would be rounded twice."""
    found = exact.float()
    if dtype == torch.float32:
        return found
    error = exact - found.double()
    is_even = found.view(torch.int32) & 1 == 0
    # An inexact float32 whose last bit is even moves to its odd neighbor on the side of the exact number.
    away = torch.where((error > 0) == (exact > 0), 1, -1).int()
    odd = (found.view(torch.int32) + away).view(torch.float32)
    return torch.where(is_even & (error != 0) & found.isfinite(), odd, found).to(dtype)


def joined_linear(layers: Sequence[LinearLayer]) -> LinearLayer | None:
    """Some layers of the same inputs, not gated, as one whose outputs follow one another; None if one is of another
    kind."""
    parts = [layer for layer in layers if type(layer) is LowBitLinear and not layer.part.is_gated]
    return JoinedLowBitLinear(parts) if parts and len(parts) == len(layers) else None


assert HALVES * LANES == BLOCK
