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

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ModelLoadError
from rtlang.model.decoders.native_decoder import NativeDecoder
from rtlang.model.decoders.transformers_decoder import TransformersDecoder
from rtlang.model.host_runner import HostRunner
from rtlang.model.loading.quantized.int8_rows import int8_config, quantized
from tests.support.models.model_steps import ragged_logits
from tests.support.models.quantized_checkpoints import SCHEMES, quantized_pair
from tests.support.models.tiny_models import VOCAB_SIZE, make_checkpoint

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:You passed `quantization_config`:UserWarning"),
]


def int8_checkpoint(tmp_path: Path, family: str = "llama", *, quantizes_inputs: bool = False, **changes: Any) -> Path:
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
    quantization = int8_config(quantizes_inputs=quantizes_inputs)
    (path / "config.json").write_text(json.dumps({**config, "quantization_config": quantization}))
    return path


def load_runner(path: Path, decoder: str) -> HostRunner:
    config = RuntimeConfig(model=str(path), dtype="float32", decoder=decoder, num_pages=64, page_size=4, num_threads=1)
    runner = HostRunner(config)
    runner.load()
    return runner


@pytest.mark.parametrize(
    ("family", "decoder"), [("llama", "native"), ("llama", "transformers"), ("gemma2", "transformers")]
)
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


@pytest.mark.parametrize(
    ("scheme", "decoder"),
    [*((name, "native") for name in SCHEMES), *((name, "transformers") for name in ("gptq in order", "fp8", "nf4"))],
)
def test_logits_of_a_quantized_model_are_those_of_its_float_twin(scheme: str, decoder: str, tmp_path: Path) -> None:
    quantized_path, float_path = quantized_pair(tmp_path, scheme, "qwen2")
    runner = load_runner(quantized_path, decoder)
    if isinstance(runner.decoder, NativeDecoder):
        feed_forward = runner.decoder._layers[0].feed_forward
        is_few_bits = scheme not in ("nf4", "llm.int8")
        assert feed_forward.gate_up.is_low_bit == feed_forward.down.is_low_bit == is_few_bits
    found, expected = (ragged_logits(each, VOCAB_SIZE) for each in (runner, load_runner(float_path, decoder)))
    for (_, logits), (_, others) in zip(found, expected, strict=True):
        assert float((logits - others).norm() / others.norm()) < 0.05  # inputs of a layer may be rounded to 8 bits


class Int8Inputs(torch.nn.Module):
    """A linear layer whose inputs are rounded to 127 steps of a scale per token and 32 inputs, in float64."""

    def __init__(self, linear: torch.nn.Linear) -> None:
        super().__init__()
        self.linear = linear.double()

    def forward(self, x: Tensor) -> Tensor:
        groups = x.double().unflatten(-1, (-1, 32))
        step = groups.abs().amax(-1, keepdim=True) / 127
        return self.linear(((groups / step).round() * step).flatten(-2)).to(x.dtype)


@pytest.mark.parametrize("family", ["llama", "qwen2"])
def test_int8_inputs_are_multiplied_as_bytes_by_the_native_decoder(family: str, tmp_path: Path) -> None:
    path = int8_checkpoint(tmp_path, family, quantizes_inputs=True)
    runner = load_runner(path, "native")
    assert isinstance(runner.decoder, NativeDecoder)
    assert all(each.is_low_bit for layer in runner.decoder._layers for each in layer.linears)
    content = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**content, "quantization_config": int8_config()}))
    model: Any = AutoModelForCausalLM.from_pretrained(
        path,
        dtype=torch.float32,
        attn_implementation="eager",
        quantization_config=CompressedTensorsConfig(dequantize=True),
    )
    errors, distances = [], []
    found = list(ragged_logits(runner, VOCAB_SIZE))
    for is_int8 in (False, True):
        if is_int8:
            for layer in model.model.layers:
                for part in (layer.self_attn, layer.mlp):
                    for name, child in list(part.named_children()):
                        if isinstance(child, torch.nn.Linear):
                            setattr(part, name, Int8Inputs(child))
        for token_ids, logits in found:
            with torch.no_grad():
                expected = model(torch.tensor([token_ids]), use_cache=False).logits[0, -len(logits) :]
            (errors if is_int8 else distances).append(float((logits - expected).norm() / expected.norm()))
    # Values between two steps may go either way, so the error is small, not tiny; without int8 inputs it is clearly larger.
    assert max(errors) < 0.01
    assert sum(errors) < 0.5 * sum(distances)


@pytest.mark.parametrize("decoder", ["native", "transformers"])
def test_int8_inputs_are_rounded_only_where_the_checkpoint_asks(decoder: str, tmp_path: Path) -> None:
    both, weights_only = (int8_checkpoint(tmp_path / str(each), quantizes_inputs=each) for each in (True, False))
    pairs = zip(*(ragged_logits(load_runner(each, decoder), VOCAB_SIZE) for each in (both, weights_only)), strict=True)
    errors = [float((a - b).norm() / b.norm()) for (_, a), (_, b) in pairs]
    assert 1e-4 < max(errors) < 0.05


FIRST = "model.layers.0.self_attn.q_proj.weight"


@pytest.mark.parametrize("decoder", ["native", "transformers"])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({FIRST + "_scale": None}, rf"{FIRST} is .*(int8|I8)"),
        ({FIRST + "_scale": torch.ones(5, 1)}, rf"{FIRST} scales of shape \[5, 1\] do not match"),
        ({FIRST + "_scale": torch.ones(64, 1, dtype=torch.int32)}, rf"{FIRST} has scales of type I32"),
        ({FIRST: torch.zeros(64, 64, dtype=torch.int16)}, rf"{FIRST} is .*(int16|I16)"),
        ({FIRST: torch.zeros(64, 64)}, rf"{FIRST} is F32 with scales"),
        ({FIRST + "_zero_point": torch.ones(64, 1)}, rf"{FIRST}_zero_point is (unexpected|torch.int8)"),
        (
            {FIRST + "_zero_point": torch.ones(64, 1, dtype=torch.int8)},
            rf"{FIRST}_zero_point is (unexpected|torch.int8)",
        ),
        ({FIRST + "_g_idx": torch.zeros(64, dtype=torch.int32)}, rf"{FIRST}_g_idx is (unexpected|torch.int32)"),
    ],
    ids=(
        "no scales",
        "wrong shape",
        "no floats",
        "another kind",
        "floats with scales",
        "zero points of floats",
        "zero points",
        "order of columns",
    ),
)
def test_damaged_weights_are_refused_by_name(
    changes: dict[str, Tensor | None], message: str, decoder: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelLoadError, match=message):
        load_runner(int8_checkpoint(tmp_path, **changes), decoder)


@pytest.mark.parametrize("config", ["awq", [1], 8])
def test_a_quantization_that_is_no_object_is_refused(config: Any, tmp_path: Path) -> None:
    path = int8_checkpoint(tmp_path)
    content = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**content, "quantization_config": config}))
    for decoder in ("auto", "transformers"):
        with pytest.raises(ModelLoadError, match=r"cannot read the config\.json|expected an object"):
            load_runner(path, decoder)


@pytest.mark.parametrize("decoder", ["native", "transformers"])
@pytest.mark.parametrize("config", [{}, {"compression_config": int8_config()}, {"quantization_config": None}], ids=str)
def test_int8_without_a_quantization_is_refused(config: dict[str, Any], decoder: str, tmp_path: Path) -> None:
    path = int8_checkpoint(tmp_path)
    content = json.loads((path / "config.json").read_text())
    del content["quantization_config"]
    (path / "config.json").write_text(json.dumps({**content, **config}))
    with pytest.raises(ModelLoadError, match=r"_proj\.weight is .*(int8|I8).*and codes that config.json describes"):
        load_runner(path, decoder)


@pytest.mark.parametrize("decoder", ["native", "transformers"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float8_e4m3fn])
def test_scales_that_nobody_asks_for_are_refused(dtype: torch.dtype, decoder: str, tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path)
    weights = load_file(path / "model.safetensors")
    weights |= {FIRST: weights[FIRST].to(dtype), FIRST + "_scale": torch.full((64, 1), 3.0)}
    save_file(weights, path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelLoadError, match=rf"{FIRST}_scale is unexpected: config.json does not describe its use"):
        load_runner(path, decoder)


@pytest.mark.parametrize("decoder", ["native", "transformers"])
def test_scales_may_lie_in_another_file_than_their_weights(decoder: str, tmp_path: Path) -> None:
    path = int8_checkpoint(tmp_path / "apart")
    weights = load_file(path / "model.safetensors")
    names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    place = {name: names[name.endswith("_scale")] for name in weights}
    for file in names:
        part = {name: weights[name] for name in weights if place[name] == file}
        save_file(part, path / file, metadata={"format": "pt"})
    (path / "model.safetensors").unlink()
    (path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": place}))
    whole = ragged_logits(load_runner(int8_checkpoint(tmp_path / "whole"), decoder), VOCAB_SIZE)
    for (_, logits), (_, expected) in zip(ragged_logits(load_runner(path, decoder), VOCAB_SIZE), whole, strict=True):
        assert torch.equal(logits, expected)


def test_float8_without_its_scales_is_refused(tmp_path: Path) -> None:
    path = quantized_pair(tmp_path, "float8 rows")[0]
    weights = load_file(path / "model.safetensors")
    name = "model.layers.1.self_attn.q_proj.weight"
    weights.pop(f"{name}_scale")
    save_file(weights, path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelLoadError, match=rf"tensor {name} is F8_E4M3 without scales"):
        load_runner(path, "native")


def test_tensors_that_stay_in_float32_are_not_rounded(tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path, "deepseek_v3")
    weights = load_file(path / "model.safetensors")
    (name,) = (name for name in weights if name.endswith("e_score_correction_bias"))
    bias = weights[name] = torch.randn(weights[name].shape, generator=torch.Generator().manual_seed(3))
    for each in [each for each in weights if each.endswith("_proj.weight")]:
        weights[each], weights[each + "_scale"] = quantized(weights[each])
    save_file(weights, path / "model.safetensors", metadata={"format": "pt"})
    content = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**content, "quantization_config": int8_config()}))
    config = RuntimeConfig(
        model=str(path), dtype="bfloat16", decoder="transformers", num_pages=64, page_size=4, num_threads=1
    )
    runner = HostRunner(config)
    runner.load()
    assert isinstance(runner.decoder, TransformersDecoder)
    state = runner.decoder.model.state_dict()
    assert state[name].dtype is torch.float32
    assert torch.equal(state[name], bias)
