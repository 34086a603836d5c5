"""Lifetimes: by whom a sequence may be continued, and which sequences nothing continues."""

from __future__ import annotations

from rtlang.compiler.retain import lifetimes
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Block, Const, Generate, RequestGraph, Switch, Text

ONE, MANY = SamplingParams(), SamplingParams(n=3)
NODES = (
    Text(0, None, ("a",)),
    Generate(1, 0, "x", ONE),
    Generate(2, 0, "side", MANY),
    Generate(3, 1, "y", ONE),
    Generate(4, 1, "z", ONE),
)


def test_a_whole_graph_has_all_that_continues_its_nodes() -> None:
    found = lifetimes(RequestGraph(NODES))
    assert found.of == dict.fromkeys((1, 2, 3, 4), "part")
    assert found.num_last_uses == 3


def test_leaves_of_an_open_graph_may_be_continued() -> None:
    found = lifetimes(RequestGraph(NODES), is_open=True)
    assert found.of == {1: "part", 2: "part", 3: "program", 4: "program"}
    assert found.num_last_uses == 1
    ended = lifetimes(RequestGraph(NODES), is_open=True, ended={4})
    assert ended.of == {1: "part", 2: "part", 3: "program", 4: "part"}
    assert ended.num_last_uses == 2


def test_branch_points_of_an_open_graph_may_be_continued_again() -> None:
    assert lifetimes(RequestGraph(NODES), is_open=True, keep={1}).of[1] == "program"
    assert lifetimes(RequestGraph(NODES), keep={1}).of[1] == "part"


def test_a_block_continues_what_it_begins_from() -> None:
    switch = Switch(1, None, Const(1), ((1, Block((Generate(2, 0, None, ONE),), 2)),))
    found = lifetimes(RequestGraph((Generate(0, None, "x", ONE), switch)), is_open=True)
    assert found.of == {0: "part"}
    assert found.num_last_uses == 0
