"""Launches of a layer are counted: those of a dense layer by hand, and the target for one with experts."""

from __future__ import annotations

import pytest

from rtlang_bench.device import launches

DENSE = {"mm": 8, "add_rms_norm": 4, "rope_append": 2, "rect_attn": 2, "gate_and_mul": 2}
EXPERTS = {"expert_product": 4, "route_tokens": 2, "place_pairs": 2, "add_slots": 2}


@pytest.fixture(autouse=True)
def triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RTLANG_KERNELS", "triton")


def test_two_dense_layers_are_nine_launches_each() -> None:
    assert launches.launches_of_a_layer("qwen3", launches.SHAPES["qwen3"], "native") == DENSE


def test_a_layer_of_experts_is_within_the_target(capsys: pytest.CaptureFixture[str]) -> None:
    assert launches.main(["--model", "qwen3_moe"]) == 0
    expected = {**DENSE, **EXPERTS, "mm": 6}
    del expected["gate_and_mul"]
    printed = capsys.readouterr().out
    assert printed.startswith("qwen3_moe  native         12.0 launches a layer")
    assert all(f"{name} {count // 2}" in printed for name, count in expected.items())


def test_it_says_what_it_needs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("RTLANG_KERNELS")
    assert launches.main([]) == 2
    assert "RTLANG_KERNELS=triton" in capsys.readouterr().err
