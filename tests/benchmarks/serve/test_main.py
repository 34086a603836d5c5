"""The command `python -m rtlang_bench.serve`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rtlang_bench.figure import Figure
from rtlang_bench.serve import run
from rtlang_bench.serve.__main__ import app


def test_lines_are_printed_and_written_and_a_missed_bound_is_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(
        run,
        "measure",
        lambda config, sizes, tell, only, vllm_python: [Figure("a", 0, "<=", 1), Figure("b", 2, "<=", 1)],
    )
    path = tmp_path / "figures.json"
    result = CliRunner().invoke(app, ["--quick", "--json", str(path)])
    assert (result.exit_code, result.stdout) == (0, "a: 0, bound <= 1, met\nb: 2, bound <= 1, MISSED\n")
    assert [each["name"] for each in json.loads(path.read_text(encoding="utf-8"))] == ["a", "b"]
    missed = CliRunner().invoke(app, [])
    assert (missed.exit_code, missed.stderr) == (1, "error: bounds are missed: b\n")


def test_a_file_in_no_folder_is_refused_before_anything_runs(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["--json", str(tmp_path / "none" / "x.json")])
    assert (result.exit_code, result.stdout) == (1, "")


def test_an_unknown_class_is_refused_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[object] = []
    monkeypatch.setattr(run, "measure", lambda config, sizes, tell, only, vllm_python: called.append(only) or [])
    result = CliRunner().invoke(app, ["--only", "bombs,x"])
    assert result.exit_code == 1
    assert result.stderr.startswith("error: --only x: allowed are cancel, ")
    assert CliRunner().invoke(app, ["--only", "bombs, held_by_extensions"]).exit_code == 0
    assert called == [["bombs", "held_by_extensions"]]


def test_the_comparison_needs_the_python_of_vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[object] = []
    monkeypatch.setattr(run, "measure", lambda *arguments: given.append(arguments[-1]) or [])
    result = CliRunner().invoke(app, ["--only", "against_vllm"])
    assert (result.exit_code, result.stderr) == (1, "error: --only against_vllm needs --vllm-python\n")
    assert CliRunner().invoke(app, ["--only", "against_vllm", "--vllm-python", "python3"]).exit_code == 0
    assert given == ["python3"]
