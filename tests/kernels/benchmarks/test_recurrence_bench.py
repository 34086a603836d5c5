"""The benchmark of recurrent layers: its lines, and that a wrong kernel is not timed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from rtlang_kernels import ops
from rtlang_kernels_bench import __main__, recurrence_bench


def _small_delta_rule(num_tokens: int) -> tuple[list[Any], tuple[int, ...], dict[str, Any]]:
    q, k, v = torch.randn(3, num_tokens, 2, 16).bfloat16()
    options = {"scale": 0.25, "is_delta": True, "norm_eps": 1e-6}
    return [q, k, v, -torch.rand(num_tokens, 2), torch.rand(num_tokens, 2).bfloat16()], (2, 16, 16), options


def _small_convolution(num_tokens: int) -> tuple[list[Any], tuple[int, ...], dict[str, Any]]:
    return (
        [torch.randn(num_tokens, 64).bfloat16(), torch.randn(64, 4).bfloat16(), None],
        (64, 3),
        {"activation": "silu"},
    )


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    delta, _, convolution, _ = recurrence_bench.SHAPES
    shapes = replace(delta, make=_small_delta_rule, linears=((32, 16),)), replace(convolution, make=_small_convolution)
    monkeypatch.setattr(recurrence_bench, "SHAPES", shapes)
    monkeypatch.setattr(recurrence_bench, "QUICK_ROWS", ((2, 1), (2, 3)))
    monkeypatch.setattr(recurrence_bench, "_BYTES", 1 << 12)


def run(*more: str) -> int:
    threads = str(torch.get_num_threads())
    return __main__.main(["--quick", "--only", "recurrence", "--threads", threads, *more])


def test_every_line_has_its_baselines(tmp_path: Path) -> None:
    file = tmp_path / "lines.json"
    assert run("--json", str(file)) == 0
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    steps = ("2 rows of 1", "2 rows of 3")
    assert [line["label"].rpartition(", ")[2] for line in lines] == [*steps, *steps]
    assert [set(line["ratio"]) for line in lines] == [{"transformers", "linear"}] * 2 + [set()] * 2
    assert all(0 <= line["error"] < 1e-2 and line["us"]["ours"] > 0 for line in lines)


def test_a_wrong_kernel_is_not_timed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    original = ops.gated_recurrence
    monkeypatch.setattr(ops, "gated_recurrence", lambda *args, **options: original(*args, **options) * 1.5)
    assert run() == 1
    assert "FAILED recurrence: ArithmeticError: gated delta rule" in capsys.readouterr().out


def test_without_transformers_its_functions_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(recurrence_bench, "import_module", missing)
    lines = list(recurrence_bench.recurrence_lines(5, is_quick=True))
    assert [set(line["us"]) for line in lines] == [{"ours", "linear"}] * 2 + [{"ours"}] * 2
