"""Linear layers over weights of few bits, and over floats in a fixed order: every format for one row of a sequence, as decoding multiplies
it, and the tiles for more rows.

Weights are equal numbers in all their parts, in the layout in which readers hand them out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import torch

from rtlang_kernels.contract.low_bit import SUPER_GROUP, GroupedRows, HeldWeight, ScaleType, WeightFormat
from rtlang_kernels.triton.aot.recording import Case
from rtlang_kernels.triton.linear.float8_linear import GpuFloat8Linear
from rtlang_kernels.triton.linear.low_bit_linear import MAX_SPLIT_ROWS, GpuLowBitLinear
from rtlang_kernels.triton.linear.stored_codes import E2M1_TWICE, FloatWeight

NUM_OUTPUTS, NUM_INPUTS = 512, 4096
ROWS = (1, 64, MAX_SPLIT_ROWS + 1)
"""Rows for each tile."""
FLOATS = "floats"
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
_TABLE = tuple(range(-120, 120, 15))
_SUPER, _NONE = ScaleType.SUPER, ScaleType.NONE


class Example(NamedTuple):
    """A format of files. `scale` is one that its files may have, and `integer` one of the integers of its groups."""

    format: WeightFormat
    scale: float = 1.1
    integer: int = 40
    has_row_scales: bool = False
    code: int = 1


EXAMPLES = {
    "q4_0": Example(WeightFormat(4, zero=8)),
    "q4_1": Example(WeightFormat(4, has_offsets=True)),
    "q5_0": Example(WeightFormat(5, zero=16)),
    "q8_0": Example(WeightFormat(8, zero=128)),
    "q2_k": Example(WeightFormat(2, 16, _SUPER, has_offsets=True), integer=3),
    "q3_k": Example(WeightFormat(3, 16, _SUPER, zero=4)),
    "q4_k": Example(WeightFormat(4, 32, _SUPER, has_offsets=True)),
    "q5_k": Example(WeightFormat(5, 32, _SUPER, has_offsets=True)),
    "q6_k": Example(WeightFormat(6, 16, _SUPER, zero=32)),
    "iq4_xs": Example(WeightFormat(4, 32, _SUPER, table=_TABLE)),
    "mxfp4": Example(WeightFormat(4, 32, ScaleType.BFLOAT16, table=E2M1_TWICE), scale=0.5, has_row_scales=True),
    "nvfp4": Example(WeightFormat(4, 16, table=E2M1_TWICE), scale=1.5, has_row_scales=True),
    "int4": Example(WeightFormat(4, 128, ScaleType.BFLOAT16, has_zero_points=True), integer=8),
    "float8": Example(WeightFormat(8, scales=_NONE, is_float8=True), has_row_scales=True),
    "float8-128": Example(WeightFormat(8, 128, ScaleType.FLOAT32, is_float8=True), code=0x7F),  # NaN
}


def linear_cases() -> Iterator[Case]:
    """All kernels of linear layers."""
    for name in EXAMPLES:
        yield _case("bf16", name, 1)
    for name in ("q4_0", "q4_k", "q6_k", "iq4_xs", "mxfp4", "float8"):
        yield _case("bf16", name, *ROWS[1:])
    for kind in DTYPES:
        yield _case(kind, FLOATS, *ROWS)
    yield _case("bf16", FLOATS, *ROWS, is_gated=True)
    yield _case("fp16", "q4_k", ROWS[-1])
    yield _case("fp32", "q4_k", 1, ROWS[-1])
    yield _case("bf16", "q4_k", *ROWS, is_gated=True)
    yield _case("bf16", "q5_k", 1, ROWS[-1], has_residual=True)
    yield Case("bf16 float8 inputs", _multiply_float8)
    for name in ("q6_k", "nvfp4"):
        yield Case(f"bf16 {name}", partial(_look_up, name))


def _case(kind: str, name: str, *num_rows: int, is_gated: bool = False, has_residual: bool = False) -> Case:
    """Products of a layer with some numbers of rows; one with gates has a bias."""
    label = f"{kind} {name}{' gated bias' * is_gated}{' residual' * has_residual}"
    return Case(label, partial(_multiply, DTYPES[kind], name, num_rows, is_gated, has_residual))


def _multiply(dtype: torch.dtype, name: str, num_rows: Sequence[int], is_gated: bool, has_residual: bool) -> None:
    bias = torch.zeros(NUM_OUTPUTS) if is_gated else None
    weights: list[HeldWeight] | list[FloatWeight]
    if name == FLOATS:
        weights = [FloatWeight(torch.empty(NUM_OUTPUTS, NUM_INPUTS, dtype=dtype, device="meta"))]
    else:
        weights = [example_weight(EXAMPLES[name])]
    layer = GpuLowBitLinear(weights, bias, is_gated, dtype)
    for count in num_rows:
        x = torch.empty(count, NUM_INPUTS, dtype=dtype, device="meta")
        layer(x, x.new_empty(count, layer.out_features) if has_residual else None)


def _multiply_float8() -> None:
    layer = GpuFloat8Linear(example_weight(EXAMPLES["float8"]), None, None, torch.bfloat16)
    layer(torch.empty(1, NUM_INPUTS, dtype=torch.bfloat16, device="meta"))


def _look_up(name: str) -> None:
    layer = GpuLowBitLinear([example_weight(EXAMPLES[name])], None, False, torch.bfloat16)
    layer.rows(torch.empty(1, dtype=torch.int64, device="meta"))


def example_weight(example: Example, num_outputs: int = NUM_OUTPUTS, num_inputs: int = NUM_INPUTS) -> HeldWeight:
    """A weight [num_outputs, num_inputs] whose parts are equal numbers, as an example has them."""
    fmt, groups = example.format, (num_outputs, num_inputs // example.format.group)
    supers = (num_outputs, num_inputs // SUPER_GROUP)
    rows = GroupedRows(torch.full((num_outputs, num_inputs), example.code, dtype=torch.uint8))
    if fmt.scales is _SUPER:
        rows.scales = torch.full(groups, example.integer, dtype=torch.int8)
        rows.super_scales = torch.full(supers, example.scale, dtype=torch.float16)
        if fmt.has_offsets:
            rows.offsets = torch.full(groups, example.integer, dtype=torch.uint8)
            rows.super_offsets = torch.full(supers, example.scale, dtype=torch.float16)
    elif fmt.scales is not _NONE:
        rows.scales = torch.full(groups, example.scale, dtype=getattr(torch, fmt.scales.value))
        if fmt.has_offsets:
            rows.offsets = torch.full(groups, example.scale, dtype=torch.float16)
    if fmt.has_zero_points:
        rows.zero_points = torch.full(groups, example.integer, dtype=torch.uint8)
        rows.zero_points[0, 0] -= 1  # equal ones are not stored
    if example.has_row_scales:
        rows.row_scales = torch.ones(num_outputs)
    return HeldWeight(fmt, rows)
