"""Experts in one call: their formula in float64, and the bits of their layers called one after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from rtlang_kernels.contract.fused_step import LinearLayer
from rtlang_kernels.contract.low_bit import HeldWeight
from rtlang_kernels.cpu.float8_linear import Float8Linear
from rtlang_kernels.cpu.float_input_linear import FloatInputLinear
from rtlang_kernels.cpu.fused import grouped_experts
from rtlang_kernels.cpu.fused.grouped_experts import CpuExperts
from rtlang_kernels.cpu.layer_ops import silu_and_mul
from rtlang_kernels.cpu.linear import PackedLinear
from rtlang_kernels.cpu.low_bit_linear import LowBitLinear, joined_linear
from rtlang_kernels.reference.experts import ReferenceExperts
from rtlang_kernels.reference.low_bit import exact_weight
from tests.support.kernels.expert_cases import by_formula, routed, silu_gate
from tests.support.kernels.fused_steps import torch_threads
from tests.support.long_tests import crossed, is_long
from tests.support.models.low_bit_weights import FLOAT8, FORMATS, random_weight

HIDDEN, INNER, NUM_EXPERTS = 256, 256, 6
Exact = Callable[[Tensor], Tensor]


class Made(NamedTuple):
    """A packed layer, and its function in float64 without a gate."""

    layer: LinearLayer
    exact: Exact


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def floats(num_outputs: int, num_inputs: int, seed: int, dtype: torch.dtype, *, is_gated: bool = False) -> Made:
    weight = (noise(num_outputs, num_inputs, seed=seed) * num_inputs**-0.5).to(dtype)
    bias = noise(num_outputs, seed=seed + 100).to(dtype)
    layer = PackedLinear.pack([weight], bias, is_gated)
    return Made(layer, lambda x: functional.linear(x, weight.double(), bias.double()))


def stored(
    name: str, num_outputs: int, num_inputs: int, seed: int, dtype: torch.dtype, *, is_gated: bool = False
) -> Made:
    """A layer of few bits or float8; every second expert has its inputs in another order."""
    weight = random_weight({**FORMATS, **FLOAT8}[name], num_outputs, num_inputs, seed)
    if seed % 2 and name == "q4_0":
        order = torch.randperm(num_inputs, generator=torch.Generator().manual_seed(seed))
        weight = HeldWeight(weight.format, weight.held, order)
    kind: Any = Float8Linear if name in FLOAT8 else LowBitLinear
    bias = noise(num_outputs, seed=seed + 100)
    exact = exact_weight(weight)
    return Made(
        kind.pack([weight], bias, is_gated, dtype), lambda x: functional.linear(x, exact.double(), bias.double())
    )


def joined(names: tuple[str, str], num_inputs: int, seed: int, dtype: torch.dtype) -> Made:
    """Gates and factors in two formats, which no layer gates."""
    halves = [stored(name, INNER, num_inputs, 2 * seed, dtype) for name in names]  # in one order
    layer = joined_linear([each.layer for each in halves])
    assert layer is not None
    return Made(layer, lambda x: torch.cat([each.exact(x) for each in halves], 1))


class Gated:
    """A first layer with the gate of the backend, where it has none."""

    def __init__(self, layer: LinearLayer) -> None:
        self.in_features, self._layer = layer.in_features, layer

    def __call__(self, x: Tensor) -> Tensor:
        found = self._layer(x)
        return found if found.shape[1] == INNER else silu_and_mul(found)


def make(kind: str, dtype: torch.dtype) -> tuple[list[Made], list[Made]]:
    """The first and the second layers of all experts; "mixed" has kinds that differ between experts and between their layers."""
    up, down = [], []
    for seed in range(NUM_EXPERTS):
        names = ("floats", "q4_k", "joined")[seed % 3] if kind == "mixed" else kind
        options: dict[str, Any] = {"seed": seed, "dtype": dtype}
        if names == "floats":
            up.append(floats(2 * INNER, HIDDEN, **options, is_gated=True))
        elif names == "joined":
            up.append(joined(("q6_k", "q4_0"), HIDDEN, **options))
        else:
            up.append(stored(names, 2 * INNER, HIDDEN, **options, is_gated=True))
        if kind == "floats" or (kind == "mixed" and seed % 2):
            down.append(floats(HIDDEN, INNER, **options))
        else:
            down.append(stored("q6_k" if kind == "mixed" else kind, HIDDEN, INNER, **options))
    return up, down


def layers(made: list[Made]) -> list[LinearLayer]:
    return [each.layer for each in made]


# Errors of results: rounding to the type, and of inputs to bytes, twice.
TOLERANCE = {"floats": {torch.float32: 1e-6, torch.bfloat16: 8e-3}, "float8 of 128": {torch.bfloat16: 8e-3}}
KINDS = [("floats", torch.float32), ("floats", torch.bfloat16), ("float8 of 128", torch.bfloat16)]
KINDS += [("q4_0", torch.bfloat16), ("mixed", torch.bfloat16), ("mixed", torch.float32)]
CASES = crossed(range(len(KINDS)), (1, 3, 9, 40), (1, 2, 4), (1, 3))


@pytest.mark.parametrize(("kind", "num_tokens", "num_slots", "num_threads"), CASES)
def test_experts_are_their_formula_with_the_bits_of_separate_layers(
    kind: int, num_tokens: int, num_slots: int, num_threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grouped_experts, "WORTH_THREADS", 0)
    name, dtype = KINDS[kind]
    up, down = make(name, dtype)
    x = noise(num_tokens, HIDDEN, seed=1).to(dtype)
    ids, weights = routed(num_tokens, NUM_EXPERTS, num_slots, seed=num_tokens)
    if num_tokens > 3:
        ids[1] = NUM_EXPERTS  # a token of no expert
        ids[2, 0], weights[2, 0] = -1, torch.nan
    experts = CpuExperts.of(layers(up), layers(down), dtype)
    assert isinstance(experts, CpuExperts)
    with torch_threads(num_threads):
        found = experts(x, ids, weights)
    apart: Any = [Gated(each) for each in layers(up)]
    assert torch.equal(found, ReferenceExperts(apart, layers(down), dtype)(x, ids, weights))
    exact = by_formula(x, ids, weights, [each.exact for each in up], [each.exact for each in down], silu_gate)
    error = float((found.double() - exact).norm() / exact.norm())
    assert error <= TOLERANCE.get(name, {}).get(dtype, 3e-2)


@pytest.mark.parametrize(("name", "dtype"), KINDS[1:5])
def test_the_bits_of_a_token_depend_on_no_other_token(name: str, dtype: torch.dtype) -> None:
    up, down = make(name, dtype)
    experts = CpuExperts(layers(up), layers(down), dtype)
    x, (ids, weights) = noise(30, HIDDEN, seed=2).to(dtype), routed(30, NUM_EXPERTS, 2)
    alone = [experts(x[i : i + 1], ids[i : i + 1], weights[i : i + 1]) for i in range(8)]
    for num_tokens in (2, 5, 9, 30) if is_long() else (5, 30):
        for shift in range(0, num_tokens, 3):
            places = torch.arange(num_tokens).roll(shift)
            others = x.clone()
            others[8:] = torch.nan
            found = experts(others[places], ids[places], weights[places])
            for place, token in enumerate(places.tolist()):
                assert token >= 8 or torch.equal(found[place], alone[token][0])


def turns(both: Tensor) -> Tensor:
    """GPT-OSS: gates and factors take turns, and both are clamped."""
    gate, factor = both[..., ::2].clamp(max=0.7), both[..., 1::2].clamp(-0.7, 0.7)
    return gate * (1.702 * gate).sigmoid() * (factor + 1)


@pytest.mark.parametrize(("name", "activation"), [("floats", turns), ("q8_0", turns), ("floats", torch.relu)])
def test_an_activation_and_a_norm_see_all_pairs_in_their_order(name: str, activation: Exact) -> None:
    dtype, width = torch.bfloat16, INNER if activation is torch.relu else 2 * INNER
    one = floats if name == "floats" else lambda *sizes, **options: stored(name, *sizes, **options)
    up: list[Made] = [one(width, HIDDEN, seed=seed, dtype=dtype) for seed in range(NUM_EXPERTS)]
    down: list[Made] = [one(HIDDEN, INNER, seed=seed, dtype=dtype) for seed in range(NUM_EXPERTS)]
    x, (ids, weights) = noise(7, HIDDEN, seed=3).to(dtype), routed(7, NUM_EXPERTS, 3)
    ids[2] = NUM_EXPERTS
    seen: list[Tensor] = []

    def watched(both: Tensor) -> Tensor:
        seen.append(both.clone())
        return activation(both)

    experts, apart = (kind(layers(up), layers(down), dtype) for kind in (CpuExperts, ReferenceExperts))
    found = experts(x, ids, weights, watched)
    chosen = ids.reshape(-1).tolist()
    for pair, expert in enumerate(chosen):
        line = x[pair // 3 : pair // 3 + 1]
        expected = up[expert].layer(line)[0] if expert < NUM_EXPERTS else torch.zeros(width, dtype=dtype)
        assert torch.equal(seen[0][pair], expected)
    assert len(seen) == 1
    exact = by_formula(x, ids, weights, [each.exact for each in up], [each.exact for each in down], activation)
    assert float((found.double() - exact).norm() / exact.norm()) <= 3e-2

    def scaled(y: Tensor) -> Tensor:
        return y * torch.arange(len(y))[:, None]

    for norm in (None, scaled):
        assert torch.equal(experts(x, ids, weights, activation, norm), apart(x, ids, weights, activation, norm))


def test_a_first_layer_without_gates_needs_an_activation() -> None:
    up, down = [floats(3 * INNER, HIDDEN, 0, torch.float32)], [floats(HIDDEN, INNER, 0, torch.float32)]
    experts = CpuExperts(layers(up), layers(down), torch.float32)
    with pytest.raises(ValueError, match=f"activation = None: expected a function of {3 * INNER} results"):
        experts(torch.ones(1, HIDDEN), torch.zeros(1, 1, dtype=torch.int64), torch.ones(1, 1))


def test_layers_without_kernels_in_tables_are_called_one_after_another() -> None:
    weight = random_weight(FORMATS["q4_0"], HIDDEN, INNER)
    down = [FloatInputLinear.pack([weight], None, False, torch.bfloat16)]
    up = layers([floats(2 * INNER, HIDDEN, 0, torch.bfloat16, is_gated=True)])
    assert isinstance(CpuExperts.of(up, down, torch.bfloat16), ReferenceExperts)
