"""Quantization that is not supported is refused by its name, with the formats that are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ModelLoadError
from rtlang.model.loader import load_model
from rtlang.model.loading.quantized.schemes import noise_format, quantization_obstacle, scheme_of
from rtlang_kernels.contract.low_bit import ScaleType, WeightFormat
from tests.support.models.tiny_models import make_checkpoint


@pytest.mark.parametrize(
    "method", ["hqq", "aqlm", "quip", "vptq", "eetq", "quanto", "torchao", "spqr", "higgs", "fp_quant", None]
)
@pytest.mark.parametrize("decoder", ["auto", "native", "transformers"])
def test_other_methods_are_refused_by_name(method: str | None, decoder: str, tmp_path: Path) -> None:
    config = {"quant_method": method} if method else {}
    if decoder != "auto":
        obstacle = quantization_obstacle(config) or ""
    else:
        path = make_checkpoint(tmp_path)
        content = json.loads((path / "config.json").read_text())
        (path / "config.json").write_text(json.dumps({**content, "quantization_config": config}))
        with pytest.raises(ModelLoadError) as caught:
            load_model(RuntimeConfig(model=str(path), decoder=decoder))
        obstacle = str(caught.value)
    assert f"quantized ({method or 'unknown method'})" in obstacle
    assert "compressed-tensors" in obstacle


@pytest.mark.parametrize("config", ["awq", [1], 8])
def test_a_quantization_that_is_no_object_is_refused(config: Any) -> None:
    assert "expected an object" in str(quantization_obstacle(config))


def test_floats_have_no_scheme() -> None:
    assert quantization_obstacle(None) is None
    assert scheme_of(None) is None


def _weights(**entries: Any) -> dict[str, Any]:
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": entries}}}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (None, None),
        ({"quant_method": "mxfp4"}, None),
        ({"quant_method": "fp8"}, WeightFormat(8, scales=ScaleType.NONE, is_float8=True)),
        (
            {"quant_method": "fp8", "weight_block_size": [128, 128]},
            WeightFormat(8, 128, ScaleType.FLOAT32, is_float8=True),
        ),
        ({"quant_method": "fp8", "weight_block_size": [16, 16]}, None),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, WeightFormat(4, 128, has_zero_points=True)),
        ({"quant_method": "gptq", "bits": 4, "group_size": -1}, None),
        (
            _weights(type="float", num_bits=8, strategy="tensor"),
            WeightFormat(8, scales=ScaleType.NONE, is_float8=True),
        ),
        (_weights(type="float", num_bits=4, strategy="tensor_group", group_size=16), None),
        (
            _weights(type="int", num_bits=4, strategy="group", group_size=128),
            WeightFormat(4, 128, ScaleType.BFLOAT16, zero=8),
        ),
        (_weights(type="int", num_bits=7, strategy="group", group_size=128), None),
        (_weights(type="int", num_bits=8, strategy="channel"), None),
    ],
)
def test_noise_has_the_format_of_most_layers(config: Any, expected: WeightFormat | None) -> None:
    assert noise_format(config) == expected
