"""Experts of GPT-OSS have the values that transformers gives them, in float64."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

from rtlang.contract.errors import ModelLoadError
from tests.support.models.stored_matrices import check_matrix, written

CONFIG = {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}
EXPERTS = "model.layers.0.mlp.experts"


def test_experts_are_matrices_of_their_own(tmp_path: Path) -> None:
    torch.manual_seed(1)
    bias = torch.rand(3, 6)
    tensors: dict[str, Tensor] = {f"{EXPERTS}.gate_up_proj_bias": bias}
    for leaf, num_outputs, num_groups in (("gate_up_proj", 6, 2), ("down_proj", 5, 3)):
        tensors[f"{EXPERTS}.{leaf}_blocks"] = torch.randint(0, 256, (3, num_outputs, num_groups, 16), dtype=torch.uint8)
        tensors[f"{EXPERTS}.{leaf}_scales"] = torch.randint(0, 256, (3, num_outputs, num_groups), dtype=torch.uint8)
    weights = written(tmp_path, tensors, CONFIG)
    names = {f"{EXPERTS}.{expert}.{leaf}.weight" for expert in range(3) for leaf in ("gate_up_proj", "down_proj")}
    assert set(weights.names()) == {*names, f"{EXPERTS}.gate_up_proj_bias"}
    assert torch.equal(weights.tensor(f"{EXPERTS}.gate_up_proj_bias", torch.float32), bias)
    for leaf in ("gate_up_proj", "down_proj"):
        stem = f"{EXPERTS}.{leaf}"
        theirs = convert_moe_packed_tensors(tensors[f"{stem}_blocks"], tensors[f"{stem}_scales"], dtype=torch.float64)
        for expert in range(3):
            check_matrix(weights, f"{EXPERTS}.{expert}.{leaf}.weight", theirs[expert].t())
    num_bytes = sum(map(weights.num_bytes, names))
    assert num_bytes == sum(each.nbytes for name, each in tensors.items() if not name.endswith("bias"))


@pytest.mark.parametrize(
    ("blocks", "scales", "message"),
    [
        (torch.zeros(3, 6, 2, 16, dtype=torch.uint8), None, "lacks x.down_proj_scales"),
        (torch.zeros(3, 6, 2, 8, dtype=torch.uint8), torch.zeros(3, 6, 2, dtype=torch.uint8), "expected U8 of shape"),
        (torch.zeros(3, 6, 2, 16, dtype=torch.uint8), torch.zeros(3, 6, 3, dtype=torch.uint8), "expected U8 of shape"),
        (
            torch.zeros(16385, 1, 1, 16, dtype=torch.uint8),
            torch.zeros(16385, 1, 1, dtype=torch.uint8),
            "up to 16384 experts",
        ),
        (torch.zeros(6, 2, 16, dtype=torch.uint8), torch.zeros(6, 2, dtype=torch.uint8), "expected U8 of shape"),
        (torch.zeros(3, 6, 2, 16), torch.zeros(3, 6, 2, dtype=torch.uint8), "expected U8 of shape"),
    ],
)
def test_damaged_experts_are_refused_by_name(
    blocks: Tensor, scales: Tensor | None, message: str, tmp_path: Path
) -> None:
    tensors = {"x.down_proj_blocks": blocks, **({} if scales is None else {"x.down_proj_scales": scales})}
    with pytest.raises(ModelLoadError, match=f"x.down_proj.*{message}"):
        written(tmp_path, tensors, CONFIG)
