"""The compiled configurations of linear layers are those that layers launch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from triton.runtime.interpreter import GridExecutor

from rtlang_kernels.planning.tile_sizes import SM_90
from rtlang_kernels.triton.aot.linear_table import FORMATS, linear_variants
from rtlang_kernels.triton.linear import low_bit_linear
from rtlang_kernels.triton.linear.low_bit_linear import GpuLowBitLinear
from tests.support.models import low_bit_weights
from tests.support.models.low_bit_weights import random_weight

TYPES = {
    torch.uint16: "*u16",
    torch.uint8: "*u8",
    torch.uint32: "*u32",
    torch.int64: "*i64",
    torch.float32: "*fp32",
    torch.bfloat16: "*bf16",
}


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """Names and arguments of kernels, which do not run."""
    found: list[tuple[str, dict[str, Any]]] = []

    def note(executor: Any, *args: Any, **given: Any) -> None:
        found.append((executor.fn.__name__, dict(zip(executor.arg_names, args, strict=False)) | given))

    monkeypatch.setattr(GridExecutor, "__call__", note)
    monkeypatch.setattr(low_bit_linear, "PART_STEPS", 1)
    return found


@pytest.mark.parametrize(
    ("name", "num_rows", "is_gated"), [("q4_k", 1, False), ("q6_k", 600, False), ("q4_k", 1, True), ("q4_k", 600, True)]
)
def test_a_layer_launches_what_is_compiled(
    launches: list[tuple[str, dict[str, Any]]], name: str, num_rows: int, is_gated: bool
) -> None:
    weight = random_weight(low_bit_weights.FORMATS[name], 64, 512)
    bias = torch.randn(64) if is_gated else None
    layer = GpuLowBitLinear([weight], bias, is_gated, torch.bfloat16)
    layer(torch.zeros(num_rows, 512, dtype=torch.bfloat16))
    layer.rows(torch.tensor([1]))
    compiled = [each for each in linear_variants(SM_90) if "fp" not in each.name.split()[1]]
    split = ["finish_product"] if num_rows == 1 else []
    assert [kernel for kernel, _ in launches] == ["low_bit_product", *split, "low_bit_rows"]
    kernel, arguments = launches[0]
    constants = {key: value for key, value in arguments.items() if key.isupper()} | {"UPCAST": False}
    options = {key: arguments[key] for key in ("num_warps", "enable_fp_fusion")}
    types = {
        key: TYPES[value.dtype] if isinstance(value, torch.Tensor) else "i32"
        for key, value in arguments.items()
        if key.islower() and key not in options
    }
    same = [each for each in compiled if (each.constants, each.types, each.options) == (constants, types, options)]
    assert [each.name.split()[0] for each in same] == [kernel]


def test_formats_of_the_table_are_stored_as_random_weights_are() -> None:
    for name in ("q4_0", "q4_1", "q5_0", "q8_0", "q3_k", "q4_k", "q5_k", "q6_k"):
        weight = random_weight(low_bit_weights.FORMATS[name], 16, 512)
        assert GpuLowBitLinear([weight], None, False, torch.bfloat16).codes.format == FORMATS[name]
