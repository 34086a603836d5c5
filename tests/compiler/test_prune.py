"""Pruning: before and after, also in blocks."""

from __future__ import annotations

import random

from rtlang.compiler.prune import ancestors, prune
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import (
    Apply,
    Block,
    Call,
    Const,
    Generate,
    Node,
    Ref,
    Repeat,
    RequestGraph,
    Switch,
    Text,
    dependencies,
)
from tests.support.long_tests import sized
from tests.support.programs.random_graphs import random_graph

PARAMS = SamplingParams()


def pruned(needed: set[int], *nodes: Node) -> list[int]:
    return [node.node_id for node in prune(RequestGraph(nodes), needed).nodes]


def test_nodes_that_no_output_needs_are_dropped() -> None:
    nodes = (
        Text(0, None, ("a",)),
        Generate(1, 0, None, PARAMS),
        Generate(2, 0, None, PARAMS),
        Text(3, 2, ("b", Ref(1))),
        Generate(4, 0, "unread", PARAMS),
        Apply(5, "upper", (Ref(2),)),
    )
    assert pruned({3}, *nodes) == [0, 1, 2, 3]
    assert pruned({4}, *nodes) == [0, 4]
    assert pruned({5}, *nodes) == [0, 2, 5]
    assert pruned(set(), *nodes) == []


def test_a_graph_that_is_needed_is_returned_as_it_is() -> None:
    graph = RequestGraph((Text(0, None, ("a",)), Generate(1, 0, None, PARAMS)))
    assert prune(graph, {1}) is graph


def test_host_calls_stay_for_what_they_do() -> None:
    nodes = (Generate(0, None, None, PARAMS), Call(1, "log", (Ref(0),)), Generate(2, None, None, PARAMS))
    assert pruned(set(), *nodes) == [0, 1]


def test_blocks_keep_names_ends_values_and_conditions() -> None:
    block = Block(
        (
            Generate(2, 1, None, PARAMS),
            Generate(3, 1, "named", PARAMS),
            Generate(4, 1, None, PARAMS),
            Generate(5, 1, None, PARAMS),
            Generate(6, 1, None, PARAMS),
        ),
        end=4,
        value=Ref(5),
    )
    switch = Switch(1, None, Const("x"), (("x", block),))
    (after,) = prune(RequestGraph((switch,)), {1}).nodes
    assert isinstance(after, Switch)
    assert [node.node_id for node in after.cases[0][1].nodes] == [3, 4, 5]
    loop = Repeat(1, None, block, Ref(6), 2, 5)
    (after_loop,) = prune(RequestGraph((loop,)), {1}).nodes
    assert isinstance(after_loop, Repeat)
    assert [node.node_id for node in after_loop.body.nodes] == [3, 4, 5, 6]
    assert after_loop.stride == 5


def test_pruning_keeps_exactly_what_is_reachable() -> None:
    choose = random.Random(0)
    for seed in range(sized(200)):
        graph = random_graph(seed)
        needed = {node.node_id for node in graph.nodes if choose.random() < 0.3}
        after = prune(graph, needed)
        RequestGraph(after.nodes, after.inputs).validate()
        ids = {node.node_id for node in after.nodes}
        reachable, todo = (
            set[int](),
            [*needed, *(n.node_id for n in graph.nodes if isinstance(n, Call) and n.policy != "pure")],
        )
        by_id = {node.node_id: node for node in graph.nodes}
        while todo:
            node_id = todo.pop()
            if node_id not in reachable:
                reachable.add(node_id)
                todo.extend(dependencies(by_id[node_id]) & by_id.keys())
        assert reachable <= ids
        has_inner_call = any(not isinstance(node, Call) and node.node_id in ids - reachable for node in graph.nodes)
        assert ids == reachable or has_inner_call  # a block with a host call, and what it needs


def test_ancestors_follow_parents_and_references() -> None:
    nodes = (
        Generate(0, None, None, PARAMS),
        Generate(1, None, None, PARAMS),
        Text(2, 0, (Ref(1),)),
        Text(3, 1, ("a",)),
    )
    assert ancestors(nodes, [2]) == {0, 1, 2}
    assert ancestors(nodes, [3]) == {1, 3}
