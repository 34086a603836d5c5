"""Each rule of a graph: the smallest graph that breaks it, and the error."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang.contract.errors import GraphError
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import (
    Apply,
    Arg,
    Block,
    Call,
    Const,
    Decide,
    Generate,
    Node,
    Ref,
    Repeat,
    RequestGraph,
    Switch,
    Text,
    TokenIds,
)

ONE = SamplingParams()
START: tuple[Node, ...] = (Text(0, None, ("a",)), Generate(1, 0, "x", ONE), Apply(2, "strip", (Ref(1),)))
EMPTY = Block(())
BODY = Block((Generate(4, 3, None, ONE),), 4, Ref(4))

BROKEN: list[tuple[Node, str]] = [
    (Generate(3, 2, None, ONE), "parent: node 2 has a value but no sequence"),
    (Apply(3, "eval", ()), "function: 'eval': expected one of parse_json, "),
    (Apply(3, "len", (Ref(0),)), "args: ref 0: no earlier node with a text or value has this id"),
    (Apply(3, "len", (Ref(1, 1),)), "args: ref 1, choice 1: expected 0 to 0"),
    (Apply(3, "len", (Arg("y"),)), "args: arg 'y' is not an input; expected one of none"),
    (Apply(3, "len", (Const({1: 2}),)), "args: expected only text as keys"),
    (Apply(3, "len", (Const(float("nan")),)), "args: nan is not a finite number"),
    (Text(3, 1, (TokenIds((5, -1)),)), "parts: token id -1: expected an integer from 0 to"),
    (Text(3, 1, (TokenIds((True,)),)), "parts: token id True: expected an integer from 0 to"),
    (Text(3, 1, (TokenIds((1,) * 1_000_001),)), "parts: expected at most 1000000 token ids, not 1000001"),
    (Apply(3, "len", (Const(b"x"),)), "args: a bytes is not plain data"),
    (Apply(3, "len", (Const("x" * 1_000_001),)), "args: a value has more than 1000000 characters and items"),
    (Call(3, "", ()), "function: expected a string of 1 to"),
    (Call(3, "f", (), ""), "name: expected a string of 1 to"),
    (Call(3, "f", (), policy="never"), "policy: 'never': expected one of once, retry, ask, pure"),  # type: ignore[arg-type]
    (Decide(3, "any", (Ref(1),)), "how: 'any': expected one of first, vote, best"),  # type: ignore[arg-type]
    (Decide(3, "first", ()), "of: expected 1 to 4096 operands"),
    (Decide(3, "vote", (Ref(1),), 2), "need: 2: expected an integer from 1 to 1"),
    (Decide(3, "first", (Ref(1),), 1), "need: 1: expected an integer from 1 to 1, for a vote only"),
    (Decide(3, "best", (Ref(1),)), "by: expected 0 to 4096 operands"),
    (Decide(3, "vote", (Ref(1),), None, (Ref(1),)), "by: expected 1 operands for best, and none for first and vote"),
    (Switch(3, 1, Ref(2), ()), "cases: expected 1 to 256 cases, or a default"),
    (Switch(3, 1, Ref(2), (("a", EMPTY), ("a", EMPTY))), "cases: the key 'a' is given twice"),
    (Switch(3, 1, Ref(2), (("a", Block((Generate(3, 3, None, ONE),))),)), "node_id: 3 follows 3; ids must increase"),
    (Switch(3, 1, Ref(2), (("a", Block((), 4)),)), "end: 4: expected none, or a node of the block with a sequence"),
    (Switch(3, 1, Ref(2), (("a", Block((), 1)),)), "end: 1: expected none, or a node of the block with a sequence"),
    (Switch(3, 1, Ref(2), (("a", Block((), None, Ref(3))),)), "value: ref 3: no earlier node with a text or value"),
    (Repeat(3, 1, BODY, Ref(4), 0, 1), "at_most: expected an integer from 1 to 10000, not 0"),
    (
        Repeat(3, 1, Block((Text(4, 3, ()), Generate(5, 4, None, ONE))), Const(True), 2, 1),
        "stride: 1: the body has ids up to 5",
    ),
    (Repeat(3, 1, EMPTY, Ref(4), 2, 1), "until: ref 4: no earlier node"),
    (Repeat(3, 1, Block((Generate(4, 3, None, SamplingParams(n=2)),), 4), Const(True), 2, 1), "end: node 4 has n > 1"),
]


@pytest.mark.parametrize(("node", "message"), BROKEN)
def test_a_broken_rule_names_node_and_field(node: Node, message: str) -> None:
    with pytest.raises(GraphError) as caught:
        RequestGraph((*START, node)).validate()
    assert message in str(caught.value)


def test_nodes_of_a_block_are_unknown_outside_of_it() -> None:
    switch = Switch(3, 1, Ref(2), (("a", BODY),))
    RequestGraph((*START, switch, Generate(5, 3, None, ONE), Apply(6, "len", (Ref(3),)))).validate()
    for node in (Generate(5, 4, None, ONE), Apply(5, "len", (Ref(4),))):
        with pytest.raises(GraphError, match="no earlier node"):
            RequestGraph((*START, switch, node)).validate()


def test_ids_that_a_loop_reserves_are_refused_later_on() -> None:
    loop = Repeat(3, 1, BODY, Ref(4), 5, 2)
    with pytest.raises(GraphError, match="13 follows 13; ids must increase"):
        RequestGraph((*START, loop, Generate(13, 3, None, ONE))).validate()
    known: dict[int, Any] = {node.node_id: node for node in (*START, loop)}
    RequestGraph((Generate(14, 3, None, ONE),)).validate(known)
    with pytest.raises(GraphError, match="node_id: 9 is reserved by node 3, for the ids up to 13"):
        RequestGraph((Generate(9, 3, None, ONE),)).validate(known)


def test_control_nodes_nest_to_a_stated_depth() -> None:
    def nested(depth: int) -> Node:
        node: Node = Generate(3 + depth, 2 + depth, None, ONE)
        for number in reversed(range(depth)):
            node = Switch(3 + number, 2 + number if number else 1, Ref(1), ((1, Block((node,), node.node_id)),))
        return node

    RequestGraph((*START, nested(32))).validate()
    with pytest.raises(GraphError, match="expected at most 32 control nodes within each other"):
        RequestGraph((*START, nested(33))).validate()


def test_outputs_are_nodes_of_the_graph() -> None:
    RequestGraph(START, (), (1, 2)).validate()
    with pytest.raises(GraphError, match="outputs: no node has the id 7"):
        RequestGraph(START, (), (7,)).validate()


def test_a_refused_block_leaves_earlier_nodes_known() -> None:
    for block in (Block((Apply(3, "len", (Const("a"),)), Apply(0, "len", (Const("a"),)))), Block((Text(4, 3, ()),), 0)):
        nodes = (*START, Switch(3, 1, Ref(2), (("a", block),)))
        with pytest.raises(GraphError, match=r"node 3|node 0"):
            RequestGraph(nodes).validate()
    checks = RequestGraph(START).validate()
    with pytest.raises(GraphError, match="node 0, node_id: 0 is the id of a node submitted before"):
        checks.add([Switch(3, 1, Ref(2), (("a", Block((Apply(0, "len", (Const("a"),)),))),))])
    checks.add([Text(4, 0, ("goes on",))])  # node 0 is still there, and its id still taken
    with pytest.raises(GraphError, match=r"0 follows 4|0 is the id"):
        checks.add([Text(0, None, ())])


def test_large_keys_are_told_apart() -> None:
    keys = [[0] * 2_000 + [number] for number in range(200)] + [
        {"a": [0] * 2_000, "b": [1]},
        {"a": [0] * 2_000, "b": 1},
    ]
    RequestGraph((*START, Switch(3, 1, Ref(2), tuple((key, EMPTY) for key in keys)))).validate()
    with pytest.raises(GraphError, match="is given twice"):
        RequestGraph(
            (*START, Switch(3, 1, Ref(2), (*((key, EMPTY) for key in keys), (dict(keys[-1]), EMPTY))))
        ).validate()  # type: ignore[call-overload]
