"""The kernel that rounds inputs of linear layers to float8, each row with a scale of its own."""

from __future__ import annotations

import triton.language as tl

from rtlang_kernels.triton.primitives.float8 import LARGEST, to_float8
from rtlang_kernels.triton.primitives.jit import jit

LEAST = tl.constexpr(2.0**-100)  # largest input of a row whose scale has a finite inverse


@jit
def round_rows(
    x: tl.tensor,
    codes: tl.tensor,
    scales: tl.tensor,
    num_inputs: tl.tensor,
    x_stride: tl.tensor,
    BLOCK: tl.constexpr,
) -> None:
    """Write a row of x as codes [num_rows, num_inputs] and its scale to scales [num_rows]. Grid: (rows,).

    The largest input of a row becomes 448. A row with an input that is not finite becomes NaN: in its codes, or by its scale.
    """
    row = tl.program_id(0).to(tl.int64)
    source, target = x + row * x_stride, codes + row * num_inputs
    lanes = tl.arange(0, BLOCK)
    largest = tl.zeros((BLOCK,), tl.float32)
    for start in tl.range(0, num_inputs, BLOCK):
        values = tl.load(source + start + lanes, mask=start + lanes < num_inputs, other=0.0)
        largest = tl.maximum(largest, tl.abs(values.to(tl.float32)))
    scale = tl.maximum(tl.max(largest, 0), LEAST) / LARGEST
    inverse = 1.0 / scale
    for start in tl.range(0, num_inputs, BLOCK):
        is_input = start + lanes < num_inputs
        values = tl.load(source + start + lanes, mask=is_input, other=0.0).to(tl.float32)
        tl.store(target + start + lanes, to_float8(values * inverse), mask=is_input)
    tl.store(scales + row, scale)
