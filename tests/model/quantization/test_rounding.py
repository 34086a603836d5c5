"""Codes with searched scales: never worse than the usual scale, the best of all scales in small cases, extreme values."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from rtlang.model.quantization.rounding import Rounding, rounded
from rtlang_kernels.contract.low_bit import ScaleType
from rtlang_kernels.reference.low_bit import exact_weight

ROUNDINGS = [Rounding(bits, group, zeros) for bits, group, zeros in itertools.product((4, 8), (32, 128), (False, True))]


def error(found: Tensor, weight: Tensor, importance: Tensor | None = None) -> float:
    squares = (found - weight.double()).square()
    return float((squares if importance is None else squares * importance.double()).sum())


def usual(weight: Tensor, rounding: Rounding) -> Tensor:
    """Round to nearest with the scale of the extreme values."""
    groups = weight.double().view(len(weight), -1, rounding.group)
    low, high = groups.amin(-1, keepdim=True).clamp(max=0), groups.amax(-1, keepdim=True).clamp(min=0)
    if rounding.has_zero_points:
        scale = ((high - low) / rounding.most).bfloat16().double().clamp(min=1e-30)
        zero = (-low / scale).round().clamp(0, rounding.most)
    else:
        zero = torch.tensor(float(1 << (rounding.bits - 1)), dtype=torch.float64)
        scale = (groups.abs().amax(-1, keepdim=True) / (zero - 1)).bfloat16().double().clamp(min=1e-30)
    codes = ((groups / scale).round() + zero).clamp(0, rounding.most)
    return ((codes - zero) * scale).view(weight.shape)


@pytest.mark.parametrize("rounding", ROUNDINGS, ids=str)
def test_the_error_is_less_than_with_the_usual_scale(rounding: Rounding) -> None:
    weight = torch.randn(24, 256, generator=torch.Generator().manual_seed(1)) * 0.02
    weight[:, ::37] *= 6  # outliers
    ours = exact_weight(rounded(weight, rounding))
    assert error(ours, weight) < (0.9 if rounding.bits == 4 and not rounding.has_zero_points else 1.0) * error(
        usual(weight, rounding), weight
    )


def test_no_scale_is_much_better() -> None:
    """All bfloat16 scales of a wide range are tried for each group."""
    rounding = Rounding(4, 32)
    weight = torch.randn(8, 32, generator=torch.Generator().manual_seed(2))
    found = exact_weight(rounded(weight, rounding))
    scales = torch.linspace(0.02, 1.0, 4000).bfloat16().unique().double()
    for row, ours in zip(weight.double(), found, strict=True):
        codes = (row / scales[:, None]).round().clamp(-8, 7)
        best = float((codes * scales[:, None] - row).square().sum(1).min())
        assert error(ours, row) <= 1.03 * best


def test_importance_moves_the_error_to_inputs_that_count_less() -> None:
    rounding = Rounding(4, 64)
    generator = torch.Generator().manual_seed(3)
    weight, importance = torch.randn(16, 256, generator=generator), torch.rand(256, generator=generator).pow(4)
    plain, weighted = (exact_weight(rounded(weight, rounding, each)) for each in (None, importance))
    assert error(weighted, weight, importance) < error(plain, weight, importance)
    assert error(plain, weight) < error(weighted, weight)


@pytest.mark.parametrize("rounding", ROUNDINGS, ids=str)
def test_groups_of_zeros_constants_and_tiny_values_stay_what_they_are(rounding: Rounding) -> None:
    weight = torch.zeros(4, 128)
    weight[1] = 0.5
    weight[2] = -0.5
    weight[3] = torch.arange(128).fmod(2) * 2.0**-60
    found = exact_weight(rounded(weight, rounding))
    assert torch.equal(found[0], weight[0].double())
    assert torch.allclose(found, weight.double(), rtol=0.01, atol=0.0)


def test_float16_scales_and_large_matrices_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    rounding = Rounding(4, 32, scales=ScaleType.FLOAT16)
    weight = torch.randn(33, 64, generator=torch.Generator().manual_seed(4))
    whole = rounded(weight, rounding)
    monkeypatch.setattr("rtlang.model.quantization.rounding._CHUNK", 128)
    parts = rounded(weight, rounding)
    assert torch.equal(exact_weight(whole), exact_weight(parts))
    assert whole.held.scales is not None
    assert whole.held.scales.dtype == torch.float16
