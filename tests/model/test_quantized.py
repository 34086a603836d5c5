"""Checkpoints of int8 weights: read as compressed-tensors' own reader does, on both decoders, or refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoModelForCausalLM, CompressedTensorsConfig

from rtlang.config import RuntimeConfig
from rtlang.errors import ModelLoadError
from rtlang.model.quantized import dequantized, int8_config, quantization_obstacle, quantized
from rtlang.model.runner import ModelRunner
from tests.support.model_steps import ragged_logits
from tests.support.tiny_models import VOCAB_SIZE, make_checkpoint

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:You passed `quantization_config`:UserWarning"),
]


def int8_checkpoint(tmp_path: Path, family: str = "llama", **changes: Any) -> Path:
    """A tiny checkpoint whose linear layers are int8; `changes` of its weights."""
    path = make_checkpoint(tmp_path, family)
    weights: dict[str, Tensor] = {}
    for name, tensor in load_file(path / "model.safetensors").items():
        weights[name] = tensor
        if "_proj.weight" in name:
            weights[name], weights[name + "_scale"] = quantized(tensor)
    weights = {name: tensor for name, tensor in {**weights, **changes}.items() if tensor is not None}
    save_file(weights, path / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**config, "quantization_config": int8_config()}))
    return path


def load_runner(path: Path, decoder: str) -> ModelRunner:
    config = RuntimeConfig(model=str(path), dtype="float32", decoder=decoder, num_pages=64, page_size=4, num_threads=1)
    runner = ModelRunner(config)
    runner.load()
    return runner


@pytest.mark.parametrize(("family", "decoder"), [("llama", "lean"), ("llama", "zoo"), ("gemma2", "zoo")])
def test_logits_equal_those_of_the_formats_own_reader(family: str, decoder: str, tmp_path: Path) -> None:
    path = int8_checkpoint(tmp_path, family)
    model: Any = AutoModelForCausalLM.from_pretrained(
        path,
        dtype=torch.float32,
        attn_implementation="eager",
        quantization_config=CompressedTensorsConfig(dequantize=True),
    )
    for token_ids, logits in ragged_logits(load_runner(path, decoder), VOCAB_SIZE):
        with torch.no_grad():
            expected = model(torch.tensor([token_ids]), use_cache=False).logits[0, -len(logits) :]
        torch.testing.assert_close(logits, expected, rtol=1e-3, atol=1e-3)


def test_a_weight_and_what_it_becomes_differ_by_half_a_scale_at_most() -> None:
    weight = torch.randn(7, 33, generator=torch.Generator().manual_seed(1)) * torch.logspace(-6, 3, 7)[:, None]
    weight[3] = 0.0
    values, scale = quantized(weight)
    assert values.dtype is torch.int8
    assert scale.shape == (7, 1)
    assert ((dequantized(values, scale, torch.float32) - weight).abs() <= scale * 0.5001).all()


def test_scales_stand_for_a_tensor_a_row_or_a_group_of_columns() -> None:
    values = torch.tensor([[1, -2, 3, 4], [5, 6, -7, 127]], dtype=torch.int8)
    whole = dequantized(values, torch.tensor([0.5]), torch.float32)
    assert torch.equal(whole, values * 0.5)
    rows = dequantized(values, torch.tensor([[0.5], [2.0]]), torch.float32)
    assert torch.equal(rows, values * torch.tensor([[0.5], [2.0]]))
    groups = dequantized(values, torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.float32)
    assert torch.equal(groups, torch.tensor([[1.0, -2.0, 6.0, 8.0], [15.0, 18.0, -28.0, 508.0]]))
    for shape in ((3, 1), (2, 3), (2, 0), (2,)):
        with pytest.raises(ValueError, match="do not fit"):
            dequantized(values, torch.ones(shape), torch.float32)


FIRST = "model.layers.0.self_attn.q_proj.weight"


@pytest.mark.parametrize("decoder", ["lean", "zoo"])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({FIRST + "_scale": None}, rf"{FIRST} holds .*(int8|I8)"),
        ({FIRST + "_scale": torch.ones(5, 1)}, rf"{FIRST} scales of shape \[5, 1\] do not fit"),
        ({FIRST + "_scale": torch.ones(64, 1, dtype=torch.int32)}, rf"{FIRST} has scales of torch.int32"),
        ({FIRST: torch.zeros(64, 64, dtype=torch.int16)}, rf"{FIRST} holds .*(int16|I16)"),
    ],
    ids=("no scales", "wrong shape", "no floats", "another kind"),
)
def test_damaged_weights_are_refused_by_name(
    changes: dict[str, Tensor | None], message: str, decoder: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelLoadError, match=message):
        load_runner(int8_checkpoint(tmp_path, **changes), decoder)


def changed(**of_group: Any) -> dict[str, Any]:
    config = int8_config()
    config["config_groups"]["group_0"].update(of_group)
    return config


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"quant_method": "awq", "bits": 4}, "awq"),
        ({**int8_config(), "format": "pack-quantized"}, "pack-quantized"),
        ({**int8_config(), "kv_cache_scheme": {"num_bits": 8}}, "kv_cache_scheme"),
        ({**int8_config(), "config_groups": {}}, "no config_groups"),
        (changed(weights=None), "group_0 says nothing of weights"),
        (changed(weights={"num_bits": 4, "type": "int", "symmetric": True, "strategy": "group"}), "not symmetric int8"),
        (changed(weights={"num_bits": 8, "type": "float", "symmetric": True, "strategy": "tensor"}), "not symmetric"),
        (changed(weights={"num_bits": 8, "type": "int", "symmetric": False, "strategy": "tensor"}), "not symmetric"),
        (changed(weights={"num_bits": 8, "type": "int", "symmetric": True, "strategy": "block"}), "by channel"),
        (changed(input_activations={"num_bits": 8}), "activations"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_quantization_is_refused_by_what_it_is(config: dict[str, Any], message: str, tmp_path: Path) -> None:
    obstacle = quantization_obstacle(config)
    assert obstacle is not None
    assert message in obstacle
    path = int8_checkpoint(tmp_path)
    content = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**content, "quantization_config": config}))
    with pytest.raises(ModelLoadError, match=message):
        load_runner(path, "auto")


def test_what_the_network_writes_is_no_obstacle() -> None:
    assert quantization_obstacle(int8_config()) is None
