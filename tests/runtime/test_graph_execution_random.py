"""Random graphs with every kind of node, failures, late answers, cancellations and deadlines, against plain text."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest

from rtlang.contract.errors import DependencyError, RequestError
from rtlang.contract.events import (
    CallRequested,
    Completion,
    Event,
    GraphFailed,
    GraphFinished,
    NodeFailed,
    NodeFinished,
    TextDelta,
    Timing,
)
from rtlang.contract.params import FinishReason, Usage
from rtlang.contract.request_graph import (
    Apply,
    Decide,
    Generate,
    Node,
    Repeat,
    RequestGraph,
    Select,
    Switch,
    Text,
    all_nodes,
    blocks_of,
    choices_of,
    last_id,
)
from rtlang.contract.runs.known import KnownOutcome
from rtlang.contract.runs.run_options import RunOptions
from rtlang.runtime.graph_execution import GraphExecution
from rtlang.runtime.scripted_runtime import AskedNode, ModelFreeRuntime
from tests.support.programs.graph_oracle import Failed, GraphOracle
from tests.support.programs.random_graphs import random_graph

SEEDS = range(400)


@pytest.fixture(autouse=True)
def _checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the table of nodes before each node runs."""
    run = GraphExecution._run

    def check_and_run(self: GraphExecution, node: Node) -> None:
        self.table.check()
        run(self, node)

    monkeypatch.setattr(GraphExecution, "_run", check_and_run)


def texts_of(node: Generate | Select, prompt: str) -> list[str]:
    """Texts that depend on the prompt; some prompts fail."""
    number = sum(map(ord, prompt)) + 7 * len(prompt)
    if number % 11 == 3:
        raise Failed
    if isinstance(node, Select):
        return [node.choices[number % len(node.choices)]]
    return [("red", "green", "Hello", str(number % 3))[(number + choice // 2) % 4] for choice in range(node.params.n)]


def call_value(function: str, args: list[Any]) -> Any:
    if len(args) == 2:
        raise Failed
    return [function, len(args)] if function == "search" else "red"


def without_roles(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    return tuple(
        replace(node, parts=tuple(part for part in node.parts if not type(part).__name__.startswith("Role")))
        if isinstance(node, Text)
        else node
        for node in nodes
    )


class Play:
    """Runs one graph on a runtime whose answers come at random times."""

    def __init__(self, seed: int, *, is_late: bool) -> None:
        self.random, self.is_late = Random(seed), is_late
        self.events: list[Event] = []
        self.ended = threading.Event()
        self.num_asked = 0

    def answer(self, asked: AskedNode) -> bool:
        node = asked.node
        if not isinstance(node, (Generate, Select)):
            return False
        self.num_asked += 1
        try:
            texts = texts_of(node, asked.prompt)
        except Failed:
            outcome = KnownOutcome(RequestError("refused"))
        else:
            done = tuple(Completion(text, tuple(map(ord, text)), FinishReason.STOP) for text in texts)
            outcome = KnownOutcome(NodeFinished(0, 0, None, done, Usage(), Timing()))
        if self.is_late and self.random.random() < 0.6:
            asked.later(self.random.random() * 0.002, lambda: asked.end(outcome))
        else:
            asked.end(outcome)
        return True

    def run(self, graph: RequestGraph, act: Any = None, **options: Any) -> list[Event]:
        with ModelFreeRuntime(self.answer) as runtime:
            runs: list[Any] = []
            is_submitted = threading.Event()

            def listen(event: Event) -> None:
                self.events.append(event)
                if isinstance(event, (GraphFinished, GraphFailed)):
                    self.ended.set()
                elif isinstance(event, CallRequested):
                    threading.Thread(target=resolve, args=(event,), daemon=True).start()

            def resolve(event: CallRequested) -> None:
                is_submitted.wait(5)
                try:
                    runs[0].resolve(event.node_id, call_value(event.function, list(event.args)))
                except Failed:
                    runs[0].reject(event.node_id, "call", "it failed")

            runs.append(runtime.submit(graph, listen, RunOptions(inputs={"question": "red"}, **options)))
            is_submitted.set()
            if act is not None:
                act(runs[0])
            assert self.ended.wait(20), f"no final event after {self.events}"
        return self.events


def check_form(events: list[Event]) -> None:
    assert [type(event) for event in events if isinstance(event, (GraphFinished, GraphFailed))] == [type(events[-1])]
    ended = [event.node_id for event in events if isinstance(event, (NodeFinished, NodeFailed))]
    assert len(ended) == len(set(ended))
    for index, event in enumerate(events):
        if isinstance(event, (TextDelta, CallRequested)):
            before = (other for other in events[:index] if isinstance(other, (NodeFinished, NodeFailed)))
            assert event.node_id not in {other.node_id for other in before}


@dataclass
class Counts:
    values: int = 0
    failed: int = 0
    cancelled: int = 0


def check_values(seed: int, graph: RequestGraph, events: list[Event], counts: Counts) -> None:
    """Compare what a run gave with the oracle, which is told the winners of decisions."""
    check_form(events)
    assert isinstance(events[-1], GraphFinished)
    finished = {event.node_id: event for event in events if isinstance(event, NodeFinished)}
    cancelled = {node_id for node_id, event in finished.items() if event.is_cancelled}
    winners = {
        node_id: event.value[0]
        for node_id, event in finished.items()
        if node_id not in cancelled and isinstance(_node_at(graph.nodes, node_id), Decide)
    }
    oracle = GraphOracle(graph, {"question": "red"}, texts_of, call_value, winners)
    failed = {event.node_id for event in events if isinstance(event, NodeFailed)}
    for node_id, event in finished.items():
        if node_id in cancelled:
            counts.cancelled += 1
            continue
        expected = oracle.values[node_id]
        assert expected is not None, (seed, node_id)
        if event.completions:
            for text, completion in zip(expected, event.completions, strict=True):
                if completion.finish_reason is not FinishReason.CANCELLED:
                    assert completion.text == text, (seed, node_id)
        else:
            assert [event.value] == expected, (seed, node_id)
        counts.values += 1
    for node_id in failed:
        assert oracle.values[node_id] is None, (seed, node_id)
    counts.failed += len(failed)
    missing = {
        node_id for node_id, value in oracle.values.items() if value is None and node_id not in failed | cancelled
    }
    missing = {node_id for node_id in missing if not any(_holds(graph, each, node_id) for each in cancelled)}
    if missing:  # text and applied functions end silently if a decision was made without them
        assert winners or cancelled, (seed, missing)
        kinds = {type(_node_at(graph.nodes, node_id)) for node_id in missing}
        assert kinds <= {Text, Apply}, (seed, missing)
    assert set(events[-1].failed_node_ids) == failed


@pytest.mark.parametrize("is_late", [False, True])
def test_random_graphs_give_what_plain_text_gives(is_late: bool) -> None:
    counts = Counts()
    for seed in SEEDS:
        graph = _plain(random_graph(seed))
        check_values(seed, graph, Play(seed, is_late=is_late).run(graph), counts)
    assert counts.values > 500
    assert counts.failed > 100
    assert counts.cancelled > 10 or not is_late


def outcomes_of(events: list[Event]) -> dict[int, KnownOutcome]:
    """What ended the nodes of a run, but what failed because another one did."""
    known: dict[int, KnownOutcome] = {}
    for event in events:
        if isinstance(event, NodeFinished):
            known[event.node_id] = KnownOutcome(event)
        elif isinstance(event, NodeFailed) and not isinstance(event.error, DependencyError):
            known[event.node_id] = KnownOutcome(event.error)
    return known


def ends_of(events: list[Event]) -> dict[int, Any]:
    """The texts or values of the nodes that ended whole."""
    finished = [event for event in events if isinstance(event, NodeFinished) and not event.is_cancelled]
    return {event.node_id: ([each.text for each in event.completions], event.value) for event in finished}


def test_a_run_whose_outcomes_are_known_is_repeated_without_asking_for_anything() -> None:
    counts = Counts()
    for seed in SEEDS:
        graph = _plain(random_graph(seed))
        first = Play(seed, is_late=True).run(graph)
        again = Play(seed, is_late=False)
        events = again.run(graph, known=outcomes_of(first))
        check_values(seed, graph, events, counts)
        assert again.num_asked == 0, seed
        assert not any(isinstance(event, CallRequested) for event in events), seed
        found, expected = ends_of(events), ends_of(first)
        cancelled = {event.node_id for event in first if isinstance(event, NodeFinished) and event.is_cancelled}
        for node_id, end in expected.items():
            is_lost = any(_holds(graph, each, node_id) for each in cancelled)  # a cancelled branch is not begun again
            assert found.pop(node_id, None) == end or is_lost, (seed, node_id)
        assert found == {}, seed
    assert counts.cancelled > 10


def test_a_run_goes_on_from_any_part_of_its_outcomes() -> None:
    counts = Counts()
    for seed in SEEDS:
        graph = _plain(random_graph(seed))
        first = outcomes_of(Play(seed, is_late=True).run(graph))
        random = Random(seed)
        known = {
            node_id: outcome
            for node_id, outcome in first.items()
            if random.random() < 0.5 and not (isinstance(outcome.end, NodeFinished) and outcome.end.is_cancelled)
        }
        known = {node_id: each for node_id, each in known.items() if not _is_cut(each)}
        check_values(seed, graph, Play(seed, is_late=True).run(graph, known=known), counts)
    assert counts.values > 500


def _is_cut(outcome: KnownOutcome) -> bool:
    if not isinstance(outcome.end, NodeFinished):
        return False
    return any(each.finish_reason is FinishReason.CANCELLED for each in outcome.end.completions)


def test_graphs_end_once_whatever_ends_them() -> None:
    outcomes = set()
    for seed in SEEDS[:150]:
        random = Random(seed)
        graph = random_graph(seed)
        options: dict[str, Any] = {}
        act = None
        if seed % 3 == 0:
            options["deadline_s"] = random.random() * 0.002
        elif seed % 3 == 1:
            act = lambda run: run.cancel()  # noqa: E731
        else:
            options["is_open"] = True

            def act(run: Any, random: Random = random) -> None:
                run.close()
                run.resolve(10**6, 1)
                run.reject(0, "call", "no such call")

        events = Play(seed, is_late=True).run(graph, act, **options)
        check_form(events)
        outcomes.add(type(events[-1]))
    assert outcomes == {GraphFinished, GraphFailed}


def _plain(graph: RequestGraph) -> RequestGraph:
    def node(each: Node) -> Node:
        match each:
            case Text():
                return without_roles((each,))[0]
            case Switch():
                cases = tuple((key, block_of(block)) for key, block in each.cases)
                return replace(each, cases=cases, default=None if each.default is None else block_of(each.default))
            case Repeat():
                return replace(each, body=block_of(each.body))
        return each

    def block_of(block: Any) -> Any:
        return replace(block, nodes=tuple(map(node, block.nodes)))

    return replace(graph, nodes=tuple(map(node, graph.nodes)))


def _holds(graph: RequestGraph, control_id: int, node_id: int) -> bool:
    """Whether a node is in a block of the node that runs under another id."""
    control = _node_at(graph.nodes, control_id)
    assert control is not None
    return control_id < node_id <= control_id + last_id(control) - control.node_id


def _node_at(nodes: tuple[Node, ...], node_id: int) -> Node | None:
    """The node that runs under an id."""
    for node in nodes:
        if node.node_id == node_id:
            return node
        if node.node_id < node_id <= last_id(node):
            if isinstance(node, Repeat):
                node_id = node.node_id + 1 + (node_id - node.node_id - 1) % node.stride
            return _node_at(tuple(each for block in blocks_of(node) for each in block.nodes), node_id)
    return None


def test_the_random_graphs_have_all_kinds_of_nodes() -> None:
    kinds = {type(node).__name__ for seed in SEEDS for node in all_nodes(random_graph(seed).nodes)}
    assert kinds == {"Text", "Generate", "Select", "Apply", "Call", "Switch", "Repeat", "Decide"}
    assert any(choices_of(node) > 1 for seed in SEEDS for node in all_nodes(random_graph(seed).nodes))
