"""Renaming: every reference follows, nothing else changes."""

from __future__ import annotations

from rtlang.compiler.rewriting import renamed
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Apply, Arg, Const, Decide, Generate, Ref, Text, all_nodes, dependencies
from tests.support.long_tests import sized
from tests.support.programs.random_graphs import random_graph


def test_parents_parts_and_operands_follow() -> None:
    assert renamed(Text(5, 1, ("a", Ref(2, 1), Arg("x"))), {1: 0, 2: 3}) == Text(5, 0, ("a", Ref(3, 1), Arg("x")))
    assert renamed(Apply(5, "add", (Ref(1), Const(1))), {1: 0}) == Apply(5, "add", (Ref(0), Const(1)))
    assert renamed(Decide(5, "best", (Ref(1),), None, (Ref(2),)), {2: 0}) == Decide(
        5, "best", (Ref(1),), None, (Ref(0),)
    )


def test_a_node_without_such_references_is_the_same() -> None:
    node = Generate(5, 1, "x", SamplingParams())
    assert renamed(node, {2: 0}) is node


def test_no_reference_to_a_renamed_node_is_left() -> None:
    for seed in range(sized(200)):
        nodes = random_graph(seed).nodes
        aliases = {node.node_id: 10_000 + node.node_id for node in nodes}
        for node in nodes:
            after = renamed(node, {key: value for key, value in aliases.items() if key != node.node_id})
            assert dependencies(after) == {aliases[i] for i in dependencies(node)}
            inner = {each.node_id for each in all_nodes((node,))}
            assert inner == {each.node_id for each in all_nodes((after,))}
