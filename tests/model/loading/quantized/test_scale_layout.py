"""The shape of scales says which weights share one."""

from __future__ import annotations

import pytest
import torch

from rtlang.model.loading.quantized.scale_layout import ScaleLayout


@pytest.mark.parametrize(
    ("shape", "scales", "group", "rows"),
    [
        ((40, 96), (), 96, 40),
        ((40, 96), (1,), 96, 40),
        ((40, 96), (1, 1), 96, 40),
        ((40, 96), (40,), 96, 1),
        ((40, 96), (40, 1), 96, 1),
        ((40, 96), (40, 3), 32, 1),
        ((40, 100), (40, 4), 25, 1),
        ((40, 100), (40, 7), 16, 1),
        ((40, 96), (3, 2), 64, 16),
        ((40, 96), (3, 1, 2, 1), 64, 16),
        ((16, 64), (1, 1), 64, 16),
    ],
)
def test_layouts(shape: tuple[int, int], scales: tuple[int, ...], group: int, rows: int) -> None:
    found = ScaleLayout.of(shape, scales, {16}, {(16, 64)})
    assert (found.group, found.rows) == (group, rows)
    numbers = torch.arange(torch.Size(scales).numel()).view(scales)
    num_groups = -(-shape[1] // group)
    expected = [[row // rows * num_groups + index for index in range(num_groups)] for row in range(shape[0])]
    assert found.expanded(numbers, 0, shape[0]).tolist() == expected
    assert found.expanded(numbers, 5, 9).tolist() == expected[5:9]


@pytest.mark.parametrize("scales", [(3, 1), (2, 3), (2, 0), (2,), (40, 97), (40, 3, 1), (0,)])
def test_other_shapes_match_no_weight(scales: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"scales of shape .* do not match a weight of shape \[40, 96\]"):
        ScaleLayout.of((40, 96), scales, {16}, {(16, 64)})
