"""Names of MCP servers, and results as plain data; sessions are tested with programs and with the server."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import pytest

from rtlang.contract.errors import ParameterError
from rtlang.tool_servers.session import result_text, result_value, words_of


def test_a_server_is_a_url_or_a_command() -> None:
    assert words_of("https://x.example/mcp") == "https://x.example/mcp"
    assert words_of("npx -y server 'a b'") == ["npx", "-y", "server", "a b"]
    assert words_of(("a", "b c")) == ["a", "b c"]
    for wrong in ("", "  ", [], ["a", ""], ["a", 1], "a 'b"):
        with pytest.raises(ParameterError, match="server"):
            words_of(wrong)  # type: ignore[arg-type]


def test_a_result_is_structured_content_or_text() -> None:
    text = [types.TextContent(type="text", text="a"), types.ImageContent(type="image", data="", mime_type="image/png")]
    link = types.ResourceLink(type="resource_link", uri="file:///x", name="x")
    inner = types.TextResourceContents(uri="file:///y", text="why")
    whole = types.CallToolResult(content=[*text, link, types.EmbeddedResource(type="resource", resource=inner)])
    assert result_text(whole) == "a\n[image image/png]\n[file:///x]\nwhy"

    def value(content: dict[str, Any], schema: dict[str, Any] | None) -> Any:
        return result_value(types.CallToolResult(content=text[:1], structured_content=content), schema)

    assert value({"result": 3}, {"properties": {"result": {}}}) == 3
    assert value({"result": 3, "more": 1}, {"properties": {"result": {}, "more": {}}}) == {"result": 3, "more": 1}
    assert value({"a": 1}, {"properties": {"a": {}}}) == {"a": 1}
    assert value({"a": 1}, None) == "a"
