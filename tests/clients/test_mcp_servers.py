"""The tools of MCP servers in requests and grammars: every request is answered, every call has arguments of its schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import rtlang as rt
from rtlang_grammars.formats.catalogue import FORMATS
from tests.clients.environments import running_server
from tests.clients.mcp_servers import SERVERS, Server, long_model, missing, sent, started_by, tools_of, walked

pytestmark = [pytest.mark.clients, pytest.mark.skipif(missing() is not None, reason=f"{missing()} is not installed")]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with long_model() as model, running_server(model) as url:
        yield url


@pytest.fixture(scope="module", params=SERVERS, ids=lambda server: server.name)
def tools(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    server: Server = request.param
    return tools_of(server)


def test_the_tools_of_a_server_are_called_in_every_way(tools: list[dict[str, Any]], url: str) -> None:
    outcome = sent(url, tools, [0])
    assert outcome.faults == []
    assert outcome.called == {tool["function"]["name"] for tool in tools}


@pytest.mark.parametrize("name", FORMATS)
def test_calls_in_every_format_have_arguments_of_their_schemas(tools: list[dict[str, Any]], name: str) -> None:
    outcome = walked(name, tools, 0)
    assert outcome.faults == []
    assert outcome.num_calls >= len(tools)


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.name)
def test_a_program_gets_the_tools_of_a_server(server: Server) -> None:
    command, variables, folder = started_by(server)
    with rt.mcp(command, env=variables, cwd=folder) as found:
        listed = [tool["function"] for tool in tools_of(server)]
        assert [each.tool.name for each in found] == [tool["name"] for tool in listed]
        assert [each.tool.properties.keys() for each in found] == [
            tool["parameters"].get("properties", {}).keys() for tool in listed
        ]
        if server.name == "everything":
            assert "Grüße" in found.call("echo", message="Grüße")
        if server.name == "filesystem":
            path = str(folder / "files" / "näme.txt")
            found.call("write_file", path=path, content="a\nb")
            assert found.call("read_text_file", path=path) == {"content": "a\nb"}
            with pytest.raises(rt.McpError, match="Access denied"):
                found.call("read_text_file", path="/etc/hostname")
