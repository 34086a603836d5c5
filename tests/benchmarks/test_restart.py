"""The benchmark of a restart, on a short prompt: the second process computes next to nothing and gives the same text."""

from __future__ import annotations

from rtlang.contract.config import RuntimeConfig
from rtlang_bench.restart import WarmRestart, measure_warm_restart


def test_a_restart_is_measured_with_the_same_text() -> None:
    told: list[str] = []
    found = measure_warm_restart(RuntimeConfig(), num_tokens=300, rounds=1, tell=told.append)
    assert found.is_same_text
    assert found.num_bytes > 0
    assert (len(found.cold_s), len(found.warm_s)) == (1, 1)
    assert told == ["filling the cache directory", "round 1 of 1"]


def test_the_goal_is_a_ratio_with_the_same_text() -> None:
    assert WarmRestart(4000, 1, (1.0, 9.0, 2.0), (0.2, 0.3, 0.4), is_same_text=True).ratio == 2.0 / 0.3
    assert WarmRestart(4000, 1, (2.0,), (0.3,), is_same_text=True).is_met
    assert not WarmRestart(4000, 1, (2.0,), (0.3,), is_same_text=False).is_met
    assert "6.7x sooner" in str(WarmRestart(4000, 1 << 20, (2.0,), (0.3,), is_same_text=True))
