"""A trace is a valid Chrome trace, and agrees with what the events say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rtlang as rt
from rtlang.contract.errors import ConfigError
from rtlang.contract.events import Event, GraphFailed, GraphFinished, NodeFinished
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph, Text
from rtlang.runtime.reports import trace as trace_module
from rtlang.runtime.runtime import Runtime
from tests.support.waiting import wait_until

GRAPH = RequestGraph(
    (
        Text(0, None, ("Hello",)),
        Generate(1, 0, "a", SamplingParams(max_tokens=4)),
        Generate(2, 0, None, SamplingParams(n=2)),
    )
)


def run(runtime: Runtime) -> list[Event]:
    events: list[Event] = []
    runtime.submit(GRAPH, events.append)
    wait_until(lambda: any(isinstance(event, (GraphFinished, GraphFailed)) for event in events))
    return events


def test_every_node_and_step_of_a_trace_is_there(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    with Runtime(max_model_len=256, num_pages=64) as runtime:
        run(runtime)  # before the trace
        steps_before = runtime.stats()["num_steps"]
        with runtime.trace(path):
            finished = [event for event in run(runtime) if isinstance(event, NodeFinished)]
        num_steps = runtime.stats()["num_steps"] - steps_before
        run(runtime)  # after it
    found = json.loads(path.read_text())["traceEvents"]
    steps = [event for event in found if event["ph"] == "X"]
    assert num_steps - 1 <= len(steps) <= num_steps
    assert all(event["dur"] > 0 for event in steps)
    graph_id = finished[0].graph_id
    nodes = [event for event in found if event["ph"] == "b" and event["name"] in ("a", "node 2")]
    assert {(event["pid"], event["id"]) for event in nodes} == {(graph_id, 1), (graph_id, 2)}
    for event in finished:
        args = next(each["args"] for each in nodes if each["id"] == event.node_id)
        assert args["completion_tokens"] == event.usage.completion_tokens
    begins = [(e["pid"], e["id"], e["name"]) for e in found if e["ph"] == "b"]
    assert sorted(begins) == sorted((e["pid"], e["id"], e["name"]) for e in found if e["ph"] == "e")
    assert all(event["ts"] >= 0 for event in found if "ts" in event)


def test_nodes_of_a_trace_have_their_paths_as_names(tmp_path: Path) -> None:
    @rt.program
    def forked(s: rt.State) -> None:
        for index, fork in enumerate(s.fork(2)):
            fork += f"x{index} " + rt.gen("tip", 3)
        rt.repeat(lambda state: state.__iadd__("y" + rt.gen("turn", 2)) and None, at_most=2, state=s)

    path = tmp_path / "trace.json"
    with Runtime(max_model_len=256, num_pages=64) as runtime, runtime.trace(path):
        result = forked.run(runtime=runtime)
    names = {event["name"] for event in json.loads(path.read_text())["traceEvents"]}
    assert {"fork[1]/tip", "repeat[1]/turn", *result.paths} <= names


def test_a_trace_is_bounded_and_says_what_it_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_module, "MAX_EVENTS", 4)
    with Runtime(max_model_len=256, num_pages=64) as runtime:
        trace = runtime.trace(tmp_path / "trace.json")
        run(runtime)
        trace.close()
        trace.close()
    document = json.loads((tmp_path / "trace.json").read_text())
    assert len(document["traceEvents"]) <= 4
    assert document["otherData"]["num_dropped_events"] > 0


def test_a_missing_folder_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with (
        Runtime(max_model_len=256, num_pages=64) as runtime,
        pytest.raises(ConfigError, match=r"path = .*expected a file in an existing folder"),
    ):
        runtime.trace(tmp_path / "nowhere" / "trace.json")
