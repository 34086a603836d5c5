"""Graphs of the cases: every function and every kind of node, most of them valid, small on the wire."""

from __future__ import annotations

import json
from random import Random

import pytest

from rtlang.contract.errors import GraphError
from rtlang.contract.graph.plain_form import KINDS
from rtlang.contract.graph.pure_functions import FUNCTIONS
from rtlang.contract.request_graph import RequestGraph
from rtlang_bench.worst_cases.draws import Draws
from rtlang_bench.worst_cases.graph_cases import (
    ARGUMENTS,
    NODES,
    call_value,
    constraint,
    function_graph,
    graph_body,
    node_graph,
)


def test_every_function_has_arguments() -> None:
    assert set(ARGUMENTS) == set(FUNCTIONS)


def test_every_kind_of_node_is_made() -> None:
    made = set()
    for kind in NODES:
        for seed in range(10):
            made |= {node["kind"] for node in node_graph(Draws(Random(seed)), kind).nodes}
    assert made == set(KINDS)


@pytest.mark.parametrize("seed", range(3))
def test_most_graphs_are_valid_and_small_enough_to_be_read(seed: int) -> None:
    num_valid = 0
    for name in (*ARGUMENTS, *NODES):
        draws = Draws(Random(f"{seed}/{name}"))
        draft = function_graph(draws, name) if name in ARGUMENTS else node_graph(draws, name)
        body = graph_body(draft)
        assert len(json.dumps(body, ensure_ascii=False)) < 16 << 20
        try:
            RequestGraph.from_plain(body["graph"]).validate()
        except GraphError:
            continue
        num_valid += 1
    assert num_valid > 0.7 * (len(ARGUMENTS) + len(NODES))


def test_constraints_and_answers_to_calls_are_plain() -> None:
    draws = Draws(Random(5))
    for _ in range(20):
        assert set(constraint(draws)) == {"kind", "source"}
        json.dumps(call_value(draws))
