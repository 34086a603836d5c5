"""Plain data becomes the same graph as values."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang.contract.errors import GraphError
from rtlang.contract.params import Constraint, ConstraintKind, SamplingParams
from rtlang.contract.service.generation import generation_graph
from rtlang.protocol.generation import generation_graph_from_plain

PARAMS = SamplingParams(max_tokens=7, stop=("\n",))
REGEX = Constraint(ConstraintKind.REGEX, "[0-9]+")


def test_plain_data_gives_the_same_graph() -> None:
    body: dict[str, Any] = {
        "prompt": "x",
        "params": PARAMS.to_plain(),
        "constraint": {"kind": "regex", "source": "[0-9]+"},
        "name": "answer",
    }
    assert generation_graph_from_plain(body) == generation_graph("x", PARAMS, REGEX, "answer")
    messages = [{"role": "user", "content": "Hi"}]
    assert generation_graph_from_plain({"messages": messages}) == generation_graph(messages, SamplingParams())


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "prompt"),
        ({"prompt": "x", "messages": []}, "prompt"),
        ({"prompt": 3}, "prompt"),
        ({"messages": "x"}, "messages"),
        ({"messages": ["x"]}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user"}]}, "messages.content"),
        ({"messages": [{"content": "x"}]}, "messages.role"),
        ({"messages": [{"role": 3, "content": "x"}]}, "messages.role"),
        ({"prompt": "x", "params": []}, "params"),
        ({"prompt": "x", "params": {"max_tokens": -1}}, "params.max_tokens"),
        ({"prompt": "x", "params": {"heat": 1}}, "params.heat"),
        ({"prompt": "x", "constraint": {"kind": "magic", "source": ""}}, "constraint.kind"),
        ({"prompt": "x", "constraint": 3}, "constraint"),
    ],
)
def test_a_wrong_field_is_named(body: dict[str, Any], field: str) -> None:
    with pytest.raises(GraphError) as caught:
        generation_graph_from_plain(body)
    assert caught.value.field == field
