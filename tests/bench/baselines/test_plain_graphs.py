"""Graphs as plain programs."""

from __future__ import annotations

import pytest

from rtlang.bench.baselines.plain_graphs import measurement, plain_nodes, running
from rtlang.bench.workloads.workload import Workload, tool_call
from rtlang.contract.params import Constraint, ConstraintKind, SamplingParams
from rtlang.contract.request_graph import Call, Const, Generate, Node, Ref, RequestGraph, Text
from tests.support.engine.encoders import Letters


def generate(node_id: int, parent: int | None, **params: int) -> Generate:
    return Generate(node_id, parent, "out", SamplingParams(max_tokens=2, **params))


def test_nodes_become_plain_data() -> None:
    schema = Constraint(ConstraintKind.JSON_SCHEMA, '{"type": "null"}')
    nodes: tuple[Node, ...] = (
        Text(0, None, ("a", "b")),
        generate(1, 0),
        tool_call(2, 1, 0.5, "found"),
        Text(3, 1, ("x", Ref(2), Ref(1))),
        Generate(4, 3, "out", SamplingParams(max_tokens=9), schema),
    )
    assert plain_nodes(RequestGraph(nodes), Letters()) == [
        {"id": -1, "parent": None, "tokens": [1]},
        {"id": 0, "parent": -1, "tokens": [*b"ab"]},
        {"id": 1, "parent": 0, "max_tokens": 2, "schema": None},
        {"id": 2, "parent": None, "caller": 1, "delay_s": 0.5, "text": "found"},
        {"id": 3, "parent": 1, "parts": ["x", 2, 1]},
        {"id": 4, "parent": 3, "max_tokens": 9, "schema": {"type": "null"}},
    ]


@pytest.mark.parametrize(
    ("node", "told"),
    [
        (generate(2, 0, n=2), "node 2"),
        (Text(2, None, (Ref(1),)), "node 2"),
        (Text(2, 0, (Ref(1, 1),)), "node 2"),
        (Call(2, "other", (Const(1),)), "node 2"),
    ],
)
def test_other_nodes_are_refused(node: Node, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        plain_nodes(RequestGraph((Text(0, None, ("a",)), generate(1, 0), node)), Letters())


def test_a_run_becomes_a_measurement() -> None:
    graph = RequestGraph((Text(0, None, ("ab",)), generate(1, 0)))
    workload = Workload("w", "", (graph, graph), arrivals_s=(0.0, 1.0))
    programs = running(workload, Letters())
    for key in programs.take_due(1.0):
        assert programs.start(key) == [1, *b"ab"]
        programs.note_output(key, 2.0)
        programs.note_output(key, 2.5)
        programs.finish(key, [5, 6], 2.5)
    found = measurement(workload, {**programs.results(2.5), "num_cached_tokens": 3})
    assert found.outputs == {(0, 1): (5, 6), (1, 1): (5, 6)}
    assert found.first_token_s == (2.0, 1.0)
    assert found.latencies_s == (2.5, 1.5)
    assert found.gaps_s() == [0.5, 0.5]
    assert (found.prompt_tokens, found.cached_tokens, found.num_output_tokens) == (6, 3, 4)
