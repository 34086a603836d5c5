"""Linear layers for a few rows: the weights are read once, in memory order.

With one row, reading the weights dominates the cost of a linear layer, and libraries that are designed for many rows take twice as long.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from rtlang_kernels.contract.fused_step import BLOCK
from rtlang_kernels.cpu.codegen.linear_vectors import multiply_block, widened
from rtlang_kernels.cpu.codegen.llvm_bridge import source_digest
from rtlang_kernels.cpu.layer_ops import line_block
from rtlang_kernels.host.numba_jit import kernel

TILE = 4  # rows per block multiplication if there are several; their sums stay in registers


def padded(num_rows: int) -> int:
    """Number of rows for which a buffer for `num_rows` rows must have room."""
    return num_rows if num_rows == 1 else -(-num_rows // TILE) * TILE


def pack_blocks(weight: Tensor) -> Tensor:
    """Reorder a weight [out, in], out a multiple of BLOCK and in even, into the read order of `multiply_block`: [out * in]."""
    blocks = weight.view(weight.shape[0] // BLOCK, BLOCK, weight.shape[1] // 2, 2)
    order = (0, 2, 1, 3) if weight.dtype == torch.bfloat16 else (0, 2, 3, 1)
    return blocks.permute(order).contiguous().view(-1)


@cache
def linear_kernel(is_bf16: int, block: int) -> Callable[..., None]:
    """Compile target := source @ weight.T + bias for one element type and `line_block` of the inputs.

    Args of the kernel: addresses of the source, of a weight from `pack_blocks`, of float32 biases, of the target and of a float32
    buffer for the source; then num_tokens, num_inputs, num_outputs. Target and buffer have space for `padded` rows.
    """
    digest = source_digest()
    item = 2 if is_bf16 else 4

    @kernel()
    def linear(
        source: Any, weight: Any, bias: Any, target: Any, wide: Any, num_tokens: Any, num_inputs: Any, num_outputs: Any
    ) -> None:
        if digest < 0:  # never true; ties the disk cache to the sources
            return
        for i in range(num_tokens * num_inputs // block):
            widened(source + i * block * item, wide + i * block * 4, is_bf16, block)
        line, row = num_inputs * 4, num_outputs * item
        for i in range(0, num_outputs, BLOCK):
            here, shift = weight + i * num_inputs * item, bias + i * 4
            if num_tokens == 1:
                multiply_block(wide, line, here, num_inputs // 2, shift, target + i * item, row, is_bf16, 1)
            else:  # the last tile may extend into the padding rows
                for token in range(0, num_tokens, TILE):
                    x, out = wide + token * line, target + token * row + i * item
                    multiply_block(x, line, here, num_inputs // 2, shift, out, row, is_bf16, TILE)

    return linear


class SkinnyLinear:
    """A linear layer without bias, for few rows and any number of outputs. One call at a time."""

    def __init__(self, weight: Tensor, max_rows: int) -> None:
        """Pack `weight`, float32 or bfloat16 [out, in] with in even. The object owns the packed copy."""
        self._max_rows, self._dtype = max_rows, weight.dtype
        self._num_outputs, self._num_inputs = weight.shape
        blocks = functional.pad(weight, (0, 0, 0, -self._num_outputs % BLOCK))
        self._weight, self._bias = pack_blocks(blocks), torch.zeros(len(blocks), dtype=torch.float32)
        self._wide = torch.empty((padded(max_rows), self._num_inputs), dtype=torch.float32)
        self._run = linear_kernel(int(weight.dtype == torch.bfloat16), line_block(self._num_inputs))

    def __call__(self, x: Tensor) -> Tensor:
        """Multiply x [num_rows, in], contiguous, dtype of the weight, 1 to `max_rows` rows. Returns [num_rows, out], contiguous.

        Raises:
            ValueError: x has another shape, dtype or layout.
        """
        num_rows, num_outputs = len(x), len(self._bias)
        is_good = x.shape[1:] == (self._num_inputs,) and x.dtype == self._dtype and x.is_contiguous()
        if not (is_good and 1 <= num_rows <= self._max_rows):
            raise ValueError(
                f"x = {x.dtype} {list(x.shape)}: expected contiguous {self._dtype} [1 to {self._max_rows}, {self._num_inputs}]"
            )
        out = torch.empty((padded(num_rows), num_outputs), dtype=x.dtype)
        addresses = x.data_ptr(), self._weight.data_ptr(), self._bias.data_ptr(), out.data_ptr(), self._wide.data_ptr()
        self._run(*addresses, num_rows, self._num_inputs, num_outputs)
        return out[:num_rows, : self._num_outputs].contiguous()
