"""The order in which generations become ready, and their prompts."""

from __future__ import annotations

import pytest

from rtlang.bench.baselines.graph_progress import GraphProgress
from rtlang.contract.graph import Generate, Ref, RequestGraph, Text
from rtlang.contract.params import SamplingParams


class Letters:
    """One token a letter."""

    def encode(self, text: str, *, is_start: bool) -> list[int]:
        return [ord(letter) for letter in text]

    def start_ids(self) -> list[int]:
        return [1]


def generate(node_id: int, parent: int, **params: int) -> Generate:
    return Generate(node_id, parent, f"out{node_id}", SamplingParams(max_tokens=2, **params))


def test_a_generation_is_ready_when_those_before_it_have_ended() -> None:
    nodes = (Text(0, None, ("a",)), generate(1, 0), Text(2, 1, ("b", "c")), generate(3, 2), generate(4, 0))
    progress = GraphProgress(RequestGraph(nodes), Letters())
    first, other = progress.ready()
    assert (first.node_id, other.node_id) == (1, 4)
    assert progress.sequence(0) == [1, ord("a")]
    progress.finish(first, [7, 8])
    assert [node.node_id for node in progress.ready()] == [3, 4]
    assert progress.sequence(2) == [1, ord("a"), 7, 8, ord("b"), ord("c")]


def test_other_nodes_are_refused() -> None:
    for nodes in (
        (Text(0, None, ("a",)), generate(1, 0, n=2)),
        (Text(0, None, ("a",)), generate(1, 0), Text(2, 0, (Ref(1),))),
    ):
        with pytest.raises(ValueError, match="plain text and single generations"):
            GraphProgress(RequestGraph(nodes), Letters())
