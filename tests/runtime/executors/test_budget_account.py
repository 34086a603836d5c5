"""Budgets of runs: kept by what runs, whatever asks for more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.request_graph import Generate
from rtlang.runtime.executors.budget_account import BudgetAccount
from tests.support.servers.serving import serving


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.Runtime]:
    with rt.Runtime() as started:
        yield started


@rt.program
def greedy(s: Any) -> None:
    s += rt.user("Hi")
    for number, fork in enumerate(s.fork(3)):
        fork += f"{number}:"
        fork += rt.gen("tip", max_tokens=50, ignore_eos=True)
    s += rt.gen("last", max_tokens=50, ignore_eos=True)


def test_what_is_reserved_comes_back_when_it_is_not_spent() -> None:
    account = BudgetAccount(rt.Budget(tokens=100))
    node = Generate(1, None, "x", rt.SamplingParams(max_tokens=80, min_tokens=40))
    assert account.lowered(node, 1) is node
    other = account.lowered(Generate(2, None, "y", rt.SamplingParams(max_tokens=80, min_tokens=40)), 1)
    assert (other.params.max_tokens, other.params.min_tokens) == (20, 20)
    with pytest.raises(rt.SpentError, match="tokens = 100"):
        account.lowered(Generate(3, None, "z", rt.SamplingParams(max_tokens=1)), 1)
    account.spend(1, rt.Usage(9, 0, 10))
    account.spend(2, rt.Usage(9, 0, 20))
    assert account.lowered(Generate(4, None, "z", rt.SamplingParams(max_tokens=99, n=2)), 2).params.max_tokens == 35


def test_generations_that_start_together_share_what_is_left(runtime: rt.Runtime) -> None:
    result = greedy.run(runtime=runtime, budget=rt.Budget(tokens=80))
    assert result.usage.completion_tokens == 80
    assert len(result.meta("last").token_ids) == 20
    assert set(result.cut) >= {"last"}
    whole = greedy.run(runtime=runtime, budget=rt.Budget(tokens=200))
    assert whole.usage.completion_tokens == 200
    assert whole.cut == ()


def test_a_value_is_closed_within_the_budget_or_fails(runtime: rt.Runtime) -> None:
    @rt.program
    def value(s: Any) -> None:
        s += "Value:"
        s += rt.gen("text", max_tokens=20, ignore_eos=True)
        schema = {"type": "object", "properties": {"name": {"type": "string", "minLength": 5}}, "required": ["name"]}
        s += rt.gen("object", schema=schema, max_tokens=500)

    result = value.run(runtime=runtime, budget=rt.Budget(tokens=50))
    assert len(json.loads(result.text("object"))["name"]) >= 5
    assert result.usage.completion_tokens <= 50
    assert result.cut == ("object",)
    error = value.run(runtime=runtime, budget=rt.Budget(tokens=22), on_error="result").error
    assert isinstance(error, rt.BudgetError)
    assert error.max_tokens == 2


def test_what_gets_nothing_fails_and_the_rest_stays(runtime: rt.Runtime) -> None:
    @rt.program
    def two(s: Any) -> None:
        s += "Text:"
        s += rt.gen("first", max_tokens=10, ignore_eos=True)
        s += rt.gen("second", max_tokens=10, ignore_eos=True)

    result = two.run(runtime=runtime, budget=rt.Budget(tokens=10), on_error="result")
    assert isinstance(result.error, rt.SpentError)
    assert result.error.limit == "tokens"
    assert len(result.meta("first").token_ids) == 10
    assert result.cut == ("second",)
    computed = two.run(runtime=runtime, budget=rt.Budget(computed=6), on_error="result")
    assert isinstance(computed.error, rt.SpentError)
    assert computed.error.limit == "computed"


def test_time_ends_generations_but_not_what_has_ended(runtime: rt.Runtime) -> None:
    @rt.program
    def long(s: Any) -> None:
        s += "Text:"
        s += rt.gen("first", max_tokens=1, ignore_eos=True)
        s += rt.gen("second", max_tokens=1000, ignore_eos=True)

    long.run(runtime=runtime, budget=rt.Budget(tokens=2))  # the prompt is cached now
    result = long.run(runtime=runtime, budget=rt.Budget(seconds=0.1), on_error="result")
    assert isinstance(result.error, rt.SpentError)
    assert result.error.limit == "seconds"
    assert len(result.meta("first").token_ids) == 1
    assert result.cut == ("second",)


def test_a_server_keeps_the_budget(runtime: rt.Runtime) -> None:
    with serving(runtime) as served, rt.connect(served.url) as remote:  # type: ignore[arg-type]
        result = greedy.run(runtime=remote, budget=rt.Budget(tokens=80))
        assert result.usage.completion_tokens == 80
        assert "last" in result.cut


def test_a_recording_does_not_keep_what_a_budget_cut(runtime: rt.Runtime, tmp_path: Path) -> None:
    with rt.record(tmp_path / "a", runtime):
        assert greedy.run(budget=rt.Budget(tokens=80)).usage.completion_tokens == 80
        assert greedy.run().usage.completion_tokens == 200
    with rt.replay(tmp_path / "a"):
        assert len(greedy.run().meta("last").token_ids) == 50
