"""Experts in the GPU benchmark, on small shapes in the interpreter, without its clock."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton")  # not available on every platform

from rtlang_kernels.triton.experts.experts import GpuExperts
from rtlang_kernels_bench import device_experts, device_run
from rtlang_kernels_bench.device_experts import ExpertsShape
from tests.support.kernels.gpu import DEVICE
from tests.support.kernels.pretended_clock import CEILINGS, pretended

SMALL = ExpertsShape("small", 4, 2, 64, 32)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_experts, "CHECKED_ROWS", (1, 9))
    monkeypatch.setattr(device_experts, "TIMED_ROWS", (1, 3))


def test_wrong_experts_fail_their_check(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = ExpertsShape("small", 4, 2, 128, 64, "mxfp4")
    assert 0 < device_experts.check(shape, DEVICE) < 2 * device_experts.TOLERANCE[torch.bfloat16]
    true = GpuExperts.__call__

    def depends_on_rows(self: GpuExperts, x: torch.Tensor, *routes: torch.Tensor) -> torch.Tensor:
        found = true(self, x, *routes)
        return found * 1.01 if len(x) == 1 else found

    monkeypatch.setattr(GpuExperts, "__call__", depends_on_rows)
    with pytest.raises(ArithmeticError, match="small mxfp4: a token has other bits among 1 tokens than among 9"):
        device_experts.check(shape, DEVICE)
    monkeypatch.setattr(GpuExperts, "__call__", lambda self, *args: true(self, *args) * 1.1)
    with pytest.raises(ArithmeticError, match="experts small bfloat16: error"):
        device_experts.check(SMALL, DEVICE)


def test_lines_are_checked_and_measured() -> None:
    lines = list(device_experts.experts_lines(SMALL, DEVICE, CEILINGS, pretended))
    assert [line.label for line in lines] == ["small bfloat16 1 rows", "small bfloat16 3 rows"]
    assert lines[0].floor_us == pytest.approx((2 * 2 * 3 * 64 * 32 + 4 * 64) / CEILINGS.bytes_per_s * 1e6)
    assert all(0 < line.error < 2 * device_experts.TOLERANCE[torch.bfloat16] for line in lines)


def test_the_group_can_be_selected_alone() -> None:
    names = [task.name for task in device_run.tasks("experts", False, DEVICE, CEILINGS, pretended)]
    assert names == [f"experts {shape.label}" for shape in device_experts.SHAPES]
