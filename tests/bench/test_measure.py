from __future__ import annotations

import pytest

from rtlang.bench.measure import agreement, run_on_target
from rtlang.contract.errors import ConstraintError, GraphError
from rtlang.contract.graph import Generate, RequestGraph, Text
from rtlang.contract.params import SamplingParams
from tests.support.fake_target import FakeTarget, by_name


def graph(text: str, *names: str) -> RequestGraph:
    first = Text(0, None, (text,))
    return RequestGraph((first, *(Generate(i, 0, name, SamplingParams()) for i, name in enumerate(names, 1))))


def test_every_graph_is_waited_for_and_its_outputs_are_kept() -> None:
    with FakeTarget() as target:
        result = run_on_target(target, [graph("a", "x", "y"), graph("b", "x")])
    assert set(result.outputs) == {(0, 1), (0, 2), (1, 1)}
    assert result.num_output_tokens == sum(map(len, result.outputs.values())) > 0
    assert len(result.latencies_s) == len(result.first_token_s) == 2
    assert 0 < max(result.latencies_s) <= result.total_s
    assert result.output_tokens_per_s == result.num_output_tokens / result.total_s


def test_the_usage_of_all_graphs_is_summed() -> None:
    with FakeTarget() as target:
        one = run_on_target(target, [graph("a", "x")])
        two = run_on_target(target, [graph("a", "x"), graph("a", "x")])
    assert two.prompt_tokens == 2 * one.prompt_tokens > 0


def test_no_graphs_take_no_waiting() -> None:
    with FakeTarget() as target:
        assert run_on_target(target, []).outputs == {}


def test_a_failure_is_raised_after_the_others_have_ended() -> None:
    error = ConstraintError("no such text")
    with FakeTarget(by_name({"bad": error, "good": "fine"})) as target, pytest.raises(ConstraintError, match="no such"):
        run_on_target(target, [graph("a", "bad"), graph("b", "good")])


def test_a_malformed_graph_raises_where_it_is_submitted() -> None:
    with FakeTarget() as target, pytest.raises(GraphError):
        run_on_target(target, [RequestGraph((Text(0, 7, ("a",)),))])


def test_agreement_counts_equal_outputs_of_common_generations() -> None:
    with FakeTarget() as target:
        one = run_on_target(target, [graph("a", "x", "y")])
        other = run_on_target(target, [graph("a", "x")])
        different = run_on_target(target, [graph("b", "x")])
    assert agreement(one, one) == (2, 2)
    assert agreement(one, other) == (1, 1)
    assert agreement(one, different) == (0, 1)
