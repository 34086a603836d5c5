"""What is special about the compiled scan: blocks, threads, inputs that it leaves to the reference. Results: test_recurrence.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from rtlang_kernels.cpu.recurrence import selective_scan, state_work
from rtlang_kernels.reference import recurrence as reference
from tests.support.kernels.fused_steps import torch_threads
from tests.support.kernels.recurrence_cases import check, random_rows, scan_case
from tests.support.long_tests import sized

SIZES = [(40, 32), (24, 2), (16, 4), (3, 1), (16, 64)]
"""Channels and sizes of states."""


def test_blocks_and_threads_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_work, "SPLIT_NS", 0)
    rows = random_rows(np.random.default_rng(0), 6, 9)
    case, found = scan_case(rows, 192, 16, torch.bfloat16), []
    for block, threads in ((64, 1), (64, 3), (16, 2), (192, 1)):
        monkeypatch.setattr(selective_scan, "MOST_CHANNELS", block)
        states = case.states.clone()
        with torch_threads(threads):
            out = case.run(rows.plan(), states)
        found.append((out, states.nan_to_num(7.0)))
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


@pytest.mark.parametrize("sizes", SIZES[: sized(len(SIZES), usual=2)], ids=str)
def test_sizes_of_states(sizes: tuple[int, int]) -> None:
    rows = random_rows(np.random.default_rng(1), 4, 7)
    check(scan_case(rows, *sizes, torch.float32), rows)


def test_inputs_of_several_dtypes_and_any_strides() -> None:
    rows = random_rows(np.random.default_rng(2), 4, 7)
    case = scan_case(rows, 40, 16, torch.float32)
    for i, each in enumerate(case.tensors):
        for other in (each.bfloat16(), torch.stack([each] * 2, dim=-1)[..., 0]):
            check(replace(case, tensors=[other if i == j else own for j, own in enumerate(case.tensors)]), rows)


@pytest.mark.parametrize("change", ["size of states", "dtype of states", "states apart"])
def test_other_states_use_the_reference(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    original = reference.selective_scan

    def noted(*args: Any) -> torch.Tensor:
        calls.append(args)
        return original(*args)

    monkeypatch.setattr(reference, "selective_scan", noted)
    rows = random_rows(np.random.default_rng(1), 4, 7)
    case = scan_case(rows, 40, 5 if change == "size of states" else 16, torch.float32)
    if change == "dtype of states":
        case.states = case.states.double()
    check(case, rows, torch.stack([case.states] * 2, dim=-1)[..., 0] if change == "states apart" else None)
    assert len(calls) == 1


def test_states_of_a_layer_among_other_layers() -> None:
    rows = random_rows(np.random.default_rng(3), 4, 7)
    case = scan_case(rows, 40, 16, torch.float32)
    wide = torch.full((rows.num_slots, 3, 40, 16), float("nan"))
    check(case, rows, wide[:, 1])
    assert bool(wide[:, ::2].isnan().all())
