"""Tools of type `mcp` in a request; tests/serve/http/test_mcp_rounds.py has the refusals over HTTP."""

from __future__ import annotations

import mcp_types as types
import pytest

from rtlang.contract.errors import ParameterError
from rtlang.serve.responses.mcp_tools import as_namespace, chosen, has_mcp_tools, read_mcp_tools

SHOP = {"type": "mcp", "server_label": "shop", "require_approval": "never"}
SCHEMA = {"type": "object", "properties": {"item": {"type": "string"}}}
PRICE = types.Tool(name="price", input_schema=SCHEMA, annotations=types.ToolAnnotations(read_only_hint=True))
BUY = types.Tool(name="buy", description="Buys.", input_schema=SCHEMA)


def test_entries_are_found_and_narrowed() -> None:
    assert has_mcp_tools({"tools": [{"type": "function"}, SHOP]})
    assert not has_mcp_tools({"tools": [{"type": "function"}, 3]})
    assert not has_mcp_tools({"tools": "mcp"})
    for allowed, names in (
        (None, ["price", "buy"]),
        (["buy"], ["buy"]),
        ({"tool_names": ["buy"]}, ["buy"]),
        ({"read_only": True}, ["price"]),
        ({"read_only": False, "tool_names": ["price"]}, []),
    ):
        (request,) = read_mcp_tools([{"type": "function"}, {**SHOP, "allowed_tools": allowed}], ["shop"])
        assert [tool.name for tool in request.allowed([PRICE, BUY])] == names
    with pytest.raises(ParameterError, match="differ"):
        read_mcp_tools([SHOP, SHOP], ["shop"])


def test_tools_are_a_namespace_and_a_choice_is_one_of_it() -> None:
    assert as_namespace("shop", [BUY]) == {
        "type": "namespace",
        "name": "shop",
        "tools": [{"type": "function", "name": "buy", "description": "Buys.", "parameters": SCHEMA}],
    }
    assert chosen("auto") == "auto"
    assert chosen({"type": "mcp", "server_label": "shop", "name": "buy"}) == {
        "type": "function",
        "namespace": "shop",
        "name": "buy",
    }
    assert chosen({"type": "mcp", "server_label": "shop"})["tools"] == [{"type": "namespace", "name": "shop"}]
