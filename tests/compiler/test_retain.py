"""Last uses: sequences that no later node continues."""

from __future__ import annotations

from rtlang.compiler.retain import last_uses
from rtlang.contract.graph import Block, Const, Generate, RequestGraph, Switch, Text
from rtlang.contract.params import SamplingParams

ONE, MANY = SamplingParams(), SamplingParams(n=3)
NODES = (
    Text(0, None, ("a",)),
    Generate(1, 0, "x", ONE),
    Generate(2, 0, "side", MANY),
    Generate(3, 1, "y", ONE),
    Generate(4, 1, "z", ONE),
)


def test_the_leaves_of_a_whole_graph_are_last_uses() -> None:
    assert last_uses(RequestGraph(NODES)) == {2, 3, 4}


def test_leaves_of_an_open_graph_may_be_continued() -> None:
    assert last_uses(RequestGraph(NODES), is_open=True) == {2}
    assert last_uses(RequestGraph(NODES), is_open=True, ended={4}) == {2, 4}


def test_a_block_continues_what_it_begins_from() -> None:
    switch = Switch(1, None, Const(1), ((1, Block((Generate(2, 0, None, ONE),), 2)),))
    assert last_uses(RequestGraph((Generate(0, None, "x", ONE), switch))) == set()
