"""Codes of float4 stand for their values."""

from __future__ import annotations

import pytest
import torch

from rtlang.model.loading.quantized.float4 import float4_codes
from rtlang.model.loading.quantized.scale_layout import ScaleLayout
from rtlang_kernels.reference.low_bit import exact_weight
from tests.support.models import quantized_layouts


@pytest.mark.parametrize("group", [16, 32])
def test_all_codes_and_all_scales_are_exact(group: int) -> None:
    codes = torch.arange(16, dtype=torch.uint8).repeat(256, group // 16)
    raw = torch.arange(256, dtype=torch.uint8)[:, None]
    scales = raw.view(torch.float8_e4m3fn) if group == 16 else raw
    words = torch.cat([quantized_layouts.nibbles(codes)] * (32 // group), 1)
    layout = ScaleLayout.of((256, 32), (256, 1), (), ())
    found = float4_codes((256, 32), words, scales, layout).low_bit()
    assert found is not None
    factors = scales.double() if group == 16 else torch.ldexp(torch.ones((), dtype=torch.float64), raw.double() - 127)
    expected = torch.tensor(quantized_layouts.FLOAT4, dtype=torch.float64).repeat(256, 2) * factors
    assert torch.equal(torch.nan_to_num(exact_weight(found), 9.0), torch.nan_to_num(expected, 9.0))
