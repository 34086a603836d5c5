"""Linear layers over weights of few bits on a GPU: the codes stay as the file has them, and become weights in registers (definition B).

A weight is rounded to the type of the inputs; products are summed in float32. Results are rounded once, after the bias, the gate and the
residual.

The bits of a row depend on this row only. One order of sums serves every number of rows: the inputs are cut into parts, by the sizes of
the weight alone; each part is one chain of matrix instructions, and parts are added in order. Few rows are too little work for a GPU, so
each part is a program of its own, and a second kernel adds them; with many rows one program goes through all parts. A tile for more rows
is a matrix instruction with more columns: its family and the number of inputs that it sums (16 for 2 bytes) are the same, and columns do
not mix. Ahead-of-time compilation checks the instructions, and the checks on the device compare the bits.

Weights of floats go the same way where a row must not change its bits with the batch (`fixed_linear`): a library of matrix products
chooses its order of sums by the number of rows. Float8 goes the same way, with scales by output or by group; scales
of blocks of 128 x 128 and of tensors are special cases. `float8_linear` also rounds the inputs, for long prompts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from rtlang_kernels.contract.fused_step import check_indices
from rtlang_kernels.contract.low_bit import LowBitWeight, StackedWeight
from rtlang_kernels.planning.tile_sizes import GFX942, SM_90, float32_precision, gpu_properties
from rtlang_kernels.triton.linear import low_bit_kernel as kernels
from rtlang_kernels.triton.linear.low_bit_kernel import Form
from rtlang_kernels.triton.linear.stored_codes import FloatWeight, StoredCodes, store
from rtlang_kernels.triton.primitives.early_start import early_start
from rtlang_kernels.triton.primitives.jit import check_device, current_device, is_interpreting

PART_BLOCK, PART_STEPS = 64, 4  # outputs of a program of a part; least steps of a part
SMALL_ROWS, MIDDLE_ROWS = 16, 64  # of the smallest tile, for decoding, and of the next one
PROGRAMS = 512  # that fill a GPU, about: four for each multiprocessor
MAX_SPLIT_ROWS = 512  # bounds the memory for the sums of parts, 4 bytes x rows x PART_BLOCK x PROGRAMS: 67 MB
FINISH_BLOCK, ROWS_BLOCK = 512, 16
Launch = Callable[..., None]


@dataclass(frozen=True, slots=True)
class ProductTile:
    """Shape of a program: outputs, rows, warps, and depth of the load pipeline."""

    block_n: int
    block_m: int
    num_warps: int
    num_stages: int


def product_tile(arch: str, num_rows: int, item_bytes: int, step: int) -> ProductTile:
    """The tile for some rows whose elements have some bytes, by the inputs of a step. Must not change the order of sums."""
    is_large = arch == SM_90
    num_stages = (4 if is_large else 3) - (step > 128)
    if num_rows <= SMALL_ROWS:
        return ProductTile(PART_BLOCK, SMALL_ROWS, 4, num_stages)
    num_stages = max(2, num_stages - 1)
    if num_rows <= MIDDLE_ROWS or item_bytes == 4:
        block_m = 32 if item_bytes == 4 else MIDDLE_ROWS
        return ProductTile(128, block_m, 8, num_stages) if is_large else ProductTile(64, block_m, 4, num_stages)
    return ProductTile(128, 128 if is_large else 64, 8, num_stages)


def product_parts(num_outputs: int, num_inputs: int, step: int) -> int:
    """Number of parts of the inputs of a weight; none is empty."""
    num_steps = -(-num_inputs // step)
    wanted = min(PROGRAMS // -(-num_outputs // PART_BLOCK), num_steps // PART_STEPS)
    part_steps = -(-num_steps // max(1, wanted))
    return -(-num_steps // part_steps)


def launch_options(arch: str) -> dict[str, Any]:
    """Options of all launches. Separate roundings make an expression the same in two kernels; AMD has several matrix instructions."""
    return {"enable_fp_fusion": False} | ({"matrix_instr_nonkdim": 16} if arch == GFX942 else {})


class GpuLowBitLinear:
    """A `LinearLayer` on the current GPU; in triton's interpreter, on the CPU.

    Args:
        weights: their outputs follow one another; floats are one `FloatWeight`.  is_gated: return silu(first half) * second half.
        dtype: of the rows that `rows` returns, and of inputs.
    """

    def __init__(
        self,
        weights: Sequence[LowBitWeight] | Sequence[FloatWeight],
        bias: Tensor | None,
        is_gated: bool,
        dtype: torch.dtype,
    ) -> None:
        self.device = current_device()
        check_device(self.device)
        weight = weights[0] if len(weights) == 1 else StackedWeight(cast(Sequence[LowBitWeight], weights))
        self.codes: StoredCodes = store(weight, self.device)
        num_outputs, self.in_features = weight.shape
        self.out_features = num_outputs // 2 if is_gated else num_outputs
        self._bias = None if bias is None else bias.to(self.device, dtype).contiguous()
        self._is_gated, self._dtype = is_gated, dtype
        self._order = None if weight.input_order is None else weight.input_order.to(self.device, torch.int32)
        self._arch = gpu_properties(self.device).arch
        self._parts = product_parts(num_outputs, self.in_features, self.codes.format.step)
        held = self.codes.held
        self._held = [held.low if each is None else each for each in held]
        if self.device.type == "cuda":
            self.compile_kernels()

    @property
    def num_bytes(self) -> int:
        """Bytes of the weights on the device."""
        return self.codes.num_bytes

    def __call__(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """See `LinearLayer`. A captured graph may hold the call; it does not wait for the device.

        Raises:
            ValueError: x has another number of inputs, or rows of the residual are not contiguous.
        """
        if x.shape[1] != self.in_features:
            raise ValueError(f"x = {list(x.shape)}: expected {self.in_features} inputs")
        if residual is not None and residual.stride(1) != 1:
            raise ValueError(f"residual strides = {residual.stride()}: expected contiguous rows")
        out = x.new_empty(len(x), self.out_features) if residual is None else residual
        if len(x) == 0:
            return out
        if self._order is not None:
            x = x.index_select(1, self._order)
        elif x.stride(1) != 1:
            x = x.contiguous()
        self._multiply(x, out, len(x), residual is not None, _run)
        return out

    def compile_kernels(self) -> None:
        """Compile what calls with any number of rows launch, so that none waits for it."""
        x = torch.empty(1, self.in_features, dtype=self._dtype, device=self.device)
        out = torch.empty(1, self.out_features, dtype=self._dtype, device=self.device)
        for num_rows in (1, SMALL_ROWS + 1, MIDDLE_ROWS + 1, MAX_SPLIT_ROWS + 1):
            for has_residual in (False, True):
                self._multiply(x, out, num_rows, has_residual, _compile)
        self._look_up(torch.zeros(1, dtype=torch.int64, device=self.device), x, _compile)

    def _multiply(self, x: Tensor, out: Tensor, num_rows: int, has_residual: bool, launch: Launch) -> None:
        num_outputs, num_inputs = self.codes.shape
        tile = product_tile(self._arch, num_rows, x.element_size(), self.codes.format.step)
        options, early = launch_options(self._arch), early_start(self.device)
        form = Form(self._is_gated, self._bias is not None, has_residual)
        block = tile.block_n // 2 if self._is_gated else tile.block_n
        row_blocks, blocks = -(-num_rows // tile.block_m), -(-self.out_features // block)
        enough = PROGRAMS // 2 if num_rows <= SMALL_ROWS else PROGRAMS // 8  # larger tiles fill a GPU sooner
        is_split = self._parts > 1 and num_rows <= MAX_SPLIT_ROWS and row_blocks * blocks < enough
        bias, partial = out if self._bias is None else self._bias, out
        if is_split:
            partial = torch.empty(self._parts, num_rows, num_outputs, dtype=torch.float32, device=x.device)
        launch(
            kernels.low_bit_product,
            (row_blocks, blocks, self._parts if is_split else 1),
            x,
            *self._held,
            bias,
            out,
            partial,
            num_rows,
            num_outputs,
            num_inputs,
            self._parts,
            x.stride(0),
            out.stride(0),
            FORMAT=self.codes.format,
            FORM=Form(self._is_gated) if is_split else form,
            IS_SPLIT=is_split,
            IS_EVEN=num_inputs % self.codes.format.step == 0,
            BLOCK_N=tile.block_n,
            BLOCK_M=tile.block_m,
            NUM_STAGES=tile.num_stages,
            PRECISION=float32_precision(self._arch),
            UPCAST=is_interpreting(),
            num_warps=tile.num_warps,
            **options,
            **early,
        )
        if is_split:
            launch(
                kernels.finish_product,
                (num_rows, -(-self.out_features // FINISH_BLOCK)),
                partial,
                bias,
                out,
                num_rows,
                num_outputs,
                self._parts,
                out.stride(0),
                FORM=form,
                BLOCK=FINISH_BLOCK,
                num_warps=4,
                **options,
                **early,
            )

    def rows(self, indices: Tensor) -> Tensor:
        """See `LinearLayer`. On a GPU, where a check would wait for the device, rows of wrong indices are NaN."""
        if self.device.type == "cpu":
            check_indices(indices, self.out_features)
        out = torch.empty(len(indices), self.in_features, dtype=self._dtype, device=self.device)
        if len(indices):
            self._look_up(indices.contiguous(), out, _run)
        return out if self._order is None else torch.empty_like(out).index_copy_(1, self._order.long(), out)

    def _look_up(self, indices: Tensor, out: Tensor, launch: Launch) -> None:
        fmt, (num_outputs, num_inputs) = self.codes.format, self.codes.shape
        launch(
            kernels.low_bit_rows,
            (-(-len(indices) // ROWS_BLOCK), -(-num_inputs // fmt.step)),
            indices,
            *self._held,
            out,
            len(indices),
            num_outputs,
            num_inputs,
            FORMAT=fmt,
            BLOCK=ROWS_BLOCK,
            num_warps=4,
            **launch_options(self._arch),
        )


def fixed_linear(weights: Sequence[Tensor], bias: Tensor | None, is_gated: bool) -> GpuLowBitLinear:
    """A layer of floats [outputs, inputs] whose outputs follow one another; see `Backend.fixed_linear`."""
    weight = weights[0] if len(weights) == 1 else torch.cat(list(weights))
    return GpuLowBitLinear([FloatWeight(weight)], bias, is_gated, weight.dtype)


def _run(kernel: Any, grid: tuple[int, ...], *args: Any, **options: Any) -> None:
    kernel[grid](*args, **options)


def _compile(kernel: Any, grid: tuple[int, ...], *args: Any, **options: Any) -> None:
    kernel.warmup(*args, grid=grid, **options)
