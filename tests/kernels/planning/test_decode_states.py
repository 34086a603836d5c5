"""Steps written into reusable states have the results of plans of their own, and surplus tokens leave no trace."""

from __future__ import annotations

import numpy as np
import pytest
import torch

pytest.importorskip("triton")  # there is none for some platforms

from rtlang_kernels import ops
from rtlang_kernels.contract.state_plan import StatePlan
from rtlang_kernels.planning.decode_states import DecodeStates
from tests.support.kernels.attention_cases import use_backend
from tests.support.kernels.gpu import DEVICE

STEPS = [
    ([1, 1], [3, -1], [[(1, 3)], [(1, 1)]]),
    ([3, 1, 1], [3, 1, 1], [[(1, 0), (2, 5)], [], [(1, 6)]]),  # one with drafts, and two forks
    ([2], [5], [[(2, 5)]]),
    ([1] * 5, [-1, 0, 1, 5, 6], [[(1, slot)] for slot in (2, 0, 1, 5, 6)]),
]


@pytest.mark.parametrize("num_rows", [None, 6])
def test_every_step_has_the_results_of_its_own_plan(num_rows: int | None) -> None:
    """With as many rows as tokens, or with fewer: the surplus tokens share the surplus rows then."""
    num_tokens = 5 if num_rows is None else 9
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(8, 4, generator=generator).to(DEVICE)
    states = torch.randn(8, 8, 3, generator=generator).to(DEVICE)
    kept = DecodeStates(num_tokens, DEVICE, num_rows)
    before = [each.data_ptr() for each in kept.plan.tensors]
    with use_backend("triton"):
        for lengths, sources, marks in STEPS:
            tokens, starts = sum(lengths), np.cumsum([0, *lengths]).astype(np.int32)
            x = torch.randn(num_tokens, 8, generator=generator).to(DEVICE)
            wanted = states.clone()
            step = StatePlan.of(starts, sources, marks, DEVICE)
            want = ops.causal_conv(x[:tokens], weight, None, wanted, step)
            assert kept.set(step)
            kept.upload()
            out = ops.causal_conv(x, weight, None, states, kept.plan)
            assert torch.equal(out[:tokens], want)
            assert torch.equal(states, wanted)
            assert out.isfinite().all()
            if num_rows is None:
                assert torch.equal(out[tokens:], (x * weight[:, -1])[tokens:]), "surplus tokens begin sequences"
    assert [each.data_ptr() for each in kept.plan.tensors] == before
    assert (kept.plan.num_rows, kept.plan.num_tokens) == (num_rows or 5, num_tokens)


def test_reading_slots_on_the_host_fails() -> None:
    kept = DecodeStates(2, DEVICE)
    x, states = torch.zeros(2, 8), torch.zeros(4, 8, 3)
    with use_backend("reference"), pytest.raises(IndexError):
        ops.causal_conv(x, torch.zeros(8, 4), None, states, kept.plan)


def test_other_steps_are_refused() -> None:
    def step(lengths: list[int], marks: list[list[tuple[int, int]]]) -> StatePlan:
        return StatePlan.of(np.cumsum([0, *lengths]).astype(np.int32), list(range(len(lengths))), marks, DEVICE)

    kept = DecodeStates(2, DEVICE)
    assert not kept.set(step([3], [[(3, 0)]]))
    assert kept.set(step([2], [[(1, 2), (2, 0)]])), "a mark per token"
    few = DecodeStates(6, DEVICE, 2)
    assert few.set(step([4, 2], [[], []]))
    assert not few.set(step([3, 2], [[], []])), "the surplus token has no row"
    assert not few.set(step([2, 2, 2], [[], [], []]))
