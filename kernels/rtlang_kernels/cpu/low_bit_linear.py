"""Linear layers over weights of few bits, multiplied as they are packed.

Inputs are quantized to bytes in groups of 32 (`low_bit_inputs`), sums are computed as `low_bit_vectors` defines, so results have the same
bits on every processor, for any number of rows and threads. Then come the scale of the output, the bias, and what else the end of a line
does in layers of floats.

A joined layer has several weights of the same inputs, which may differ in format; it quantizes the inputs once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

from rtlang_kernels.contract.fused_step import BLOCK, LinearLayer
from rtlang_kernels.contract.low_bit import INPUT_GROUP, LowBitWeight, StackedWeight
from rtlang_kernels.cpu.codegen.linear_vectors import STEP, stack_sums
from rtlang_kernels.cpu.codegen.llvm_bridge import invoke, source_digest
from rtlang_kernels.cpu.codegen.low_bit_vectors import LANES, LINE, LowBitCode, low_bit_tile
from rtlang_kernels.cpu.linear import (
    GATE,
    UNMEASURED,
    WORTH_THREADS,
    PackedLinear,
    Prefetch,
    PrefetchDistance,
    Tiling,
    block_outputs,
    line_end_address,
    tiling,
)
from rtlang_kernels.cpu.low_bit_inputs import QuantizedInputs, planes_of, quantize_inputs
from rtlang_kernels.cpu.low_bit_layout import HALVES, LowBitLayout, PackedWeight
from rtlang_kernels.cpu.threads import run_chunks
from rtlang_kernels.host.numba_jit import kernel
from rtlang_kernels.host.processor import Processor, processor
from rtlang_kernels.reference.low_bit import exact_rows, exact_weight

_BLOCK_CODES = 1 << 22  # of float8 weights, multiplied out at a time


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


@dataclass(slots=True)
class LowBitLinear:
    """y = x @ weight.T + bias with a weight of few bits; calls from several threads are safe.

    Attributes:
        in_features, out_features: of the layer; with `is_gated`, out_features is half the outputs of the weight.
        dtype: of inputs and results.
        prefetch: see `linear_tuning`.
    """

    in_features: int
    out_features: int
    dtype: torch.dtype
    is_gated: bool
    layout: LowBitLayout
    code: LowBitCode
    packed: PackedWeight
    constants: Tensor  # float32 [blocks, 2, BLOCK]: biases, scales of outputs
    input_order: Tensor | None
    prefetch: Prefetch = UNMEASURED

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
        weight = weights[0] if len(weights) == 1 else StackedWeight(weights)
        num_outputs, num_inputs = weight.shape
        layout = LowBitLayout.of(weight.format, num_inputs, machine or processor())
        packed = layout.pack(weight, is_gated=is_gated)
        bias = torch.zeros(num_outputs) if bias is None else bias.float()
        lines = [block_outputs(values, is_gated=is_gated).view(-1, BLOCK) for values in (bias, packed.row_scales)]
        return cls(
            num_inputs,
            num_outputs // 2 if is_gated else num_outputs,
            dtype,
            is_gated,
            layout,
            layout.code_for(packed.largest_scale),
            packed,
            torch.stack(lines, 1).contiguous(),
            weight.input_order,
        )

    @property
    def nbytes(self) -> int:
        """Bytes that a call reads of the weight."""
        return self.packed.codes.nbytes + self.packed.records.nbytes

    @property
    def max_rows(self) -> int:
        """Rows of the highest tile."""
        return self.code.max_rows

    @property
    def num_blocks(self) -> int:
        """Blocks of BLOCK outputs."""
        return len(self.packed.codes) // HALVES

    def is_worth_threads(self, num_rows: int) -> bool:
        """Whether several threads are faster than one."""
        return self.nbytes * -(-num_rows // self.max_rows) >= WORTH_THREADS * STEP

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
        return _multiply((self,), x, residual, prefetch)

    def rows(self, indices: Tensor) -> Tensor:
        """Outputs of the weight, not gated, at int64 `indices` [n], rounded once: `dtype` [n, in_features].

        Raises:
            IndexError: an index is not from 0 to out_features - 1.
        """
        outside = ((indices < 0) | (indices >= self.out_features)).nonzero()
        if len(outside):
            place = int(outside[0])
            raise IndexError(f"indices[{place}] = {int(indices[place])}: expected 0 to {self.out_features - 1}")
        if not len(indices):
            return torch.empty((0, self.in_features), dtype=self.dtype)
        found = exact_rows(self.layout.fmt, self.layout.rows_of(self.packed, indices))
        if self.input_order is not None:
            found = torch.empty_like(found).index_copy_(1, self.input_order, found)
        return _rounded(found, self.dtype)

    def call(self, inputs: QuantizedInputs, cut: Tiling, ahead: PrefetchDistance) -> tuple[Any, ...]:
        """The kernel, and its arguments up to the constants."""
        start, extra = planes_of(self.layout)
        lines = max(1, -(-self.code.bits // cut.passes))
        run = low_bit_kernel(self.code, cut.rows, lines, ahead.level)
        packed, table, none = self.packed, self.layout.table, inputs.scales
        return (
            run,
            inputs.values.ctypes.data,
            inputs.scales.ctypes.data,
            inputs.planes.get(start, none).ctypes.data,
            inputs.planes.get(extra, none).ctypes.data,
            packed.codes.data_ptr(),
            packed.records.data_ptr(),
            0 if table is None else table.data_ptr(),
            self.constants.data_ptr(),
        )


@dataclass(slots=True)
class JoinedLowBitLinear:
    """Layers of the same inputs as one: the outputs of the first, then those of the next. Inputs are quantized once.

    Attributes:
        parts: not gated, of one dtype.
    """

    parts: tuple[LowBitLinear, ...]

    @property
    def in_features(self) -> int:
        """Number of inputs."""
        return self.parts[0].in_features

    @property
    def out_features(self) -> int:
        """Number of results."""
        return sum(part.out_features for part in self.parts)

    def __call__(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """See `LowBitLinear`."""
        return _multiply(self.parts, x, residual, self.parts[0].prefetch)

    def rows(self, indices: Tensor) -> Tensor:
        """See `LowBitLinear`."""
        first = self.parts[0]
        found = torch.empty((len(indices), self.in_features), dtype=first.dtype)
        start, is_found = 0, torch.zeros(len(indices), dtype=torch.bool)
        for part in self.parts:
            inside = (indices >= start) & (indices < start + part.out_features)
            found[inside] = part.rows(indices[inside] - start)
            start, is_found = start + part.out_features, is_found | inside
        if not is_found.all():
            place = int((~is_found).nonzero()[0])
            raise IndexError(f"indices[{place}] = {int(indices[place])}: expected 0 to {start - 1}")
        return found


def _multiply(parts: Sequence[LowBitLinear], x: Tensor, residual: Tensor | None, prefetch: Prefetch) -> Tensor:
    """The results of some layers of the same inputs side by side, or added to `residual`."""
    first, num_rows = parts[0], len(x)
    if x.shape[1:] != (first.in_features,) or x.dtype != first.dtype:
        raise ValueError(f"x = {x.dtype} {list(x.shape)}: expected {first.dtype} [any, {first.in_features}]")
    shape = num_rows, sum(part.out_features for part in parts)
    if residual is None:
        out = x.new_empty(shape)
    elif residual.shape == shape and residual.dtype == x.dtype and residual.is_contiguous() and not first.is_gated:
        out = residual
    else:
        raise ValueError(
            f"residual = {residual.dtype} {list(residual.shape)}: expected contiguous {x.dtype} {list(shape)}"
        )
    if num_rows == 0:
        return out
    cut = tiling(num_rows, first.max_rows)
    ahead, item = prefetch.ahead(cut), x.itemsize
    # Not by the instruction that rounds to bfloat16: it takes denormal numbers for zeros.
    finish, stride = line_end_address(1, int(x.dtype == torch.bfloat16), 0), shape[1] * item
    found: list[tuple[Tensor | None, QuantizedInputs]] = []  # by order of inputs
    calls, place = [], out.data_ptr()
    for part in parts:
        inputs = next((each for order, each in found if order is part.input_order), None)
        if inputs is None:
            inputs = _quantized(x, part.input_order, parts, cut)
            found.append((part.input_order, inputs))
        layout, code = part.layout, part.code
        spans = ahead.num_bytes // (code.chunk_bytes * code.span // INPUT_GROUP)
        run, *begin = part.call(inputs, cut, ahead)
        arguments = (
            *begin,
            0 if residual is None else place,
            place,
            stride,
            item,
            layout.num_spans,
            layout.num_chunks,
            part.out_features,
            num_rows,
            cut.passes,
            ahead.num_bytes,
            spans * code.record_bytes,
            int(part.is_gated),
            finish,
        )
        calls.append((run, arguments, part.num_blocks))
        place += part.out_features * item
    num_threads = torch.get_num_threads()
    if num_threads > 1 and not any(part.is_worth_threads(num_rows) for part in parts):
        num_threads = 1

    def run_share(thread: int) -> None:
        for run, arguments, num_blocks in calls:
            a, b = (num_blocks * each // num_threads for each in (thread, thread + 1))
            if a < b:
                run(*arguments, a, b)

    run_chunks(run_share, [(thread,) for thread in range(num_threads)])
    return out


def _quantized(x: Tensor, order: Tensor | None, parts: Sequence[LowBitLinear], cut: Tiling) -> QuantizedInputs:
    """The inputs of those layers that have this order of inputs."""
    alike = [part.layout for part in parts if part.input_order is order]
    if order is not None:
        x = x.index_select(1, order)
    elif x.stride(1) != 1 or x.stride(0) < x.shape[1]:
        x = x.contiguous()
    planes = itertools.chain.from_iterable(planes_of(layout) for layout in alike)
    return quantize_inputs(x, alike[0].num_chunks, cut.rows, tuple(planes))


def _rounded(exact: Tensor, dtype: torch.dtype) -> Tensor:
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


def low_bit_linear(
    weights: Sequence[LowBitWeight], bias: Tensor | None, is_gated: bool, dtype: torch.dtype
) -> LinearLayer:
    """A layer over weights of one format, see `LowBitLinear.pack`. Float8 weights are multiplied out."""
    if not weights[0].format.is_float8:
        return LowBitLinear.pack(weights, bias, is_gated, dtype)
    weight = weights[0] if len(weights) == 1 else StackedWeight(weights)
    num_outputs, num_inputs = weight.shape
    floats, step = torch.empty((num_outputs, num_inputs), dtype=dtype), max(1, _BLOCK_CODES // num_inputs)
    for first in range(0, num_outputs, step):
        last = min(first + step, num_outputs)
        floats[first:last] = _rounded(exact_weight(weight, first, last), dtype)
    return PackedLinear.pack(floats, bias, is_gated)


def joined_linear(layers: Sequence[LinearLayer]) -> LinearLayer | None:
    """Some layers of the same inputs, not gated, as one whose outputs follow one another; None if not all of them have few bits."""
    parts = [layer for layer in layers if isinstance(layer, LowBitLinear) and not layer.is_gated]
    return JoinedLowBitLinear(tuple(parts)) if len(parts) == len(layers) else None


assert HALVES * LANES == BLOCK
