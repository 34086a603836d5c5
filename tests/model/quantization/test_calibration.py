"""Inputs of layers over a text, and factors that norms take up: nothing changes before rounding, and less after it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from torch import Tensor

from rtlang.contract.config import EMBEDDED_MODEL
from rtlang.model.decoders.low_bit_loading import load_weights
from rtlang.model.loader import model_directory
from rtlang.model.loading.checkpoint_files import weight_files
from rtlang.model.loading.published import read_config
from rtlang.model.loading.safetensors_weights import SafetensorsWeights
from rtlang.model.quantization.calibration import ChannelScaling, InputStatistics, measured_inputs
from rtlang.model.quantization.rounding import Rounding, rounded
from rtlang_kernels.reference.low_bit import exact_weight

DIRECTORY = model_directory(EMBEDDED_MODEL)
TOKENS = list(range(30, 130))
ROUNDING = Rounding(4, 32)


@pytest.fixture(scope="module")
def inputs() -> dict[str, InputStatistics]:
    return measured_inputs(DIRECTORY, stored(), TOKENS, torch.float32)


def stored() -> SafetensorsWeights:
    quantization = json.loads((DIRECTORY / "config.json").read_text())["quantization_config"]
    return SafetensorsWeights(DIRECTORY, weight_files(DIRECTORY), quantization)


def stock() -> Any:
    config = read_config(DIRECTORY)
    model: Any = load_weights(DIRECTORY, stored(), config, torch.float32, None, keeps_codes=False)
    return model.eval()


def test_statistics_are_those_of_the_inputs(inputs: dict[str, InputStatistics]) -> None:
    model, seen = stock(), []
    name = "model.layers.1.mlp.down_proj"
    model.get_submodule(name).register_forward_pre_hook(lambda module, args: seen.append(args[0][0]))
    with torch.inference_mode():
        model(torch.tensor([TOKENS]))
    found = inputs[f"{name}.weight"]
    assert found.num_rows == len(TOKENS)
    assert torch.allclose(found.importance, seen[0].square().mean(0), rtol=1e-4)
    assert torch.allclose(torch.cat(found.sample), seen[0], atol=1e-5)
    linears = [each for each, module in model.named_modules() if isinstance(module, torch.nn.Linear)]
    assert inputs.keys() == {f"{each}.weight" for each in linears}


def test_a_sample_is_bounded_and_spread() -> None:
    found = InputStatistics(torch.zeros(2, dtype=torch.float64))
    x = torch.arange(2000.0).view(1000, 2)
    found.add(x)
    found.add(x)
    sample = torch.cat(found.sample)
    assert len(sample) == 128
    assert float(sample[-1, 0]) > 1500
    assert torch.allclose(found.importance, x.square().mean(0))


def test_factors_change_nothing_but_the_rounding(inputs: dict[str, InputStatistics]) -> None:
    model = stock()
    weights: dict[str, Tensor] = {name: each.clone() for name, each in model.state_dict().items()}
    scaling = ChannelScaling(lambda name: weights[name], inputs, ROUNDING, model.config.num_hidden_layers)
    assert len(scaling.exponents) == 2 * model.config.num_hidden_layers
    assert max(scaling.exponents) > 0
    with torch.inference_mode():
        expected = model(torch.tensor([TOKENS])).logits
        for name, parameter in model.named_parameters():
            parameter.copy_(scaling.adjust(name, weights[name]))
        assert torch.allclose(model(torch.tensor([TOKENS])).logits, expected, atol=1e-3)
    for layer, part in ((0, "self_attn.k_proj"), (2, "mlp.up_proj")):
        name = f"model.layers.{layer}.{part}.weight"
        sample, importance = torch.cat(inputs[name].sample), inputs[name].importance
        factors = scaling.adjust(name, torch.ones_like(weights[name]))[:1]
        assert torch.equal(scaling.importance(name, importance), importance / factors[0].square())
        scaled = exact_weight(rounded(weights[name] * factors, ROUNDING, importance / factors[0].square())) / factors
        plain = exact_weight(rounded(weights[name], ROUNDING))
        errors = [float((sample.double() @ (each - weights[name]).T).norm()) for each in (scaled, plain)]
        assert errors[0] < errors[1]


def test_only_norms_that_are_plain_factors_are_covered() -> None:
    assert ChannelScaling.covers("qwen3")
    assert not ChannelScaling.covers("gemma3_text")
