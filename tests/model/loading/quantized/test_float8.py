"""Matrices of float8 have the values that transformers gives them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers.integrations.finegrained_fp8 import Fp8Dequantize

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.quantized.schemes import quantization_obstacle
from tests.support.models.stored_matrices import check_matrix, written

CONFIG = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}


def random_float8(*shape: int) -> Tensor:
    codes = torch.randint(0, 256, shape, dtype=torch.uint8)
    return torch.where(codes & 127 == 127, 0, codes).view(torch.float8_e4m3fn)


@pytest.mark.parametrize(
    ("shape", "scales", "block"),
    [
        ((256, 384), (2, 3), [128, 128]),
        ((96, 64), (3, 2), [32, 32]),
        ((40, 64), (), None),
        ((40, 64), (1,), [128, 128]),
        ((40, 64), (40, 1), None),
    ],
)
@pytest.mark.parametrize("method", ["fp8", "fbgemm_fp8"])
def test_floats_for_scales(
    shape: tuple[int, int], scales: tuple[int, ...], block: list[int] | None, method: str, tmp_path: Path
) -> None:
    torch.manual_seed(1)
    codes, factors = random_float8(*shape), torch.rand(scales)
    suffix = "_scale_inv" if method == "fp8" else "_scale"
    tensors = {
        "x.weight": codes,
        f"x.weight{suffix}": factors,
        "x.input_scale": torch.ones(1),
        "y.weight": torch.ones(3),
    }
    weights = written(tmp_path, tensors, {**CONFIG, "quant_method": method, "weight_block_size": block})
    assert sorted(weights.names()) == ["x.weight", "y.weight"]
    grid = factors if factors.ndim == 2 else factors.reshape(1, 1)
    rows, columns = (size // num for size, num in zip(shape, grid.shape, strict=True))
    expected = codes.double() * grid.double().repeat_interleave(rows, 0).repeat_interleave(columns, 1)
    check_matrix(weights, "x.weight", expected)
    theirs = Fp8Dequantize(None)._dequantize_one(codes, grid, torch.float32)
    assert torch.equal(weights.tensor("x.weight", torch.float32), theirs)


@pytest.mark.parametrize("shape", [(200, 160), (130, 96), (3, 300)])
def test_the_last_block_may_be_smaller(shape: tuple[int, int], tmp_path: Path) -> None:
    codes, factors = random_float8(*shape), torch.rand([-(-size // 128) for size in shape])
    weights = written(tmp_path, {"x.weight": codes, "x.weight_scale_inv": factors}, CONFIG)
    grid = factors.double().repeat_interleave(128, 0)[: shape[0]].repeat_interleave(128, 1)[:, : shape[1]]
    check_matrix(weights, "x.weight", codes.double() * grid, is_low_bit=shape[1] % 32 == 0)


@pytest.mark.parametrize("is_typed", [True, False])
def test_exponents_for_scales(is_typed: bool, tmp_path: Path) -> None:
    codes, exponents = random_float8(128, 128), torch.randint(90, 150, (4, 4), dtype=torch.uint8)
    scales = exponents.view(torch.float8_e8m0fnu) if is_typed else exponents
    config = {**CONFIG, "scale_fmt": "ue8m0", "weight_block_size": [32, 32]}
    weights = written(tmp_path, {"x.weight": codes, "x.weight_scale_inv": scales}, config)
    theirs = Fp8Dequantize(None)._dequantize_one(codes, exponents, torch.float64)
    check_matrix(weights, "x.weight", theirs)


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"x.weight": torch.ones(4, 4)}, r"x\.weight is F32 with scales"),
        (
            {"x.weight": random_float8(4, 160), "x.weight_scale_inv": torch.ones(())},
            r"scales of shape \[\], but weight_block_size in config.json implies \[1, 2\]",
        ),
        ({"x.weight": random_float8(4, 4, 4)}, r"x\.weight has shape \[4, 4, 4\]; expected a matrix"),
        ({"x.weight": random_float8(4, 4), "x.weight_scale": torch.ones(1)}, "two tensors of scales"),
        ({"x.weight": random_float8(200, 160)}, r"scales of shape \[1, 2\] do not match"),
        ({"x.weight": random_float8(4, 160), "x.weight_scale_inv": torch.ones(1, 2).long()}, "scales of type I64"),
    ],
)
def test_damaged_matrices_are_refused_by_name(tensors: dict[str, Tensor], message: str, tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match=message):
        written(tmp_path, {"x.weight_scale_inv": torch.ones(1, 2), **tensors}, CONFIG).tensor("x.weight", torch.float32)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weight_block_size": [128]}, r"weight_block_size = \[128\]: expected two positive"),
        ({"weight_block_size": [0, 128]}, "weight_block_size"),
        ({"fmt": "e5m2"}, "fmt = 'e5m2': expected e4m3"),
    ],
)
def test_other_configs_are_refused_by_the_entry(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        assert quantization_obstacle({**CONFIG, **changes}) is None, quantization_obstacle({**CONFIG, **changes})
