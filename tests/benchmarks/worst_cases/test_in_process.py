"""Graphs of the cases against a runtime in this process."""

from __future__ import annotations

from rtlang.contract.config import EMBEDDED_MODEL
from rtlang_bench.worst_cases.in_process import attack_in_process


def test_graphs_run_beside_canaries() -> None:
    observed, baseline = attack_in_process(EMBEDDED_MODEL, 1, [9, 11, 14, 16], 2, lambda text: None, calibrates_s=0.5)
    assert len(observed.records) == 4
    assert all(each.ends and not each.wrong for each in observed.records.values())
    assert {each.kind for each in observed.measurements} >= {"schema", "tokenize", "tokens"}
    assert not [each.error for each in observed.measurements if each.error]
    assert baseline.memory > 50 << 20
    assert observed.samples
