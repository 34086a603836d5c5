"""The soak of a fleet tells a lost, a failed, a changed and a doubled program from one that is well, on fleets that tests script."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rtlang.contract.errors import EngineDeadError
from rtlang.contract.events import Event, GraphFailed, GraphFinished, TextDelta
from rtlang.contract.params import Usage
from rtlang.contract.request_graph import RequestGraph
from rtlang.contract.runs.run_options import RunOptions
from rtlang_bench import fleet_soak
from rtlang_bench.fleet_soak import FleetSoak, _Client, _run, story
from rtlang_bench.prompt_memory import Sample, sample

PIECES = [TextDelta(1, 1, 0, f"{number} ", (number,)) for number in range(4)]
END = GraphFinished(1, {"x": "0 1 2 3 "}, Usage(), ())


class ScriptedFleet:
    """Gives each program the events that the test says; stops the clients after `limit` programs."""

    def __init__(self, *scripts: list[Event]) -> None:
        self.scripts = list(scripts)
        self.stop = threading.Event()

    def submit(self, graph: RequestGraph, listener: Callable[[Event], None], options: RunOptions) -> None:
        assert options.seed is not None
        assert graph == story(options.seed)
        events = self.scripts.pop(0)
        if not self.scripts:
            self.stop.set()
        for event in events:
            listener(event)


def counts(*scripts: list[Event]) -> Counter[str]:
    expected = [_run(ScriptedFleet([*PIECES, END]), 0)]
    fleet = ScriptedFleet(*scripts, [*PIECES, END])
    client = _Client(fleet, expected, 0, fleet.stop)
    client.run()
    return client.counts


@pytest.mark.parametrize(
    ("script", "outcome"),
    [
        ([*PIECES, END], {"done": 2}),
        ([*PIECES, PIECES[-1], END], {"changed": 1, "done": 1}),  # a piece that came twice
        ([*PIECES[:-1], END], {"changed": 1, "done": 1}),
        ([*PIECES, replace(END, values={"x": "0 1 2 4 "})], {"changed": 1, "done": 1}),
        ([*PIECES, END, END], {"done": 2, "ended twice": 1}),
        ([*PIECES, GraphFailed(1, EngineDeadError("it died"))], {"failed": 1, "done": 1}),
        (PIECES, {"lost": 1, "done": 1}),
    ],
)
def test_each_fault_is_counted(script: list[Event], outcome: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_soak, "WAIT_S", 0.01)
    assert counts(script) == outcome


def resident(num_bytes: int) -> Sample:
    found: Any = sample(0)
    return replace(found, resident=num_bytes)


def test_the_goal_is_that_all_is_well_and_memory_flat() -> None:
    soak = FleetSoak(1.0, Counter(done=5), Counter(kill=2), first=resident(100 << 20), last=resident(110 << 20))
    assert soak.is_met
    assert "5 done" in str(soak)
    assert "1.100x" in str(soak)
    assert not replace(soak, programs=Counter(done=5, changed=1)).is_met
    assert not replace(soak, last=resident(111 << 20)).is_met
    assert not replace(soak, programs=Counter()).is_met
