"""The command `python -m rtlang_bench.worst_cases`."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rtlang_bench.worst_cases import __main__ as command
from rtlang_bench.worst_cases.judge import Baseline, CaseRecord, Measurement
from rtlang_bench.worst_cases.session import Observed

PROBES = [Measurement(kind, 0.0, 0.1) for kind in ("schema", "tokenize", "tokens")]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The attacks that were asked for; case 8 is the worst."""
    calls: list[tuple[Any, ...]] = []

    def attack(model: str, seed: int, chosen: list[int], width: int, tell: Any, until: float) -> Any:
        calls.append((seed, chosen, width))
        chosen = chosen if until > time.monotonic() else chosen[:1]
        records = {number: CaseRecord(number, "node:map", number, number + 1, ("value",)) for number in chosen}
        gaps = [Measurement("stream", 8.0, 8.9)] if 8 in records else []
        return Observed(records, PROBES + gaps), Baseline({}, 0)

    monkeypatch.setattr(command, "_attack_server", attack)
    monkeypatch.setattr(command, "attack_in_process", attack)
    return calls


def test_the_worst_cases_are_repeated_alone_and_a_missed_bound_is_an_exit_code(
    asked: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    path = tmp_path / "found.json"
    result = CliRunner().invoke(command.app, ["--cases", "4", "--first", "7", "--seed", "3", "--json", str(path)])
    assert asked == [(3, [7, 8, 9, 10], command.WIDTH), (3, [8], 1)]
    assert result.exit_code == 1
    assert result.stderr.endswith("error: bounds are missed: longest_gap\n")
    assert "900 ms, alone 900 ms: case 8 node:map: value" in result.stdout
    assert len(json.loads(path.read_text())["cases"]) == 4


def test_a_run_that_is_late_tells_how_many_cases_it_has_tried(asked: list[tuple[Any, ...]]) -> None:
    result = CliRunner().invoke(command.app, ["--cases", "4", "--first", "9", "--minutes", "0"])
    assert result.exit_code == 1
    assert "cases: 1, bound == 4, MISSED (the 0 minutes are over)" in result.stdout
    assert result.stderr.endswith("error: bounds are missed: cases\n")


def test_one_case_can_be_repeated(asked: list[tuple[Any, ...]]) -> None:
    assert CliRunner().invoke(command.app, ["--case", "20", "--in-process"]).exit_code == 0
    assert asked == [(1, [20], 1)]


def test_an_unknown_kind_is_refused(asked: list[tuple[Any, ...]]) -> None:
    result = CliRunner().invoke(command.app, ["--only", "bombs"])
    assert (result.exit_code, asked) == (1, [])
    assert result.stderr.startswith("error: --only bombs: expected function, node, route, frame or issue")
