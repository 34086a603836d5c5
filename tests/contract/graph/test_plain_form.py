"""The plain form of graphs: any graph comes back equal, and whatever is wrong is named."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from rtlang.contract.errors import GraphError
from rtlang.contract.graph.plain_form import KINDS
from rtlang.contract.request_graph import Generate, RequestGraph, Text, TokenIds, all_nodes, nodes_from_plain
from tests.support.long_tests import sized
from tests.support.programs.random_graphs import random_graph


@pytest.mark.parametrize("seed", range(sized(300)))
def test_a_graph_comes_back_equal_from_json_and_messagepack(seed: int) -> None:
    graph = random_graph(seed)
    graph.validate()
    assert RequestGraph.from_plain(json.loads(json.dumps(graph.to_plain()))) == graph
    assert RequestGraph.from_msgpack(graph.to_msgpack()) == graph


def test_random_graphs_have_every_kind_of_node() -> None:
    found = {type(node).__name__.lower() for seed in range(100) for node in all_nodes(random_graph(seed).nodes)}
    assert found == set(KINDS)


def test_a_broken_plain_form_raises_a_graph_error_or_is_a_valid_graph() -> None:
    random = Random(0)
    num_refused, num_graphs = 0, sized(400)
    for seed in range(num_graphs):
        plain = json.loads(json.dumps(random_graph(seed).to_plain()))
        _break_something(plain, random)
        try:
            RequestGraph.from_plain(plain).validate()
        except GraphError:
            num_refused += 1
    assert num_refused > num_graphs / 4


def _break_something(plain: Any, random: Random) -> None:
    """Replace one value somewhere in the form."""
    while True:
        keys: list[Any] = list(plain) if isinstance(plain, dict) else list(range(len(plain)))
        if not keys:
            return
        key = random.choice(keys)
        if isinstance(plain[key], (dict, list)) and plain[key] and random.random() < 0.8:
            plain = plain[key]
        else:
            plain[key] = random.choice((None, -1, "x", [], {}, [{}], 1e9, True, float("inf"), "\ud800"))
            return


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ({"id": 0, "kind": "apply", "function": 3, "args": []}, "node 0, function: expected text, not int"),
        (
            {"id": 0, "kind": "apply", "function": "len", "args": [3]},
            "node 0, args: expected a map with ref, arg or value",
        ),
        ({"id": 0, "kind": "call", "function": "f"}, "node 0, args: expected a list, not NoneType"),
        ({"id": 0, "kind": "switch", "on": {"value": 1}, "cases": [1]}, "node 0, cases: expected pairs"),
        ({"id": 0, "kind": "repeat", "body": 3}, "node 0, body: expected a map with nodes, end and value, not int"),
        ({"id": 0, "kind": "text", "parts": [{"tokens": 3}]}, "node 0, parts: expected a list, not int"),
        ({"id": 0, "kind": "loop"}, f"node 0, kind: expected one of {', '.join(KINDS)}, not 'loop'"),
        (
            {"id": 0, "kind": "text", "parts": [], "marks": {"remaining_tokens": -1}},
            "marks.remaining_tokens: expected a non-negative int",
        ),
        (
            {"id": 0, "kind": "text", "parts": [], "marks": {"lifetime": "long"}},
            "marks.lifetime: expected one of unknown, part, program, not 'long'",
        ),
    ],
)
def test_a_mistake_names_the_node_and_the_field(node: dict[str, Any], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        nodes_from_plain([node])


def test_deep_nesting_is_refused_not_crashed_on() -> None:
    plain: dict[str, Any] = {"id": 0, "kind": "text", "parts": []}
    for _ in range(5_000):
        block = {"nodes": [plain], "end": None}
        plain = {"id": 0, "kind": "repeat", "body": block, "until": {"value": True}, "at_most": 1, "stride": 1}
    with pytest.raises(GraphError, match="nested more than 40 levels deep"):
        nodes_from_plain([plain])


def test_token_ids_come_back_equal() -> None:
    graph = RequestGraph((Text(0, None, (TokenIds((3, 0, 7)), "a")),))
    assert RequestGraph.from_plain(json.loads(json.dumps(graph.to_plain()))) == graph


def test_hints_of_newer_compilers_are_ignored() -> None:
    (node,) = nodes_from_plain([{"id": 0, "kind": "generate", "marks": {"is_urgent": False, "novel": 1}}])
    assert isinstance(node, Generate)
    assert not node.marks.is_urgent
