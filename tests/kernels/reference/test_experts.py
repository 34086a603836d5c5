"""Reference experts against their formula in float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from rtlang_kernels.reference.experts import ReferenceExperts, route
from tests.support.kernels.expert_cases import by_formula, routed, routed_in_float64, silu_gate

HIDDEN, INNER, NUM_EXPERTS = 24, 20, 5


class Layer:
    """A plain linear layer, as a `LinearLayer`."""

    def __init__(self, num_outputs: int, num_inputs: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.weight = torch.randn(num_outputs, num_inputs, generator=generator) / num_inputs**0.5
        self.bias = torch.randn(num_outputs, generator=generator)
        self.in_features, self.out_features, self.num_rows = num_inputs, num_outputs, list[int]()

    def __call__(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        self.num_rows.append(len(x))
        return functional.linear(x, self.weight, self.bias)

    def exact(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight.double(), self.bias.double())


def layers() -> tuple[list[Any], list[Any]]:
    up = [Layer(2 * INNER, HIDDEN, seed) for seed in range(NUM_EXPERTS)]
    return up, [Layer(HIDDEN, INNER, 10 + seed) for seed in range(NUM_EXPERTS)]


def clamped(both: Tensor) -> Tensor:
    return both[..., ::2].clamp(max=0.5) * (both[..., 1::2] + 1)


@pytest.mark.parametrize("activation", [None, clamped], ids=["gated", "clamped"])
@pytest.mark.parametrize(("num_tokens", "num_slots"), [(1, 1), (1, 4), (9, 2)])
def test_experts_are_their_formula(num_tokens: int, num_slots: int, activation: Any) -> None:
    up, down = layers()
    x = torch.randn(num_tokens, HIDDEN, generator=torch.Generator().manual_seed(1))
    ids, weights = routed(num_tokens, NUM_EXPERTS, num_slots)
    ids[0, 0], weights[0, 0] = NUM_EXPERTS, torch.inf  # no expert
    found = ReferenceExperts(up, down, torch.float32)(x, ids, weights, activation)
    exact = [[layer.exact for layer in each] for each in (up, down)]
    expected = by_formula(x, ids, weights, *exact, activation or silu_gate)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)


def test_each_chosen_expert_is_called_once_with_all_its_tokens() -> None:
    up, down = layers()
    ids = torch.tensor([[1, 3], [3, 1], [3, 0]])
    ReferenceExperts(up, down, torch.float32)(torch.randn(3, HIDDEN), ids, torch.ones(3, 2))
    assert [layer.num_rows for layer in up] == [layer.num_rows for layer in down] == [[1], [2], [], [3], []]


def test_a_norm_is_applied_to_each_pair() -> None:
    up, down = layers()
    ids, weights = routed(4, NUM_EXPERTS, 2)
    x = torch.randn(4, HIDDEN)
    found = ReferenceExperts(up, down, torch.float32)(x, ids, weights, None, lambda y: y / y.norm(dim=1, keepdim=True))
    first, second = ([layer.exact for layer in each] for each in (up, down))
    unit: Any = [lambda h, f=f: f(h) / f(h).norm(dim=1, keepdim=True) for f in second]
    torch.testing.assert_close(found.double(), by_formula(x, ids, weights, first, unit, silu_gate))


def test_tokens_without_experts_and_no_tokens_are_zeros() -> None:
    experts = ReferenceExperts(*layers(), torch.float32)
    assert not experts(torch.ones(2, HIDDEN), torch.full((2, 2), NUM_EXPERTS), torch.ones(2, 2)).any()
    assert experts(torch.ones(2, HIDDEN), torch.zeros(2, 0, dtype=torch.int64), torch.ones(2, 0)).shape == (2, HIDDEN)
    assert experts(torch.ones(0, HIDDEN), torch.zeros(0, 2, dtype=torch.int64), torch.ones(0, 2)).shape == (0, HIDDEN)


@pytest.mark.parametrize("num_experts", [4, 60])
@pytest.mark.parametrize("is_normalized", [True, False])
def test_the_likeliest_experts_are_chosen_with_their_weights(num_experts: int, is_normalized: bool) -> None:
    logits = torch.randn(9, num_experts, generator=torch.Generator().manual_seed(1))
    expert_ids, weights = route(logits, 3, is_normalized)
    exact_ids, exact = routed_in_float64(logits, 3, is_normalized=is_normalized)
    assert torch.equal(expert_ids, exact_ids)
    torch.testing.assert_close(weights.double(), exact, rtol=1e-5, atol=1e-7)
    for place in range(9):
        for count in (1, 2, 5):
            line = logits[place].expand(count, num_experts)
            assert torch.equal(route(line, 3, is_normalized)[1], weights[place].expand(count, 3))
