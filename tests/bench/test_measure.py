from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rtlang.bench.measure import Measurement, agreement, run_on_target
from rtlang.contract.errors import ConstraintError, GraphError
from rtlang.contract.events import CallRequested, Completion, GraphFinished, NodeFinished, TextDelta, Timing
from rtlang.contract.params import FinishReason, SamplingParams, Usage
from rtlang.contract.request_graph import Generate, RequestGraph, Text
from rtlang.contract.service.target import Listener
from tests.support.programs.fake_target import FakeTarget, by_name


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


class Asking:
    """A target whose graphs ask for a tool, and end once it has answered."""

    def __init__(self) -> None:
        self.submitted: list[float] = []
        self.now = 0.0
        self.resolved: dict[int, str] = {}

    def submit(self, graph: RequestGraph, listener: Listener, **options: Any) -> Any:
        self.submitted.append(self.now)
        number = len(self.submitted)

        def resolve(node_id: int, value: str) -> None:
            self.resolved[node_id] = value
            listener(NodeFinished(number, 3, "x", (Completion("ab", (5, 6), FinishReason.LENGTH),), Usage(), Timing()))
            listener(GraphFinished(number, {}, Usage(4, 2)))

        for token_id in (5, 6):
            listener(TextDelta(number, 3, 0, "", (token_id,)))
            self.now += 0.25
        listener(CallRequested(number, 100 + number, "tool", ("", 0.001, f"answer {number}")))
        return SimpleNamespace(resolve=resolve)


def test_tools_answer_and_graphs_arrive_at_their_times() -> None:
    target: Any = Asking()

    def sleep(seconds: float) -> None:
        target.now += seconds

    one = graph("a", "x")
    found = run_on_target(target, [one, one, one], arrivals_s=(0.0, 4.0, 1.0), clock=lambda: target.now, sleep=sleep)
    assert target.submitted == [0.0, 1.0, 4.0]
    assert target.resolved == {101: "answer 1", 102: "answer 2", 103: "answer 3"}
    assert found.output_times_s == {(0, 3): (0.0, 0.25), (2, 3): (1.0, 1.25), (1, 3): (4.0, 4.25)}
    assert found.first_token_s == (0.0, 0.0, 0.0)
    assert (found.prompt_tokens, found.cached_tokens) == (12, 6)
    assert all(latency >= 0.5 for latency in found.latencies_s)


def test_gaps_beside_a_graph_are_those_of_the_others_while_it_has_no_output() -> None:
    times = {(0, 1): (0.0, 1.0, 2.0, 4.0, 7.0), (1, 1): (5.0, 9.0), (2, 1): (4.5, 4.75)}
    found = Measurement(9.0, (), times, {}, 0, arrivals_s=(0.0, 1.5, 0.0))
    assert sorted(found.gaps_s()) == [0.25, 1.0, 1.0, 2.0, 3.0, 4.0]
    assert sorted(found.gaps_s(beside=1)) == [0.25, 1.0, 2.0]
    assert found.first_token_s == (0.0, 3.5, 4.5)
