"""Tools of MCP servers in programs: a server of the `mcp` package as a process of its own, called by hand and by a run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import rtlang as rt
from rtlang.contract.errors import McpError, ParameterError
from rtlang.lang.effect_marks import policy_of

SERVER = '''
from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("things")

@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b

@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def look(name: str) -> dict[str, str]:
    return {"name": name, "seen": "yes"}

@server.tool(structured_output=False)
def say(text: str) -> str:
    return text.upper()

@server.tool()
def fail() -> str:
    from mcp.server.mcpserver.exceptions import ToolError
    raise ToolError("out of paper")

@server.tool()
def leave() -> str:
    import os
    os._exit(3)

server.run()
'''


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    path = tmp_path_factory.mktemp("mcp") / "server.py"
    path.write_text(SERVER)
    return [sys.executable, str(path)]


@pytest.fixture(scope="module")
def things(command: list[str]) -> Iterator[rt.McpTools]:
    with rt.mcp(command) as found:
        yield found


def test_tools_have_the_schemas_and_results_of_the_server(things: rt.McpTools) -> None:
    assert [each.tool.name for each in things] == ["add", "look", "say", "fail", "leave"]
    assert things["add"].tool.description == "Add two numbers."
    assert things["add"].tool.properties.keys() == {"a", "b"}
    assert things.call("add", a=2, b=3) == 5
    assert things.call("look", name="x") == {"name": "x", "seen": "yes"}
    assert things.call("say", text="hi\nyou") == "HI\nYOU"
    with pytest.raises(McpError, match="out of paper"):
        things.call("fail")
    with pytest.raises(ParameterError, match="add, look, say, fail, leave"):
        things["subtract"]
    policies = [policy_of(each.call, None, None) for each in things]
    assert policies == ["once", "retry", "once", "once", "once"]


def test_a_program_calls_a_tool(things: rt.McpTools) -> None:
    @rt.program
    def ask(s: rt.State) -> int:
        s += rt.system("Add.", tools=things) + rt.user("2 and 3?")
        s += rt.assistant(rt.gen("call", 60, tools=things, tool_choice="add"))
        call = s["call"]
        result = call.run()
        assert result == call.args["a"] + call.args["b"]
        s += rt.tool(str(result))
        return int(result)

    with rt.Runtime("rtlang:tiny") as runtime:
        result = ask.run(runtime=runtime)
    assert result["call"].name == "add"
    assert type(result.value) is int
    assert str(result.value) in result.text()


def test_a_server_that_has_left_is_started_again(things: rt.McpTools) -> None:
    say = things["say"]
    with pytest.raises(McpError, match="leave"):
        things.call("leave")
    assert say.call(text="a") == "A"
    assert things.call("say", text="b") == "B"


@pytest.mark.long
def test_names_may_be_chosen_and_prefixed(command: list[str]) -> None:
    with rt.mcp(command, only=["say"], prefix="my-", env={"A": "b"}) as chosen:
        assert [each.tool.name for each in chosen] == ["my-say"]
        assert chosen.call("my-say", text="a") == "A"
    with pytest.raises(ParameterError, match="only"):
        list(rt.mcp(command, only=["nothing"]))


def test_a_server_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    for wrong in (
        [str(tmp_path / "missing")],
        [sys.executable, "-c", "print('no server')"],
        "http://127.0.0.1:9/mcp",
    ):
        with pytest.raises(McpError) as failed:
            list(rt.mcp(wrong, timeout_s=5))
        assert failed.value.server == (wrong if isinstance(wrong, str) else wrong[0])
    with pytest.raises(McpError, match=r"no answer within 0\.5 s"):
        list(rt.mcp([sys.executable, "-c", "import time; time.sleep(60)"], timeout_s=0.5))


@pytest.mark.parametrize(
    ("server", "options", "field"),
    [
        ("", {}, "server"),
        ([], {}, "server"),
        ("x", {"timeout_s": 0}, "timeout_s"),
        ("x", {"headers": {"a": "b"}}, "headers"),
        ("http://x/mcp", {"env": {"a": "b"}}, "env"),
        ("http://x/mcp", {"cwd": "."}, "cwd"),
    ],
)
def test_a_wrong_argument_is_named(server: str, options: dict[str, object], field: str) -> None:
    with pytest.raises(ParameterError) as refused:
        rt.mcp(server, **options)  # type: ignore[arg-type]
    assert refused.value.field == field
