"""Quantization that is not supported is refused by its name, with the formats that are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ModelLoadError
from rtlang.model.loader import load_model
from rtlang.model.loading.quantized.schemes import quantization_obstacle, scheme_of
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
