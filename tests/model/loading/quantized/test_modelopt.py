"""Matrices of ModelOpt have the values that the format describes, in float64."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.model_config import ModelConfig
from rtlang.model.loading.quantized.schemes import quantization_obstacle
from tests.model.loading.quantized.test_float8 import random_float8
from tests.support.models import quantized_layouts
from tests.support.models.stored_matrices import check_matrix, written
from tests.support.models.tiny_models import make_checkpoint

CONFIG = {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "kv_cache_quant_algo": "FP8"}


@pytest.mark.parametrize("is_nested", [True, False])
def test_float8_and_float4_of_one_checkpoint(is_nested: bool, tmp_path: Path) -> None:
    torch.manual_seed(1)
    codes, values = torch.randint(0, 16, (12, 96), dtype=torch.uint8), torch.tensor(quantized_layouts.FLOAT4)
    small, floats, channels = random_float8(12, 6), random_float8(8, 64), torch.rand(8, 1)
    tensors = {
        "a.weight": quantized_layouts.nibbles(codes),
        "a.weight_scale": small,
        "a.weight_scale_2": torch.tensor(0.0123),
        "a.input_scale": torch.tensor(2.0),
        "b.weight": floats,
        "b.weight_scale": torch.tensor(0.3),
        "b.k_scale": torch.tensor(1.0),
        "c.weight": floats,
        "c.weight_scale": channels,
        "d.weight": torch.ones(2, 2).bfloat16(),
        "e.weight": floats,
        "e.weight_scale": torch.rand(1, 1, 1, 1),
    }
    config = {"quant_method": "modelopt", "quantization": {"quant_algo": "NVFP4"}} if is_nested else CONFIG
    weights = written(tmp_path, tensors, config)
    assert sorted(weights.names()) == [f"{each}.weight" for each in "abcde"]
    factor = tensors["a.weight_scale_2"].double()
    expected = values[codes.long()].double() * small.double().repeat_interleave(16, 1) * factor
    check_matrix(weights, "a.weight", expected)
    check_matrix(weights, "b.weight", floats.double() * torch.tensor(0.3).double())
    check_matrix(weights, "c.weight", floats.double() * channels.double())
    check_matrix(weights, "e.weight", floats.double() * tensors["e.weight_scale"].double().item())


def test_a_file_beside_config_json_describes_it(tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path)
    assert ModelConfig.from_pretrained(path).quantization is None
    content = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "W4A8_AWQ", "exclude_modules": []}}
    (path / "hf_quant_config.json").write_text(json.dumps(content))
    obstacle = quantization_obstacle(ModelConfig.from_pretrained(path).quantization)
    assert "modelopt, W4A8_AWQ" in str(obstacle)
    assert "NVFP4" in str(obstacle)


PARTS = {
    "x.weight": torch.zeros(4, 16, dtype=torch.uint8),
    "x.weight_scale": random_float8(4, 2),
    "x.weight_scale_2": torch.ones(()),
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x.weight_scale_2": None}, r"x\.weight lacks x\.weight_scale_2"),
        ({"x.weight_scale_2": torch.ones(2)}, "2 values"),
        ({"x.weight_scale_2": torch.ones((), dtype=torch.int64)}, "type I64 in x.weight_scale_2; expected one float"),
        ({"x.weight_scale": torch.ones(1).to(torch.float8_e4m3fn)}, "expected one for each 16 inputs"),
        ({"x.weight_scale": torch.ones(4, 2)}, "scales of type F32; expected F8_E4M3"),
        ({"x.weight_scale": random_float8(4, 3)}, r"scales of shape \[4, 3\] do not match"),
        ({"x.weight": torch.zeros(4, 16, dtype=torch.int8)}, "is I8 with scales"),
        ({"x.weight": torch.zeros(4, dtype=torch.uint8)}, r"has shape \[4\]; expected a matrix"),
    ],
)
def test_damaged_matrices_are_refused_by_name(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    tensors = {name: each for name, each in {**PARTS, **changes}.items() if each is not None}
    with pytest.raises(ModelLoadError, match=message):
        written(tmp_path, tensors, CONFIG).tensor("x.weight", torch.float32)
