"""Matrices written as int8 with a scale per row."""

from __future__ import annotations

from pathlib import Path

import torch

from rtlang.model.loading.quantized.int8_rows import int8_config, quantized
from rtlang.model.loading.quantized.schemes import quantization_obstacle, quantizes_inputs
from tests.support.models.stored_matrices import written


def test_a_weight_and_its_rounded_form_differ_by_half_a_scale_at_most(tmp_path: Path) -> None:
    weight = torch.randn(7, 33, generator=torch.Generator().manual_seed(1)) * torch.logspace(-6, 3, 7)[:, None]
    weight[3] = 0.0
    values, scale = quantized(weight)
    assert values.dtype is torch.int8
    assert scale.shape == (7, 1)
    weights = written(tmp_path, {"x.weight": values, "x.weight_scale": scale}, int8_config())
    assert ((weights.tensor("x.weight", torch.float32) - weight).abs() <= scale * 0.5001).all()


def test_its_config_is_supported() -> None:
    for is_both in (False, True):
        config = int8_config(quantizes_inputs=is_both)
        assert quantization_obstacle(config) is None
        assert quantizes_inputs(config) == is_both
