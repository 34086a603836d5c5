"""Faults in one request of a real model: eight bystanders have the text that they have without it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from rtlang.contract.errors import InternalError, NumericsError, ParameterError
from rtlang.contract.events import Event, GraphFailed, GraphFinished, NodeFailed
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph, Text
from rtlang.contract.runs.run_options import RunOptions
from rtlang.runtime.runtime import Runtime

NUM_BYSTANDERS = 8


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    with Runtime(fault_injection=True, dtype="float32", num_pages=400) as runtime:
        yield runtime


def run(runtime: Runtime, faults: dict[int, str]) -> list[list[Event]]:
    """The events of nine graphs that run at once, some of which ask for a fault."""
    events: list[list[Event]] = [[] for _ in range(NUM_BYSTANDERS + 1)]
    ended = [threading.Event() for _ in events]
    for index in range(len(events)):

        def listen(event: Event, index: int = index) -> None:
            events[index].append(event)
            if isinstance(event, (GraphFinished, GraphFailed)):
                ended[index].set()

        params = SamplingParams(max_tokens=16, temperature=1.0, ignore_eos=True, x_fault=faults.get(index))
        graph = RequestGraph((Text(0, None, (f"Story {index}:",)), Generate(1, 0, "x", params)))
        runtime.submit(graph, listen, RunOptions(seed=index))
    for each in ended:
        assert each.wait(60)
    return events


def text(events: list[Event]) -> str:
    end = events[-1]
    assert isinstance(end, GraphFinished)
    assert not end.failed_node_ids
    return str(end.values["x"])


@pytest.mark.parametrize("fault", ["raise", "raise:7", "nan", "nan:7", "memory", "memory:7"])
def test_a_fault_in_one_request_leaves_eight_others_alone(runtime: Runtime, fault: str) -> None:
    expected = [text(each) for each in run(runtime, {})]
    events = run(runtime, {4: fault})
    for index, each in enumerate(events):
        if index != 4 or fault.startswith("memory"):
            assert text(each) == expected[index]
    if not fault.startswith("memory"):
        error = next(event.error for event in events[4] if isinstance(event, NodeFailed))
        assert isinstance(error, InternalError if fault.startswith("raise") else NumericsError)
        assert "asked" not in error.message
    stats = runtime.stats()
    assert stats["num_pages_in_use"] == 0


def test_faults_are_refused_unless_the_runtime_allows_them() -> None:
    with pytest.raises(ParameterError, match="x_fault"):
        SamplingParams(x_fault="crash")
    with Runtime(num_pages=20) as runtime:
        events = run(runtime, {0: "raise"})
        error = next(event.error for event in events[0] if isinstance(event, NodeFailed))
        assert isinstance(error, ParameterError)
