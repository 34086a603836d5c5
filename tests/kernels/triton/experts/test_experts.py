"""Experts on a GPU against their formula in float64, and the independence of a token's bits from all other tokens.

In the interpreter, or natively with RTLANG_TEST_DEVICE=cuda.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from rtlang.model.gpu import sync_check
from rtlang_kernels.contract.experts import ExpertGate, StackedLayer
from rtlang_kernels.contract.low_bit import HeldWeight, StackedWeight
from rtlang_kernels.reference.low_bit import exact_weight
from rtlang_kernels.triton.experts import experts as module
from rtlang_kernels.triton.experts.experts import GpuExperts, route
from tests.support.kernels.attention_cases import relative_error
from tests.support.kernels.expert_cases import by_formula, clamped_gate, routed, routed_in_float64, silu_gate
from tests.support.kernels.gpu import DEVICE
from tests.support.long_tests import is_long
from tests.support.models.low_bit_weights import FLOAT8, FORMATS, random_weight

HIDDEN, INNER, NUM_EXPERTS = 48, 40, 5
ERROR = {torch.float32: 2e-6, torch.float16: 1e-3, torch.bfloat16: 6e-3}
GATES: dict[str, tuple[ExpertGate, Callable[[Tensor], Tensor]]] = {
    "silu": (ExpertGate(), silu_gate),
    "clamped, alternating": (ExpertGate(is_alternating=True, alpha=1.7, offset=1.0, limit=0.7), clamped_gate(1.7, 0.7)),
}


@dataclass
class Case:
    """Experts, and the exact functions of the layers of each."""

    experts: GpuExperts
    up: list[Callable[[Tensor], Tensor]]
    down: list[Callable[[Tensor], Tensor]]


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def linear(weight: Tensor, bias: Tensor | None) -> Callable[[Tensor], Tensor]:
    return lambda x: functional.linear(x, weight.double(), None if bias is None else bias.double())


def floats(dtype: torch.dtype, gate: ExpertGate, *, num_experts: int = NUM_EXPERTS) -> Case:
    sizes = (2 * INNER, HIDDEN), (HIDDEN, INNER)
    weights = [(noise(num_experts, *size, seed=size[0]) * size[1] ** -0.5).to(dtype) for size in sizes]
    biases = [noise(num_experts, size[0], seed=size[1]).to(dtype) for size in sizes]
    layers = [
        StackedLayer(weight.flatten(0, 1).to(DEVICE), bias.flatten().to(DEVICE))
        for weight, bias in zip(weights, biases, strict=True)
    ]
    up, down = (list(map(linear, weight, bias)) for weight, bias in zip(weights, biases, strict=True))
    return Case(GpuExperts(layers[0], layers[1], num_experts, gate, dtype), up, down)


def few_bits(name: str, dtype: torch.dtype) -> Case:
    """Experts of 128 inputs and results; inputs of int4 are in one order, those of q4_0 in one for each expert."""
    made, exact = [], []
    generator = torch.Generator().manual_seed(3)
    orders = torch.stack([torch.randperm(128, generator=generator) for _ in range(NUM_EXPERTS)])
    for num_outputs in (256, 128):
        parts = [
            random_weight((FORMATS | FLOAT8)[name], num_outputs, 128 if "_k" not in name else 256, seed)
            for seed in range(NUM_EXPERTS)
        ]
        if name == "q4_0":
            made.append(StackedLayer(StackedWeight(parts), input_orders=orders))
            parts = [HeldWeight(each.format, each.held, order) for each, order in zip(parts, orders, strict=True)]
        else:
            one = orders[0] if "int4" in name else None
            parts = [HeldWeight(each.format, each.held, one) for each in parts]
            made.append(StackedLayer(StackedWeight(parts)))
        exact.append([linear(exact_weight(each), None) for each in parts])
    return Case(GpuExperts(made[0], made[1], NUM_EXPERTS, ExpertGate(), dtype), *exact)


def inputs(num_tokens: int, num_slots: int, dtype: torch.dtype, size: int = HIDDEN) -> tuple[Tensor, Tensor, Tensor]:
    ids, weights = routed(num_tokens, NUM_EXPERTS, num_slots, seed=num_tokens)
    return noise(num_tokens, size, seed=1).to(dtype).to(DEVICE), ids.to(DEVICE), weights.to(DEVICE)


def wanted(case: Case, x: Tensor, ids: Tensor, weights: Tensor, activate: Callable[[Tensor], Tensor]) -> Tensor:
    return by_formula(x.cpu(), ids.cpu(), weights.cpu(), case.up, case.down, activate)


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize(
    ("dtype", "num_tokens", "num_slots"),
    [(torch.float32, 7, 4), (torch.bfloat16, 30, 3), (torch.float16, 1, 1)],
    ids=str,
)
def test_experts_are_their_formula(dtype: torch.dtype, num_tokens: int, num_slots: int, gate: str) -> None:
    form, activate = GATES[gate]
    case = floats(dtype, form)
    x, ids, weights = inputs(num_tokens, num_slots, dtype)
    if num_tokens > 1:
        ids[1] = NUM_EXPERTS  # a token of no expert
        ids[2, 0], weights[2, 0] = -1, torch.nan
    found = case.experts(x, ids, weights)
    assert found.dtype == dtype
    assert relative_error(found.cpu(), wanted(case, x, ids, weights, activate)) < ERROR[dtype]
    assert num_tokens == 1 or not found[1].any()


@pytest.mark.parametrize("name", ["mxfp4", "q4_0", "float8 of 128", "int4 of 64 with zero points"])
def test_experts_of_few_bits_are_computed_from_their_codes(name: str) -> None:
    case = few_bits(name, torch.float32)
    x, ids, weights = inputs(4, 2, torch.float32, 128)
    found = case.experts(x, ids, weights)
    assert relative_error(found.cpu(), wanted(case, x, ids, weights, silu_gate)) < ERROR[torch.float32]
    weight = case.experts.num_bytes
    assert weight < NUM_EXPERTS * 3 * 128 * 128 * (1.1 if "8" in name else 0.7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_the_bits_of_a_token_depend_on_no_other_token(dtype: torch.dtype) -> None:
    case = floats(dtype, ExpertGate(), num_experts=2)  # hundreds of tokens for each
    count = 300 if is_long() else 70
    x = noise(count, HIDDEN, seed=2).to(dtype).to(DEVICE)
    ids, weights = (each.to(DEVICE) for each in routed(count, 2, 2))
    alone = [case.experts(x[i : i + 1], ids[i : i + 1], weights[i : i + 1]) for i in range(3)]
    for num_tokens in (12, count):
        others = x[:num_tokens].clone()
        others[3:] = torch.nan
        places = torch.arange(num_tokens).roll(7)
        found = case.experts(others[places], ids[places], weights[places])
        for index, bits in enumerate(alone):
            assert torch.equal(found[7 + index], bits[0])


def test_functions_of_the_caller_see_pairs_in_their_order() -> None:
    form, activate = GATES["silu"]
    case = floats(torch.float32, form)
    x, ids, weights = inputs(5, 2, torch.float32)
    ids[3, 1] = NUM_EXPERTS
    seen: list[Tensor] = []

    def noted(up: Tensor) -> Tensor:
        seen.append(up.cpu())
        return activate(up)

    found = case.experts(x, ids, weights, noted, lambda y: y / y.norm(dim=1, keepdim=True))
    unit: Any = [lambda h, f=f: f(h) / f(h).norm(dim=1, keepdim=True) for f in case.down]
    exact = by_formula(x.cpu(), ids.cpu(), weights.cpu(), case.up, unit, activate)
    assert relative_error(found.cpu(), exact) < ERROR[torch.float32]
    for pair, expert in enumerate(ids.flatten().tolist()):
        line = x[pair // 2 : pair // 2 + 1].cpu().double()
        row = case.up[expert](line)[0] if expert < NUM_EXPERTS else torch.zeros(2 * INNER, dtype=torch.float64)
        torch.testing.assert_close(seen[0][pair].double(), row, rtol=1e-5, atol=1e-5)


def test_nothing_is_read_back_and_no_tokens_are_no_work() -> None:
    case = floats(torch.float32, ExpertGate())
    x, ids, weights = inputs(4, 2, torch.float32)
    assert (
        sync_check.obstacle(lambda: case.experts(x, *route(x @ noise(HIDDEN, 9).to(DEVICE), 2, True)), DEVICE) is None
    )
    assert case.experts(x[:0], ids[:0], weights[:0]).shape == (0, HIDDEN)
    assert not case.experts(x, ids[:, :0], weights[:, :0]).any()


def test_what_does_not_fit_is_named() -> None:
    case = floats(torch.float32, ExpertGate())
    x, ids, weights = inputs(2, 1, torch.float32)
    with pytest.raises(ValueError, match=r"expert_ids = torch\.int32"):
        case.experts(x, ids.int(), weights)
    up, down = (StackedLayer(noise(*shape).to(DEVICE)) for shape in ((6 * 8, 4), (6 * 4, 4)))
    bare = GpuExperts(up, down, 6, None, torch.float32)
    with pytest.raises(ValueError, match="activation = None"):
        bare(noise(1, 4).to(DEVICE), ids[:1], weights[:1])
    with pytest.raises(ValueError, match=r"up = 8 outputs: expected 2 \* 3"):
        GpuExperts(up, StackedLayer(noise(24, 3).to(DEVICE)), 6, ExpertGate(), torch.float32)
    with pytest.raises(ValueError, match=r"weight = \[48, 4\]: expected outputs of 7 experts"):
        GpuExperts(up, down, 7, None, torch.float32)
    with pytest.raises(ValueError, match=r"expected contiguous torch\.bfloat16"):
        GpuExperts(up, down, 6, None, torch.bfloat16)


@pytest.mark.parametrize(("num_tokens", "num_slots"), [(9, 3), (400, 3)])
def test_pairs_are_sorted_by_expert_and_cut_into_blocks(num_tokens: int, num_slots: int) -> None:
    """With one chunk of pairs, and with some."""
    experts = floats(torch.float32, ExpertGate()).experts
    generator = torch.Generator().manual_seed(num_tokens)
    ids = torch.randint(-1, NUM_EXPERTS + 1, (num_tokens, num_slots), generator=generator)
    order, blocks = (each.cpu().tolist() for each in experts._sorted(ids.to(DEVICE), 16, module._run))
    flat = ids.flatten().tolist()
    sorted_pairs = [pair for expert in range(NUM_EXPERTS) for pair, own in enumerate(flat) if own == expert]
    assert order[: len(sorted_pairs)] == sorted_pairs
    fields = [tuple(blocks[start : start + 3]) for start in range(4, 4 + 4 * blocks[0], 4)]
    assert blocks[0] <= module.most_blocks(len(flat), NUM_EXPERTS, 16)
    place, expected = 0, []
    for expert in range(NUM_EXPERTS):
        last = place + flat.count(expert)
        while place < last:
            expected.append((expert, place, min(16, last - place)))
            place += expected[-1][2]
    assert fields == expected


@pytest.mark.parametrize("num_experts", [4, 60])
@pytest.mark.parametrize("is_normalized", [True, False])
def test_the_likeliest_experts_are_chosen_with_their_weights(num_experts: int, is_normalized: bool) -> None:
    logits = noise(5, num_experts, seed=1)
    found, exact = route(logits.to(DEVICE), 3, is_normalized), routed_in_float64(logits, 3, is_normalized=is_normalized)
    assert torch.equal(found[0].cpu(), exact[0])
    torch.testing.assert_close(found[1].cpu().double(), exact[1], rtol=1e-5, atol=1e-7)


def test_the_lower_of_equal_experts_is_chosen_and_nan_is_not() -> None:
    logits = torch.tensor([[1.0, 3.0, 3.0, 1.0], [torch.nan, 1.0, 0.0, -1.0], [torch.nan] * 4])
    ids, weights = (each.cpu() for each in route(logits.to(DEVICE).bfloat16(), 3, False))
    assert ids[:2].tolist() == [[1, 2, 0], [1, 2, 3]]
    assert bool(((ids >= 0) & (ids < 4)).all())  # so that nothing else is read
    assert bool(weights[1:].isnan().all())  # and the token shows that it is not finite
