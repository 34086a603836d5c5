"""Modules over weights of few bits: what they compute, exactly and as packed, and which rows of a step an expert sees."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from rtlang.model.layers.linear import Linear
from rtlang.model.layers.low_bit_modules import LowBitExperts, LowBitModule, low_bit_modules, stand_ins, wrong_layer
from tests.support.models.low_bit_weights import FORMATS, random_weight

HIDDEN, INNER, NUM_EXPERTS = 64, 32, 4


class Stock(torch.nn.Module):
    """What the library's modules of experts say of themselves."""

    has_gate, has_post_expert_norm = True, False

    def _apply_gate(self, up: Tensor) -> Tensor:
        gate, linear = up.chunk(2, -1)
        return functional.silu(gate) * linear

    def act_fn(self, x: Tensor) -> Tensor:
        return x.relu().square()


class RowLayer:
    """A layer whose rows have nothing to do with each other, and which remembers how many it has seen."""

    def __init__(self, num_outputs: int, num_inputs: int, seed: int) -> None:
        self.weight = (
            torch.randn(num_outputs, num_inputs, generator=torch.Generator().manual_seed(seed)) / num_inputs**0.5
        )
        self.in_features, self.out_features, self.seen = num_inputs, num_outputs, 0

    def __call__(self, x: Tensor) -> Tensor:
        self.seen += len(x)
        return torch.stack([(self.weight * row).sum(1) for row in x])


def make_experts(stock: Any = None, *, is_split: bool = False) -> tuple[LowBitExperts, list[Any], list[Any]]:
    stock = stock or Stock()
    width = 2 * INNER if stock.has_gate else INNER
    up = [RowLayer(width, HIDDEN, expert) for expert in range(NUM_EXPERTS)]
    down = [RowLayer(HIDDEN, INNER, 10 + expert) for expert in range(NUM_EXPERTS)]
    pairs: Any = [[(layer, None) for layer in layers] for layers in (up, down)]
    return LowBitExperts(stock, *pairs, is_split=is_split), up, down


def routed(num_tokens: int, seed: int = 0, num_slots: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(num_tokens, HIDDEN, generator=generator)
    chosen = torch.stack([torch.randperm(NUM_EXPERTS, generator=generator)[:num_slots] for _ in range(num_tokens)])
    return x, chosen, torch.rand(num_tokens, num_slots, generator=generator)


def by_hand(x: Tensor, chosen: Tensor, weights: Tensor, up: list[Any], down: list[Any], activate: Any) -> Tensor:
    y = torch.zeros(x.shape, dtype=torch.float64)
    for token, slots in enumerate(chosen.tolist()):
        for slot, expert in enumerate(slots):
            inner = activate(x[token].double() @ up[expert].weight.double().T)
            y[token] += float(weights[token, slot]) * (inner @ down[expert].weight.double().T)
    return y


@pytest.mark.parametrize("has_gate", [True, False])
def test_experts_are_their_formula(has_gate: bool) -> None:
    stock = Stock()
    stock.has_gate = has_gate
    experts, up, down = make_experts(stock)
    x, chosen, weights = routed(7)
    expected = by_hand(x, chosen, weights, up, down, stock._apply_gate if has_gate else stock.act_fn)
    torch.testing.assert_close(experts(x, chosen, weights).double(), expected, rtol=1e-5, atol=1e-5)


def test_outputs_that_are_split_take_turns_again() -> None:
    class InTurns(Stock):
        def _apply_gate(self, up: Tensor) -> Tensor:
            return up[..., ::2].clamp(max=1.0) * up[..., 1::2]

    experts, up, down = make_experts(InTurns(), is_split=True)
    x, chosen, weights = routed(5)

    def activate(both: Tensor) -> Tensor:
        return both[:INNER].clamp(max=1.0) * both[INNER:]

    expected = by_hand(x, chosen, weights, up, down, activate)
    torch.testing.assert_close(experts(x, chosen, weights).double(), expected, rtol=1e-5, atol=1e-5)


def test_a_norm_after_experts_is_applied() -> None:
    stock = Stock()
    stock.has_post_expert_norm = True
    stock.post_expert_norm = lambda y: y / y.norm(dim=-1, keepdim=True)
    experts, *_ = make_experts(stock)
    x, chosen, _ = routed(3, num_slots=1)
    torch.testing.assert_close(experts(x, chosen, torch.ones(3, 1)).norm(dim=-1), torch.ones(3))


def test_only_chosen_experts_compute_and_each_its_tokens() -> None:
    experts, up, down = make_experts()
    x, *_ = routed(3)
    chosen = torch.tensor([[1, 3], [3, 1], [3, 0]])
    experts(x, chosen, torch.ones(3, 2))
    assert [layer.seen for layer in up] == [layer.seen for layer in down] == [1, 2, 0, 3]


def test_an_index_that_is_no_expert_adds_nothing() -> None:
    experts, *_ = make_experts()
    x, *_ = routed(2)
    weights = torch.tensor([[0.3, 0.7], [0.5, 0.5]])
    found = experts(x, torch.tensor([[1, NUM_EXPERTS], [NUM_EXPERTS, NUM_EXPERTS]]), weights)
    alone = experts(x[:1], torch.tensor([[1]]), weights[:1, :1])
    torch.testing.assert_close(found[:1], alone)
    assert not found[1].any()


def test_the_bits_of_a_token_do_not_depend_on_the_other_tokens() -> None:
    experts, *_ = make_experts()
    x, chosen, weights = routed(8)
    expected = experts(x, chosen, weights)
    for place in range(8):
        others_x, others, other_weights = routed(8, seed=place + 1)
        others_x[(place + 1) % 8] = torch.nan
        others_x[place], others[place], other_weights[place] = x[place], chosen[place], weights[place]
        assert torch.equal(experts(others_x, others, other_weights)[place], expected[place])


def packed(num_outputs: int, num_inputs: int, seed: int = 0) -> tuple[Linear, Tensor]:
    bias = torch.randn(num_outputs).bfloat16()
    weight = random_weight(FORMATS["q8_0"], num_outputs, num_inputs, seed)
    return Linear.of_parts([weight], bias, dtype=torch.bfloat16), bias


@pytest.mark.parametrize(("num_outputs", "num_inputs"), [(96, 32), (32, 96), (48, 32), (32, 32)])
def test_a_stand_in_computes_in_float32_and_uses_every_input(num_outputs: int, num_inputs: int) -> None:
    layer, bias = packed(num_outputs, num_inputs)
    first, second = LowBitModule(layer, torch.bfloat16, bias), LowBitModule(layer, torch.bfloat16, bias)
    x = torch.randn(2, 3, num_inputs)
    with stand_ins(torch.nn.Sequential(first, second)):
        found = first(x)
        assert found.shape == (2, 3, num_outputs)
        assert found.dtype is torch.float32
        torch.testing.assert_close(found.square().mean(-1), torch.ones(2, 3))
        assert torch.equal(found, first(x))
        assert not torch.equal(found, second(x))
        for lane in range(num_inputs):
            changed = x.clone()
            changed[0, 0, lane] += 1.0
            assert not torch.equal(first(changed)[0, 0], found[0, 0])
            assert torch.equal(first(changed)[0, 1:], found[0, 1:])
    assert first.stand_in is None
    assert torch.equal(first(x.bfloat16()), layer(x.bfloat16().view(6, -1)).view(2, 3, -1))


def test_stand_ins_of_experts_differ() -> None:
    experts, *_ = make_experts()
    model = torch.nn.Sequential(experts)
    assert low_bit_modules(model) == [experts]
    x, *_ = routed(1)
    with stand_ins(model):
        found = [experts(x, torch.tensor([[expert]]), torch.ones(1, 1)) for expert in range(NUM_EXPERTS)]
    for place, each in enumerate(found):
        assert each.square().mean() == pytest.approx(1.0, rel=1e-4)
        assert not any(torch.equal(each, other) for other in found[:place])


def test_a_layer_that_is_not_its_weight_is_found() -> None:
    class Shifted:
        def __init__(self, layer: Linear) -> None:
            self.in_features, self.out_features, self.rows, self._layer = (
                layer.in_features,
                layer.out_features,
                layer.rows,
                layer,
            )

        def __call__(self, x: Tensor) -> Tensor:
            return self._layer(x).roll(1, 1)

    up, down = (
        [packed(2 * INNER, HIDDEN, seed) for seed in range(NUM_EXPERTS)],
        [packed(HIDDEN, INNER, seed) for seed in range(NUM_EXPERTS)],
    )
    layer, bias = packed(96, HIDDEN)
    model = torch.nn.Sequential(LowBitModule(layer, torch.bfloat16, bias), LowBitExperts(Stock(), up, down))
    assert wrong_layer(model) is None
    broken: Any = Shifted(down[-1][0])
    experts = LowBitExperts(Stock(), up, [*down[:-1], (broken, down[-1][1])])
    found = wrong_layer(torch.nn.Sequential(model[0], experts))
    assert found is not None
    assert found.startswith("1: expert 3: relative error 1")
    single = wrong_layer(torch.nn.Sequential(LowBitModule(broken, torch.bfloat16, down[-1][1])))
    assert single is not None
    assert single.startswith("0: relative error 1")
