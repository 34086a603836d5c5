"""Matrices of experts: their names, what is missing or twice, and the layers that are made of each layout."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from rtlang.model.decoders.expert_parts import ExpertParts, expert_name
from rtlang.model.layers.packed_experts import is_experts
from tests.support.models.expert_layouts import HIDDEN, LAYOUTS, NUM_EXPERTS, PATH, checkpoint_of, stock_of
from tests.support.models.low_bit_checkpoint import Q4_0, MemoryWeights, rounded

FAMILIES = ["mixtral", "gpt_oss"]


def parts_of(stock: Any, weights: MemoryWeights) -> ExpertParts:
    parts = ExpertParts(PATH, stock)
    for name in weights.names():
        found = expert_name(name)
        if found is None:
            parts.add_stacked(name.rpartition(".")[2], name)
        else:
            assert found[0] == PATH
            parts.add(*found[1:], name)
    return parts


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("family", FAMILIES)
def test_experts_of_every_layout_are_the_stock_module(
    family: str, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RTLANG_KERNELS", "reference")  # layers that round nothing
    stock = stock_of(family)
    assert is_experts(stock)
    weights = checkpoint_of(stock, layout)
    parts = parts_of(stock, weights)
    parts.check()
    made = parts.pack(stock, weights, torch.float32, torch.device("cpu"))
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(9, HIDDEN, generator=generator)
    chosen = torch.stack([torch.randperm(NUM_EXPERTS, generator=generator)[:2] for _ in range(9)])
    slots = torch.rand(9, 2, generator=generator)
    torch.testing.assert_close(made(x, chosen, slots), stock(x, chosen, slots), rtol=1e-4, atol=1e-5)
    assert sorted(weights.packed) == sorted(weights.names()) == sorted(parts.names())
    assert not set(weights.reads) & weights.codes.keys()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("model.layers.1.mlp.experts.12.w3.weight", ("model.layers.1.mlp.experts", 12, "up_proj")),
        ("layers.0.experts.0.gate_up_proj.weight", ("layers.0.experts", 0, "gate_up_proj")),
        ("model.layers.1.mlp.experts.down_proj", None),
        ("model.layers.1.mlp.down_proj.weight", None),
        ("model.layers.1.mlp.experts.1.w4.weight", None),
        ("model.layers.1.mlp.experts.1.down_proj.bias", None),
    ],
)
def test_names_say_module_expert_and_role(name: str, expected: tuple[str, int, str] | None) -> None:
    assert expert_name(name) == expected


def test_what_is_missing_or_twice_is_named() -> None:
    stock = stock_of("mixtral")
    weights = checkpoint_of(stock, "apart")
    del weights.codes[f"{PATH}.2.up_proj.weight"]
    with pytest.raises(ValueError, match=r"lack 1 tensors .* model\.layers\.0\.mlp\.experts\.2\.up_proj\.weight"):
        parts_of(stock, weights).check()
    parts = parts_of(stock, checkpoint_of(stock, "apart"))
    with pytest.raises(ValueError, match=r"experts\.0\.gate_proj\.weight and .*w1\.weight are the same weight"):
        parts.add(0, "gate_proj", f"{PATH}.0.w1.weight")
    with pytest.raises(ValueError, match=r"implies 4 experts"):
        parts.add(4, "gate_proj", f"{PATH}.4.w1.weight")
    parts.add_stacked("down_proj", f"{PATH}.down_proj")
    with pytest.raises(ValueError, match=r"down_proj\.weight is unexpected: the same weights have another name"):
        parts.check()


def test_a_matrix_of_another_shape_is_named() -> None:
    stock = stock_of("mixtral")
    weights = checkpoint_of(stock, "apart")
    name = f"{PATH}.3.up_proj.weight"
    weights.codes[name] = rounded(torch.randn(96, 32), Q4_0)
    with pytest.raises(ValueError, match=r"experts\.3\.up_proj\.weight has shape \[96, 32\], .* implies \[96, 64\]"):
        parts_of(stock, weights).pack(stock, weights, torch.float32, torch.device("cpu"))
