"""Listed MCP servers: their labels, sessions that open again, and calls that fail."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from rtlang.contract.errors import ConfigError, McpError
from rtlang.serve.responses.mcp_servers import CallOutcome, McpServers, listed_servers

SERVER = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("things")

@server.tool()
def double(text: str) -> str:
    return text * 2

@server.tool()
def leave() -> str:
    import os
    os._exit(3)

server.run()
"""


def test_labels_and_servers_are_checked() -> None:
    listed = ["a=https://x.example/mcp", "b-2=npx server 'my folder'"]
    assert listed_servers(listed) == {"a": "https://x.example/mcp", "b-2": ["npx", "server", "my folder"]}
    for wrong in (["a"], ["=x"], ["a b=x"], ["a="], ["a=x 'y"], ["a=x", "a=y"]):
        with pytest.raises(ConfigError, match="mcp_servers"):
            listed_servers(wrong)


def test_a_session_is_opened_again_after_its_server_has_left(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)

    async def use() -> None:
        servers = McpServers([f"things={sys.executable} {tmp_path / 'server.py'}", "missing=/no/such/program"])
        assert [tool.name for tool in await servers.tools("things")] == ["double", "leave"]
        assert await servers.call("things", "double", {"text": "ab"}) == CallOutcome("abab", None)
        failed = await servers.call("things", "double", {})
        assert failed.output is None
        assert "text" in (failed.error or "")
        left = await servers.call("things", "leave", {})
        assert left.error
        assert await servers.call("things", "double", {"text": "c"}) == CallOutcome("cc", None)
        with pytest.raises(McpError, match="missing"):
            await servers.tools("missing")
        assert (await servers.call("missing", "x", {})).error
        sessions = list(servers._sessions.values())
        servers.close()
        assert all(each.task.done() for each in sessions)
        servers.close()

    asyncio.run(use())
