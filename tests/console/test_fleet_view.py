"""`rtlang top --fleet`: the table of replicas, and what a server without a fleet says."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console
from typer.testing import CliRunner

from rtlang.__main__ import app
from rtlang.console.fleet_view import fleet_view
from rtlang.contract.service.fleet_report import FleetReport, ReplicaReport
from tests.support.programs.scripted_target import ScriptedTarget
from tests.support.programs.snapshots import WatchedFleet
from tests.support.servers.serving import serving

FIRST = ReplicaReport("a", "ready", "any", 3, 1500, 2, 25, 100, 1000, 900, 1, 4, 0.1)
SECOND = replace(FIRST, name="b\x1b", state="draining", num_waiting_tokens=500, report_age_s=7.2)
LAST = ReplicaReport("c", "loading", "prefill", *([0] * 9))
REPORT = FleetReport("some:model", 7, 1, (FIRST, SECOND, LAST))


class Fleet(WatchedFleet):
    """A target that reports this fleet."""

    def __init__(self) -> None:
        super().__init__("a", "b\x1b")

    def fleet_report(self) -> FleetReport:
        return REPORT


def shown(report: FleetReport, notice: str = "") -> list[str]:
    output = StringIO()
    Console(file=output, width=120, color_system=None).print(fleet_view(report, notice))
    return [" ".join(line.split()) for line in output.getvalue().splitlines()]


def test_each_replica_has_a_line() -> None:
    lines = shown(REPORT, "not reachable; trying again")
    assert "model some:model" in lines
    assert "replicas 1 ready of 3" in lines
    assert "programs 7 running, 1 without a replica" in lines
    assert "waiting 2,000 tokens" in lines
    assert "hit rate 90% of 2,000 prompt tokens since the start" in lines
    assert "a ready any 3 2 1,500 75% 90% 1 4" in lines
    assert "b\\x1b draining (silent for 7 s) any 3 2 500 75% 90% 1 4" in lines
    assert "c loading prefill 0 0 0 - - 0 0" in lines
    assert lines[-1] == "not reachable; trying again"


def test_the_busiest_replica_is_compared_with_the_mean() -> None:
    lines = shown(replace(REPORT, replicas=(FIRST, replace(SECOND, state="ready"))))
    assert "waiting 2,000 tokens, busiest replica 1.50 times the mean" in lines


@pytest.mark.parametrize("option", ["--once", "--json"])
def test_the_command_fetches_the_report(option: str) -> None:
    with serving(Fleet()) as server:
        result = CliRunner().invoke(app, ["top", server.url, "--fleet", option])
    assert result.exit_code == 0, result.output
    if option == "--json":
        assert json.loads(result.output)["replicas"][0]["num_moved"] == 4
    else:
        assert "1 ready of 3" in result.output


def test_the_engine_of_a_replica_is_shown_by_its_name() -> None:
    with serving(Fleet()) as server:
        result = CliRunner().invoke(app, ["top", server.url, "--replica", "b\x1b", "--json"])
        refused = CliRunner().invoke(app, ["top", server.url, "--replica", "d"])
        both = CliRunner().invoke(app, ["top", server.url, "--replica", "a", "--fleet"])
    assert json.loads(result.output)["model"] == "b\x1b"
    assert (refused.exit_code, both.exit_code) == (1, 2)
    assert "replica = 'd': expected one of a, b" in refused.output


def test_a_server_with_one_engine_says_so() -> None:
    with serving(ScriptedTarget()) as server:
        result = CliRunner().invoke(app, ["top", server.url, "--fleet"])
    assert result.exit_code == 1
    assert "this server runs one engine and no fleet (HTTP status 404)" in result.output
