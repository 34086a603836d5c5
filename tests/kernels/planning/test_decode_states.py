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


def test_every_step_has_the_results_of_its_own_plan() -> None:
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(8, 4, generator=generator).to(DEVICE)
    states = torch.randn(8, 8, 3, generator=generator).to(DEVICE)
    kept = DecodeStates(5, DEVICE)
    before = [each.data_ptr() for each in kept.plan.tensors]
    with use_backend("triton"):
        for lengths, sources, marks in STEPS:
            tokens, starts = sum(lengths), np.cumsum([0, *lengths]).astype(np.int32)
            x = torch.randn(5, 8, generator=generator).to(DEVICE)
            wanted = states.clone()
            want = ops.causal_conv(x[:tokens], weight, None, wanted, StatePlan.of(starts, sources, marks, DEVICE))
            assert kept.set(starts, sources, marks)
            kept.upload()
            out = ops.causal_conv(x, weight, None, states, kept.plan)
            assert torch.equal(out[:tokens], want)
            assert torch.equal(states, wanted)
            assert torch.equal(out[tokens:], (x * weight[:, -1])[tokens:]), "surplus tokens begin sequences"
    assert [each.data_ptr() for each in kept.plan.tensors] == before
    assert (kept.plan.num_rows, kept.plan.num_tokens) == (5, 5)


def test_reading_slots_on_the_host_fails() -> None:
    kept = DecodeStates(2, DEVICE)
    x, states = torch.zeros(2, 8), torch.zeros(4, 8, 3)
    with use_backend("reference"), pytest.raises(IndexError):
        ops.causal_conv(x, torch.zeros(8, 4), None, states, kept.plan)


def test_other_steps_are_refused() -> None:
    kept = DecodeStates(2, DEVICE)
    assert not kept.set(np.array([0, 3], np.int32), [0], [[(3, 0)]])
    assert kept.set(np.array([0, 2], np.int32), [0], [[(1, 2), (2, 0)]]), "a mark per token"
    with pytest.raises(ValueError, match="none of them twice"):
        kept.set(np.array([0, 1, 2], np.int32), [0, 1], [[(1, 0)], [(1, 0)]])
