"""The benchmark of linear layers: its lines, and that a wrong kernel is not timed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from rtlang_kernels.cpu import machine_rates
from rtlang_kernels.cpu.linear import PackedLinear
from rtlang_kernels_bench import __main__, linear_bench


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_bench, "QUICK_SHAPES", ((64, 32),))
    monkeypatch.setattr(linear_bench, "QUICK_ROWS", (1, 3))
    monkeypatch.setattr(linear_bench, "_BYTES", 4 * 64 * 32 * 2)
    monkeypatch.setattr(linear_bench, "READ_BYTES", 1 << 16)
    monkeypatch.setattr(machine_rates, "_LOOPS", 1000)
    monkeypatch.setattr(linear_bench, "_GROWTH_ROWS", 70)


def run(*more: str, group: str = "linear") -> int:
    threads = str(torch.get_num_threads())
    return __main__.main(["--quick", "--only", group, "--threads", threads, *more])


@pytest.mark.skipif(not linear_bench._STATM.exists(), reason="needs the resident memory of the process")
def test_the_growth_of_memory_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(group="memory") == 0
    assert "linear layers, 70 numbers of rows" in capsys.readouterr().out


def test_every_line_has_times_and_shares(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "lines.json"
    assert run("--json", str(file)) == 0
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["label"] for line in lines] == [f"64x32 bfloat16, {rows} rows" for rows in (1, 3)]
    for line in lines:
        assert set(line["us"]) == set(line["share"]) >= {"ours", "torch"}
        assert line["read_gb_s"] > 0
        assert line["multiply_tflop_s"] > 0
        limit = [line["us"][name] * line["share"][name] for name in line["us"]]
        assert limit == pytest.approx([limit[0]] * len(limit))
    assert "TFLOP/s: " in capsys.readouterr().out


def test_a_wrong_kernel_is_not_timed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(PackedLinear, "__call__", lambda self, x: torch.zeros(len(x), self.out_features))
    assert run() == 1
    assert "FAILED linear: ArithmeticError: linear [64, 32]" in capsys.readouterr().out


def test_without_the_operators_of_the_library_it_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_bench, "_library_layers", lambda weights: [])
    assert all("oneDNN packed" not in line["us"] for line in linear_bench.linear_lines(45, is_quick=True))
