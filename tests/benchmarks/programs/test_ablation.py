"""The ablation, end to end on the embedded model: all workloads under all variants. No timing decides."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rtlang.compiler.pipeline import PASSES
from rtlang.contract.errors import ConfigError
from rtlang_bench.programs.__main__ import app
from rtlang_bench.programs.ablation import ProgramOptions, marks_of
from rtlang_bench.programs.report import ALL, NONE
from rtlang_bench.programs.workloads import MAKERS


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    path = tmp_path_factory.mktemp("bench") / "figures.json"
    result = CliRunner().invoke(app, ["--quick", "--json", str(path)])
    assert result.exit_code == 0, result.output
    assert "all passes" in result.output
    return json.loads(path.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def figures(report: dict[str, object], workload: str) -> dict[str, dict[str, object]]:
    [table] = [table for table in report["tables"] if table["workload"] == workload]  # type: ignore[attr-defined]
    return {variant["name"]: variant for variant in table["variants"]}


@pytest.mark.long
def test_every_workload_runs_under_every_variant(report: dict[str, object]) -> None:
    for workload in MAKERS:
        expected = {ALL, *(f"without {name}" for name in PASSES), NONE}
        assert figures(report, workload).keys() - {"all samples", "undecided", "undecided, all samples"} == expected
        for variant in figures(report, workload).values():
            assert variant["prompt_tokens"]["median"] > 0  # type: ignore[index]
            assert variant["peak_pages"]["median"] > 0  # type: ignore[index]


@pytest.mark.long
def test_unneeded_and_equal_generations_are_saved_tokens(report: dict[str, object]) -> None:
    def generated(workload: str, name: str) -> float:
        return figures(report, workload)[name]["generated_tokens"]["median"]  # type: ignore[index, no-any-return]

    assert generated("judge", ALL) < generated("judge", "without prune")
    assert generated("tree", ALL) < generated("tree", "without merge")
    assert generated("vote", ALL) <= 0.6 * generated("vote", "all samples")


@pytest.mark.long
def test_marks_and_findings_are_in_the_figures(report: dict[str, object]) -> None:
    marks = report["marks"]
    assert {mark["limit"] for mark in marks} == {0.95, 0.6}  # type: ignore[attr-defined]
    assert {finding["name"] for finding in report["findings"]} == set(PASSES)  # type: ignore[attr-defined]


def test_unknown_workloads_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="tree, judge, agents, vote"):
        ProgramOptions(workloads=("tre",))
    with pytest.raises(ConfigError, match="repeats"):
        ProgramOptions(repeats=0)
    result = CliRunner().invoke(app, ["--workload", "none"])
    assert result.exit_code == 1
    assert "expected one of tree" in result.output


def test_workloads_without_marks_have_none() -> None:
    assert marks_of(()) == ()
