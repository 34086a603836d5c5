"""Matrices of bitsandbytes have the values that the library computes: products in float32, rounded to its dtype."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.quantized import bitsandbytes
from rtlang.model.loading.quantized.schemes import quantization_obstacle
from tests.support.models import quantized_layouts
from tests.support.models.stored_matrices import check_matrix, written

CONFIG = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}
STATE = "x.weight.quant_state.bitsandbytes__nf4"


def four_bits(shape: tuple[int, int], kind: str, *, is_nested: bool) -> tuple[dict[str, Tensor], Tensor]:
    torch.manual_seed(1)
    codes = torch.randint(0, 16, shape, dtype=torch.uint8)
    table = torch.tensor(quantized_layouts.NF4) if kind == "nf4" else torch.rand(16) - 0.5
    tensors, matrix = quantized_layouts.bitsandbytes(codes, kind, table, 64, is_nested=is_nested)
    return {f"x.{name}": each for name, each in tensors.items()}, matrix


@pytest.mark.parametrize("kind", ["nf4", "fp4"])
@pytest.mark.parametrize("is_nested", [True, False])
@pytest.mark.parametrize("shape", [(48, 96), (7, 10), (300, 64)])
def test_four_bits(kind: str, is_nested: bool, shape: tuple[int, int], tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(bitsandbytes, "_STEP", 1000)
    tensors, matrix = four_bits(shape, kind, is_nested=is_nested)
    weights = written(tmp_path, tensors, CONFIG)
    assert list(weights.names()) == ["x.weight"]
    check_matrix(weights, "x.weight", matrix.double(), is_low_bit=False)
    assert weights.tensor("x.weight", torch.bfloat16).equal(matrix)
    assert weights.num_bytes("x.weight") == sum(each.nbytes for each in tensors.values())


def test_eight_bits(tmp_path: Path) -> None:
    torch.manual_seed(2)
    codes, factors = torch.randint(-127, 128, (9, 64), dtype=torch.int8), torch.rand(9)
    tensors = {"x.weight": codes, "x.SCB": factors, "x.weight_format": torch.zeros((), dtype=torch.uint8)}
    weights = written(tmp_path, {**tensors, "y.weight": torch.ones(2)}, {"load_in_8bit": True})
    assert sorted(weights.names()) == ["x.weight", "y.weight"]
    check_matrix(weights, "x.weight", codes.double() * (factors / 127).double()[:, None], is_low_bit=False)


def state(**changes: Any) -> Tensor:
    entries = {"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [48, 96], **changes}
    return torch.tensor(list(json.dumps(entries).encode()), dtype=torch.uint8)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({STATE: state(blocksize=0)}, "blocksize 0"),
        ({STATE: state(blocksize=1 << 40)}, "blocksize"),
        ({STATE: state(dtype="int8")}, "dtype 'int8'"),
        ({STATE: state(shape=[48, 97])}, "values of x.weight; expected"),
        ({STATE: state(shape=[1 << 40, 1 << 40])}, "values of x.weight; expected"),
        ({STATE: state(shape="x")}, r"has shape \[\]"),
        ({STATE: torch.tensor([255], dtype=torch.uint8)}, "not JSON"),
        ({STATE: torch.ones(3)}, "not JSON"),
        ({STATE: torch.tensor(list(b"[" * 5000), dtype=torch.uint8)}, "not JSON"),
        ({"x.weight.absmax": torch.rand(5)}, "5 values of x.weight.absmax; expected 72"),
        ({"x.weight.quant_map": None}, "lacks x.weight.quant_map"),
        ({"x.weight.quant_map": torch.zeros(1, 16)}, r"x\.weight\.quant_map of shape \[1, 16\]; expected \[16\]"),
        ({"x.weight.quant_map": torch.zeros(16, dtype=torch.int8)}, "x.weight.quant_map of type I8; expected F32"),
        ({"x.weight.nested_absmax": torch.rand(1)}, "nested_blocksize None"),
    ],
)
def test_damaged_matrices_are_refused_by_name(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    tensors = {**four_bits((48, 96), "nf4", is_nested=False)[0], **changes}
    with pytest.raises(ModelLoadError, match=rf"x\.weight .*{message}"):
        written(tmp_path, {name: each for name, each in tensors.items() if each is not None}, CONFIG)


def test_a_config_without_a_number_of_bits_is_refused() -> None:
    assert "expected load_in_4bit or load_in_8bit" in str(quantization_obstacle({"quant_method": "bitsandbytes"}))
