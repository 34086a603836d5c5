"""Options of a request for the chat template."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rtlang.contract.errors import ParameterError
from rtlang.serve.openai.template_options import read_template_options


def test_variables_of_a_request_come_before_those_of_other_fields() -> None:
    assert read_template_options({}) is None
    given = {"chat_template": "x", "chat_template_kwargs": {"thinking": False, "reasoning_effort": "low"}}
    found = read_template_options(given, {"effort": "high", "thinks": True})
    assert json.loads(found or "") == {
        "chat_template": "x",
        "chat_template_kwargs": {"reasoning_effort": "low", "thinking": False},
        "controls": {"effort": "high", "thinks": True},
    }


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"chat_template": ""}, "chat_template"),
        ({"chat_template": ["x"]}, "chat_template"),
        ({"chat_template": "x" * (2 << 20)}, "chat_template"),
        ({"chat_template_kwargs": "x"}, "chat_template_kwargs"),
        ({"chat_template_kwargs": {"add_generation_prompt": False}}, "chat_template_kwargs"),
        ({"chat_template_kwargs": {"not a name": 1}}, "chat_template_kwargs"),
        ({"chat_template_kwargs": {"x": "y" * (1 << 17)}}, "chat_template_kwargs"),
        ({"chat_template_kwargs": {"x": float("nan")}}, "chat_template_kwargs"),
    ],
)
def test_a_malformed_option_is_named(given: Any, field: str) -> None:
    with pytest.raises(ParameterError) as caught:
        read_template_options(given)
    assert caught.value.field == field
