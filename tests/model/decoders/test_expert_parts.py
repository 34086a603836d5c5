"""Matrices of experts: their names, what is missing or twice, and the layers that are made of each layout."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from rtlang.model.decoders.expert_parts import ExpertParts, expert_name
from rtlang.model.layers.packed_experts import is_experts
from rtlang_kernels.contract.low_bit import HeldWeight
from rtlang_kernels.reference.low_bit import exact_weight
from tests.support.models.low_bit_checkpoint import Q4_0, MemoryWeights, rounded
from tests.support.models.tiny_models import make_model

PATH, NUM_EXPERTS, HIDDEN = "model.layers.0.mlp.experts", 4, 64
FAMILIES = ["mixtral", "gpt_oss"]


def stock_of(family: str) -> Any:
    """A module of experts with weights that q4_0 holds exactly."""
    stock = make_model(family).get_submodule(PATH)
    stock.config._experts_implementation = "eager"
    for parameter in ("gate_up_proj", "down_proj"):
        weights = getattr(stock, parameter).data
        matrices = [exact_weight(held) for held in rounded_experts(weights, stock.is_transposed)]
        weights.copy_(torch.stack([each.T if stock.is_transposed else each for each in matrices]))
    return stock.requires_grad_(False)


def rounded_experts(weights: Tensor, is_transposed: bool) -> list[HeldWeight]:
    return [rounded((each.T if is_transposed else each).contiguous(), Q4_0) for each in weights]


def matrices_of(stock: Any) -> tuple[list[Tensor], list[Tensor]]:
    """Gate and up in the stock module's order of rows, and down: [out, in] of each expert."""
    return tuple(  # type: ignore[return-value]
        [each.T.contiguous() if stock.is_transposed else each for each in getattr(stock, parameter)]
        for parameter in ("gate_up_proj", "down_proj")
    )


class Reader(MemoryWeights):
    """Weights in memory, and the names of those that were packed."""

    def __init__(self) -> None:
        super().__init__({}, {})
        self.packed: list[str] = []

    def note_packed(self, name: str) -> None:
        self.packed.append(name)


def checkpoint_of(stock: Any, layout: str) -> Reader:
    both, down = matrices_of(stock)
    weights = Reader()
    for expert in range(NUM_EXPERTS):
        path = f"{PATH}.{expert}"
        if layout == "joined":
            weights.codes[f"{path}.gate_up_proj.weight"] = rounded(both[expert], Q4_0)
        else:
            gate, up = both[expert].chunk(2) if stock.is_concatenated else (both[expert][::2], both[expert][1::2])
            names = ("w1", "w3") if layout == "numbered" else ("gate_proj", "up_proj")
            weights.codes[f"{path}.{names[0]}.weight"] = rounded(gate, Q4_0)
            if layout == "mixed":
                weights.floats[f"{path}.{names[1]}.weight"] = up
            else:
                weights.codes[f"{path}.{names[1]}.weight"] = rounded(up, Q4_0)
        if layout != "stacked":
            weights.codes[f"{path}.{'w2' if layout == 'numbered' else 'down_proj'}.weight"] = rounded(
                down[expert], Q4_0
            )
    if layout == "stacked":
        weights.floats[f"{PATH}.down_proj"] = stock.down_proj.data
    return weights


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


@pytest.mark.parametrize("layout", ["joined", "apart", "numbered", "mixed", "stacked"])
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
