"""The time until the throughput is back, from the times of tokens that a test makes up."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from rtlang_bench.fleet_recovery import Death, FleetRecovery, back_after, rate


def arrivals(*spans: tuple[float, float, float]) -> list[float]:
    """Tokens at even distances, from spans of (start, end, tokens a second)."""
    return [start + index / per_s for start, end, per_s in spans for index in range(round((end - start) * per_s))]


def test_the_rate_counts_the_tokens_of_a_time() -> None:
    assert rate(arrivals((0.0, 10.0, 100.0)), 2.0, 4.0) == pytest.approx(100.0, rel=0.01)


def test_the_throughput_is_back_when_the_next_seconds_have_nine_tenths() -> None:
    times = arrivals((0.0, 10.0, 100.0), (10.0, 14.0, 50.0), (14.0, 40.0, 100.0))
    # a window that begins a second before the engine was back has 4 of its 5 seconds at the full rate
    assert back_after(times, 10.0, 100.0) == pytest.approx(3.0, abs=0.2)
    assert back_after(arrivals((0.0, 40.0, 95.0)), 10.0, 100.0) == 0.0
    assert math.isinf(back_after(arrivals((0.0, 10.0, 100.0), (10.0, 60.0, 80.0)), 10.0, 100.0))
    assert math.isinf(back_after([], 10.0, 100.0))


def test_the_goal_is_one_and_a_half_starts_with_every_text_right() -> None:
    deaths = [Death(100.0, 50.0, 4.0, back_s) for back_s in (2.0, 6.0, 40.0)]
    found = FleetRecovery(2, 0, deaths, Counter(done=9))
    assert found.ratio == 1.5
    assert found.is_met
    assert "1.50 starts" in str(found)
    assert not FleetRecovery(2, 0, deaths[1:], Counter(done=9)).is_met
    assert not FleetRecovery(2, 0, deaths, Counter(done=9, changed=1)).is_met
    assert not FleetRecovery(2, 0, deaths, Counter(done=9, lost=1)).is_met
