"""Matrices of AWQ have the values that the format describes, in float64."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.quantized.schemes import quantization_obstacle
from tests.support.models import quantized_layouts
from tests.support.models.stored_matrices import check_matrix, written

CONFIG = {"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm", "zero_point": True}


@pytest.mark.parametrize(("group", "num_inputs"), [(32, 96), (128, 256), (64, 64), (20, 60)])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_codes_with_zero_points(group: int, num_inputs: int, dtype: torch.dtype, tmp_path: Path) -> None:
    torch.manual_seed(group)
    codes = torch.randint(0, 16, (24, num_inputs), dtype=torch.uint8)
    scales = torch.rand(24, num_inputs // group).to(dtype)
    zeros = torch.randint(0, 16, (24, num_inputs // group), dtype=torch.uint8)
    tensors = {f"x.{name}": each for name, each in quantized_layouts.awq(codes, scales, zeros).items()}
    config = {**CONFIG, "group_size": group, "modules_to_not_convert": ["y"]}
    weights = written(tmp_path, {**tensors, "y.weight": torch.ones(2, 2)}, config)
    assert sorted(weights.names()) == ["x.weight", "y.weight"]
    check_matrix(weights, "x.weight", quantized_layouts.multiplied_out(codes, scales, zeros), is_low_bit=group != 20)
    assert weights.num_bytes("x.weight") == sum(each.nbytes for each in tensors.values())


PARTS = {
    "x.qweight": torch.zeros(64, 3, dtype=torch.int32),
    "x.qzeros": torch.zeros(2, 3, dtype=torch.int32),
    "x.scales": torch.ones(2, 24),
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x.qzeros": None}, r"x\.weight lacks x\.qzeros"),
        ({"x.qweight": torch.zeros(64, 3)}, "of I32"),
        ({"x.qweight": torch.zeros(64, dtype=torch.int32)}, "expected matrices"),
        ({"x.qweight": torch.zeros(63, 3, dtype=torch.int32)}, "do not fit together"),
        ({"x.qzeros": torch.zeros(1, 3, dtype=torch.int32)}, "do not fit together"),
        ({"x.scales": torch.ones(2, 23)}, "do not fit together"),
        ({"x.scales": torch.ones(2, 24, dtype=torch.int8)}, "scales of type I8"),
        (
            {"x.scales": torch.ones(1, 24), "x.qzeros": torch.zeros(1, 3, dtype=torch.int32)},
            "has 1 groups for 64 inputs, but group_size is 32",
        ),
    ],
)
def test_damaged_matrices_are_refused_by_name(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    tensors = {name: each for name, each in {**PARTS, **changes}.items() if each is not None}
    with pytest.raises(ModelLoadError, match=message):
        written(tmp_path, tensors, CONFIG)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": "gemv"}, "awq, gemv.*gemm"),
        ({"version": "GEMV_FAST"}, "gemv_fast"),
        ({"bits": 8}, "bits = 8: expected 4"),
        ({"group_size": 0}, "group_size = 0: expected a positive integer or -1"),
    ],
)
def test_other_configs_are_refused_by_the_entry(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        assert quantization_obstacle({**CONFIG, **changes}) is None, quantization_obstacle({**CONFIG, **changes})
