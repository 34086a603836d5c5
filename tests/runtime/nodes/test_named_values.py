"""Values by name: what several nodes of a name, several completions, and what was cancelled give."""

from __future__ import annotations

from rtlang.contract.graph import Apply, Generate, Node, Select, Text
from rtlang.contract.params import SamplingParams
from rtlang.runtime.nodes.named_values import named_values

NODES: dict[int, Node] = {
    0: Text(0, None, ("a",)),
    1: Generate(1, 0, "x", SamplingParams()),
    2: Generate(2, 1, "many", SamplingParams(n=2, temperature=1.0)),
    3: Select(3, 1, "x", ("a", "b")),
    4: Apply(4, "list", (), "value"),
    5: Generate(5, 1, None, SamplingParams()),
}


def test_names_of_several_values_have_lists_in_the_order_of_nodes() -> None:
    found = {(1, 0): "one", (2, 0): "m", (2, 1): "n", (3, 0): "a", (4, 0): [], (5, 0): "unnamed"}
    assert named_values(NODES, found) == {"x": ["one", "a"], "many": ["m", "n"], "value": []}


def test_what_was_cancelled_is_an_empty_text_or_none() -> None:
    assert named_values(NODES, {(2, 0): "m"}) == {"x": ["", ""], "many": ["m", ""], "value": None}
