"""Random weights in each of the formats of `rtlang_kernels.contract.low_bit`, for tests."""

from __future__ import annotations

import torch
from torch import Tensor

from rtlang_kernels.contract.low_bit import SUPER_GROUP, GroupedRows, HeldWeight, ScaleType, WeightFormat

E2M1_TWICE = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)
IQ4_NL = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
_BFLOAT16, _FLOAT32, _NONE, _SUPER = ScaleType.BFLOAT16, ScaleType.FLOAT32, ScaleType.NONE, ScaleType.SUPER

FORMATS = {
    "q4_0": WeightFormat(4, zero=8),
    "q4_1": WeightFormat(4, has_offsets=True),
    "q5_0": WeightFormat(5, zero=16),
    "q5_1": WeightFormat(5, has_offsets=True),
    "q8_0": WeightFormat(8, zero=128),
    "q2_k": WeightFormat(2, 16, _SUPER, has_offsets=True),
    "q3_k": WeightFormat(3, 16, _SUPER, zero=4),
    "q4_k": WeightFormat(4, 32, _SUPER, has_offsets=True),
    "q5_k": WeightFormat(5, 32, _SUPER, has_offsets=True),
    "q6_k": WeightFormat(6, 16, _SUPER, zero=32),
    "iq4_nl": WeightFormat(4, table=IQ4_NL),
    "iq4_xs": WeightFormat(4, 32, _SUPER, table=IQ4_NL),
    "mxfp4": WeightFormat(4, 32, _BFLOAT16, table=E2M1_TWICE),
    "nvfp4": WeightFormat(4, 16, table=E2M1_TWICE),
    "int4 of 128": WeightFormat(4, 128, _BFLOAT16, zero=8),
    "int4 of 64 with zero points": WeightFormat(4, 64, has_zero_points=True),
    "int4 of 32, float32 scales": WeightFormat(4, 32, _FLOAT32, zero=8),
    "int8 of rows": WeightFormat(8, scales=_NONE, zero=128),
    "int8 of 128": WeightFormat(8, 128, _BFLOAT16, zero=128),
    "int8 of 32 with zero points": WeightFormat(8, 32, has_zero_points=True),
}
"""Formats of integers, by a name: those of files that people have, and the borders of the others."""
FLOAT8 = {
    "float8 of rows": WeightFormat(8, scales=_NONE, is_float8=True),
    "float8 of 128": WeightFormat(8, 128, _FLOAT32, is_float8=True),
}


def random_weight(fmt: WeightFormat, num_outputs: int, num_inputs: int, seed: int = 0) -> HeldWeight:
    """Random codes and scales, about as large as those of a real layer."""
    generator = torch.Generator().manual_seed(seed)

    def integers(low: int, high: int, *shape: int) -> Tensor:
        return torch.randint(low, high, shape, generator=generator)

    def floats(size: float, *shape: int) -> Tensor:
        return (0.5 + torch.rand(shape, generator=generator)) * size

    codes = integers(0, 1 << fmt.bits, num_outputs, num_inputs).to(torch.uint8)
    if fmt.is_float8:  # neither infinite nor NaN
        codes = torch.where(codes & 127 == 127, 0, codes)
    rows = GroupedRows(codes)
    groups, size = num_inputs // fmt.group, 0.05 / (1 << fmt.bits)
    if fmt.scales is _SUPER:
        supers = num_outputs, num_inputs // SUPER_GROUP
        low = 0 if fmt.has_offsets else -32
        rows.scales = integers(low, 32, num_outputs, groups).to(torch.int8)
        rows.super_scales = floats(size / 16, *supers).half()
        if fmt.has_offsets:
            rows.offsets = integers(0, 64, num_outputs, groups).to(torch.uint8)
            rows.super_offsets = floats(0.0005, *supers).half()
    elif fmt.scales is not _NONE:
        scales = floats(size, num_outputs, groups)
        if fmt.table == E2M1_TWICE and fmt.scales is _BFLOAT16:
            scales = scales.log2().round().exp2()
        rows.scales = scales.to(getattr(torch, fmt.scales.value))
        if fmt.has_offsets:
            rows.offsets = -floats(0.025, num_outputs, groups).half()
    if fmt.has_zero_points:
        rows.zero_points = integers(0, 1 << fmt.bits, num_outputs, groups).to(torch.uint8)
    if fmt.scales is _NONE or fmt.table == E2M1_TWICE:
        rows.row_scales = floats(size if fmt.scales is _NONE else 1.0, num_outputs)
    return HeldWeight(fmt, rows)
