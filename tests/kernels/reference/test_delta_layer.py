"""Gated delta layers of every backend against the module of transformers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import Qwen3_5TextConfig
from transformers.models.qwen3_5 import modeling_qwen3_5 as qwen

from rtlang_kernels import ops
from rtlang_kernels.contract.delta_layer import DeltaLayer, DeltaWeights
from rtlang_kernels.contract.state_plan import NO_SLOT
from tests.support.kernels.attention_cases import use_backend
from tests.support.kernels.recurrence_cases import Rows, error
from tests.support.long_tests import crossed

BACKENDS = ["reference", "cpu"]
DTYPES = [torch.float32, torch.bfloat16]
SIZES = [(2, 4, 16, 16), (1, 2, 32, 24)]
CUTS = (0, 1, 9, 10, 31)


def module_of(sizes: tuple[int, int, int, int], dtype: torch.dtype) -> Any:
    """A random module of float32 whose parameters `dtype` can hold; its output projection changes nothing."""
    torch.manual_seed(3)
    config = Qwen3_5TextConfig(
        hidden_size=sizes[1] * sizes[3],
        num_hidden_layers=1,
        layer_types=["linear_attention"],
        linear_num_key_heads=sizes[0],
        linear_num_value_heads=sizes[1],
        linear_key_head_dim=sizes[2],
        linear_value_head_dim=sizes[3],
    )
    module = qwen.Qwen3_5GatedDeltaNet(config, 0)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_((parameter + 0.3 * torch.randn_like(parameter)).to(dtype).float())
        module.out_proj.weight.copy_(torch.eye(config.hidden_size))
    return module.float().eval()


def weights_of(module: Any, dtype: torch.dtype) -> DeltaWeights:
    return DeltaWeights(
        module.conv1d.weight[:, 0].detach().to(dtype),
        -module.A_log.detach().exp(),
        module.dt_bias.detach().float(),
        module.norm.weight.detach().float(),
        module.num_k_heads,
        module.head_k_dim,
        module.layer_norm_epsilon,
    )


def inputs_of(module: Any, hidden: Tensor, dtype: torch.dtype) -> Tensor:
    """The projected inputs [T, num_inputs], which begin inside of a wider tensor."""
    parts = [part(hidden) for part in (module.in_proj_qkv, module.in_proj_z, module.in_proj_b, module.in_proj_a)]
    wide = torch.cat([torch.full((len(hidden), 3), torch.nan), *parts], 1).detach().to(dtype)
    return wide[:, 3:]


def states_of(weights: DeltaWeights, num_slots: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    shape = weights.num_v_heads, weights.k_dim, weights.v_dim
    conv = torch.full((num_slots, weights.num_channels, weights.conv.shape[1] - 1), 3.0, dtype=dtype)
    return conv, torch.full((num_slots, *shape), 3.0)


def in_steps(layer: DeltaLayer, weights: DeltaWeights, x: Tensor, cuts: tuple[int, ...]) -> tuple[Tensor, ...]:
    """The outputs and the states of a sequence in slot 1, one row a step beside a row of its first tokens, in slot 0."""
    states = states_of(weights, 3, x.dtype)
    parts, source = [], NO_SLOT
    for start, stop in pairwise(cuts):
        length = stop - start
        rows = Rows([2, length], [NO_SLOT, source], [[(2, 0)], [(length, 1)]], 3)
        parts.append(layer(torch.cat([x[:2], x[start:stop]]), *states, rows.plan())[2:])
        source = 1
    return torch.cat(parts), *(each[:2].clone() for each in states)


@pytest.mark.parametrize(("name", "dtype", "sizes"), crossed(BACKENDS, DTYPES, SIZES), ids=str)
def test_layers_are_those_of_transformers_in_any_steps(
    name: str, dtype: torch.dtype, sizes: tuple[int, int, int, int]
) -> None:
    module = module_of(sizes, dtype)
    weights = weights_of(module, dtype)
    hidden = torch.randn(CUTS[-1], module.hidden_size)
    x = inputs_of(module, hidden, dtype)
    with torch.no_grad(), use_backend(name):
        layer = ops.backend_for(x.device, dtype).delta_layer(weights)
        found, *states = in_steps(layer, weights, x, CUTS)
        whole, *others = in_steps(layer, weights, x, (0, CUTS[-1]))
        want = module(hidden[None])[0]
    assert found.dtype == dtype
    assert error(found, want.double()) < (1e-5 if dtype is torch.float32 else 2e-2)
    assert torch.equal(found, whole)
    assert all(torch.equal(a, b) for a, b in zip(states, others, strict=True))


@pytest.mark.parametrize(("name", "dtype", "size"), crossed(BACKENDS, DTYPES, [64, 37]), ids=str)
def test_the_sigmoid_gate(name: str, dtype: torch.dtype, size: int) -> None:
    generator = torch.Generator().manual_seed(size)
    x, wide = (torch.randn(5, size + add, generator=generator).mul(4).to(dtype) for add in (0, 6))
    gate = wide[:, 2 : 2 + size]
    gate[0, :2] = torch.tensor([float("-inf"), float("inf")])
    want = x.double() * gate.double().sigmoid()
    with use_backend(name):
        found, alone = x.clone(), x[3:4].clone()
        ops.sigmoid_gate(found, gate)
        ops.sigmoid_gate(alone, gate[3:4])
    assert error(found, want) < (1e-6 if dtype is torch.float32 else 4e-3)
    assert np.array_equal(found[3:4].float().numpy(), alone.float().numpy())
