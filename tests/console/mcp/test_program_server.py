"""Programs as tools of an MCP server, read by the client of the `mcp` package."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import jsonschema
from mcp import Client
from mcp_types import CallToolResult

import rtlang as rt
from rtlang.console.mcp.program_server import program_server
from rtlang.runtime.scripted_runtime import ModelFreeRuntime


@dataclass
class Size:
    width: int
    height: int = 1


@rt.program
def area(s: rt.State, width: int, height: int = 2) -> int:
    """Compute an area.

    Args:
        width: in metres.
    """
    return width * height


@rt.program
def sized(s: rt.State, size: Size) -> Size:
    return Size(size.height, size.width)


@rt.program
async def free(s: rt.State, word: str):  # type: ignore[no-untyped-def]
    return f"a {word}"


@rt.program
def broken(s: rt.State) -> str:
    raise ValueError("out of paper")


def called(*calls: tuple[str, dict[str, Any]]) -> tuple[list[Any], list[CallToolResult]]:
    """The tools of the server, and the results of calls."""

    async def use() -> tuple[list[Any], list[CallToolResult]]:
        with ModelFreeRuntime(lambda asked: False) as runtime:
            async with Client(program_server([area, sized, free, broken], lambda: runtime)) as client:
                tools = (await client.list_tools()).tools
                return tools, [await client.call_tool(name, arguments) for name, arguments in calls]

    return asyncio.run(use())


def test_programs_are_tools_with_schemas_and_results() -> None:
    tools, (whole, turned, text) = called(
        ("area", {"width": 3}), ("sized", {"size": {"width": 4}}), ("free", {"word": "b"})
    )
    by_name = {tool.name: tool for tool in tools}
    assert by_name["area"].description == "Compute an area."
    schema = by_name["area"].input_schema
    assert (schema["required"], schema["properties"]["width"]["description"]) == (["width"], "in metres.")
    assert (whole.structured_content, whole.is_error) == ({"result": 6}, False)
    assert turned.structured_content == {"width": 1, "height": 4}
    assert (text.structured_content, text.content[0].text) == (None, "a b")  # type: ignore[union-attr]
    for tool, result in ((by_name["area"], whole), (by_name["sized"], turned)):
        jsonschema.validate(result.structured_content, tool.output_schema)
    assert by_name["free"].output_schema is None


def test_what_fails_is_a_result_with_the_message() -> None:
    _, (wrong, unknown, failed) = called(("area", {"length": 3}), ("volume", {}), ("broken", {}))
    assert all(each.is_error for each in (wrong, unknown, failed))
    texts = [each.content[0].text for each in (wrong, unknown, failed)]  # type: ignore[union-attr]
    assert "width" in texts[0]
    assert "area" in texts[1]
    assert "out of paper" in texts[2]
