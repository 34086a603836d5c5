"""The table of a runtime for a notebook. (On a runtime: test_runtime.py.)"""

from __future__ import annotations

from collections import defaultdict

from rtlang.runtime.reports.summary import summary_table


def test_a_runtime_without_figures_shows_only_its_state() -> None:
    assert "not loaded yet" in summary_table("m", "cpu", "not loaded yet", None)
    stats: dict[str, int] = defaultdict(int, num_prompt_tokens=8, num_cached_tokens=2, num_pages=5)
    shown = summary_table("m", "cpu", "running", stats)
    assert "8, of them 2 from the cache (25%)" in shown
    assert "0 in use, 0 cached, of 5" in shown
