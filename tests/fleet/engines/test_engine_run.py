"""A graph of another process: what opens it, and what opens it again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rtlang.contract.errors import GraphError
from rtlang.contract.events import CallRequested, Completion, NodeFinished, TextDelta, Timing
from rtlang.contract.params import FinishReason, SamplingParams, Usage
from rtlang.contract.request_graph import Call, Const, Generate, RequestGraph, Text
from rtlang.contract.runs.budget import Budget
from rtlang.contract.runs.run_options import RunOptions
from rtlang.fleet.engines.engine_run import EngineRun
from rtlang.fleet.messages.frames import Message
from rtlang.runtime.admission import Admission, Share

GRAPH = RequestGraph((Text(0, None, ("a",)), Generate(1, 0, "x", SamplingParams(n=2)), Call(2, "f", (Const(1),))))


class Owner:
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[Message] = []

    def send(
        self, run: EngineRun, message: Message | Callable[[], Message], note: Callable[[], None] | None = None
    ) -> None:
        if note is not None:
            note()
        self.sent.append(message() if callable(message) else message)

    def cancel(self, run: EngineRun) -> None:
        raise NotImplementedError


def begun(owner: Owner, admission: Admission) -> EngineRun:
    share = Share(admission)
    share.add(GRAPH.nodes)
    options = RunOptions(seed=5, is_open=True, deadline_s=50.0, credit=10, continue_from={1: [[3]]})
    return EngineRun(owner, 4, GRAPH, GRAPH.validate(), lambda event: None, share, options)


def test_a_graph_is_opened_again_behind_its_output() -> None:
    owner, admission = Owner(), Admission(100)
    run = begun(owner, admission)
    first = run.opening()()
    assert first["graph"] == GRAPH.to_plain()
    assert (first["seed"], first["open"], first["credit"]) == (5, True, 10)
    assert 0 < first["deadline_s"] <= 50
    assert first["continue_from"] == [{"n": 1, "ids": [[3]]}]
    assert run.take(TextDelta(4, 1, 0, "ab", (4, 5)))
    run.grant(2)
    call = CallRequested(4, 2, "f", (1,))
    assert run.take(call)
    run.resolve(2, "v")
    run.extend((Text(3, 0, ("b",)), Generate(4, 3, "z", SamplingParams())), continue_from={4: [[9]]})
    run.close()
    assert [message["t"] for message in owner.sent] == ["grant", "resolve", "extend", "close"]
    again = run.opening()()
    assert [node["id"] for node in again["graph"]["nodes"]] == [0, 1, 2, 3, 4]
    assert (again["open"], again["credit"]) == (False, 10)
    assert again["continue_from"] == [{"n": 1, "ids": [[3, 4, 5], []]}, {"n": 4, "ids": [[9]]}]
    assert not run.take(call)
    assert owner.sent[-1]["t"] == "resolve"
    with pytest.raises(GraphError, match="closed"):
        run.extend((Text(9, 0, ("b",)),))


def test_an_opening_is_of_the_moment_at_which_it_was_asked_for() -> None:
    owner = Owner()
    run = begun(owner, Admission(100))
    opening = run.opening()
    run.extend((Text(3, 0, ("b",)),))
    run.grant(5)
    run.close()
    first = opening()
    assert first["graph"] == GRAPH.to_plain()
    assert (first["open"], first["credit"]) == (True, 10)
    assert owner.sent[0]["t"] == "extend"


def test_an_ended_node_is_known_and_frees_its_places() -> None:
    admission = Admission(100)
    run = begun(Owner(), admission)
    num_open = admission.num_open
    completions = tuple(Completion("ab", (3, 4), FinishReason.STOP) for _ in range(2))
    end = NodeFinished(4, 1, "x", completions, Usage(1, 0, 4), Timing())
    assert run.take(end)
    assert admission.num_open == num_open - 2
    assert not run.take(end)
    again = run.opening()()
    assert "continue_from" not in again
    assert [item["n"] for item in again["known"]] == [1]


def test_a_graph_that_is_opened_again_has_what_is_left_of_its_time() -> None:
    owner = Owner()
    budget = Budget(tokens=9, seconds=20.0)
    share = Share(Admission(100))
    run = EngineRun(owner, 4, GRAPH, GRAPH.validate(), lambda event: None, share, RunOptions(budget=budget))
    assert run.opening()()["budget"] == budget.to_plain()
    again = run.opening()()["budget"]
    assert again["tokens"] == 9
    assert 0 < again["seconds"] < 20.0


def test_text_that_the_next_engine_sends_again_costs_no_credit() -> None:
    params = SamplingParams(max_tokens=4, temperature=1.0, best_of=2)
    graph = RequestGraph((Text(0, None, ("a",)), Generate(1, 0, "x", params)))
    share = Share(Admission(100))
    run = EngineRun(Owner(), 4, graph, graph.validate(), lambda event: None, share, RunOptions(credit=5))
    assert run.opening()()["credit"] == 5
    assert run.take(TextDelta(4, 1, 0, "abc", (7, 8, 9)))
    assert run.opening()()["credit"] == 5, "the winner is found again, which spends three tokens"
    assert not run.take(TextDelta(4, 1, 0, "abc", (7, 8, 9)))
    again = run.opening()()
    assert again["credit"] == 5
    assert "continue_from" not in again
