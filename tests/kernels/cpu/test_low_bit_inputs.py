"""Inputs as bytes in groups, against their definition."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rtlang_kernels.contract.low_bit import INPUT_GROUP, ScaleType, WeightFormat
from rtlang_kernels.cpu import low_bit_inputs
from rtlang_kernels.cpu.codegen.low_bit_vectors import MAGIC
from rtlang_kernels.cpu.low_bit_inputs import SCALES_AT, InputPlan, planes_of
from rtlang_kernels.cpu.low_bit_layout import LowBitLayout
from rtlang_kernels.host.processor import Processor
from tests.support.kernels.low_bit_oracle import quantized

FORMATS_USED = {
    "start": WeightFormat(4, zero=8),
    "halves": WeightFormat(6, 16, ScaleType.BFLOAT16, zero=32),
    "scaled": WeightFormat(4, has_offsets=True),
    "sums": WeightFormat(4, has_zero_points=True),
}
MACHINE = Processor("", "", 1)


def plan(num_inputs: int) -> InputPlan:
    return InputPlan([LowBitLayout.of(fmt, num_inputs, MACHINE) for fmt in FORMATS_USED.values() for _ in range(2)])


def inputs(num_rows: int, num_inputs: int) -> torch.Tensor:
    x = torch.randn(num_rows, num_inputs, generator=torch.Generator().manual_seed(0))
    x[0, :32] = 0
    x[1, :32] *= 1e-39  # denormal
    x[2, 5] = 3e38
    x[3, :32] *= 1e-36
    return x


def parts(made: InputPlan, x: torch.Tensor, rows: int) -> dict[str, np.ndarray]:  # type: ignore[type-arg]
    """Bytes, scales and planes by token: [tiles * rows, groups, ...]."""
    memory, size = made.quantized(x, rows)
    groups = -(-x.shape[1] // INPUT_GROUP)
    shape = size // groups // rows, groups

    def by_token(start: int, kind: type[np.generic], halves: int, *last: int) -> np.ndarray:  # type: ignore[type-arg]
        count = size * halves * (last[0] if last else 1)
        values = np.frombuffer(memory.data, kind, count, start * size).reshape(*shape, halves, rows, *last)
        moved = np.moveaxis(values, 3, 1).reshape(shape[0] * rows, groups, halves, *last)
        return moved[:, :, 0] if halves == 1 else moved

    found = {"bytes": by_token(0, np.int8, 1, 32), "scales": by_token(SCALES_AT, np.float32, 1)}
    for name, layout in zip(FORMATS_USED, made.layouts[::2], strict=True):
        plane = next(each for each in planes_of(layout) if each is not None)
        found[name] = by_token(made.place(plane), np.float32, plane.halves)
    return found


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("num_rows", "rows"), [(7, 3), (8, 8), (19, 7)])
def test_bytes_scales_and_sums(num_rows: int, rows: int, dtype: torch.dtype) -> None:
    x = inputs(num_rows, 100).to(dtype)
    found = parts(plan(100), x, rows)
    x = torch.cat([x, x[-1:].expand(-num_rows % rows, -1)])  # the last tile repeats the last row
    bytes_, scales = quantized(x.float().numpy())
    halves = bytes_.reshape(len(x), 4, 2, 16).sum(3)
    total = halves.sum(2).astype(np.float32)
    expected = {
        "bytes": bytes_,
        "scales": scales,
        "start": MAGIC - 8 * total,
        "halves": MAGIC - 32 * halves,
        "scaled": scales * total,
        "sums": total,
    }
    assert expected.keys() == found.keys()
    for name, values in expected.items():
        assert np.array_equal(found[name], values), name


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_a_group_that_is_not_finite_has_no_scale(bad: float) -> None:
    x = inputs(6, 64)
    x[4, 63] = bad
    found = parts(plan(64), x, 6)
    for name in ("scales", "scaled"):
        assert np.isnan(found[name]).nonzero() == ([4], [1])
    assert not found["bytes"][4, 1].any()
    assert found["bytes"][4, 0].any()


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(low_bit_inputs, "_WORTH_THREADS", 0)
    x, before, made = inputs(50, 64), torch.get_num_threads(), []
    try:
        for count in (1, 3, 64):
            torch.set_num_threads(count)
            made.append(parts(plan(64), x, 8))
    finally:
        torch.set_num_threads(before)
    for others in made[1:]:
        assert all(np.array_equal(values, others[name]) for name, values in made[0].items())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_inputs_in_another_order(dtype: torch.dtype) -> None:
    x = inputs(7, 100).to(dtype)
    order = torch.randperm(100, generator=torch.Generator().manual_seed(0))
    layouts = plan(100).layouts
    found = InputPlan(layouts, order).quantized(x, 4)
    wanted = InputPlan(layouts).quantized(x[:, order].contiguous(), 4)
    assert np.array_equal(found.memory, wanted.memory)


@pytest.mark.parametrize(
    "order", [torch.arange(99), torch.arange(1, 101), torch.arange(-1, 99)], ids=["99", "100", "-1"]
)
def test_an_order_that_leaves_the_inputs_is_refused(order: torch.Tensor) -> None:
    with pytest.raises(ValueError, match="expected 100, from 0 to 99"):
        InputPlan(plan(100).layouts, order)
