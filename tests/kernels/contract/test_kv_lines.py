"""The size of a line of int8, and what pages of it take."""

from __future__ import annotations

import pytest

from rtlang_kernels.contract.kv_lines import line_bytes, scale_offset


@pytest.mark.parametrize("size", range(1, 40))
def test_a_line_has_its_values_and_an_aligned_scale(size: int) -> None:
    assert scale_offset(size) in (size, size + 1)
    assert line_bytes(size) == scale_offset(size) + 2
    assert line_bytes(size) % 2 == scale_offset(size) % 2 == 0
    assert line_bytes(size) >= -(-size // 4) * 4, "kernels read whole words"


@pytest.mark.parametrize(("size", "share"), [(64, 0.515625), (128, 0.5078125)])
def test_lines_take_about_half_of_bfloat16(size: int, share: float) -> None:
    assert line_bytes(size) / (2 * size) == share
