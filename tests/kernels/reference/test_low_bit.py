"""Values of codes, by hand and in loops, and the layer that multiplies them out."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from rtlang_kernels.contract.low_bit import GroupedRows, HeldWeight, ScaleType, WeightFormat
from rtlang_kernels.reference.low_bit import ReferenceLowBitLinear, exact_weight
from tests.support.models.low_bit_weights import FLOAT8, FORMATS, random_weight

ALL = FORMATS | FLOAT8


@pytest.mark.parametrize("fmt", ALL.values(), ids=ALL)
def test_a_weight_is_its_formula(fmt: WeightFormat) -> None:
    weight = random_weight(fmt, 2, 512)
    rows, found = weight.held, exact_weight(weight)
    for output, column in ((0, 0), (1, 17), (0, 255), (1, 256), (1, 511)):
        group, code = column // fmt.group, int(rows.codes[output, column])
        value = float(fmt.table[code] if fmt.table else code - fmt.zero)
        if fmt.is_float8:
            value = float(torch.tensor([code], dtype=torch.uint8).view(torch.float8_e4m3fn))
        if rows.zero_points is not None:
            value -= int(rows.zero_points[output, group])
        if rows.scales is not None:
            value *= float(rows.scales[output, group])
        offset = 0.0 if rows.offsets is None else float(rows.offsets[output, group])
        if rows.super_scales is not None:
            value *= float(rows.super_scales[output, column // 256])
        if rows.super_offsets is not None:
            offset *= -float(rows.super_offsets[output, column // 256])
        value += offset
        if rows.row_scales is not None:
            value *= float(rows.row_scales[output])
        assert float(found[output, column]) == value


def test_columns_go_back_to_their_inputs() -> None:
    fmt = WeightFormat(8, scales=ScaleType.NONE, zero=0)
    codes = torch.arange(32, dtype=torch.uint8)[None]
    order = torch.arange(31, -1, -1)
    assert exact_weight(HeldWeight(fmt, GroupedRows(codes), order))[0].tolist() == list(range(31, -1, -1))


@pytest.mark.parametrize("name", ["q4_0", "q6_k", "float8 of rows"])
def test_the_layer_multiplies_by_what_the_weights_are(name: str) -> None:
    parts = [random_weight(ALL[name], 32, 512, seed) for seed in range(2)]
    exact = torch.cat([exact_weight(part) for part in parts]).float()
    x, bias = torch.randn(5, 512), torch.randn(64)
    plain = ReferenceLowBitLinear(parts, bias, False, torch.float32)
    expected = functional.linear(x, exact, bias)
    assert torch.allclose(plain(x), expected, atol=1e-5)
    residual = torch.ones(5, 64)
    assert plain(x, residual) is residual
    assert torch.allclose(residual, expected + 1, atol=1e-5)
    gated = ReferenceLowBitLinear(parts, bias, True, torch.float32)
    assert gated.out_features == 32
    assert torch.allclose(gated(x), functional.silu(expected[:, :32]) * expected[:, 32:], atol=1e-5)
    for indices in ([40, 3], [3, 4, 5, 40, 41, 40], []):
        assert torch.equal(plain.rows(torch.tensor(indices, dtype=torch.int64)), exact[indices])
    with pytest.raises(IndexError, match=r"indices\[1\] = 64"):
        plain.rows(torch.tensor([0, 64]))
