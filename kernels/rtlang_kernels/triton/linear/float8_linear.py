"""Linear layers over float8 weights whose inputs are rounded to float8 too, computed by torch's product of float8 matrices.

A row of inputs gets the scale that makes its largest input 448. Weights are the codes of the file with a scale per output; scales of
tensors are such too. Products are summed in float32, multiplied by both scales and rounded to the dtype of the inputs.

Matrix instructions for float8 have twice the rate of those for bfloat16, which counts for prompts. The price is precision: float8 inputs
have 4 significant bits, an error of about .026 per layer. And the library below chooses kernels by the number of rows, so the bits of a
row depend on how many rows there are: unlike other layers of this package, these break the rule of `LinearLayer`.

Scales of groups of inputs (blocks of 128 x 128) have layers with float inputs: torch's product with such scales runs on some GPUs and
CUDA versions only, expects the scales in orders that depend on them, and does not exist on a CPU, where tests could compare it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from rtlang_kernels.contract.fused_step import LinearLayer, check_indices
from rtlang_kernels.contract.low_bit import LowBitWeight, StackedWeight, takes_float8_inputs
from rtlang_kernels.planning.tile_sizes import power_of_two
from rtlang_kernels.triton.linear import float8_kernel as kernels
from rtlang_kernels.triton.linear.low_bit_linear import GpuLowBitLinear
from rtlang_kernels.triton.primitives.jit import check_device, current_device

LARGEST_BLOCK, WARPS = 4096, 8  # inputs that a program reads at a time
_READ = 1 << 22  # codes that are read at a time


def float8_input_linear(
    gate: Callable[[Tensor], Tensor],
    weights: Sequence[LowBitWeight],
    bias: Tensor | None,
    is_gated: bool,
    dtype: torch.dtype,
) -> LinearLayer:
    """A layer with float8 inputs, or with float inputs if `takes_float8_inputs` says no.

    Args:
        gate: computes silu(first half) * second half of the outputs, see `ops.silu_and_mul`.
        weights, bias, is_gated, dtype: see `GpuLowBitLinear`.
    """
    weight = weights[0] if len(weights) == 1 else StackedWeight(weights)
    if takes_float8_inputs(weight):
        return GpuFloat8Linear(weight, bias, gate if is_gated else None, dtype)
    return GpuLowBitLinear([weight], bias, is_gated, dtype)


class GpuFloat8Linear:
    """A `LinearLayer` with float8 inputs, on the current GPU; in triton's interpreter, on the CPU.

    Args:
        gate: see `float8_input_linear`; None if results are not gated.
        weight, bias, dtype: see `GpuLowBitLinear`.
    """

    def __init__(
        self, weight: LowBitWeight, bias: Tensor | None, gate: Callable[[Tensor], Tensor] | None, dtype: torch.dtype
    ) -> None:
        self.device = current_device()
        check_device(self.device)
        num_outputs, self.in_features = weight.shape
        self.out_features = num_outputs if gate is None else num_outputs // 2
        self._codes = torch.empty(weight.shape, dtype=torch.uint8, device=self.device)
        self._scales = torch.ones(1, num_outputs, device=self.device)
        count = max(1, _READ // self.in_features)
        for first in range(0, num_outputs, count):
            last = min(first + count, num_outputs)
            rows = weight.rows(first, last)
            self._codes[first:last] = rows.codes
            if rows.row_scales is not None:
                self._scales[0, first:last] = rows.row_scales
        self._bias = None if bias is None else bias.to(self.device, dtype).contiguous()
        self._gate, self._dtype = gate, dtype
        if self.device.type == "cuda":
            self._round(torch.empty(1, self.in_features, dtype=dtype, device=self.device), compiles_only=True)

    @property
    def num_bytes(self) -> int:
        """Bytes of the weights on the device."""
        return self._codes.nbytes + self._scales.nbytes

    def __call__(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """See `LinearLayer`; but the bits of a row depend on the number of rows. A captured graph may hold the call.

        Raises:
            ValueError: x has another number of inputs.
        """
        if x.shape[1] != self.in_features:
            raise ValueError(f"x = {list(x.shape)}: expected {self.in_features} inputs")
        if len(x) == 0:
            return x.new_empty(0, self.out_features) if residual is None else residual
        codes, scales = self._round(x if x.stride(1) == 1 else x.contiguous())
        weight = self._codes.view(torch.float8_e4m3fn).t()
        y = torch._scaled_mm(codes, weight, scales, self._scales, self._bias, out_dtype=self._dtype)
        if self._gate is not None:
            y = self._gate(y)
        return y if residual is None else residual.add_(y)

    def _round(self, x: Tensor, *, compiles_only: bool = False) -> tuple[Tensor, Tensor]:
        """x as float8 codes [num_rows, in_features], and the scales of rows [num_rows, 1]."""
        codes = torch.empty(x.shape, dtype=torch.uint8, device=self.device)
        scales = torch.empty(len(x), 1, device=self.device)
        block = min(LARGEST_BLOCK, power_of_two(self.in_features))
        given = x, codes, scales, self.in_features, x.stride(0)
        options = {"BLOCK": block, "num_warps": WARPS, "enable_fp_fusion": False}
        if compiles_only:
            kernels.round_rows.warmup(*given, **options, grid=(1,))
        else:
            kernels.round_rows[(len(x),)](*given, **options)
        return codes.view(torch.float8_e4m3fn), scales

    def rows(self, indices: Tensor) -> Tensor:
        """See `LinearLayer`. On a GPU, where a check would wait for the device, rows of wrong indices are NaN."""
        if self.device.type == "cpu":
            check_indices(indices, self.out_features)
        last = len(self._codes) - 1
        known = indices.clamp(0, last)
        values = self._codes.index_select(0, known).view(torch.float8_e4m3fn).float() * self._scales[0, known, None]
        return torch.where((indices == known)[:, None], values, torch.nan).to(self._dtype)
