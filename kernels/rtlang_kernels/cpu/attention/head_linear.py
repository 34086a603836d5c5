"""A linear layer per attention head, in one call: the projections that latent attention moves from keys and values to queries and results.

The weight of each head is packed like a `PackedLinear`, whose kernel runs once per head. So the bits of a token do not depend on other
tokens, on their number, or on threads.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from rtlang_kernels.contract.fused_step import BLOCK
from rtlang_kernels.cpu.codegen.linear_vectors import WORD
from rtlang_kernels.cpu.codegen.llvm_bridge import invoke, source_digest
from rtlang_kernels.cpu.linear import (
    UNMEASURED,
    WORTH_THREADS,
    code_for,
    finish_address,
    linear_address,
    pack_blocks,
    tiling,
)
from rtlang_kernels.cpu.threads import run_chunks
from rtlang_kernels.host.numba_jit import kernel


class HeadLinears:
    """y[t, h] = weight[h] @ x[t, h] with packed weights; calls from several threads are safe."""

    def __init__(self, weight: Tensor) -> None:
        """Copy `weight` [num_heads, out_features, in_features], float32 or bfloat16, into the layout of the kernels."""
        self.num_heads, self.out_features, self.in_features = weight.shape
        self.dtype = weight.dtype
        self._code = code_for(weight.dtype, weight.dtype)
        whole = functional.pad(weight, (0, 0, 0, -self.out_features % BLOCK))
        self._weights = pack_blocks(whole.flatten(0, 1))  # [heads * blocks, steps, BLOCK, elements of a word]
        self._num_blocks = len(self._weights) // self.num_heads
        self._constants = torch.zeros(self._num_blocks, BLOCK)  # no biases

    def __call__(self, x: Tensor, out: Tensor) -> None:
        """Multiply the heads of some tokens.

        Args:
            x: [num_tokens, num_heads, in_features], the last dimension contiguous.
            out: [num_tokens, num_heads, out_features], likewise; written.
        Raises:
            ValueError: a shape, dtype or layout differs from the above; names the argument.
        """
        num_tokens = len(x)
        for name, tensor, size in (("x", x, self.in_features), ("out", out, self.out_features)):
            shape = num_tokens, self.num_heads, size
            if tensor.shape != shape or tensor.dtype != self.dtype or tensor.stride(2) != 1:
                given = f"{tensor.dtype} {list(tensor.shape)} with strides {tensor.stride()}"
                raise ValueError(f"{name} = {given}: expected {self.dtype} {list(shape)} with contiguous heads")
        if not num_tokens:
            return
        item = x.element_size()
        if padding := -self.in_features * item % WORD // item:
            x = functional.pad(x, (0, padding))
        cut = tiling(num_tokens, self._code.max_rows)
        ahead = UNMEASURED.ahead(cut)
        num_blocks, num_steps = self._num_blocks, self._weights.shape[1]
        call = (
            linear_address(self._code, cut, ahead),
            x.data_ptr(),
            x.stride(0) * item,
            x.stride(1) * item,
            self._weights.data_ptr(),
            num_blocks * self._weights.stride(0) * item,
            self._constants.data_ptr(),
            out.data_ptr(),
            out.stride(0) * item,
            out.stride(1) * item,
            num_steps,
            num_blocks,
            self.out_features,
            num_tokens,
            cut.passes,
            ahead.num_bytes,
            finish_address(self._code),
        )
        num_threads = min(torch.get_num_threads(), self.num_heads)
        work = num_steps * num_blocks * self.num_heads * -(-num_tokens // self._code.max_rows)
        if num_threads == 1 or work < WORTH_THREADS:
            _heads_kernel()(*call, 0, self.num_heads)
        else:
            cuts = [self.num_heads * i // num_threads for i in range(num_threads + 1)]
            run_chunks(_heads_kernel(), [(*call, low, high) for low, high in pairwise(cuts)])


@cache
def _heads_kernel() -> Any:
    """Compile the loop over the heads [first, last). Arguments: addresses, and strides in bytes; see `linear_kernel`."""
    digest = source_digest()

    @kernel(is_exact=True)
    def run(
        linear: Any,
        x: Any,
        x_stride: Any,
        x_head: Any,
        weights: Any,
        weight_head: Any,
        constants: Any,
        target: Any,
        target_stride: Any,
        target_head: Any,
        num_steps: Any,
        num_blocks: Any,
        num_outputs: Any,
        num_tokens: Any,
        passes: Any,
        ahead: Any,
        finish: Any,
        first: Any,
        last: Any,
    ) -> None:
        if digest < 0:  # never true; ties the disk cache to the sources
            return
        for head in range(first, last):
            invoke(
                linear,
                (
                    x + head * x_head,
                    x_stride,
                    weights + head * weight_head,
                    constants,
                    0,
                    target + head * target_head,
                    target_stride,
                    num_steps,
                    num_outputs,
                    num_tokens,
                    passes,
                    ahead,
                    0,
                    finish,
                    0,
                    num_blocks,
                ),
            )

    return run
