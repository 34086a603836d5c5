"""Experts in every layout of checkpoints, stacked for one call and packed one at a time, against the module of transformers."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from rtlang.contract.errors import ModelLoadError
from rtlang.model.decoders.native.expert_matrices import ExpertMatrices
from rtlang.model.decoders.native.experts_part import SeparateExperts
from rtlang.model.layers.checkpoint_source import CheckpointSource
from rtlang.model.layers.linear import Linear
from rtlang.model.loading.layer_table import ExpertsConfig
from rtlang.model.loading.native_families import FAMILIES
from rtlang_kernels import dispatch
from rtlang_kernels.contract.experts import ExpertGate
from rtlang_kernels.contract.low_bit import HeldWeight
from tests.support.models.expert_layouts import HIDDEN, LAYOUTS, NUM_EXPERTS, PATH, Reader, checkpoint_of, stock_of


def matrices_of(stock: Any, layout: str, weights: Reader) -> ExpertMatrices:
    source = CheckpointSource(weights, Path("checkpoint"), torch.float32)
    names = ("w1", "w3", "w2") if layout == "numbered" else ("gate_proj", "up_proj", "down_proj")
    inner = stock.down_proj.shape[1 if stock.is_transposed else 2]
    usual = FAMILIES["gpt_oss"].experts if stock.has_bias else ExpertsConfig(0, 0, 0)
    assert usual is not None
    config = ExpertsConfig(
        NUM_EXPERTS,
        2,
        inner,
        names=names,
        gate=usual.gate,
        has_bias=usual.has_bias,
        is_transposed=usual.is_transposed,
    )
    return ExpertMatrices(source, f"{PATH}.", config, HIDDEN)


@pytest.mark.parametrize("layout", [*LAYOUTS, "floats"])
@pytest.mark.parametrize("family", ["mixtral", "gpt_oss"])
def test_experts_of_every_layout_are_the_stock_module(
    family: str, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stock = stock_of(family)
    weights = Reader() if layout == "floats" else checkpoint_of(stock, layout)
    for name, parameter in stock.named_parameters():
        if name.endswith("bias") or layout == "floats":
            weights.floats[f"{PATH}.{name}"] = parameter.data
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(5, HIDDEN, generator=generator)
    chosen = torch.stack([torch.randperm(NUM_EXPERTS, generator=generator)[:2] for _ in range(5)])
    slots = torch.rand(5, 2, generator=generator)
    expected = stock(x, chosen, slots)
    matrices = matrices_of(stock, layout, weights)

    monkeypatch.setenv("RTLANG_KERNELS", "reference")  # layers that round nothing
    up, down = matrices.packed(partial(Linear.of_parts, dtype=torch.float32))
    found = SeparateExperts(up, down, matrices.gate)(x, chosen, slots, dispatch.REFERENCE)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)

    pytest.importorskip("triton")
    monkeypatch.setenv("RTLANG_KERNELS", "triton")
    layers = matrices.stacked()
    assert (layers is None) == (layout == "mixed")
    if layers is not None:
        make = dispatch.triton_backend().stacked_experts
        assert make is not None
        found = make(*layers, NUM_EXPERTS, matrices.gate, torch.float32)(x, chosen, slots)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_experts_may_have_orders_of_inputs_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """As GPTQ with activation order stores them."""
    pytest.importorskip("triton")
    stock = stock_of("mixtral")
    weights = checkpoint_of(stock, "apart")
    generator = torch.Generator().manual_seed(1)
    for expert in range(NUM_EXPERTS):
        for names, parameter in ((("gate_proj", "up_proj"), stock.gate_up_proj), (("down_proj",), stock.down_proj)):
            order = torch.randperm(parameter.shape[2], generator=generator)
            parameter.data[expert, :, order] = parameter.data[expert].clone()
            for name in names if expert else ():  # the first has none
                held = weights.codes[f"{PATH}.{expert}.{name}.weight"]
                assert isinstance(held, HeldWeight)
                weights.codes[f"{PATH}.{expert}.{name}.weight"] = dataclasses.replace(held, input_order=order)
            if not expert:
                parameter.data[expert] = parameter.data[expert][:, order].clone()
    x, chosen = torch.randn(5, HIDDEN, generator=generator), torch.tensor([[0, 1], [1, 2], [3, 0], [2, 3], [1, 3]])
    slots = torch.rand(5, 2, generator=generator)
    monkeypatch.setenv("RTLANG_KERNELS", "triton")
    layers, make = matrices_of(stock, "apart", weights).stacked(), dispatch.triton_backend().stacked_experts
    assert layers is not None
    assert make is not None
    assert layers[0].input_orders is not None
    found = make(*layers, NUM_EXPERTS, ExpertGate(), torch.float32)(x, chosen, slots)
    torch.testing.assert_close(found, stock(x, chosen, slots), rtol=1e-4, atol=1e-5)


def test_a_missing_matrix_is_named() -> None:
    stock = stock_of("mixtral")
    weights = checkpoint_of(stock, "apart")
    del weights.codes[f"{PATH}.2.up_proj.weight"]
    with pytest.raises(ModelLoadError, match=r"do not contain tensor .*\.experts\.2\.up_proj\.weight"):
        matrices_of(stock, "apart", weights).stacked()
