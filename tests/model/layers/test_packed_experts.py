"""Packed experts against the modules of the library, which compute them one after another in float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from rtlang.model.layers.packed_experts import PackedExperts, has_silu_gate, is_experts, pack_experts
from rtlang_kernels.cpu.fused.grouped_experts import CpuExperts
from tests.support.kernels.expert_cases import routed
from tests.support.models.tiny_models import make_model

NUM_EXPERTS, HIDDEN = 4, 64


def stock_of(name: str) -> Any:
    """A module of experts of the library with random weights, in float32."""
    if name == "nemotron_h":  # an activation, and no gates
        from transformers.models.nemotron_h.configuration_nemotron_h import NemotronHConfig
        from transformers.models.nemotron_h.modeling_nemotron_h import NemotronHExperts

        sizes = {"hidden_size": HIDDEN, "moe_intermediate_size": 32, "n_routed_experts": NUM_EXPERTS}
        made: Any = NemotronHExperts(NemotronHConfig(**sizes, moe_latent_size=None))
    else:
        made = make_model(name).get_submodule("model.layers.0.mlp.experts")
    made.config._experts_implementation = "eager"
    generator = torch.Generator().manual_seed(0)
    for parameter in made.parameters():
        parameter.data.normal_(0.0, 0.2, generator=generator)
    return made.requires_grad_(False)


def inputs(num_tokens: int = 9) -> tuple[Tensor, Tensor, Tensor]:
    x = torch.randn(num_tokens, HIDDEN, generator=torch.Generator().manual_seed(1))
    return x, *routed(num_tokens, NUM_EXPERTS, 2)


def packed(stock: Any) -> PackedExperts:
    model = nn.Sequential(stock)
    assert pack_experts(model) == 1
    made = model[0]
    assert isinstance(made, PackedExperts)
    return made


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", ["mixtral", "gpt_oss", "nemotron_h"])
def test_packed_experts_are_the_stock_module(name: str, dtype: torch.dtype) -> None:
    stock = stock_of(name).to(dtype)
    x, ids, weights = inputs()
    expected = stock.float()(x, ids, weights)
    found = packed(stock.to(dtype))(x.to(dtype), ids, weights.to(dtype)).float()
    tolerance = 1e-5 if dtype == torch.float32 else 2e-2
    assert float((found - expected).norm() / expected.norm()) < tolerance


def test_matrices_are_freed_and_kernels_compute_all_experts_in_one_call() -> None:
    stock = stock_of("mixtral")
    made = packed(stock)
    assert made.stock is stock
    assert not [each for each in made.parameters() if each.ndim == 3]
    made(*inputs())
    assert isinstance(made._experts, CpuExperts)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_dtype_without_packed_layers_is_left_alone(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RTLANG_KERNELS", "reference")
    model = nn.Sequential(stock_of("mixtral").to(dtype))
    assert pack_experts(model) == 0
    assert is_experts(model[0])
    assert not isinstance(model[0], PackedExperts)


def test_what_ranks_do_before_and_after_experts_stays() -> None:
    stock = stock_of("mixtral")
    x, ids, weights = inputs()
    expected = stock(x, ids, weights)
    stock.register_forward_pre_hook(lambda _, args: (args[0] / 2, *args[1:]))
    stock.register_forward_hook(lambda _, __, output: output + 1)
    torch.testing.assert_close(packed(stock)(2 * x, ids, weights), expected + 1, rtol=1e-4, atol=1e-5)


def clamped(limit: float) -> Callable[[Tensor], Tensor]:
    def gate(both: Tensor) -> Tensor:
        first, second = both.chunk(2, -1)
        return nn.functional.silu(first.clamp(max=limit)) * second

    return gate


def test_gates_of_kernels_are_told_from_others_also_where_only_large_inputs_differ() -> None:
    assert has_silu_gate(stock_of("mixtral"))
    assert not has_silu_gate(stock_of("gpt_oss"))
    assert not has_silu_gate(stock_of("nemotron_h"))
    stock = stock_of("mixtral")
    for gate in (clamped(7.0), clamped(100.0), lambda both: nn.functional.gelu(both.chunk(2, -1)[0])):
        stock._apply_gate = gate
        assert not has_silu_gate(stock)
    stock._apply_gate = clamped(1e9)
    assert has_silu_gate(stock)


@pytest.mark.parametrize("name", ["mixtral", "gpt_oss", "nemotron_h"])
def test_a_device_computes_experts_from_their_stacks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton")
    from rtlang_kernels.triton.experts.experts import GpuExperts

    stock = stock_of(name)
    x, ids, weights = inputs()
    expected, memory = stock(x, ids, weights), stock.down_proj.data_ptr()
    monkeypatch.setenv("RTLANG_KERNELS", "triton")
    made = packed(stock)
    assert not [each for each in made.parameters() if each.ndim == 3]
    found = made(x, ids, weights)
    assert float((found - expected).norm() / expected.norm()) < 1e-5
    experts = made._experts
    assert isinstance(experts, GpuExperts)
    assert stock.is_transposed or experts._down.held[0].data_ptr() == memory  # not copied
