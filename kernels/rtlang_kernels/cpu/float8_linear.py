"""Linear layers over float8 weights (e4m3), widened in registers as `float8_vectors` describes; inputs and sums are those of float layers.

Every sum is one chain over its groups, so the bits of a row depend neither on other rows nor on threads. As in layers of floats, they
depend on whether the processor has the product of pairs of bfloat16.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
from numba.core import types
from torch import Tensor
from torch.nn import functional

from rtlang_kernels.contract.fused_step import BLOCK, LinearLayer
from rtlang_kernels.contract.low_bit import INPUT_GROUP, LowBitWeight, ScaleType, StackedWeight, WeightFormat
from rtlang_kernels.cpu.codegen.float8_vectors import float8_tile
from rtlang_kernels.cpu.codegen.linear_vectors import STEP, stack_sums
from rtlang_kernels.cpu.codegen.llvm_bridge import address_of, invoke, source_digest
from rtlang_kernels.cpu.codegen.low_bit_vectors import LINE, VNNI_512, LowBitCode
from rtlang_kernels.cpu.linear import GATE, WORTH_THREADS, PackedLinear, Prefetch, PrefetchDistance, Tiling, tiling
from rtlang_kernels.cpu.low_bit_layout import HALVES
from rtlang_kernels.cpu.low_bit_linear import (
    LowBitLinear,
    LowBitPart,
    low_bit_finish,
    records_ahead,
    result_of,
    rounded,
)
from rtlang_kernels.cpu.threads import run_chunks
from rtlang_kernels.host.numba_jit import kernel
from rtlang_kernels.host.processor import Processor, processor
from rtlang_kernels.reference.low_bit import exact_weight

_BLOCK_CODES = 1 << 22  # of weights, multiplied out at a time


@cache
def float8_kernel(
    code: LowBitCode, is_bf16: int, is_native: int, rows: int, lines: int, level: int
) -> Callable[..., None]:
    """Compile a layer for tiles of `rows` rows, with `lines` prefetches per chunk of inputs into the cache of `level`.

    Args of the kernel: address of the inputs, bytes from a row to the next; then as of `low_bit_linear.low_bit_kernel`, where num_chunks
    is that of a record.
    """
    digest = source_digest()
    group, scales, products, bits = code.group, code.scales, code.products, code.bits
    chunk_bytes, record_bytes, item = code.chunk_bytes, code.record_bytes, 2 if is_bf16 else 4
    is_single = lines == bits
    covering = -(-bits // lines)  # tiles that ask for the whole next block

    @kernel(is_exact=True)
    def float8_linear(
        x: Any,
        x_stride: Any,
        codes: Any,
        records: Any,
        constants: Any,
        residual: Any,
        target: Any,
        stride: Any,
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
        block_bytes, block_records = num_spans * num_chunks * chunk_bytes, num_spans * record_bytes
        for start in range(0, num_tokens, rows * passes):
            for block in range(first, last):
                skip, valid = block * width * item, min(width, num_outputs - block * width)
                for i in range(passes):
                    token = start + i * rows
                    if token >= num_tokens:
                        break
                    count = min(rows, num_tokens - token)
                    for half in range(HALVES):
                        here = codes + (block * HALVES + half) * block_bytes
                        beside = records + (block * HALVES + half) * block_records
                        coming, coming_records = here + ahead, beside + records_ahead
                        if not is_single:
                            share = num_spans * num_chunks * lines * LINE
                            coming = here + HALVES * block_bytes + min(i, covering - 1) * share
                            coming_records = beside + HALVES * block_records
                        float8_tile(
                            x + token * x_stride,
                            x_stride,
                            count,
                            here,
                            beside,
                            coming,
                            coming_records,
                            num_spans,
                            num_chunks,
                            sums + half * LINE,
                            group,
                            scales,
                            products,
                            is_bf16,
                            is_native,
                            rows,
                            lines,
                            level,
                        )
                    line = constants + block * 2 * STEP
                    start_at = token * stride + skip
                    added = residual + start_at if residual != 0 else residual
                    invoke(finish, (sums, count, line, added, target + start_at, stride, valid, is_gated))

    return float8_linear


class Float8Code(NamedTuple):
    """Machine code over float8 weights.

    Attributes:
        weights: how codes and scales lie in memory.
        is_bf16: whether inputs and results are bfloat16, else float32.
        is_native: whether products are of pairs of bfloat16.
    """

    weights: LowBitCode
    is_bf16: int
    is_native: int

    @property
    def max_rows(self) -> int:
        """Rows of the highest tile."""
        return self.weights.max_rows


def _kernel_for(code: Float8Code, cut: Tiling, ahead: PrefetchDistance) -> Callable[..., None]:
    """The kernel for a tiling."""
    return float8_kernel(*code, cut.rows, max(1, -(-code.weights.bits // cut.passes)), ahead.level)


@cache
def float8_address(code: Float8Code, cut: Tiling, ahead: PrefetchDistance) -> int:
    """Address of the machine code of `float8_kernel` for a tiling."""
    return address_of(_kernel_for(code, cut, ahead), (types.int64,) * 19)


class Float8Product:
    """Multiplies inputs by a float8 weight; calls from several threads are safe.

    Attributes:
        part: the packed weight.
        dtype: of inputs and results.
        code: the machine code.
        num_spans, num_chunks: records of a block, and chunks of a record.
        num_bytes: of the weight.
    """

    def __init__(self, part: LowBitPart, dtype: torch.dtype, machine: Processor) -> None:
        """Multiply by a weight that is packed for `machine`."""
        self.part, self.dtype = part, dtype
        has_pairs = machine.has_bf16_dot and part.code.products == VNNI_512 and dtype == torch.bfloat16
        self.code = Float8Code(part.code, int(dtype == torch.bfloat16), int(has_pairs))
        layout = part.layout
        is_whole = layout.fmt.scales is ScaleType.NONE  # one chain over all inputs
        self.num_spans = 1 if is_whole else layout.num_spans
        self.num_chunks = layout.num_chunks // self.num_spans
        self.num_bytes = part.packed.codes.nbytes + part.packed.records.nbytes

    def is_worth_threads(self, num_rows: int) -> bool:
        """Whether several threads are faster than one."""
        return self.num_bytes * -(-num_rows // self.code.max_rows) >= WORTH_THREADS * STEP

    def multiply(self, x: Tensor, residual: Tensor | None, prefetch: Prefetch) -> Tensor:
        """See `LowBitLinear.__call__`."""
        part, num_rows = self.part, len(x)
        num_inputs = part.layout.num_inputs
        out = result_of(x, residual, num_inputs, part.out_features, self.dtype, is_gated=part.is_gated)
        if num_rows == 0:
            return out
        if padding := part.layout.num_chunks * INPUT_GROUP - num_inputs:
            x = functional.pad(x, (0, padding))
        elif x.stride(1) != 1 or x.stride(0) < num_inputs:
            x = x.contiguous()
        if part.input_order is not None:
            x = x.index_select(1, part.input_order)
        cut, item = tiling(num_rows, self.code.max_rows), x.itemsize
        ahead = prefetch.ahead(cut)
        run = _kernel_for(self.code, cut, ahead)
        call = (
            x.data_ptr(),
            x.stride(0) * item,
            part.packed.codes.data_ptr(),
            part.packed.records.data_ptr(),
            part.constants.data_ptr(),
            0 if residual is None else out.data_ptr(),
            out.data_ptr(),
            part.out_features * item,
            self.num_spans,
            self.num_chunks,
            part.out_features,
            num_rows,
            cut.passes,
            ahead.num_bytes,
            records_ahead(part.code, ahead),
            int(part.is_gated),
            low_bit_finish(self.dtype),
        )
        num_blocks = len(part.packed.codes) // HALVES
        num_threads = torch.get_num_threads()
        if num_threads == 1 or not self.is_worth_threads(num_rows):
            run(*call, 0, num_blocks)
        else:
            cuts = [num_blocks * i // num_threads for i in range(num_threads + 1)]
            run_chunks(run, [(*call, a, b) for a, b in itertools.pairwise(cuts) if a < b])
        return out


class Float8Linear(LowBitLinear):
    """y = x @ weight.T + bias with a float8 weight, see `LowBitLinear`; inputs are not quantized.

    Args:
        machine: the processor that the weight is packed for; default: the one at hand.
    """

    def __init__(self, part: LowBitPart, dtype: torch.dtype, machine: Processor | None = None) -> None:
        super().__init__(part, dtype)
        self.product = Float8Product(part, dtype, machine or processor())

    @classmethod
    def pack(
        cls,
        weights: Sequence[LowBitWeight],
        bias: Tensor | None,
        is_gated: bool,
        dtype: torch.dtype,
        *,
        machine: Processor | None = None,
    ) -> Float8Linear:
        """See `LowBitLinear.pack`; the format is one of those that `is_covered` names."""
        return cls(LowBitPart.of(weights, bias, is_gated, machine), dtype, machine)


def is_covered(fmt: WeightFormat) -> bool:
    """Whether there is code for float8 weights of a format: with scales of outputs, or of groups of 32 and more inputs."""
    return fmt.is_float8 and fmt.scales is not ScaleType.SUPER and not fmt.group % INPUT_GROUP


def low_bit_linear(
    weights: Sequence[LowBitWeight], bias: Tensor | None, is_gated: bool, dtype: torch.dtype
) -> LinearLayer:
    """A layer over weights of one format, see `LowBitLinear.pack`. Float8 weights in other groups are multiplied out."""
    fmt = weights[0].format
    if not fmt.is_float8:
        return LowBitLinear.pack(weights, bias, is_gated, dtype)
    if is_covered(fmt):
        return Float8Linear.pack(weights, bias, is_gated, dtype)
    weight = weights[0] if len(weights) == 1 else StackedWeight(weights)
    num_outputs, num_inputs = weight.shape
    floats, step = torch.empty((num_outputs, num_inputs), dtype=dtype), max(1, _BLOCK_CODES // num_inputs)
    for first in range(0, num_outputs, step):
        last = min(first + step, num_outputs)
        floats[first:last] = rounded(exact_weight(weight, first, last), dtype)
    return PackedLinear.pack(floats, bias, is_gated)
