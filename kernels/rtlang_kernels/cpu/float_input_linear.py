"""Linear layers over weights of few bits, whose inputs stay floats.

Some blocks of weights at a time are multiplied out into memory that stays in the second cache (`dequantizing`), and the kernel of layers of
floats reads them there. So a result has the bits of a layer of floats with the same weights, each rounded once to the type of the inputs;
as there, bits depend neither on other rows nor on threads, but on the processor.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from rtlang_kernels.contract.fused_step import BLOCK, LinearLayer
from rtlang_kernels.contract.low_bit import INPUT_GROUP, LowBitWeight
from rtlang_kernels.cpu.codegen.dequantizing import arithmetic_of, multiply_out
from rtlang_kernels.cpu.codegen.linear_vectors import STEP, WORD
from rtlang_kernels.cpu.codegen.llvm_bridge import invoke, source_digest
from rtlang_kernels.cpu.codegen.low_bit_vectors import LINE, LowBitCode
from rtlang_kernels.cpu.float8_linear import low_bit_linear
from rtlang_kernels.cpu.linear import (
    GATE,
    WORTH_THREADS,
    Code,
    Prefetch,
    code_for,
    finish_address,
    linear_address,
    steps_of,
    tiling,
)
from rtlang_kernels.cpu.low_bit_layout import HALVES
from rtlang_kernels.cpu.low_bit_linear import LowBitLinear, LowBitPart, result_of
from rtlang_kernels.cpu.threads import run_chunks
from rtlang_kernels.host.numba_jit import kernel
from rtlang_kernels.host.processor import Processor

_CACHE_BYTES = 256 << 10  # of weights that are multiplied out at a time, unless a block has more


@cache
def float_input_kernel(code: LowBitCode, is_bf16: int, arithmetic: int, has_row_scales: int) -> Callable[..., None]:
    """Compile the loop over the blocks of a layer.

    Args of the kernel, addresses unless they count something: inputs, bytes of a row of them; codes, records, table, the operand that
    stands for 0, row_scales (float32 [blocks, BLOCK]), constants (the same: biases); residual, target, bytes of a row of either; num_steps
    of the inputs; num_spans, num_chunks, num_outputs, num_tokens, passes; how far ahead the kernel of floats requests weights; is_gated;
    code of the end of a line and of that kernel; memory for `at_once` blocks; the range of blocks.
    """
    digest = source_digest()
    bits, group, scales, extra, has_table, has_start, is_signed, is_shifted, products = code
    chunk_bytes, record_bytes, item = code.chunk_bytes, code.record_bytes, 2 if is_bf16 else 4

    @kernel(is_exact=True)
    def float_input_linear(
        x: Any,
        x_stride: Any,
        codes: Any,
        records: Any,
        table: Any,
        zero: Any,
        row_scales: Any,
        constants: Any,
        residual: Any,
        target: Any,
        stride: Any,
        num_steps: Any,
        num_spans: Any,
        num_chunks: Any,
        num_outputs: Any,
        num_tokens: Any,
        passes: Any,
        ahead: Any,
        is_gated: Any,
        finish: Any,
        linear: Any,
        memory: Any,
        at_once: Any,
        first: Any,
        last: Any,
    ) -> None:
        if digest < 0:  # never true; ties the disk cache to the sources
            return
        width = GATE if is_gated else BLOCK
        for start in range(first, last, at_once):
            count = min(at_once, last - start)
            for half in range(count * HALVES):
                index = start * HALVES + half
                multiply_out(
                    codes + index * num_chunks * chunk_bytes,
                    records + index * num_spans * record_bytes,
                    table,
                    zero,
                    row_scales + index * LINE,
                    num_spans,
                    # In order: the padding of a block is overwritten by the next one.
                    memory + half // HALVES * num_steps * STEP + half % HALVES * LINE,
                    bits,
                    group,
                    scales,
                    extra,
                    has_table,
                    has_start,
                    is_signed,
                    is_shifted,
                    products,
                    is_bf16,
                    arithmetic,
                    has_row_scales,
                )
            skip = start * width
            invoke(
                linear,
                (
                    x,
                    x_stride,
                    memory,
                    constants + start * STEP,
                    residual + skip * item if residual != 0 else residual,
                    target + skip * item,
                    stride,
                    num_steps,
                    num_outputs - skip,
                    num_tokens,
                    passes,
                    ahead,
                    is_gated,
                    finish,
                    first - first,
                    count,
                ),
            )

    return float_input_linear


class FloatInputProduct:
    """Multiplies inputs by a weight of few bits that is multiplied out on the way; calls from several threads are safe.

    Attributes:
        code: the machine code of layers of floats, see `linear_tuning`.
    """

    def __init__(self, part: LowBitPart, dtype: torch.dtype, machine: Processor | None) -> None:
        self.code: Code = code_for(dtype, dtype, machine)
        self._part, self._dtype = part, dtype
        self._biases, self._row_scales = (part.constants[:, index].contiguous() for index in range(2))
        has_row_scales = bool((part.packed.row_scales != 1).any())
        arithmetic = arithmetic_of(part.code, has_row_scales=has_row_scales)
        self._kernel = float_input_kernel(part.code, int(dtype == torch.bfloat16), arithmetic, int(has_row_scales))
        self._num_steps = steps_of(part.layout.num_inputs, dtype)
        self._num_blocks = len(part.packed.codes) // HALVES
        self._at_once = max(1, _CACHE_BYTES // (self._num_steps * STEP))

    def is_worth_threads(self, num_rows: int) -> bool:
        """Whether several threads are faster than one."""
        return self._num_steps * self._num_blocks * -(-num_rows // self.code.max_rows) >= WORTH_THREADS

    def multiply(self, x: Tensor, residual: Tensor | None, prefetch: Prefetch) -> Tensor:
        """See `LowBitLinear.__call__`."""
        part, layout, num_rows = self._part, self._part.layout, len(x)
        num_inputs, item = layout.num_inputs, x.itemsize
        out = result_of(x, residual, num_inputs, part.out_features, self._dtype, is_gated=part.is_gated)
        if num_rows == 0:
            return out
        if part.input_order is not None:
            x = x.index_select(1, part.input_order)
        if x.stride(1) != 1 or x.stride(0) < num_inputs:
            x = x.contiguous()
        if num_inputs * item % WORD:
            x = functional.pad(x, (0, -num_inputs * item % WORD // item))
        cut, packed = tiling(num_rows, self.code.max_rows), part.packed
        ahead = prefetch.ahead(cut)
        num_threads = torch.get_num_threads() if self.is_worth_threads(num_rows) else 1
        cuts = [self._num_blocks * i // num_threads for i in range(num_threads + 1)]
        # A block ends with the padding of its last record.
        steps = self._at_once * self._num_steps + layout.num_chunks * INPUT_GROUP * item // WORD - self._num_steps
        memory = torch.empty((num_threads, steps * STEP), dtype=torch.uint8)
        call = (
            x.data_ptr(),
            x.stride(0) * item,
            packed.codes.data_ptr(),
            packed.records.data_ptr(),
            0 if layout.table is None else layout.table.data_ptr(),
            layout.zero,
            self._row_scales.data_ptr(),
            self._biases.data_ptr(),
            0 if residual is None else out.data_ptr(),
            out.data_ptr(),
            part.out_features * item,
            self._num_steps,
            layout.num_spans,
            layout.num_chunks,
            part.out_features,
            num_rows,
            cut.passes,
            ahead.num_bytes,
            int(part.is_gated),
            finish_address(self.code),
            linear_address(self.code, cut, ahead),
        )
        calls = [
            (*call, memory[thread].data_ptr(), self._at_once, first, last)
            for thread, (first, last) in enumerate(itertools.pairwise(cuts))
            if first < last
        ]
        run_chunks(self._kernel, calls)
        return out


class FloatInputLinear(LowBitLinear):
    """y = x @ weight.T + bias with a weight of integers of few bits, see `LowBitLinear`; inputs are not quantized.

    Args:
        machine: the processor that the weight is packed for; default: the one at hand.
    """

    product: FloatInputProduct

    def __init__(self, part: LowBitPart, dtype: torch.dtype, machine: Processor | None = None) -> None:
        super().__init__(part, dtype)
        self.product = FloatInputProduct(part, dtype, machine)

    @classmethod
    def pack(
        cls,
        weights: Sequence[LowBitWeight],
        bias: Tensor | None,
        is_gated: bool,
        dtype: torch.dtype,
        *,
        machine: Processor | None = None,
    ) -> FloatInputLinear:
        """See `LowBitLinear.pack`; the format is one of integers."""
        return cls(LowBitPart.of(weights, bias, is_gated, machine), dtype, machine)


def float_input_linear(
    weights: Sequence[LowBitWeight], bias: Tensor | None, is_gated: bool, dtype: torch.dtype
) -> LinearLayer:
    """A layer over weights of one format, see `LowBitLinear.pack`. Inputs of float8 weights are floats anyway."""
    pack = low_bit_linear if weights[0].format.is_float8 else FloatInputLinear.pack
    return pack(weights, bias, is_gated, dtype)
