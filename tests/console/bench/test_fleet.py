"""The command `rtlang bench fleet`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rtlang.__main__ import app
from rtlang.bench.fleet import simulation
from rtlang.bench.fleet.rules import Routed
from rtlang.bench.fleet.simulated_fleet import Outcome
from rtlang.bench.fleet.simulated_load import LoadShape
from rtlang.bench.fleet.simulation import SimulationReport


@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ([], LoadShape()),
        (["--programs", "5000"], LoadShape(num_programs=5000)),
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
    result = CliRunner().invoke(
        app, ["bench", "fleet", "--simulate", "--seed", "7", "--json", str(file), "--markdown", *options]
    )
    assert result.exit_code == (0 if hit_rate > 0.9 or "--quick" in options else 1)
    assert f"{hit_rate:.3f}" in result.stdout
    assert json.loads(file.read_text())["heavy"][0]["hit_rate"] == hit_rate
