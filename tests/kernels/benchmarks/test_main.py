"""The benchmark checks what it times, and reports failed checks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from rtlang_kernels import ops
from rtlang_kernels_bench import __main__, device_run
from rtlang_kernels_bench.device_cases import Ceilings
from rtlang_kernels_bench.table import Line


def test_a_group_runs_and_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "lines.json"
    threads = str(torch.get_num_threads())
    assert __main__.main(["--quick", "--only", "layers", "--threads", threads, "--json", str(file)]) == 0
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) == 4
    assert all(line["us"]["ours"] > 0 and line["ratio"]["torch"] > 0 for line in lines)
    assert "rms norm" in capsys.readouterr().out


def test_a_wrong_kernel_is_not_timed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(ops, "silu_and_mul", lambda gate_up: gate_up[:, : gate_up.shape[1] // 2])
    threads = str(torch.get_num_threads())
    assert __main__.main(["--quick", "--only", "layers", "--threads", threads]) == 1
    assert "FAILED layers: ArithmeticError: silu" in capsys.readouterr().out


@pytest.mark.skipif(torch.cuda.is_available(), reason="about a machine without a GPU")
def test_a_missing_gpu_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["--device", "cuda"]) == 2
    assert "no GPU" in capsys.readouterr().err


@pytest.mark.parametrize(
    "given", [["--out", "{}/no/folder"], ["--out", "{}/a", "--json", "{}/a"], ["--budget-s", "inf"]]
)
def test_invalid_files_and_budgets_are_rejected_at_once(
    given: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        __main__.main([argument.format(tmp_path) for argument in given])
    assert caught.value.code == 2
    assert "error: --" in capsys.readouterr().err


@pytest.mark.parametrize("budget_s", [1e9, 0.0])
def test_a_gpu_run_is_checked_first_and_reported_line_by_line(
    budget_s: float, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Everything except the GPU."""
    line = Line("decode", "bfloat16 x", 2.0, 0.1, 3.0, 1.0, {}, 1e-3)

    def broken() -> Any:
        raise RuntimeError("out of memory")

    tasks = [device_run.Task("a", lambda: iter([line])), device_run.Task("b", broken)]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    for name, stand_in in (
        ("environment", lambda device: f"a GPU, {device}"),
        ("measure_ceilings", lambda *_: Ceilings(1e12, 1e14, 2.0, 1 << 25)),
        ("tasks", lambda *_: iter(tasks)),
        ("is_crowded", lambda: False),
    ):
        monkeypatch.setattr(device_run, name, stand_in)
    monkeypatch.setattr(device_run.run_tasks, "__defaults__", (lambda: None,))
    monkeypatch.setattr(__main__.check_process, "run", lambda output, *_: output.write("check x: error 0"))
    out, figures = tmp_path / "out", tmp_path / "figures"
    given = ["--device", "cuda", "--out", str(out), "--json", str(figures), "--budget-s", str(budget_s)]
    given += ["--threads", str(torch.get_num_threads())]
    has_time = budget_s > 0
    assert __main__.main(given) == int(has_time)
    said = out.read_text().splitlines()
    assert said[:3] == ["a GPU, cuda:0", "check x: error 0", str(Ceilings(1e12, 1e14, 2.0, 1 << 25))]
    assert ("FAILED b: RuntimeError: out of memory" in said) == has_time
    assert any("2 more lines were not measured" in entry for entry in said) != has_time
    ceilings, *lines = map(json.loads, figures.read_text().splitlines())
    assert ceilings["kind"] == "ceilings"
    assert [line["label"] for line in lines] == ["bfloat16 x"] * has_time
