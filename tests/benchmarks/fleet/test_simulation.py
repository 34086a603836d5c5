"""The report of the simulation."""

from __future__ import annotations

import json
from dataclasses import replace

from rtlang_bench.fleet.rules import RULES, Routed
from rtlang_bench.fleet.simulated_fleet import Outcome
from rtlang_bench.fleet.simulated_load import LoadShape
from rtlang_bench.fleet.simulation import SimulationReport, run_simulation

GOOD = Outcome(Routed.name, 0.97, 1.2, 0.85, 1.0, 3.0, 50.0, 100, False)


def test_all_rules_are_simulated_at_both_loads() -> None:
    told: list[str] = []
    report = run_simulation(
        LoadShape(6, 300, 5, 40), command="python -m rtlang_bench.fleet --simulate", tell=told.append
    )
    for outcomes, num_programs in ((report.light, 60), (report.heavy, 300)):
        assert len({outcome.rule for outcome in outcomes}) == len(RULES) == 8
        assert all(outcome.num_programs == num_programs for outcome in outcomes)
    assert len(told) == 16
    json.dumps(report.to_plain())
    markdown = report.to_markdown()
    for outcome in report.heavy:
        assert outcome.rule in markdown
        assert f"{outcome.hit_rate:.3f}" in markdown
    assert [len(table.rows) for table in report.to_tables()] == [8, 8]


def test_marks_hold_for_the_router_at_the_heavy_load() -> None:
    report = SimulationReport("", "", LoadShape(), (), (GOOD,))
    assert report.is_met
    for bad in (replace(GOOD, hit_rate=0.95), replace(GOOD, balance=1.4), replace(GOOD, decision_us=120.0)):
        assert not replace(report, heavy=(bad,)).is_met
        assert replace(report, light=(bad,)).is_met


def test_saturated_rules_have_no_latency() -> None:
    report = SimulationReport("", "", LoadShape(), (), (replace(GOOD, is_saturated=True),))
    assert "saturated" in report.to_markdown()
    assert "3.00" not in report.to_markdown()
