"""The mixed load does each of its things, and its line tells whether memory stayed flat."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace

from rtlang.contract.config import RuntimeConfig
from rtlang.runtime.runtime import Runtime
from rtlang_bench.memory import Client, MixedLoad, measure_mixed_load
from rtlang_bench.prompt_memory import Sample


def test_a_client_does_every_kind_of_thing() -> None:
    with Runtime(num_pages=120, num_threads=1) as runtime:
        client = Client(runtime, 3, threading.Event())
        for action in client.actions:
            client.act(action)
    kinds = ["chat", "json", "constrained", "tree", "cancelled", "prompt", "text"]
    assert client.done == Counter(kinds), "none failed or hung"


def test_a_short_load_is_measured() -> None:
    told: list[str] = []
    config = RuntimeConfig(num_pages=60, num_threads=1)
    found = measure_mixed_load(config, minutes=0.01, num_clients=2, tell=told.append)
    assert not {"failed", "hung"} & found.done.keys()
    assert found.most_resident >= max(found.first.resident, found.last.resident)
    assert told[0] == "filling the pool"
    assert told[1].startswith("  0.0 min")


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
