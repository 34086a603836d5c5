"""The command `python -m rtlang_bench.fleet`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rtlang.contract.config import RuntimeConfig
from rtlang_bench.figure import Figure
from rtlang_bench.fleet import fleet_figures, simulation
from rtlang_bench.fleet.__main__ import app
from rtlang_bench.fleet.fleet_programs import QUICK, ProgramSizes
from rtlang_bench.fleet.rules import Routed
from rtlang_bench.fleet.simulated_fleet import Outcome
from rtlang_bench.fleet.simulated_load import LoadShape
from rtlang_bench.fleet.simulation import SimulationReport


@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ([], LoadShape()),
        (["--programs", "5000"], LoadShape(num_programs=5000)),
        (["--replicas", "100"], LoadShape(100, 100_000, 500, 10_000)),
        (["--quick"], simulation.QUICK),
    ],
)
@pytest.mark.parametrize("hit_rate", [0.97, 0.5])
def test_missed_mark_is_an_exit_code_except_when_quick(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, options: list[str], shape: LoadShape, hit_rate: float
) -> None:
    def simulated(given: LoadShape, *, seed: int, command: str, tell: Any) -> SimulationReport:
        assert (given, seed) == (shape, 7)
        return SimulationReport(command, "", given, (), (Outcome(Routed.name, hit_rate, 1, 1, 1, 1, 1, 1, False),))

    monkeypatch.setattr(simulation, "run_simulation", simulated)
    file = tmp_path / "figures.json"
    result = CliRunner().invoke(app, ["--simulate", "--seed", "7", "--json", str(file), "--markdown", *options])
    assert result.exit_code == (0 if hit_rate > 0.9 or "--quick" in options else 1)
    assert f"{hit_rate:.3f}" in result.stdout
    assert json.loads(file.read_text())["heavy"][0]["hit_rate"] == hit_rate


@pytest.mark.parametrize(("options", "expected"), [(["--rounds", "2"], (ProgramSizes(), 2)), (["--quick"], (QUICK, 1))])
@pytest.mark.parametrize("ratio", [1.8, 1.2])
def test_figures_of_a_real_fleet_are_printed_and_decide_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, options: list[str], expected: tuple[ProgramSizes, int], ratio: float
) -> None:
    figure = Figure("tree_throughput_ratio", ratio, ">=", 1.7, "x")

    def measured(config: RuntimeConfig, sizes: ProgramSizes, *, rounds: int, seed: int, tell: Any) -> list[Figure]:
        assert (config.dtype, sizes, rounds, seed) == ("float32", *expected, 3)
        return [figure]

    monkeypatch.setattr(fleet_figures, "measure_fleet", measured)
    result = CliRunner().invoke(app, ["--dtype", "float32", "--seed", "3", *options])
    assert str(figure) in result.stdout
    assert result.exit_code == (0 if ratio > 1.7 or "--quick" in options else 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--simulate", "--dtype", "float32"], "no runtime options"),
        (["--programs", "500"], "only for --simulate"),
        (["--replicas", "5"], "only for --simulate"),
    ],
)
def test_options_of_the_other_kind_are_refused(options: list[str], message: str) -> None:
    result = CliRunner().invoke(app, [*options])
    assert result.exit_code == 1
    assert message in result.stderr
