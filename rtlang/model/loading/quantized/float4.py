"""Codes of float4 (e2m1) with scales of e4m3 or exponents: what NVFP4 and MXFP4 share."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rtlang.model.loading.quantized.matrix import Codes
from rtlang.model.loading.quantized.packed_bits import E2M1_TWICE, power_of_two, unpacked
from rtlang.model.loading.quantized.scale_layout import ScaleLayout
from rtlang_kernels.contract.low_bit import ScaleType


def float4_codes(shape: tuple[int, int], words: Tensor, scales: Tensor, layout: ScaleLayout, **fields: Any) -> Codes:
    """Codes of float4.

    Args:
        words: uint8 [out, in / 2], the even input in the low bits.
        scales: e4m3, or uint8 exponents (e8m0).
    """
    is_e4m3 = scales.dtype is torch.float8_e4m3fn
    exponents = None if is_e4m3 else scales.view(torch.uint8)

    def halved(first: int, last: int) -> Tensor:  # of values that are doubled to be integers
        if exponents is not None:
            return power_of_two(layout.expanded(exponents, first, last), -1)
        return layout.expanded(scales.view(torch.uint8), first, last).view(torch.float8_e4m3fn).half() * 0.5

    return Codes(
        shape,
        4,
        lambda first, last: unpacked(words[first:last], 4, shape[1]),
        scale_type=ScaleType.FLOAT16 if is_e4m3 else ScaleType.BFLOAT16,
        scales=halved,
        group=layout.group,
        table=E2M1_TWICE,
        **fields,
    )
