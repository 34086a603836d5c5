"""Inputs as bytes in groups, against their definition."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rtlang_kernels.cpu.codegen.low_bit_vectors import MAGIC
from rtlang_kernels.cpu.low_bit_inputs import Plane, quantize_inputs
from tests.support.kernels.low_bit_oracle import quantized

START, SUMS, SCALED = Plane(MAGIC, -8.0, False, 1), Plane(0.0, 1.0, False, 2), Plane(0.0, 1.0, True, 1)


def inputs(num_rows: int, num_inputs: int) -> torch.Tensor:
    x = torch.randn(num_rows, num_inputs, generator=torch.Generator().manual_seed(0))
    x[0, :32] = 0
    x[1, :32] *= 1e-39  # denormal
    x[2, 5] = 3e38
    x[3, :32] *= 1e-36
    return x


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("num_rows", "rows"), [(7, 3), (8, 8), (19, 7)])
def test_bytes_scales_and_sums(num_rows: int, rows: int, dtype: torch.dtype) -> None:
    x = inputs(num_rows, 100).to(dtype)
    found = quantize_inputs(x, 4, rows, (START, None, SUMS, SCALED, START))
    bytes_, scales = quantized(x.float().numpy())
    tiles = -(-num_rows // rows)

    def by_token(values: np.ndarray, *last: int) -> np.ndarray:  # type: ignore[type-arg]
        """[tiles, groups, ..., rows, ...] with the rows moved to the front."""
        axis = 2 if last else -1
        moved = np.moveaxis(values, axis, 1)
        return moved.reshape(tiles * rows, *moved.shape[2:])

    values = by_token(found.values.reshape(tiles, 4, rows, 32), 32)
    assert np.array_equal(values[:num_rows], bytes_)
    assert not values[num_rows:].any()
    assert np.array_equal(by_token(found.scales.reshape(tiles, 4, rows))[:num_rows], scales)
    assert len(found.planes) == 3
    halves = bytes_.reshape(num_rows, 4, 2, 16).sum(3)
    total = halves.sum(2).astype(np.float32)
    assert np.array_equal(by_token(found.planes[START].reshape(tiles, 4, rows))[:num_rows], MAGIC - 8 * total)
    assert np.array_equal(by_token(found.planes[SUMS].reshape(tiles, 4, 2, rows))[:num_rows], halves)
    assert np.array_equal(by_token(found.planes[SCALED].reshape(tiles, 4, rows))[:num_rows], scales * total)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_a_group_that_is_not_finite_has_no_scale(bad: float) -> None:
    x = inputs(6, 64)
    x[4, 63] = bad
    found = quantize_inputs(x, 2, 6, (SCALED,))
    scales = found.scales.reshape(2, 6)
    assert np.isnan(scales[1, 4])
    assert np.isnan(found.planes[SCALED].reshape(2, 6)[1, 4])
    assert np.isfinite(np.delete(scales.reshape(-1), 6 + 4)).all()
    assert not found.values.reshape(2, 6, 32)[1, 4].any()


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from rtlang_kernels.cpu import low_bit_inputs

    monkeypatch.setattr(low_bit_inputs, "_WORTH_THREADS", 0)
    x, before = inputs(50, 64), torch.get_num_threads()
    found = []
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            found.append(quantize_inputs(x, 2, 8, (START, SUMS)))
    finally:
        torch.set_num_threads(before)
    one, several = found
    assert np.array_equal(one.values, several.values)
    assert np.array_equal(one.scales, several.scales)
    assert all(np.array_equal(one.planes[plane], several.planes[plane]) for plane in (START, SUMS))
