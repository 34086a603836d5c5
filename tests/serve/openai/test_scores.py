"""Requests of `/score` become selects; pairs are those of vLLM's route, and errors name the field."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang.contract.errors import ParameterError
from rtlang.contract.request_graph import Select
from rtlang.serve.openai.scores import read_score


def selects(body: dict[str, Any]) -> list[tuple[str, ...]]:
    return [node.choices for node in read_score(body).asked.graph.nodes if isinstance(node, Select)]


def test_one_prompt_scores_many_texts_and_many_prompts_one_each() -> None:
    assert selects({"text_1": "a", "text_2": "b"}) == [("b",)]
    twice = read_score({"text_1": ["a"], "text_2": ["b", "c", "b"]})
    assert selects({"text_1": ["a"], "text_2": ["b", "c", "b"]}) == [("b", "c")]
    assert twice.places == ((1, 0), (1, 1), (1, 0))
    pairs = {"queries": ["a", "", "a"], "documents": ["b", "b", "c"]}
    assert selects(pairs) == [("b",), ("b",), ("c",)]
    assert read_score(pairs).places == ((1, 0), (3, 0), (5, 0))
    read_score(pairs).asked.graph.validate()


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"text_1": None}, "text_1"),
        ({"text_1": []}, "text_1"),
        ({"text_1": ["a", 5]}, "text_1"),
        ({"text_1": ["a", "b"]}, "text_1"),
        ({"text_2": ["a", "", "b"]}, "text_2[1]"),
        ({"text_2": {"content": []}}, "text_2"),
        ({"text_2": ["x"] * 2000}, "text_2"),
        ({"documents": ["x"]}, "documents"),
        ({"method": "cosine"}, "method"),
        ({"truncate_prompt_tokens": 5}, "truncate_prompt_tokens"),
        ({"softmax": True}, "softmax"),
        ({"temperature": 1}, "temperature"),
    ],
)
def test_a_field_that_is_wrong_is_named(more: dict[str, Any], named: str) -> None:
    with pytest.raises(ParameterError) as caught:
        read_score({"text_1": "a", "text_2": ["x", "y", "z"]} | more)
    assert caught.value.field == named
