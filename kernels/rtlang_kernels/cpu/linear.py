"""Linear layers for a few rows: the weights are read once, in the order in which they lie.

With one row, reading the weights is all that a linear layer does, and libraries made for many rows take twice as long for it.
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

TILE = 4  # rows that a block is multiplied with at once, where there are several; their sums stay in registers


def padded(num_rows: int) -> int:
    """Rows that the memory of so many has to have room for."""
    return num_rows if num_rows == 1 else -(-num_rows // TILE) * TILE


def pack_blocks(weight: Tensor) -> Tensor:
    """A weight [out, in], out a multiple of BLOCK and in even, in the order in which `multiply_block` reads it: [out * in]."""
    blocks = weight.view(weight.shape[0] // BLOCK, BLOCK, weight.shape[1] // 2, 2)
    order = (0, 2, 1, 3) if weight.dtype == torch.bfloat16 else (0, 2, 3, 1)
    return blocks.permute(order).contiguous().view(-1)


@cache
def linear_kernel(is_bf16: int, block: int) -> Callable[..., None]:
    """Stored lines target := source @ weight.T + bias, for one element type and `line_block` of the inputs.

    Args of the kernel: addresses of the source, of a weight from `pack_blocks`, of float32 biases, of the target and of room for the source
    in float32; then num_tokens, num_inputs, num_outputs. Target and room have space for `padded` rows.
    """
    digest = source_digest()
    item = 2 if is_bf16 else 4

    @kernel()
    def linear(
        source: Any, weight: Any, bias: Any, target: Any, wide: Any, num_tokens: Any, num_inputs: Any, num_outputs: Any
    ) -> None:
        if digest < 0:  # never; ties the disk cache to the sources
            return
        for i in range(num_tokens * num_inputs // block):
            widened(source + i * block * item, wide + i * block * 4, is_bf16, block)
        line, row = num_inputs * 4, num_outputs * item
        for i in range(0, num_outputs, BLOCK):
            here, shift = weight + i * num_inputs * item, bias + i * 4
            if num_tokens == 1:
                multiply_block(wide, line, here, num_inputs // 2, shift, target + i * item, row, is_bf16, 1)
            else:  # the last tile may reach beyond the tokens, into room that is there
                for token in range(0, num_tokens, TILE):
                    x, out = wide + token * line, target + token * row + i * item
                    multiply_block(x, line, here, num_inputs // 2, shift, out, row, is_bf16, TILE)

    return linear


class FewRows:
    """A linear layer without bias for few rows, of any number of outputs. One call at a time."""

    def __init__(self, weight: Tensor, max_rows: int) -> None:
        """Args: weight: float32 or bfloat16 [out, in], in even; a packed copy of it is kept, in its dtype."""
        self._max_rows, self._dtype = max_rows, weight.dtype
        self._num_outputs, self._num_inputs = weight.shape
        blocks = functional.pad(weight, (0, 0, 0, -self._num_outputs % BLOCK))
        self._weight, self._bias = pack_blocks(blocks), torch.zeros(len(blocks), dtype=torch.float32)
        self._wide = torch.empty((padded(max_rows), self._num_inputs), dtype=torch.float32)
        self._run = linear_kernel(int(weight.dtype == torch.bfloat16), line_block(self._num_inputs))

    def __call__(self, x: Tensor) -> Tensor:
        """x [num_rows, in] of the weight's dtype, contiguous, 1 to `max_rows` rows -> [num_rows, out], contiguous.

        Raises:
            ValueError: x is not such.
        """
        num_rows, num_outputs = len(x), len(self._bias)
        is_good = x.shape[1:] == (self._num_inputs,) and x.dtype == self._dtype and x.is_contiguous()
        if not (is_good and 1 <= num_rows <= self._max_rows):
            raise ValueError(
                f"x is {x.dtype} {list(x.shape)}; contiguous {self._dtype} [1 to {self._max_rows}, {self._num_inputs}] is allowed"
            )
        out = torch.empty((padded(num_rows), num_outputs), dtype=x.dtype)
        addresses = x.data_ptr(), self._weight.data_ptr(), self._bias.data_ptr(), out.data_ptr(), self._wide.data_ptr()
        self._run(*addresses, num_rows, self._num_inputs, num_outputs)
        return out[:num_rows, : self._num_outputs].contiguous()
