"""Graphs on a runtime give the same events whether outputs are delivered beside steps or before them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from rtlang.contract.events import Event, GraphFailed, GraphFinished, NodeFailed, NodeFinished, TextDelta
from rtlang.contract.graph import Generate, RequestGraph, Text
from rtlang.contract.params import Constraint, ConstraintKind, SamplingParams
from rtlang.runtime.host_overlap import VARIABLE
from rtlang.runtime.runtime import Runtime

LIMIT_S = 120.0
SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 12}, "count": {"type": "integer"}},
        "required": ["name", "count"],
    }
)


@pytest.fixture(scope="module")
def runtimes() -> Iterator[tuple[Runtime, Runtime]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, "off")
        before = Runtime("rtlang:tiny", num_pages=256, speculation="off", fault_injection=True)
        patch.setenv(VARIABLE, "on")
        beside = Runtime("rtlang:tiny", num_pages=256, speculation="off", fault_injection=True)
    with before, beside:
        yield before, beside


def params(**settings: Any) -> SamplingParams:
    return SamplingParams(**{"max_tokens": 12, "temperature": 1.0, **settings})


def graphs() -> list[RequestGraph]:
    """Free and constrained texts, stops, several completions, turns, scores, a failure and a limit on candidates."""
    schema = Constraint(ConstraintKind.JSON_SCHEMA, SCHEMA)
    kinds = [
        Generate(1, 0, None, params()),
        Generate(1, 0, None, params(n=3)),
        Generate(1, 0, None, params(logprobs=2, prompt_logprobs=1)),
        Generate(1, 0, None, params(stop=("e", " th"))),
        Generate(1, 0, None, params(stop_regex=("[aeiou]{2}",))),
        Generate(1, 0, None, params(best_of=3, logprobs=0)),
        Generate(1, 0, None, params(max_tokens=48), constraint=schema),
        Generate(1, 0, None, params(repetition_penalty=1.2)),
        Generate(1, 0, None, params(x_fault="raise:5")),
    ]
    made = []
    for number in range(len(kinds)):
        first = kinds[number]
        parent = 0 if first.params.n > 1 else 1
        more = Text(2, parent, (" and then",)), Generate(3, 2, None, params(max_tokens=5))
        made.append(RequestGraph((Text(0, None, (f"Story {number}: once",)), first, *more)))
    return made


def run(runtime: Runtime, all_graphs: list[RequestGraph]) -> list[list[Any]]:
    """The events of graphs that run at the same time, without what depends on time."""
    ends: list[Future[None]] = [Future() for _ in all_graphs]
    heard: list[list[Any]] = [[] for _ in all_graphs]
    for number, graph in enumerate(all_graphs):

        def listen(event: Event, number: int = number) -> None:
            heard[number].append(plain(event))
            if isinstance(event, (GraphFinished, GraphFailed)):
                ends[number].set_result(None)

        runtime.submit(graph, listen, seed=number)
    for end in ends:
        end.result(LIMIT_S)
    return heard


def plain(event: Event) -> Any:
    match event:
        case TextDelta():
            return "text", event.node_id, event.choice, event.text, event.token_ids, event.logprobs
        case NodeFinished():
            return "end", event.node_id, event.completions, event.value, event.prompt_logprobs
        case NodeFailed() | GraphFailed():
            return type(event).__name__, event.error.code
        case GraphFinished():
            return "graph", event.values, event.failed_node_ids
        case _:
            return (type(event).__name__,)


def by_text(events: list[Any]) -> tuple[dict[Any, list[Any]], list[Any]]:
    """The pieces of each text in order, and the other events in order; completions of one node may alternate in any way."""
    texts: dict[Any, list[Any]] = {}
    for event in events:
        if event[0] == "text":
            texts.setdefault(event[1:3], []).append(event[3:])
    return texts, [event for event in events if event[0] != "text"]


def test_events_are_the_same_in_the_same_order(runtimes: tuple[Runtime, Runtime]) -> None:
    before, beside = (run(runtime, graphs()) for runtime in runtimes)
    for one, other in zip(before, beside, strict=True):
        assert by_text(one) == by_text(other)
    assert sum(events[-1][0] == "graph" for events in beside) == len(beside)
    assert any(event[0] == "NodeFailed" for events in beside for event in events)


def test_a_graph_that_a_listener_cancels_gets_nothing_more(runtimes: tuple[Runtime, Runtime]) -> None:
    beside = runtimes[1]
    others = [Future[None]() for _ in range(4)]
    for number, end in enumerate(others):
        graph = RequestGraph(
            (Text(0, None, (f"Other {number}",)), Generate(1, 0, None, params(max_tokens=30, ignore_eos=True)))
        )
        beside.submit(graph, lambda event, end=end: end.set_result(None) if isinstance(event, GraphFinished) else None)  # type: ignore[misc]
    heard: list[Event] = []
    is_over = threading.Event()

    def listen(event: Event) -> None:
        heard.append(event)
        if isinstance(event, TextDelta) and len(heard) == 5:
            mine.cancel()
        if isinstance(event, GraphFailed):
            is_over.set()

    may_start = threading.Event()

    def start(event: Event) -> None:
        may_start.wait(LIMIT_S)
        listen(event)

    graph = RequestGraph((Text(0, None, ("Mine",)), Generate(1, 0, None, params(max_tokens=200, ignore_eos=True))))
    mine = beside.submit(graph, start)
    may_start.set()
    assert is_over.wait(LIMIT_S)
    for end in others:
        end.result(LIMIT_S)
    assert isinstance(heard[-1], GraphFailed)
    assert sum(isinstance(event, TextDelta) for event in heard) < 200


def test_a_listener_may_ask_the_engine(runtimes: tuple[Runtime, Runtime]) -> None:
    beside = runtimes[1]
    found: list[int] = []

    def listen(event: Event) -> None:
        if isinstance(event, TextDelta):
            snapshot = beside.snapshot()
            assert snapshot is not None
            found.append(snapshot.num_running)

    generation = beside.generate("A", params=params(ignore_eos=True), listener=listen)
    generation.result(LIMIT_S)
    assert len(found) == 12


def test_a_slow_listener_delays_no_event(runtimes: tuple[Runtime, Runtime]) -> None:
    beside = runtimes[1]
    numbers: list[int] = []

    def listen(event: Event) -> None:
        if isinstance(event, TextDelta):
            threading.Event().wait(0.002)
            numbers.append(len(event.token_ids))

    assert beside.generate("B", params=params(ignore_eos=True), listener=listen).result(LIMIT_S) is not None
    assert sum(numbers) == 12
