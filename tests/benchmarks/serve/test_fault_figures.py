"""Faults of single requests on the embedded model. The killed engine is tested with its process in tests/supervise."""

from __future__ import annotations

from rtlang.contract.config import RuntimeConfig
from rtlang_bench.serve.fault_figures import fault_figures


def test_eight_bystanders_keep_their_texts() -> None:
    same, ends = fault_figures(RuntimeConfig())
    assert (same.name, same.value) == ("fault_same_texts", 24)
    assert (ends.name, ends.value) == ("fault_ends", 3)
