"""Layers over weights of few bits in the GPU benchmark, on small shapes in the interpreter, without its clock."""

from __future__ import annotations

from typing import Any

import pytest
import torch

pytest.importorskip("triton")  # not available on every platform

from rtlang_kernels.triton.linear.float8_linear import GpuFloat8Linear
from rtlang_kernels.triton.linear.low_bit_linear import GpuLowBitLinear
from rtlang_kernels.triton.linear.stored_codes import store
from rtlang_kernels_bench import device_cases, device_linear, device_run
from tests.support.kernels.gpu import DEVICE
from tests.support.kernels.pretended_clock import CEILINGS, pretended


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_linear, "CHECKED_SIZE", (24, 256))
    monkeypatch.setattr(device_linear, "CHECKED_ROWS", (1, 17))
    monkeypatch.setattr(device_linear, "TIMED_ROWS", (1, 3))
    monkeypatch.setattr(device_cases, "CALLS_PER_GRAPH", 2)


@pytest.mark.parametrize("is_gated", [False, True])
def test_a_wrong_layer_fails_its_check(is_gated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    error = device_linear.check("q6_k", torch.bfloat16, is_gated, DEVICE)
    assert 0 < error < 2 * device_linear.TOLERANCE[torch.bfloat16]
    true = GpuLowBitLinear.__call__

    def depends_on_rows(self: GpuLowBitLinear, x: torch.Tensor) -> torch.Tensor:
        found = true(self, x)
        return found * 1.01 if len(x) == 1 else found

    monkeypatch.setattr(GpuLowBitLinear, "__call__", depends_on_rows)
    with pytest.raises(ArithmeticError, match="q6_k: a row has other bits among 1 rows than among 17"):
        device_linear.check("q6_k", torch.bfloat16, is_gated, DEVICE)
    monkeypatch.setattr(GpuLowBitLinear, "__call__", lambda self, x: true(self, x) * 1.01)
    with pytest.raises(ArithmeticError, match="q6_k: error"):
        device_linear.check("q6_k", torch.bfloat16, is_gated, DEVICE)


def test_weights_are_as_narrow_as_those_of_files() -> None:
    kinds = {}
    for name, fmt in device_linear.FORMATS.items():
        stored = store(device_linear.random_weight(fmt, 8, 512), DEVICE).format
        kinds[name] = stored.scales, stored.has_nibbles
    assert kinds["mxfp4"] == ("e8m0", False)
    assert kinds["nvfp4"] == ("e4m3", False)
    assert kinds["q2_k"] == ("super", True)
    assert kinds["q4_k"] == ("super", False)
    assert kinds["int4"] == ("bfloat16", True)


def test_lines_are_checked_and_measured() -> None:
    lines = list(device_linear.linear_lines("q4_k", 40, 512, DEVICE, CEILINGS, pretended))
    assert [line.label for line in lines] == ["bfloat16 q4_k 1 x 40 x 512", "bfloat16 q4_k 3 x 40 x 512"]
    for num_rows, line in zip((1, 3), lines, strict=True):
        num_bytes = 40 * (512 // 2 + 32 + 8) + 2 * num_rows * (40 + 512)
        assert line.floor_us == pytest.approx(num_bytes / CEILINGS.bytes_per_s * 1e6)
        assert line.peers == {"torch bfloat16": 10.0}
        assert 0 < line.error < device_linear.TOLERANCE[torch.bfloat16]


def test_float8_inputs_are_checked_and_measured_beside_float_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0 < device_linear.check_float8_inputs(DEVICE) < device_linear.TOLERANCE[torch.bfloat16]
    first, second, *_ = device_linear.linear_lines("float8", 48, 256, DEVICE, CEILINGS, pretended)
    assert second.label == f"{first.label} float8 inputs"
    assert second.peers == {"torch bfloat16": 10.0, "float inputs": 10.0}
    assert first.error < 0.01 < second.error < device_linear.FLOAT8_INPUTS_ERROR
    true = GpuFloat8Linear.__call__
    monkeypatch.setattr(GpuFloat8Linear, "__call__", lambda self, x: true(self, x) * 1.06)
    with pytest.raises(ArithmeticError, match="float8 inputs: error"):
        device_linear.check_float8_inputs(DEVICE)
    with pytest.raises(ArithmeticError, match="linear bfloat16 float8 1 x 48 x 256 float8 inputs"):
        list(device_linear.linear_lines("float8", 48, 256, DEVICE, CEILINGS, pretended))


def test_floats_in_a_fixed_order_are_checked_and_measured() -> None:
    assert 0 < device_linear.check(device_linear.FLOATS, torch.float32, True, DEVICE) < 1e-5
    lines = list(device_linear.linear_lines(device_linear.FLOATS, 40, 256, DEVICE, CEILINGS, pretended))
    num_bytes = [2 * (40 * 256 + num_rows * (40 + 256)) for num_rows in (1, 3)]
    assert [line.floor_us for line in lines] == pytest.approx([each / CEILINGS.bytes_per_s * 1e6 for each in num_bytes])


def test_a_wrong_result_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    true, measured = GpuLowBitLinear.__call__, []

    def measure(functions: Any) -> tuple[float, float]:
        measured.append(functions)
        return pretended(functions)

    monkeypatch.setattr(GpuLowBitLinear, "__call__", lambda self, x: true(self, x) * 1.01)
    with pytest.raises(ArithmeticError, match="linear bfloat16 q4_0 1 x 40 x 256"):
        list(device_linear.linear_lines("q4_0", 40, 256, DEVICE, CEILINGS, measure))
    assert measured == []


def test_the_group_can_be_selected_alone() -> None:
    names = [task.name for task in device_run.tasks("linear", False, DEVICE, CEILINGS, pretended)]
    assert len(names) == len(device_linear.TIMED)
    assert names[0] == "linear q4_k 4096 x 4096"
