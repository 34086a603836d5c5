"""The mixed load does each of its things, and its line tells whether memory stayed flat."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from rtlang.bench.endurance.mixed_load import MixedLoad, measure_mixed_load
from rtlang.bench.memory import Sample
from rtlang.contract.config import RuntimeConfig


def test_a_short_load_does_every_kind_of_thing() -> None:
    told: list[str] = []
    found = measure_mixed_load(
        RuntimeConfig(num_pages=120, num_threads=1), minutes=0.05, num_clients=4, tell=told.append
    )
    assert found.done.keys() <= {"chat", "json", "constrained", "tree", "cancelled", "prompt", "text"}, "none failed"
    assert len(found.done) >= 4
    assert found.first.num_prompts <= found.last.num_prompts <= found.done.total()
    assert found.most_resident >= found.last.resident
    assert told[0] == "filling the pool"
    assert "0." in told[1]


def test_growth_and_failures_miss_the_goal() -> None:
    first = Sample(1, 1000 << 20, 0, 0, 0)
    flat = MixedLoad(30.0, first, replace(first, resident=1099 << 20), 1200 << 20, Counter(chat=2))
    assert flat.is_met
    assert str(flat) == (
        "resident memory: 1000 MiB after the first minute, 1099 MiB after 30 minutes: 1.099x "
        "(goal: at most 1.1x; most 1200 MiB)\n2 chat"
    )
    assert not replace(flat, last=replace(first, resident=1101 << 20)).is_met
    for kind in ("failed", "hung"):
        assert not replace(flat, done=Counter({kind: 1})).is_met
