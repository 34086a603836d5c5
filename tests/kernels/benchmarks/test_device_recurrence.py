"""Recurrent layers in the GPU benchmark, on small shapes in the interpreter, without its clock and compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

pytest.importorskip("triton")  # not available on every platform

from rtlang_kernels.contract.state_plan import StatePlan
from rtlang_kernels_bench import device_cases, device_recurrence, device_run
from rtlang_kernels_bench.device_recurrence import Gated
from tests.support.kernels.gpu import DEVICE, triton_backend
from tests.support.kernels.pretended_clock import CEILINGS, pretended


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = {"delta": Gated(1, 2, 8, 8), "plain": Gated(1, 1, 8, 8, is_delta=False, has_key_decay=True)}
    monkeypatch.setattr(device_recurrence, "GATED", shapes)
    monkeypatch.setattr(device_recurrence, "CONV", {"short": (8, 3)})
    monkeypatch.setattr(device_recurrence, "SCAN", {"short": (8, 4)})
    monkeypatch.setattr(device_recurrence, "CHECKED_LENGTHS", (4, 1, 3, 1))
    monkeypatch.setattr(device_recurrence, "TIMED_ROWS", (1, 2))
    monkeypatch.setattr(device_recurrence, "TIMED_TOKENS", 3)
    monkeypatch.setattr(device_cases, "CALLS_PER_GRAPH", 2)
    monkeypatch.setattr(torch, "compile", lambda function, **options: function)


def test_all_kernels_pass_their_checks() -> None:
    names = device_recurrence.cases()
    assert [name.split()[0] for name in names] == ["gated", "gated", "convolution", "scan"]
    for name in names:
        assert 0 <= device_recurrence.check(name, torch.float32, DEVICE) < device_recurrence.TOLERANCE[torch.float32]


Kernel = Callable[..., torch.Tensor]


def first_token_is_wrong(true: Kernel, x: torch.Tensor, *args: Any) -> torch.Tensor:
    found = true(x, *args)
    found[0] *= 1.1
    return found


def bits_depend_on_the_rows(true: Kernel, x: torch.Tensor, *args: Any) -> torch.Tensor:
    return true(x, *args) * (1 + 1e-7 * (len(x) < 4))


def writes_another_slot(true: Kernel, *args: Any) -> torch.Tensor:
    (states,) = (
        each
        for each in args
        if isinstance(each, torch.Tensor) and len(each) == 8 and each.ndim == 3 and each.shape[2] == 2
    )
    found = true(*args)
    states[7] += 1e-7 * states[7]
    return found


def keeps_a_later_state(true: Kernel, *args: Any) -> torch.Tensor:
    (plan,) = (each for each in args if isinstance(each, StatePlan))
    later = plan.tensors[3].clone()
    later[0] += 1
    return true(*(args[:4]), StatePlan(*plan.arrays, (*plan.tensors[:3], later, plan.tensors[4])), *args[5:])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (first_token_is_wrong, "error"),
        (bits_depend_on_the_rows, "other bits"),
        (writes_another_slot, "no mark"),
        (keeps_a_later_state, "error"),
    ],
)
def test_a_wrong_kernel_fails_its_check(
    wrong: Callable[..., torch.Tensor], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = triton_backend()
    true = backend.causal_conv

    class Wrong:
        def causal_conv(self, *args: Any) -> torch.Tensor:
            return wrong(true, *args)

    monkeypatch.setattr(device_recurrence, "triton_backend", Wrong)
    with pytest.raises(ArithmeticError, match=message):
        device_recurrence.check("convolution short", torch.float32, DEVICE)


def test_lines_are_checked_and_measured() -> None:
    lines = list(device_recurrence.recurrence_lines("gated delta", DEVICE, CEILINGS, pretended))
    assert [line.label for line in lines] == [f"bfloat16 gated delta {size}" for size in ("1 x 1", "2 x 1", "1 x 3")]
    assert [line.peers for line in lines] == [{"torch.compile": 10.0}, {"torch.compile": 10.0}, {}]
    for line, rows, tokens in zip(lines, (1, 2, 1), (1, 2, 3), strict=True):
        num_bytes = 2 * rows * 2 * 8 * 8 * 4 + 4 * tokens * 2 * 8 * 2
        assert line.floor_us == pytest.approx(num_bytes / CEILINGS.bytes_per_s * 1e6)
        assert 0 < line.error < device_recurrence.TOLERANCE[torch.bfloat16]


def test_the_baseline_computes_the_same_step() -> None:
    rows = 3
    step, inputs = device_recurrence.plain_step("delta", rows, DEVICE)
    states = torch.randn(rows, 2, 8, 8, generator=torch.Generator().manual_seed(0)).to(DEVICE)
    before = states.clone()
    q, k, v, decay, beta = inputs
    plan = StatePlan.of(torch.arange(rows + 1).int().numpy(), range(rows), [((1, row),) for row in range(rows)], DEVICE)
    want = triton_backend().gated_recurrence(
        q, k, v, decay, beta, before, plan, 8**-0.5, True, device_recurrence.NORM_EPS
    )
    torch.testing.assert_close(step(states, *inputs), want, rtol=1e-2, atol=1e-2)
    torch.testing.assert_close(states, before)


def test_the_group_can_be_selected_alone() -> None:
    names = [task.name for task in device_run.tasks("recurrence", False, DEVICE, CEILINGS, pretended)]
    assert names == [f"recurrence {name}" for name in device_recurrence.timed()]
