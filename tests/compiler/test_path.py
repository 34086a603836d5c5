"""Paths: the tokens of the longest path after each node."""

from __future__ import annotations

from rtlang.compiler.path import paths
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Block, Const, Generate, Ref, Repeat, RequestGraph, Text


def generate(node_id: int, parent: int | None, max_tokens: int) -> Generate:
    return Generate(node_id, parent, None, SamplingParams(max_tokens=max_tokens))


def test_the_longest_path_counts_parents_and_references() -> None:
    graph = RequestGraph(
        (generate(0, None, 5), generate(1, 0, 10), generate(2, 0, 40), generate(3, None, 7), Text(4, 1, (Ref(3),)))
    )
    found = paths(graph)
    text = found.total - (5 + 10 + 40 + 7)
    assert found.remaining == {0: 40, 1: text, 2: 0, 3: text, 4: 0}
    assert found.longest == 45


def test_a_loop_counts_with_all_its_iterations() -> None:
    body = Block((generate(2, 1, 10),), 2)
    graph = RequestGraph((generate(0, None, 1), Repeat(1, 0, body, Const(False), 4, 1)))
    assert paths(graph).remaining[0] == 40


def test_an_empty_graph_has_no_path() -> None:
    assert (paths(RequestGraph()).longest, paths(RequestGraph()).total) == (0, 0)
