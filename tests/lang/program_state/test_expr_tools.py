"""Tools that messages show to the model: what is recorded, and where tools are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

import rtlang as rt
from rtlang.contract.errors import ParameterError, TraceError
from rtlang.contract.request_graph import RoleStart, Text


def search(query: str, limit: int = 3) -> str:
    """Search the web.

    Args:
        query: the words to look for.
    """
    return query * limit


SEARCH = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "Search the web.",
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "the words to look for."},
                "limit": {"type": "integer", "default": 3},
            },
            "required": ["query"],
        },
    },
}
NOW = {"name": "now", "parameters": {"type": "object", "properties": {}}, "title": "Now"}


def shown(program: rt.Program[..., Any]) -> list[list[dict[str, Any]]]:
    """The tools of the messages of a program."""
    parts = [part for node in program.graph().nodes if isinstance(node, Text) for part in node.parts]
    return [json.loads(part.tools) for part in parts if isinstance(part, RoleStart) and part.tools is not None]


def _expression(s: rt.State) -> None:
    s += rt.system("Be brief.", tools=[search, NOW])
    s += rt.user("?") + rt.assistant(rt.gen("x"))


def _user(s: rt.State) -> None:
    s += "Text before. "
    s += rt.user("?", tools=[search, NOW])
    s += rt.assistant(rt.gen("x"))


def _block(s: rt.State) -> None:
    with s.system(tools=[search, NOW]):
        s += "Be "
        s += "brief."
    s += rt.user("?") + rt.assistant(rt.gen("x"))


def _user_block(s: rt.State) -> None:
    with s.user(tools=[search, NOW]):
        s += rt.gen("x")


@pytest.mark.parametrize("body", [_expression, _user, _block, _user_block])
def test_the_first_message_carries_the_tools(body: Callable[[rt.State], None]) -> None:
    assert shown(rt.program(body)) == [[SEARCH, {"type": "function", "function": NOW}]]


def test_a_later_message_cannot_bring_tools() -> None:
    @rt.program
    def late(s: rt.State) -> None:
        s += rt.system("Be brief.")
        s += rt.user("?", tools=[search])

    @rt.program
    def block(s: rt.State) -> None:
        s += rt.user("?")
        fork = s.fork(1)[0]
        with fork.user(tools=[search]):
            fork += "x"

    for program in (late, block):
        with pytest.raises(TraceError, match=r"test_expr_tools.py:\d+: tools are allowed on the first message only"):
            program.graph()


@pytest.mark.parametrize("tools", [[], "search", search, [search, search], [{"name": ""}], [lambda x: x, 3]])
def test_wrong_tools_are_refused_where_they_are_written(tools: Any) -> None:
    for make in (rt.system, rt.user):
        with pytest.raises(ParameterError, match=r"tools|name"):
            make("x", tools=tools)


def test_results_of_tools_are_written_as_json() -> None:
    class Price(BaseModel):
        item: str
        price: float

    @rt.program
    def results(s: rt.State) -> None:
        s += rt.tool({"größe": [1, None]}, " ", [True], Price(item="mug", price=8.5), 3)
        s += rt.gen("x")

    (text, *_) = results.graph().nodes
    assert isinstance(text, Text)
    written = "".join(part for part in text.parts if isinstance(part, str))
    assert written == '{"größe": [1, null]} [true]{"item":"mug","price":8.5}3'
    for wrong in ({"x": object()}, [float("nan")]):
        with pytest.raises(TraceError, match=r"test_expr_tools.py:\d+: the result of a tool is not JSON data"):
            rt.tool(wrong)
