"""The contract of runtimes, held against the fake one that the other tests rely on."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang.contract.errors import AbortedError, ConstraintError, DependencyError, EngineDeadError, GraphError
from rtlang.contract.events import Event, GraphFailed, GraphFinished, NodeFailed, NodeFinished
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Arg, Generate, Ref, RequestGraph, Select, Text
from rtlang.contract.runs.run_options import RunOptions
from rtlang.contract.service.target import GraphRun, Target
from tests.support.programs.fake_target import FakeTarget, answer, by_name

PARAMS = SamplingParams()
GRAPH = RequestGraph(
    (
        Text(0, None, ("a",)),
        Generate(1, 0, "x", PARAMS),
        Select(2, 1, "y", ("p", "q")),
        Text(3, 0, (Ref(1),)),
        Generate(4, 3, "z", PARAMS),
    )
)


def final(events: list[Event]) -> Event:
    ends = [event for event in events if isinstance(event, (GraphFinished, GraphFailed))]
    assert len(ends) == 1
    assert events[-1] is ends[0]
    return ends[0]


def submit(target: Target, graph: RequestGraph, **options: Any) -> tuple[GraphRun, list[Event]]:
    events: list[Event] = []
    return target.submit(graph, events.append, RunOptions(**options)), events


def test_every_node_and_graph_ends_in_one_event(target: FakeTarget) -> None:
    _, events = submit(target, GRAPH)
    assert target.runs[0].ended.wait(60)
    end = final(events)
    assert isinstance(end, GraphFinished)
    x = answer("a", "x")
    assert end.values["z"] == answer(f"a{x}", "z")
    assert sorted(event.node_id for event in events if isinstance(event, NodeFinished)) == [1, 2, 4]


def test_failures_reach_dependants_only(target: FakeTarget) -> None:
    target.script = by_name({"y": ConstraintError("bad")})
    _, events = submit(target, RequestGraph((*GRAPH.nodes, Generate(5, 2, "w", PARAMS))))
    assert target.runs[0].ended.wait(60)
    failed = {event.node_id: event.error for event in events if isinstance(event, NodeFailed)}
    assert isinstance(failed[2], ConstraintError)
    assert isinstance(failed[5], DependencyError)
    assert failed[5].node_id == 2
    assert set(failed) == {2, 5}
    end = final(events)
    assert isinstance(end, GraphFinished)
    assert end.failed_node_ids == (2, 5)


def test_an_open_graph_takes_more_nodes_until_it_is_closed(target: FakeTarget) -> None:
    run, events = submit(target, GRAPH, is_open=True)
    run.extend([Text(7, 4, ("b",)), Generate(8, 7, "more", PARAMS)])
    with pytest.raises(GraphError):
        run.extend([Generate(8, None, "id again", PARAMS)])
    run.extend([Generate(6, None, "lower id", PARAMS)])
    run.close()
    run.close()
    with pytest.raises(GraphError, match="closed"):
        run.extend([Generate(9, None, "late", PARAMS)])
    assert target.runs[0].ended.wait(60)
    end = final(events)
    assert isinstance(end, GraphFinished)
    assert {"more", "lower id"} <= end.values.keys()


def test_cancelling_ends_a_graph(target: FakeTarget) -> None:
    target.hold("x")
    run, events = submit(target, GRAPH)
    run.cancel()
    run.cancel()
    assert target.runs[0].ended.wait(60)
    end = final(events)
    assert isinstance(end, GraphFailed)
    assert isinstance(end.error, AbortedError)


def test_inputs_are_needed_and_used(target: FakeTarget) -> None:
    graph = RequestGraph((Text(0, None, (Arg("who"),)), Generate(1, 0, "x", PARAMS)), ("who",))
    for wrong in ({}, {"who": "a", "other": "b"}):
        with pytest.raises(GraphError, match="inputs"):
            submit(target, graph, inputs=wrong)
    _, events = submit(target, graph, inputs={"who": "Ada"})
    assert target.runs[0].ended.wait(60)
    end = final(events)
    assert isinstance(end, GraphFinished)
    assert end.values == {"x": answer("Ada", "x")}


def test_a_closed_runtime_ends_everything_and_takes_nothing() -> None:
    target = FakeTarget()
    target.hold("x")
    run, events = submit(target, GRAPH, is_open=True)
    target.close()
    target.close()
    assert isinstance(final(events), GraphFailed)
    with pytest.raises(EngineDeadError):
        submit(target, GRAPH)
    with pytest.raises(EngineDeadError):
        run.extend([])
