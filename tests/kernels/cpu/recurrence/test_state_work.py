"""Sharing the items of a step: threads take each one once, and the memory of each is its own."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from rtlang_kernels.contract.state_plan import NO_SLOT, StatePlan
from rtlang_kernels.cpu.codegen.linear_vectors import LINE
from rtlang_kernels.cpu.recurrence.state_work import SPLIT_NS, plan_arrays, share_items
from tests.support.kernels.fused_steps import torch_threads


def test_the_longest_rows_come_first() -> None:
    plan = StatePlan.of(np.array([0, 2, 9, 10, 17, 19]), [NO_SLOT] * 5, [[]] * 5)
    order, *arrays = plan_arrays(plan)
    assert order.tolist() == [1, 3, 0, 4, 2]
    assert [each is own for each, own in zip(arrays, (plan.cu_seqlens, plan.sources), strict=False)] == [True] * 2
    assert all(each.dtype == np.int32 for each in (order, *arrays))


@pytest.mark.parametrize(
    ("num_items", "cost_ns", "expected"), [(7, SPLIT_NS - 1, 1), (7, SPLIT_NS, 3), (2, SPLIT_NS, 2), (1, 1e9, 1)]
)
def test_threads_share_the_counter_and_no_memory(num_items: int, cost_ns: float, expected: int) -> None:
    calls: list[tuple[Any, ...]] = []
    with torch_threads(3):
        share_items(lambda *call: calls.append(call), ("argument",), num_items, cost_ns, 100)
    assert len(calls) == expected
    assert {call[:3] for call in calls} == {("argument", num_items, calls[0][2])}
    starts = sorted(call[3] for call in calls)
    assert all(start % LINE == 0 for start in (calls[0][2], *starts))
    assert all(b - a >= 100 for a, b in itertools.pairwise(starts))
    assert starts[0] - calls[0][2] >= LINE
