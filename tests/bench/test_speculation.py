"""The benchmark of drafts runs on the embedded model, and its figures are those of what ran."""

from __future__ import annotations

import json

import pytest

from rtlang.bench import speculation
from rtlang.contract.config import RuntimeConfig


@pytest.fixture(scope="module")
def report() -> speculation.SpeculationReport:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(speculation, "_CASES", (("copies", 1), ("sampled records", 4)))
        return speculation.run_speculation(RuntimeConfig(num_threads=1), is_quick=True)


def test_drafts_save_steps_and_change_no_text(report: speculation.SpeculationReport) -> None:
    copies, records = report.figures
    assert copies.drafted_steps < copies.plain_steps
    assert report.is_sound
    assert (copies.num_same, records.num_same) == (4, 4)
    assert copies.accepted is not None
    assert 0 < copies.accepted <= 1
    assert len(copies.ratios) == 1


def test_a_report_is_a_table_and_plain_values(report: speculation.SpeculationReport) -> None:
    assert json.loads(json.dumps(report.to_plain()))["dtype"] == "float32"
    lines = report.to_markdown().splitlines()
    assert [line.split("|")[1].strip() for line in lines[:4]] == ["workload", "---", "copies", "sampled records"]
    assert report.to_tables()[0].row_count == 2
    assert any("rtlang bench --workload speculate" in fact for fact in report.facts())
