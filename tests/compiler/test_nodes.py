"""Copies and estimates."""

from __future__ import annotations

from dataclasses import replace

from rtlang.compiler.nodes import estimated_prompt_tokens, estimated_tokens, generated_tokens
from rtlang.contract.graph.frozen_copies import changed
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Block, Const, Generate, Marks, Repeat, RequestGraph, Select, Switch, Text
from tests.support.programs.random_graphs import random_graph


def test_a_copy_is_that_of_replace() -> None:
    marks = Marks(remaining_tokens=3)
    for seed in range(50):
        for node in random_graph(seed).nodes:
            assert changed(node) == node
            assert changed(node, node_id=99) == replace(node, node_id=99)
            if isinstance(node, (Text, Generate, Select)):
                assert changed(node, marks=marks) == replace(node, marks=marks)


def test_generated_tokens_count_completions_iterations_and_the_longest_case() -> None:
    ten = Generate(1, 0, None, SamplingParams(max_tokens=10))
    three = Generate(1, 0, None, SamplingParams(max_tokens=2, n=3))
    assert (generated_tokens(ten), generated_tokens(three)) == (10, 6)
    assert generated_tokens(Repeat(0, None, Block((ten,), 1), Const(True), 4, 1)) == 40
    assert generated_tokens(Switch(0, None, Const(1), ((1, Block((ten,))),), Block((three,)))) == 10
    assert generated_tokens(Text(0, None, ("a",))) == 0


def test_a_prompt_is_all_that_stands_before_a_generation() -> None:
    params = SamplingParams(max_tokens=10)
    text = Text(0, None, ("a" * 40,))
    graph = RequestGraph((text, Generate(1, 0, "x", params), Generate(2, 1, "y", SamplingParams(n=2))))
    assert estimated_prompt_tokens(graph) == 3 * estimated_tokens(text) + 20
