"""Tools as text: what is kept as it is, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rtlang.contract.errors import GraphError
from rtlang.contract.graph.tool_list import MAX_TOOLS_CHARS, tools_from_text, tools_to_text
from rtlang.contract.request_graph import RequestGraph, RoleEnd, RoleStart, Text
from rtlang_grammars.formats.tools import Tool

SEARCH = {
    "name": "search",
    "description": "Süche",
    "parameters": {"type": "object", "properties": {"q": {"type": "string"}}},
}
WRAPPED = {"type": "function", "function": SEARCH, "more": 1}


def test_maps_are_kept_and_tools_and_bare_maps_are_wrapped() -> None:
    text = tools_to_text([WRAPPED, {**SEARCH, "name": "bare"}, Tool("made", description="x")])
    assert tools_from_text(text) == json.loads(text)
    first, bare, made = json.loads(text)
    assert list(first) == list(WRAPPED)
    assert first == WRAPPED
    assert bare == {"type": "function", "function": {**SEARCH, "name": "bare"}}
    assert made["function"] == {"name": "made", "description": "x", "parameters": {"type": "object", "properties": {}}}
    assert "Süche" in text


@pytest.mark.parametrize(
    ("tools", "message"),
    [
        ([], "0 tools"),
        ([WRAPPED, WRAPPED], "two tools have this name"),
        ([{"type": "function"}], "expected a tool"),
        ([{**SEARCH, "description": "x" * MAX_TOOLS_CHARS}], "at most 1000000 characters"),
        ([{**SEARCH, "extra": float("nan")}], "JSON"),
        ([{**SEARCH, "extra": object()}], "plain JSON data"),
    ],
)
def test_lists_that_are_no_tools_are_refused(tools: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tools_to_text(tools)


@pytest.mark.parametrize("text", ["", "{", "{}", "[]", "[1]", '[{"name": "a b"}]', "[" * 100_000, 3, None])
def test_texts_that_are_no_tools_are_refused(text: Any) -> None:
    with pytest.raises(ValueError, match=r"expected|tools"):
        tools_from_text(text)
    if text is not None:
        with pytest.raises(GraphError, match=r"node 0, parts: tools: "):
            RequestGraph((Text(0, None, (RoleStart("user", text),)),)).validate()


def test_a_graph_carries_the_tools_of_a_message() -> None:
    graph = RequestGraph((Text(0, None, (RoleStart("system", tools_to_text([WRAPPED])), "x", RoleEnd())),))
    plain = graph.to_plain()
    assert plain["nodes"][0]["parts"][0] == {"role": "system", "tools": [WRAPPED]}
    assert RequestGraph.from_plain(plain) == graph
    assert RequestGraph.from_msgpack(graph.to_msgpack()) == graph
    for wrong in ("x", [], [{"name": ""}]):
        plain["nodes"][0]["parts"][0] = {"role": "system", "tools": wrong}
        with pytest.raises(GraphError, match="node 0, parts"):
            RequestGraph.from_plain(plain)
