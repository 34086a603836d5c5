"""What is special about the compiled convolution: blocks, threads, inputs that it leaves to the reference. Results: test_recurrence.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from rtlang_kernels.cpu.recurrence import causal_conv, state_work
from rtlang_kernels.reference import recurrence as reference
from tests.support.kernels.fused_steps import torch_threads
from tests.support.kernels.recurrence_cases import check, conv_case, random_rows


def test_blocks_and_threads_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_work, "SPLIT_NS", 0)
    rows = random_rows(np.random.default_rng(0), 6, 9)
    case, found = conv_case(rows, 192, 4, torch.bfloat16), []
    for block, threads in ((64, 1), (64, 3), (1, 2)):
        monkeypatch.setattr(causal_conv, "block_of", lambda num_channels, block=block: block)
        states = case.states.clone()
        with torch_threads(threads):
            out = case.run(rows.plan(), states)
        found.append((out, states.nan_to_num(7.0)))
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


def test_blocks_divide_the_channels() -> None:
    for num_channels in range(1, 300):
        block = causal_conv.block_of(num_channels)
        assert num_channels % block == 0
        assert block == 64 or num_channels % (2 * block) != 0


@pytest.mark.parametrize("change", ["width", "dtype of states", "dtype of weights", "states apart"])
def test_other_inputs_use_the_reference(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    original = reference.causal_conv

    def noted(*args: Any) -> torch.Tensor:
        calls.append(args)
        return original(*args)

    monkeypatch.setattr(reference, "causal_conv", noted)
    rows = random_rows(np.random.default_rng(1), 4, 7)
    case = conv_case(rows, 37, 9 if change == "width" else 4, torch.float32)
    if change == "dtype of states":
        case.states = case.states.bfloat16()
    if change == "dtype of weights":
        case.tensors[1] = case.tensors[1].bfloat16()
    check(case, rows, torch.stack([case.states] * 2, dim=-1)[..., 0] if change == "states apart" else None)
    assert len(calls) == 1


def test_any_strides_of_the_inputs() -> None:
    rows = random_rows(np.random.default_rng(2), 4, 7)
    case = conv_case(rows, 37, 4, torch.float32)
    for i in range(3):
        apart = torch.stack([case.tensors[i]] * 2, dim=-1)[..., 0]
        check(replace(case, tensors=[apart if i == j else each for j, each in enumerate(case.tensors)]), rows)


def test_states_of_a_layer_among_other_layers() -> None:
    rows = random_rows(np.random.default_rng(3), 4, 7)
    case = conv_case(rows, 37, 4, torch.float32)
    wide = torch.full((rows.num_slots, 3, 37, 3), float("nan"))
    check(case, rows, wide[:, 1])
    assert bool(wide[:, ::2].isnan().all())
