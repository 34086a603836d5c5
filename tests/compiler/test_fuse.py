"""Chains: generations that one other continues, with nothing but text between."""

from __future__ import annotations

import pytest

from rtlang.compiler.fuse import chains
from rtlang.contract.graph import Generate, Node, RequestGraph, Select, Text
from rtlang.contract.params import SamplingParams

ONE, TWO = SamplingParams(), SamplingParams(n=2)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ((Generate(0, None, "x", ONE), Text(1, 0, ("a",)), Generate(2, 1, "y", ONE)), {0}),
        ((Generate(0, None, "x", ONE), Generate(1, 0, "y", ONE), Generate(2, 1, "z", ONE)), {0, 1}),
        ((Generate(0, None, "x", ONE), Text(1, 0, ("a",)), Text(2, 1, ("b",)), Generate(3, 2, "y", ONE)), {0}),
        ((Generate(0, None, "x", ONE), Generate(1, 0, "y", ONE), Generate(2, 0, "z", ONE)), set()),
        ((Generate(0, None, "x", ONE), Text(1, 0, ("a",)), Generate(2, 1, "y", ONE), Text(3, 1, ("b",))), set()),
        ((Generate(0, None, "x", ONE), Select(1, 0, "y", ("a",)), Generate(2, 1, "z", ONE)), set()),
        ((Generate(0, None, "x", ONE), Generate(1, 0, "y", TWO)), set()),
        ((Generate(5, 4, "y", ONE),), set()),
    ],
)
def test_chains(nodes: tuple[Node, ...], expected: set[int]) -> None:
    assert chains(RequestGraph(nodes)) == expected
