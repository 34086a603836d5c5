"""Columns are sorted by group where all groups have their size."""

from __future__ import annotations

import pytest
import torch

from rtlang.model.loading.quantized.input_order import input_order_of, reordered


def test_columns_in_order_need_none() -> None:
    assert input_order_of(torch.arange(10) // 4, 10, 4) == {}


def test_columns_are_sorted_by_group() -> None:
    groups = torch.tensor([1, 0, 1, 0, 0, 1], dtype=torch.int32)
    found = input_order_of(groups, 6, 3)
    assert found["input_order"].tolist() == [1, 3, 4, 0, 2, 5]
    codes = torch.arange(12).view(2, 6)
    read = reordered(lambda first, last: codes[first:last], found["input_order"])
    assert read(1, 2).tolist() == [[7, 9, 10, 6, 8, 11]]


def test_groups_of_other_sizes_keep_their_columns() -> None:
    groups = torch.tensor([0, 0, 1, 0])
    assert input_order_of(groups, 4, 2)["group_of"].tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("groups", [[0, 0, 1], [0, 0, 1, 2], [-1, 0, 0, 0]])
def test_other_groups_are_refused(groups: list[int]) -> None:
    with pytest.raises(ValueError, match="not those of its 4 inputs"):
        input_order_of(torch.tensor(groups), 4, 2)
