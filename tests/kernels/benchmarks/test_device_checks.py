"""The checks before a GPU is timed, in the interpreter: they pass on correct kernels and fail on wrong ones."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton")  # not available on every platform

from rtlang_kernels import ops
from rtlang_kernels_bench import automaton_checks, device_checks, device_experts, device_linear, device_recurrence
from rtlang_kernels_bench.device_checks import Attention, Rows
from rtlang_kernels_bench.output import Output
from tests.support.kernels.gpu import DEVICE

SMALL = Rows(32, 16, (1, 20, 3), (1, 1, 3))


@pytest.fixture(autouse=True)
def triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RTLANG_KERNELS", "triton")


@pytest.mark.parametrize(
    "case",
    [
        Attention(torch.float32, (4, 2, 16), {"sliding_window": 30}, has_sinks=True),
        Attention(torch.float16, (2, 1, 16), {"soft_cap": 20.0, "chunk_size": 32}),
        Attention(torch.float32, (2, 2, 32), is_float8=True),
        Attention(torch.float32, (2, 2, 48), v_dim=32),
        Attention(torch.float16, (3, 1, 24), is_float8=True, v_dim=16, is_latent=True),
    ],
    ids=str,
)
def test_attention_is_checked_with_every_feature(case: Attention, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0 <= device_checks.attention(case, SMALL, DEVICE) < device_checks.TOLERANCE[case.dtype]
    true = ops.paged_attention_with_lse

    def wrong(*args: object, out: torch.Tensor, **given: object) -> object:
        found = true(*args, out=out, **given)  # type: ignore[arg-type]
        out[-1, -1] += 0.5
        return found

    monkeypatch.setattr(ops, "paged_attention_with_lse", wrong)
    with pytest.raises(ArithmeticError, match="error"):
        device_checks.attention(case, SMALL, DEVICE)


def test_all_other_checks_pass_and_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_checks, "ATTENTION", ())
    monkeypatch.setattr(device_checks, "VOCAB_SIZE", 700)
    monkeypatch.setattr(device_linear, "FORMATS", {"q4_k": device_linear.FORMATS["q4_k"]})
    monkeypatch.setattr(device_linear, "CHECKED_SIZE", (24, 256))
    monkeypatch.setattr(device_linear, "CHECKED_ROWS", (1, 17))
    monkeypatch.setattr(device_recurrence, "GATED", {"qwen3.5": device_recurrence.Gated(1, 1, 8, 8)})
    monkeypatch.setattr(device_recurrence, "CONV", {"short": (8, 3)})
    monkeypatch.setattr(device_recurrence, "SCAN", {})
    monkeypatch.setattr(device_recurrence, "CHECKED_LENGTHS", (4, 1, 3, 1))
    monkeypatch.setattr(device_experts, "CHECKED", (device_experts.ExpertsShape("small", 4, 2, 64, 32),))
    monkeypatch.setattr(device_experts, "CHECKED_ROWS", (1, 9))
    monkeypatch.setattr(automaton_checks, "NUM_STEPS", 1)
    said: list[str] = []
    with Output(echo=said.append) as output:
        device_checks.run_checks(output, DEVICE)
    assert said == [line for line in said if line.startswith("check ")]
    assert len(said) == 23
    assert output.num_failed == 0


def test_a_failed_check_is_reported_and_the_others_continue(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(device: torch.device) -> float:
        return device_checks.equal("things", torch.zeros(2), torch.ones(2))

    monkeypatch.setattr(device_checks, "checks", lambda: iter([("one", broken), ("two", lambda device: 0.5)]))
    said: list[str] = []
    with Output(echo=said.append) as output:
        device_checks.run_checks(output, DEVICE)
    assert said == ["FAILED check one: ArithmeticError: things: 2 of 2 elements differ", "check two: error 5.0e-01"]
    assert output.num_failed == 1
    with pytest.raises(ArithmeticError, match="allowed"):
        device_checks.near(torch.tensor([1.0, float("nan")]), torch.ones(2), 1e-3)
