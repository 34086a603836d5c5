"""Every code becomes its value in the kernels, and so does every scale."""

from __future__ import annotations

import pytest
import torch

from rtlang_kernels.contract.low_bit import GroupedRows, HeldWeight, ScaleType, WeightFormat
from rtlang_kernels.reference.low_bit import exact_weight
from rtlang_kernels.triton.linear.low_bit_linear import GpuLowBitLinear
from tests.support.kernels.gpu import DEVICE
from tests.support.models.low_bit_weights import E2M1_TWICE, IQ4_NL


def dequantized(weight: HeldWeight, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """All weights, as the kernel for rows writes them."""
    layer = GpuLowBitLinear([weight], None, False, dtype)
    return layer.rows(torch.arange(weight.shape[0], device=DEVICE)).cpu()


def every_code(fmt: WeightFormat) -> torch.Tensor:
    """Codes [2, 256] with each code at even and odd places."""
    codes = torch.arange(256).remainder(1 << fmt.bits).to(torch.uint8)
    return torch.stack([codes, codes.roll(1)])


@pytest.mark.parametrize(
    "fmt",
    [WeightFormat(bits, zero=3) for bits in (2, 3, 4, 5, 6, 8)]
    + [WeightFormat(4, table=E2M1_TWICE), WeightFormat(4, table=IQ4_NL)],
    ids=lambda fmt: f"{fmt.bits} bits{' of a table' if fmt.table else ''}",
)
def test_every_code_has_its_value(fmt: WeightFormat) -> None:
    weight = HeldWeight(fmt, GroupedRows(every_code(fmt), torch.full((2, 8), 0.37).half()))
    assert torch.equal(dequantized(weight).double(), exact_weight(weight))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_every_code_of_float8_has_its_value_and_nan_stays(dtype: torch.dtype) -> None:
    fmt = WeightFormat(8, scales=ScaleType.NONE, is_float8=True)
    weight = HeldWeight(fmt, GroupedRows(every_code(fmt)))
    assert torch.equal(dequantized(weight, dtype).double().nan_to_num(777), exact_weight(weight).nan_to_num(777))


def test_scales_of_one_byte_have_their_values() -> None:
    """Powers of two at both ends, where a factor of 12 stays in float32, and all codes of float8."""
    powers = 2.0 ** torch.cat([torch.arange(-127.0, -121.0), torch.arange(117.0, 124.0), torch.arange(-9.0, 8.0)])
    small = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).float()
    small = small[small.isfinite()]
    for values in (powers, small):
        scales = values[: len(values) // 2 * 2].view(2, -1).bfloat16()
        fmt = WeightFormat(4, 32, ScaleType.BFLOAT16, table=E2M1_TWICE)
        codes = torch.arange(scales.shape[1] * 32).remainder(16).to(torch.uint8).expand(2, -1).contiguous()
        weight = HeldWeight(fmt, GroupedRows(codes, scales))
        assert torch.equal(dequantized(weight).double(), exact_weight(weight))


def test_groups_of_any_number_of_inputs_find_their_scales() -> None:
    """Also groups that neither divide a step nor are its multiple."""
    for bits, group, num_groups in ((4, 96, 4), (8, 160, 2), (5, 64, 5), (4, 16, 9), (2, 384, 1)):
        fmt = WeightFormat(bits, group, has_zero_points=True)
        count = group * num_groups
        rows = GroupedRows(
            torch.arange(3 * count).remainder(1 << bits).to(torch.uint8).view(3, count),
            (torch.arange(3.0 * num_groups).view(3, -1) + 1).half(),
            zero_points=torch.arange(3 * num_groups).remainder(1 << bits).to(torch.uint8).view(3, -1),
        )
        weight = HeldWeight(fmt, rows)
        assert torch.equal(dequantized(weight).double(), exact_weight(weight)), (bits, group)


def test_equal_zero_points_change_no_weight() -> None:
    fmt = WeightFormat(4, 64, has_zero_points=True)
    scales = torch.tensor([[0.37], [-0.011]]).half().expand(2, 4).contiguous()
    weight = HeldWeight(fmt, GroupedRows(every_code(fmt), scales, zero_points=torch.full((2, 4), 7, dtype=torch.uint8)))
    assert torch.equal(dequantized(weight).double(), exact_weight(weight))
