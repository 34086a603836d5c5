"""What requests say about the thought, in the spellings of several servers; contradictions and malformed values by name."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang.contract.errors import ParameterError
from rtlang.serve.openai.reasoning import EFFORTS, ReasoningRequest, ThoughtPlace, read_reasoning

ON, OFF = {"thinks": True}, {"thinks": False}


@pytest.mark.parametrize(
    ("given", "effort", "budget", "controls"),
    [
        ({}, None, None, {}),
        ({"reasoning_effort": "high"}, "high", None, ON | {"effort": "high"}),
        ({"reasoning_effort": "none"}, "none", 0, OFF | {"budget": 0}),
        ({"reasoning": {"effort": "low", "summary": "auto"}}, "low", None, ON | {"effort": "low"}),
        ({"reasoning": {"max_tokens": 9}}, None, 9, {"budget": 9}),
        ({"reasoning": {"enabled": False}}, None, 0, OFF | {"budget": 0}),
        ({"reasoning": {"effort": None}}, None, None, {}),
        ({"thinking_budget": 7}, None, 7, {"budget": 7}),
        ({"thinking_token_budget": 7, "max_thinking_tokens": 7}, None, 7, {"budget": 7}),
        ({"thinking_budget": -1}, None, None, {}),
        ({"thinking": {"type": "enabled", "budget_tokens": 7}}, None, 7, ON | {"budget": 7}),
        ({"thinking": {"type": "disabled"}}, None, 0, OFF | {"budget": 0}),
        ({"enable_thinking": False}, None, 0, OFF | {"budget": 0}),
        ({"reasoning_effort": "low", "enable_thinking": True}, "low", None, ON | {"effort": "low"}),
        (
            {"chat_template_kwargs": {"thinking": False, "style": "x"}},
            None,
            0,
            {},
        ),
        (
            {"chat_template_kwargs": {"reasoning_effort": "3"}, "reasoning_effort": "low"},
            "low",
            None,
            ON | {"effort": "low"},
        ),
    ],
)
def test_every_spelling_says_the_same(
    given: dict[str, Any], effort: str | None, budget: int | None, controls: dict[str, Any]
) -> None:
    assert read_reasoning(given) == ReasoningRequest(effort, budget, ThoughtPlace.APART, controls)
    assert read_reasoning(given).is_off is (budget == 0)


def test_an_effort_is_a_share_of_the_tokens() -> None:
    shares = [read_reasoning({"reasoning_effort": effort}).max_tokens(1000) for effort in EFFORTS]
    assert shares == [0, 100, 200, 500, 800, 950, 950]
    assert read_reasoning({}).max_tokens(1000) is None
    assert read_reasoning({"reasoning_effort": "high", "thinking_budget": 5}).max_tokens(1000) == 5


def test_the_place_of_the_thought() -> None:
    for given, place in (
        ({"separate_reasoning": False}, ThoughtPlace.IN_CONTENT),
        ({"include_reasoning": False}, ThoughtPlace.NOWHERE),
        ({"reasoning": {"exclude": True}}, ThoughtPlace.NOWHERE),
        ({"include_reasoning": True, "separate_reasoning": True, "stream_reasoning": True}, ThoughtPlace.APART),
    ):
        assert read_reasoning(given).place is place


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"reasoning_effort": "huge"}, "reasoning_effort"),
        ({"reasoning_effort": 3}, "reasoning_effort"),
        ({"reasoning_effort": ["low"]}, "reasoning_effort"),
        ({"reasoning": "high"}, "reasoning"),
        ({"reasoning": {"effort": "huge"}}, "reasoning.effort"),
        ({"reasoning": {"depth": 3}}, "reasoning.depth"),
        ({"reasoning": {"max_tokens": "9"}}, "reasoning.max_tokens"),
        ({"reasoning": {"effort": "low"}, "reasoning_effort": "high"}, "reasoning_effort"),
        ({"thinking_budget": -2}, "thinking_budget"),
        ({"thinking_budget": True}, "thinking_budget"),
        ({"thinking_budget": 5, "max_thinking_tokens": 6}, "max_thinking_tokens"),
        ({"thinking": {"type": "maybe"}}, "thinking.type"),
        ({"thinking": 3}, "thinking"),
        ({"thinking": {"type": "enabled", "budget_tokens": 1.5}}, "thinking.budget_tokens"),
        ({"enable_thinking": "no"}, "enable_thinking"),
        ({"enable_thinking": True, "reasoning_effort": "none"}, "enable_thinking"),
        ({"thinking_budget": 9, "enable_thinking": False}, "thinking_budget"),
        ({"chat_template_kwargs": []}, "chat_template_kwargs"),
        (
            {"chat_template_kwargs": {"enable_thinking": True}, "thinking_budget": 0},
            "chat_template_kwargs.enable_thinking",
        ),
        ({"include_reasoning": 1}, "include_reasoning"),
        ({"separate_reasoning": "yes"}, "separate_reasoning"),
        ({"stream_reasoning": "yes"}, "stream_reasoning"),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, Any], field: str) -> None:
    with pytest.raises(ParameterError) as caught:
        read_reasoning(given)
    assert caught.value.field == field
