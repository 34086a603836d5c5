"""The command `python -m rtlang_bench.arrivals`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rtlang_bench.arrivals import run
from rtlang_bench.arrivals.__main__ import app
from rtlang_bench.figure import Figure


def test_lines_are_printed_and_written_and_a_missed_goal_is_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[tuple[Sequence[str], run.Sizes, int]] = []

    def measure(config: Any, names: Sequence[str], sizes: run.Sizes, *, seed: int, tell: Any) -> list[run.Line]:
        seen.append((names, sizes, seed))
        return ["| head |", Figure("a", 0, "<=", 1), Figure("b", 2, "<=", 1)]

    monkeypatch.setattr(run, "measure", measure)
    path = tmp_path / "figures.json"
    command = ["--quick", "--workload", "poisson, bursts", "--rounds", "3", "--json", str(path)]
    result = CliRunner().invoke(app, command)
    assert (result.exit_code, result.stdout) == (0, "| head |\na: 0, bound <= 1, met\nb: 2, bound <= 1, MISSED\n")
    assert [each["name"] for each in json.loads(path.read_text(encoding="utf-8"))] == ["a", "b"]
    assert seen[0][0] == ["poisson", "bursts"]
    assert (seen[0][1].rounds, seen[0][1].num_programs) == (3, run.QUICK.num_programs)
    missed = CliRunner().invoke(app, [])
    assert (missed.exit_code, missed.stderr) == (1, "error: goals are missed: b\n")


def test_a_file_in_no_folder_is_refused_before_anything_runs(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["--json", str(tmp_path / "none" / "x.json")])
    assert (result.exit_code, result.stdout) == (1, "")
