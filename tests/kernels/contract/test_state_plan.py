"""Plans of states: what they hold, and which rows they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from rtlang_kernels.contract.state_plan import NO_SLOT, StatePlan
from tests.support.kernels.recurrence_cases import random_rows


def test_a_plan_holds_the_rows_flat() -> None:
    plan = StatePlan.of(np.array([0, 3, 4, 9]), [NO_SLOT, 5, 2], [[(1, 7), (3, 0)], [], [(4, 2)]])
    assert (plan.num_rows, plan.num_tokens) == (3, 9)
    arrays = plan.cu_seqlens, plan.sources, plan.cu_marks, plan.mark_ends, plan.mark_slots
    assert [each.tolist() for each in arrays] == [[0, 3, 4, 9], [-1, 5, 2], [0, 2, 2, 3], [1, 3, 4], [7, 0, 2]]
    assert all(each.dtype == np.int32 for each in arrays)
    for array, tensor in zip(arrays, plan.tensors, strict=True):
        assert np.array_equal(array, tensor.numpy())


def test_a_moved_plan_says_the_same() -> None:
    rows = random_rows(np.random.default_rng(0), 5, 9)
    plan = rows.plan()
    moved = plan.moved("meta")
    assert moved.cu_seqlens is plan.cu_seqlens
    assert {tensor.device.type for tensor in moved.tensors} == {"meta"}
    assert [tensor.shape for tensor in moved.tensors] == [tensor.shape for tensor in plan.tensors]


def test_a_step_without_marks_writes_nothing() -> None:
    plan = StatePlan.of(np.array([0, 2]), [3], [[]])
    assert (len(plan.mark_ends), plan.cu_marks.tolist()) == (0, [0, 0])


def test_random_rows_are_accepted() -> None:
    rng = np.random.default_rng(0)
    for _ in range(100):
        rows = random_rows(rng, int(rng.integers(1, 9)), 12)
        plan = rows.plan()
        assert plan.mark_slots.tolist() == rows.written()


@pytest.mark.parametrize(
    ("starts", "sources", "marks", "message"),
    [
        ([0, 2, 2], [0, 1], [[], []], "cu_seqlens: expected at least one token in every row"),
        ([0, 2], [0, 1], [[]], "2 sources and marks of 1 rows: expected 1 of each"),
        ([0, 2], [0], [[(0, 1)]], r"marks of row 0 end at \[0\]: expected ascending numbers from 1 to 2"),
        ([0, 2], [0], [[(3, 1)]], r"marks of row 0 end at \[3\]"),
        ([0, 1, 4], [0, 1], [[], [(2, 1), (1, 5)]], r"marks of row 1 end at \[2, 1\]"),
        ([0, 2], [0], [[(1, 1), (1, 2)]], r"marks of row 0 end at \[1, 1\]"),
        ([0, 2], [0], [[(1, 4), (2, 4)]], "none of them twice"),
        ([0, 1, 2], [0, 1], [[(1, 4)], [(1, 4)]], "none of them twice"),
        ([0, 2], [0], [[(1, -1)]], "expected slots from 0"),
        ([0, 1, 2], [0, 1], [[(1, 1)], []], "sources: slot 1 of row 1 is written by row 0"),
        ([0, 1, 2], [3, 3], [[], [(1, 3)]], "sources: slot 3 of row 0 is written by row 1"),
    ],
)
def test_rows_that_break_an_invariant_are_refused(
    starts: list[int], sources: list[int], marks: list[list[tuple[int, int]]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        StatePlan.of(np.array(starts), sources, marks)
