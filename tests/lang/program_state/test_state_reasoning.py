"""Reasoning before a value: in the same sequence, within its budget, apart from the value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, Field

import rtlang as rt


class Fact(BaseModel):
    name: str = Field(max_length=8)
    count: int = Field(ge=0, le=99)


@pytest.fixture(scope="module")
def tiny() -> Iterator[rt.Runtime]:
    with rt.Runtime("rtlang:tiny") as runtime:
        yield runtime


@rt.program
def reasoned(s: Any, reasoning: bool | int, n: int = 1, seed: int | None = None) -> None:
    s += "Question: " + rt.gen("fact", 60, schema=Fact, reasoning=reasoning, n=n, temperature=1.0, seed=seed)
    s += "\n" + rt.gen("more", 3)


@pytest.mark.parametrize("budget", [17, 24, 60])
def test_the_reasoning_is_in_the_sequence_and_the_meta_and_not_in_the_value(tiny: rt.Runtime, budget: int) -> None:
    found = reasoned.run(budget, runtime=tiny)
    meta, value = found.meta("fact"), found["fact"]
    assert isinstance(value, Fact)
    assert Fact.model_validate_json(found.text("fact")) == value
    assert 0 < meta.reasoning_tokens <= budget
    assert meta.usage.completion_tokens <= 60
    before, _, rest = found.text().removeprefix("Question: ").partition("</think>")
    assert before.strip("\n").removeprefix("<think>").strip("\n") == meta.reasoning
    assert rest.lstrip("\n").startswith(found.text("fact"))
    # Positions count values only.
    assert found[0] == value
    assert found[1] == found["more"]
    with pytest.raises(IndexError):
        found[2]


def test_allowed_tokens_are_those_of_the_value_and_bad_words_those_of_both(tiny: rt.Runtime) -> None:
    @rt.program
    def body(s: Any) -> None:
        s += "Question: "
        s += rt.gen("x", 6, reasoning=20, allowed_token_ids=range(300, 340), bad_words="the", temperature=1.0, seed=2)

    found = body.run(runtime=tiny)
    assert set(found.meta("x").token_ids or ()) - set(range(300, 340)) == set() < set(found.meta("x").token_ids or ())
    assert found.meta("x").reasoning_tokens > 0
    assert "the" not in found.meta("x").reasoning.split()


def test_true_gives_the_reasoning_as_many_tokens_as_the_value(tiny: rt.Runtime) -> None:
    found = reasoned.run(True, runtime=tiny)
    assert 0 < found.meta("fact").reasoning_tokens <= 60


def test_each_completion_continues_its_own_reasoning_and_repeats_with_its_seed(tiny: rt.Runtime) -> None:
    first, second = (reasoned.run(24, n=3, seed=5, runtime=tiny) for _ in range(2))
    thoughts = [meta.reasoning for meta in first.meta("fact")]
    assert thoughts == [meta.reasoning for meta in second.meta("fact")]
    assert first["fact"] == second["fact"]
    assert len(first["fact"]) == 3
    assert len(set(thoughts)) == 3


def test_a_stream_tells_reasoning_and_text_apart(tiny: rt.Runtime) -> None:
    events = list(reasoned.stream(24, runtime=tiny))
    (value,) = [each for each in events if isinstance(each, rt.ValueEvent) and each.name == "fact"]
    thought = "".join(each.text for each in events if isinstance(each, rt.ReasoningEvent) and each.name == "fact")
    text = "".join(each.text for each in events if isinstance(each, rt.TextEvent) and each.name == "fact")
    assert text == value.text
    assert thought.endswith("</think>")
    assert value.meta.reasoning in thought
    assert [each.name for each in events if isinstance(each, rt.ValueEvent)] == ["fact", "more"]


def test_a_budget_that_does_not_hold_the_marks_fails_and_says_so(tiny: rt.Runtime) -> None:
    with pytest.raises(rt.BudgetError, match=r"max_tokens = 2 .*generation 'fact'"):
        reasoned.run(2, runtime=tiny)
    events = list(reasoned.stream(2, runtime=tiny, on_error="result"))
    errors = [each for each in events if isinstance(each, rt.ErrorEvent) and each.name == "fact"]
    assert [type(each.error) for each in errors] == [rt.BudgetError]


def test_a_graph_without_a_model_has_no_marks_of_reasoning() -> None:
    with pytest.raises(rt.TraceError, match="marks of reasoning depend on the model"):
        reasoned.graph(True)


@pytest.mark.parametrize("reasoning", [0, -1, "yes", 1.5, None])
def test_other_budgets_are_refused(reasoning: Any) -> None:
    with pytest.raises(rt.ParameterError, match="reasoning"):
        rt.gen("x", reasoning=reasoning)
