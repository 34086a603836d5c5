"""The benchmark checks what it times, and says so when a check fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from rtlang_kernels import bench, ops


def test_a_group_runs_and_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "lines.json"
    threads = str(torch.get_num_threads())
    assert bench.main(["--quick", "--only", "layers", "--threads", threads, "--json", str(file)]) == 0
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) == 4
    assert all(line["us"]["ours"] > 0 and line["ratio"]["torch"] > 0 for line in lines)
    assert "rms norm" in capsys.readouterr().out


def test_a_wrong_kernel_is_not_timed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(ops, "silu_and_mul", lambda gate_up: gate_up[:, : gate_up.shape[1] // 2])
    threads = str(torch.get_num_threads())
    assert bench.main(["--quick", "--only", "layers", "--threads", threads]) == 1
    assert "FAILED layers: ArithmeticError: silu" in capsys.readouterr().out


@pytest.mark.skipif(torch.cuda.is_available(), reason="about a machine without a GPU")
def test_a_missing_gpu_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["--device", "cuda"]) == 2
    assert "no GPU" in capsys.readouterr().err
