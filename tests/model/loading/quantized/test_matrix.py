"""Codes reach layers where the groups fit, and have the same values multiplied out."""

from __future__ import annotations

import pytest
import torch

from rtlang.model.loading.quantized import matrix
from rtlang.model.loading.quantized.matrix import Codes
from rtlang_kernels.contract.low_bit import ScaleType
from rtlang_kernels.reference.low_bit import exact_weight


@pytest.mark.parametrize(
    ("num_inputs", "group", "fitting"),
    [
        *[(96, 32, 32), (96, 16, 16), (96, 48, 16), (96, 96, 96), (96, 1000, 96), (160, 128, 32), (192, 128, 64)],
        *[(96, 24, None), (60, 30, None), (48, 16, None), (96, 1, None)],
    ],
)
def test_groups_of_layers_are_parts_of_groups(
    num_inputs: int, group: int, fitting: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrix, "_BLOCK", 3 * num_inputs)
    torch.manual_seed(1)
    num_groups = -(-num_inputs // group)
    values, scales = torch.randint(0, 16, (8, num_inputs), dtype=torch.uint8), torch.rand(8, num_groups).half()
    zeros = torch.randint(0, 16, (8, num_groups), dtype=torch.uint8)
    codes = Codes(
        (8, num_inputs),
        4,
        lambda first, last: values[first:last],
        ScaleType.FLOAT16,
        lambda first, last: scales[first:last],
        lambda first, last: zeros[first:last],
        group=group,
    )
    places = torch.arange(num_inputs) // group
    expected = (values.double() - zeros.double()[:, places]) * scales.double()[:, places]
    assert torch.equal(codes.floats(torch.float64), expected)
    found = codes.low_bit()
    assert (None if found is None else found.format.group) == fitting
    if found is not None:
        assert torch.equal(exact_weight(found), expected)
