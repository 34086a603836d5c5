"""Modules of experts of `transformers`, and checkpoints of their matrices in every layout."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rtlang_kernels.contract.low_bit import HeldWeight
from rtlang_kernels.reference.low_bit import exact_weight
from tests.support.models.low_bit_checkpoint import Q4_0, MemoryWeights, rounded
from tests.support.models.tiny_models import make_model

PATH, NUM_EXPERTS, HIDDEN = "model.layers.0.mlp.experts", 4, 64
LAYOUTS = ["joined", "apart", "numbered", "mixed", "stacked"]


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
