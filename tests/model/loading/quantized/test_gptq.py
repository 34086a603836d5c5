"""Matrices of GPTQ have the values that the format describes, in float64."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.quantized.schemes import quantization_obstacle
from tests.support.models import quantized_layouts
from tests.support.models.stored_matrices import check_matrix, written

CONFIG = {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": False, "sym": False}


def named(tensors: dict[str, Tensor], module: str = "x") -> dict[str, Tensor]:
    return {f"{module}.{name}": each for name, each in tensors.items()}


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
@pytest.mark.parametrize("layout", ["gptq", "gptq_v2"])
@pytest.mark.parametrize(("group", "num_inputs"), [(32, 96), (-1, 64), (128, 256), (128, 192), (20, 60)])
def test_codes_with_zero_points(bits: int, layout: str, group: int, num_inputs: int, tmp_path: Path) -> None:
    torch.manual_seed(bits)
    size = num_inputs if group == -1 else group
    num_groups = -(-num_inputs // size)
    codes = torch.randint(0, 1 << bits, (32, num_inputs), dtype=torch.uint8)
    scales, zeros = torch.rand(32, num_groups).half(), torch.randint(0, 1 << bits, (32, num_groups), dtype=torch.uint8)
    groups = None if num_inputs % 32 == 0 else torch.arange(num_inputs) // size
    tensors = named(quantized_layouts.gptq(codes, scales, zeros, bits, groups, is_v2=layout == "gptq_v2"))
    config = {**CONFIG, "bits": bits, "group_size": group, "checkpoint_format": layout}
    weights = written(tmp_path, tensors, config)
    assert list(weights.names()) == ["x.weight"]
    expected = quantized_layouts.multiplied_out(codes, scales, zeros, torch.arange(num_inputs) // size)
    check_matrix(weights, "x.weight", expected, is_low_bit=group != 20)
    assert weights.num_bytes("x.weight") == sum(each.nbytes for each in tensors.values())


@pytest.mark.parametrize("bits", [3, 4])
@pytest.mark.parametrize("is_regular", [True, False])
def test_inputs_in_the_order_of_their_activations(bits: int, is_regular: bool, tmp_path: Path) -> None:
    torch.manual_seed(1)
    groups = (torch.arange(128) // 32)[torch.randperm(128)] if is_regular else torch.randint(0, 4, (128,))
    codes, scales = torch.randint(0, 1 << bits, (32, 128), dtype=torch.uint8), torch.rand(32, 4).half()
    zeros = torch.randint(0, 1 << bits, (32, 4), dtype=torch.uint8)
    tensors = named(quantized_layouts.gptq(codes, scales, zeros, bits, groups))
    weights = written(tmp_path, tensors, {**CONFIG, "bits": bits, "desc_act": True})
    expected = quantized_layouts.multiplied_out(codes, scales, zeros, groups)
    check_matrix(weights, "x.weight", expected, is_low_bit=is_regular)
    weight = weights.low_bit("x.weight")
    assert weight is None or weight.input_order is not None


def test_one_zero_point_of_all_groups_is_part_of_the_format(tmp_path: Path) -> None:
    codes, zeros = torch.randint(0, 16, (32, 64), dtype=torch.uint8), torch.full((32, 2), 8, dtype=torch.uint8)
    scales, groups = torch.rand(32, 2).half(), torch.arange(64) // 32
    weights = written(tmp_path, named(quantized_layouts.gptq(codes, scales, zeros, 4, groups)), {**CONFIG, "sym": True})
    weight = weights.low_bit("x.weight")
    assert weight is not None
    assert (weight.format.zero, weight.format.has_zero_points, weight.input_order) == (8, False, None)
    check_matrix(weights, "x.weight", quantized_layouts.multiplied_out(codes, scales, zeros))


def test_rules_for_layers_show_in_their_tensors(tmp_path: Path) -> None:
    torch.manual_seed(2)
    expected, tensors = {}, {"c.weight": torch.rand(4, 4), "a.bias": torch.rand(32)}
    for name, bits, group in (("a", 8, 64), ("b", 4, 32)):
        codes = torch.randint(0, 1 << bits, (32, 128), dtype=torch.uint8)
        scales, zeros = torch.rand(32, 128 // group).half(), torch.randint(0, 16, (32, 128 // group), dtype=torch.uint8)
        tensors |= named(quantized_layouts.gptq(codes, scales, zeros, bits, torch.arange(128) // group), name)
        expected[f"{name}.weight"] = quantized_layouts.multiplied_out(codes, scales, zeros)
    weights = written(tmp_path, tensors, {**CONFIG, "dynamic": {"+:a": {"bits": 8, "group_size": 64}, "-:c": {}}})
    assert set(weights.names()) == {"a.weight", "a.bias", "b.weight", "c.weight"}
    for name, values in expected.items():
        check_matrix(weights, name, values)


WORDS = quantized_layouts.gptq(
    torch.zeros(32, 64, dtype=torch.uint8),
    torch.ones(32, 2),
    torch.ones(32, 2, dtype=torch.uint8),
    4,
    torch.arange(64) // 32,
)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"qzeros": None}, r"x\.weight lacks x\.qzeros"),
        ({"scales": None}, r"x\.weight lacks x\.scales"),
        ({"qweight": torch.zeros(7, 32, dtype=torch.int32)}, "7 words of 4 bits for 64 inputs"),
        ({"qweight": torch.zeros(8, 32, dtype=torch.int16)}, "of I32"),
        ({"qweight": torch.zeros(8, dtype=torch.int32)}, "expected matrices"),
        ({"qzeros": torch.zeros(3, 4, dtype=torch.int32)}, "do not fit together"),
        ({"qzeros": torch.zeros(2, 5, dtype=torch.int32)}, "do not fit together"),
        ({"scales": torch.ones(2, 24)}, "do not fit together"),
        ({"scales": torch.ones(2, 32, dtype=torch.float64)}, "scales of type F64"),
        ({"g_idx": torch.full((64,), 2, dtype=torch.int32)}, r"groups of \[64\] inputs"),
        ({"g_idx": torch.full((64,), -1, dtype=torch.int32)}, r"groups of \[64\] inputs"),
        ({"g_idx": torch.zeros((), dtype=torch.int32)}, r"groups of \[\] inputs"),
    ],
)
def test_damaged_matrices_are_refused_by_name(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    tensors = {name: each for name, each in {**WORDS, **changes}.items() if each is not None}
    with pytest.raises(ModelLoadError, match=message):
        written(tmp_path, named(tensors), CONFIG).tensor("x.weight", torch.float32)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"desc_act": True}, r"x\.weight lacks x\.g_idx, which desc_act in config\.json implies"),
        ({"group_size": 64}, "has 2 groups for 64 inputs, but group_size is 64"),
        ({"bits": 8}, "do not fit together with 8 bits"),
    ],
)
def test_tensors_that_contradict_the_config_are_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    tensors = named({name: each for name, each in WORDS.items() if name != "g_idx"})
    written(tmp_path, tensors, CONFIG)
    with pytest.raises(ModelLoadError, match=message):
        written(tmp_path, tensors, {**CONFIG, **changes}).tensor("x.weight", torch.float32)


def test_bits_of_a_few_outputs_are_those_of_the_config(tmp_path: Path) -> None:
    codes, scales, zeros = torch.randint(0, 16, (8, 64), dtype=torch.uint8), torch.rand(8, 2), torch.full((8, 2), 3)
    tensors = quantized_layouts.gptq(codes, scales, zeros.to(torch.uint8), 4, torch.arange(64) // 32)
    tensors.pop("g_idx")
    weights = written(tmp_path, named(tensors), CONFIG)
    check_matrix(weights, "x.weight", quantized_layouts.multiplied_out(codes, scales, zeros.to(torch.uint8)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"checkpoint_format": "marlin"}, "gptq, marlin.*gptq and gptq_v2"),
        ({"is_marlin_format": True}, "gptq and gptq_v2"),
        ({"bits": 5}, "bits = 5: expected one of 2, 3, 4, 8"),
        ({"bits": None}, "bits = None"),
        ({"bits": [4]}, "bits"),
        ({"group_size": 0}, "group_size = 0: expected a positive integer or -1"),
        ({"group_size": "32"}, "group_size"),
    ],
)
def test_other_configs_are_refused_by_the_entry(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        assert quantization_obstacle({**CONFIG, **changes}) is None, quantization_obstacle({**CONFIG, **changes})
