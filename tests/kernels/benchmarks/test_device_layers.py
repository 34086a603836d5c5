"""The layer kernels in the GPU benchmark, on small shapes in the interpreter, without its clock and compiler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

pytest.importorskip("triton")  # not available on every platform

from rtlang_kernels import ops
from rtlang_kernels_bench import device_layers, device_run
from tests.support.kernels.gpu import DEVICE, TOLERANCE
from tests.support.kernels.pretended_clock import CEILINGS, pretended

SHAPE = device_layers.LayerShape(hidden_size=48, mlp_size=40, num_q_heads=4, num_kv_heads=2, head_dim=16)


@pytest.fixture(autouse=True)
def triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RTLANG_KERNELS", "triton")
    monkeypatch.setattr(torch, "compile", lambda function, **options: function)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_lines_are_checked_and_measured(dtype: torch.dtype) -> None:
    lines = list(device_layers.layer_lines(3, SHAPE, dtype, DEVICE, CEILINGS, pretended))
    assert [line.label.split()[1] for line in lines] == ["add_rms_norm", "silu_and_mul", "rope_append"]
    for line in lines:
        assert line.group == "layers"
        assert line.peers == {"torch.compile": 10.0}
        assert 0 <= line.error < TOLERANCE[dtype]
        assert line.ours_us == 10


def test_floors_count_bytes_read_and_written() -> None:
    norm, activation, rope = device_layers.cases(3, SHAPE, torch.bfloat16, DEVICE)
    assert norm.num_bytes == 4 * 3 * 48 * 2
    assert activation.num_bytes == 3 * 3 * 40 * 2
    assert rope.num_bytes == 3 * (2 * 4 * 16 + 4 * 2 * 16) * 2


@pytest.mark.parametrize("name", ["add_rms_norm", "silu_and_mul", "rope_append"])
def test_a_wrong_result_is_not_timed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    true = getattr(ops, name)

    def wrong(first: torch.Tensor, *args: Any, **given: Any) -> Any:
        result = true(first, *args, **given)
        changed = first if result is None else result
        changed *= 1.01
        return result

    monkeypatch.setattr(ops, name, wrong)
    measured: list[object] = []

    def measure(functions: Sequence[Callable[[], object]]) -> tuple[float, float]:
        measured.append(functions)
        return pretended(functions)

    with pytest.raises(ArithmeticError, match=f"layers float32 {name}"):
        list(device_layers.layer_lines(3, SHAPE, torch.float32, DEVICE, CEILINGS, measure))
    assert len(measured) == 2 * ["add_rms_norm", "silu_and_mul", "rope_append"].index(
        name
    )  # ours and the baseline of each case before it


def test_the_group_can_be_selected_alone() -> None:
    names = [task.name for task in device_run.tasks("layers", False, DEVICE, CEILINGS, pretended)]
    assert names == ["layers of 1 rows", "layers of 32 rows", "layers of 128 rows"]
