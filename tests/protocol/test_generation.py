"""A generation becomes a graph of two nodes, from values and from plain data alike."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang.contract.errors import GraphError
from rtlang.contract.graph import Generate, RoleEnd, RoleStart, Text
from rtlang.contract.params import Constraint, ConstraintKind, SamplingParams
from rtlang.protocol.generation import generation_graph, generation_graph_from_plain

PARAMS = SamplingParams(max_tokens=7, stop=("\n",))
REGEX = Constraint(ConstraintKind.REGEX, "[0-9]+")


def test_a_prompt_is_continued() -> None:
    graph = generation_graph("2 + 2 = ", PARAMS, REGEX)
    graph.validate()
    assert graph.nodes == (Text(0, None, ("2 + 2 = ",)), Generate(1, 0, "text", PARAMS, REGEX))


def test_chat_messages_are_followed_by_an_assistant_turn() -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    graph = generation_graph(messages, PARAMS)
    graph.validate()
    text = graph.nodes[0]
    assert isinstance(text, Text)
    assert text.parts == (
        RoleStart("system"), "Be brief.", RoleEnd(), RoleStart("user"), "Hi", RoleEnd(), RoleStart("assistant"),
    )  # fmt: skip


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
        ({"prompt": "x", "params": {"max_tokens": 0}}, "params.max_tokens"),
        ({"prompt": "x", "params": {"heat": 1}}, "params.heat"),
        ({"prompt": "x", "constraint": {"kind": "magic", "source": ""}}, "constraint.kind"),
        ({"prompt": "x", "constraint": 3}, "constraint"),
    ],
)
def test_a_wrong_field_is_named(body: dict[str, Any], field: str) -> None:
    with pytest.raises(GraphError) as caught:
        generation_graph_from_plain(body)
    assert caught.value.field == field
