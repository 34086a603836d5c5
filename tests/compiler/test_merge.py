"""Merging: before and after, and what must not merge."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang.compiler.merge import Known, merge
from rtlang.contract.params import Constraint, ConstraintKind, SamplingParams, SelectMethod
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
    Select,
    Switch,
    Text,
    all_nodes,
)
from tests.support.long_tests import sized
from tests.support.programs.random_graphs import random_graph

GREEDY = SamplingParams()
NOISY = SamplingParams(temperature=1.0)
WARM_RULE = Constraint(ConstraintKind.LARK, "start: a\na[temperature = 1.5]: /[a-z]{8}/")


def test_equal_subgraphs_are_one() -> None:
    nodes: tuple[Node, ...] = (
        Text(0, None, ("a",)),
        Text(1, 0, ("b",)),
        Generate(2, 1, "x", GREEDY),
        Text(3, 0, ("b",)),
        Generate(4, 3, "y", GREEDY),
        Text(5, 4, ("c", Ref(2), Ref(4))),
        Generate(6, 5, "z", GREEDY),
    )
    merged = merge(RequestGraph(nodes))
    assert merged.aliases == {3: 1, 4: 2}
    assert merged.graph.nodes == (*nodes[:3], Text(5, 2, ("c", Ref(2), Ref(2))), nodes[6])
    assert merge(merged.graph).aliases == {}


@pytest.mark.parametrize(
    ("first", "second", "merges"),
    [
        (Generate(1, 0, "x", GREEDY), Generate(2, 0, "y", GREEDY), True),
        (Generate(1, 0, "x", NOISY), Generate(2, 0, "y", NOISY), False),
        (
            Generate(1, 0, "x", SamplingParams(temperature=1.0, seed=3)),
            Generate(2, 0, "y", SamplingParams(temperature=1.0, seed=3)),
            True,
        ),
        (
            Generate(1, 0, "x", SamplingParams(temperature=1.0, seed=3)),
            Generate(2, 0, "y", SamplingParams(temperature=1.0, seed=4)),
            False,
        ),
        (Generate(1, 0, "x", GREEDY), Generate(2, 0, "y", SamplingParams(max_tokens=7)), False),
        (Generate(1, 0, "x", GREEDY), Generate(2, None, "y", GREEDY), False),
        (
            Generate(1, 0, "x", GREEDY, Constraint(ConstraintKind.REGEX, "a")),
            Generate(2, 0, "y", GREEDY, Constraint(ConstraintKind.REGEX, "b")),
            False,
        ),
        (Generate(1, 0, "x", GREEDY, WARM_RULE), Generate(2, 0, "y", GREEDY, WARM_RULE), False),
        (
            Generate(1, 0, "x", SamplingParams(seed=3), WARM_RULE),
            Generate(2, 0, "y", SamplingParams(seed=3), WARM_RULE),
            True,
        ),
        (Select(1, 0, "x", ("a", "b")), Select(2, 0, "y", ("a", "b")), True),
        (Select(1, 0, "x", ("a", "b")), Select(2, 0, "y", ("b", "a")), False),
        (Select(1, 0, "x", ("a", "b")), Select(2, 0, "y", ("a", "b"), SelectMethod.FULL_LIKELIHOOD), False),
        (Text(1, 0, ("a",)), Text(2, 0, ("b",)), False),
        (Apply(1, "str", (Const(1),)), Apply(2, "str", (Const(1),)), True),
        (Apply(1, "str", (Const(1),)), Apply(2, "str", (Const(True),)), False),
        (Call(1, "now", ()), Call(2, "now", ()), False),
    ],
)
def test_what_merges(first: Any, second: Any, merges: bool) -> None:
    merged = merge(RequestGraph((Text(0, None, ("a",)), first, second)))
    assert merged.aliases == ({2: 1} if merges else {})


def test_nodes_of_earlier_parts_are_known() -> None:
    known: Known = {}
    merge(RequestGraph((Text(0, None, ("a",)), Generate(1, 0, "x", GREEDY))), known)
    later = RequestGraph((Generate(2, 0, "y", GREEDY), Generate(3, 0, "z", NOISY)))
    for _ in range(2):  # a submission that is repeated gives the same
        assert merge(later, known).aliases == {2: 1}


def test_names_are_kept_where_nothing_reads_copies() -> None:
    nodes = (Generate(0, None, "x", GREEDY), Generate(1, None, "y", GREEDY), Generate(2, None, None, GREEDY))
    assert merge(RequestGraph(nodes), keeps_names=True).aliases == {2: 0}


def test_blocks_merge_within_themselves() -> None:
    body = Block(
        (
            Generate(1, 0, None, GREEDY),
            Generate(2, 0, None, GREEDY),
            Generate(3, 0, "named", GREEDY),
            Text(4, 2, (Ref(2),)),
        ),
        end=4,
        value=Ref(2),
    )
    after_body = Block((body.nodes[0], body.nodes[2], Text(4, 1, (Ref(1),))), 4, Ref(1))
    (loop,) = merge(RequestGraph((Repeat(0, None, body, Ref(2), 3, 4),))).graph.nodes
    assert loop == Repeat(0, None, after_body, Ref(1), 3, 4)
    (switch,) = merge(RequestGraph((Switch(0, None, Const(1), ((1, body),), body),))).graph.nodes
    assert switch == Switch(0, None, Const(1), ((1, after_body),), after_body)


def test_blocks_follow_merged_nodes_outside() -> None:
    nodes = (
        Generate(0, None, None, GREEDY),
        Generate(1, None, None, GREEDY),
        Switch(2, 1, Ref(1), (("a", Block((Text(3, 2, (Ref(1),)),), 3, Ref(1))),)),
    )
    merged = merge(RequestGraph(nodes)).graph
    assert merged.nodes[1] == Switch(2, 0, Ref(0), (("a", Block((Text(3, 2, (Ref(0),)),), 3, Ref(0))),))


def test_merged_graphs_are_valid_and_lose_no_call() -> None:
    for seed in range(sized(300)):
        graph = random_graph(seed)
        merged = merge(graph)
        RequestGraph(merged.graph.nodes, graph.inputs).validate()
        calls = [node.node_id for node in all_nodes(graph.nodes) if isinstance(node, Call)]
        assert [node.node_id for node in all_nodes(merged.graph.nodes) if isinstance(node, Call)] == calls


def test_nothing_equals_a_node_whose_error_the_program_has_seen() -> None:
    known: Known = {}
    first = (Text(0, None, ("a",)), Generate(1, 0, "x", GREEDY))
    assert merge(RequestGraph(first), known).aliases == {}
    again = RequestGraph((Generate(2, 0, "x", GREEDY), Generate(3, 0, "x", GREEDY)))
    for _ in range(2):  # a submission may be repeated
        assert merge(again, known, failed={1}).aliases == {3: 2}
    assert merge(RequestGraph((Generate(4, 0, "x", GREEDY),)), known).aliases == {4: 2}


def test_a_node_whose_outcome_is_given_equals_no_other() -> None:
    nodes = [Text(0, None, ("a",)), *(Generate(i, 0, "x", SamplingParams(), path=f"fork[{i}]/x") for i in (1, 2, 3))]
    graph = RequestGraph(tuple(nodes))
    assert merge(graph).aliases == {2: 1, 3: 1}
    assert merge(graph, alone=["fork[1]/x"]).aliases == {3: 2}
    assert merge(graph, alone=["fork[2]/x"]).aliases == {3: 1}
