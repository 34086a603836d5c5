"""Programs as tools of an MCP server, over stdio or streamable HTTP.

A program's parameters are the input schema of its tool, its docstring is the description, and its return annotation is the output schema.
A run that fails is a result with `isError` and the message; a client that cancels a call cancels the run.
"""

from __future__ import annotations

import asyncio
import inspect
import io
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

import anyio
import mcp_types as types
import pydantic
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from rtlang.console.show import plain
from rtlang.console.source import CommandError, parameters_of
from rtlang.contract.errors import ParameterError, RtlangError, described
from rtlang.contract.service.target import Target
from rtlang.contract.version import VERSION
from rtlang.lang.output_types.signatures import Signature, signature_of
from rtlang.lang.program import Program

logger = logging.getLogger(__name__)

_RESULT = "result"
"""The property of structured content that holds a value which is no object."""


@dataclass(frozen=True, slots=True)
class ProgramTool:
    """A program as a tool.

    Attributes:
        output: the JSON schema of the structured content; None if the program declares no type of result that JSON has.
        is_object: whether a result is the structured content itself, and not a property of it.
    """

    program: Program
    signature: Signature
    output: dict[str, Any] | None
    is_object: bool

    def described(self) -> types.Tool:
        """The tool as clients see it."""
        schema = {"type": "object", **self.signature.schema, "additionalProperties": False}
        return types.Tool(
            name=self.program.name,
            description=self.signature.description or None,
            input_schema=schema,
            output_schema=self.output,
        )

    async def call(self, open_target: Callable[[], Target], arguments: Mapping[str, Any]) -> types.CallToolResult:
        """Run the program."""
        try:
            args = self.signature.read(json.dumps(arguments))
        except ValueError as error:
            return _failed(f"invalid arguments: {error}")
        try:
            target = await asyncio.to_thread(open_target)
            result = await self.program.with_options(runtime=target).arun(**args)
            value = plain(result.value, f"the result of {self.program.name}")
        except (RtlangError, CommandError) as error:
            return _failed(str(error))
        except Exception as error:  # of the program's own code
            logger.exception("the program %s failed", self.program.name)
            return _failed(described(error))
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        content: list[types.ContentBlock] = [types.TextContent(type="text", text=text)]
        if self.output is None:
            return types.CallToolResult(content=content)
        return types.CallToolResult(content=content, structured_content=value if self.is_object else {_RESULT: value})


def program_tool(program: Program) -> ProgramTool:
    """A program as a tool.

    Raises:
        ParameterError: a parameter has no JSON schema; names the program.
    """
    parameters = parameters_of(program)
    signature = signature_of(program, "program", parameters)
    output, is_object = _output_schema(program)
    return ProgramTool(program, signature, output, is_object)


def _output_schema(program: Program) -> tuple[dict[str, Any] | None, bool]:
    annotation = program.__annotations__.get("return", Any)
    if isinstance(annotation, str) or annotation is Any:
        annotation = _resolved(program)
    if annotation in (Any, None, type(None)):
        return None, False
    try:
        schema = pydantic.TypeAdapter(annotation).json_schema(mode="serialization")
    except Exception:  # annotations are any Python: names that do not exist, types without a schema
        return None, False
    if schema.get("type") == "object":
        return schema, True
    definitions = schema.pop("$defs", None)
    wrapped = {"type": "object", "properties": {_RESULT: schema}, "required": [_RESULT]}
    return wrapped | ({} if definitions is None else {"$defs": definitions}), False


def _resolved(program: Program) -> Any:
    try:
        found = inspect.signature(program, eval_str=True).return_annotation
    except Exception:
        return Any
    return Any if found is inspect.Signature.empty else found


def _failed(reason: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=reason)], is_error=True)


def program_server(programs: Sequence[Program], open_target: Callable[[], Target]) -> Server[Any]:
    """An MCP server whose tools are programs.

    Args:
        open_target: called at the first call of a tool, so that clients can list the tools while no model is loaded.
    Raises:
        ParameterError: a program cannot be a tool.
    """
    tools = {tool.program.name: tool for tool in map(program_tool, programs)}
    if len(tools) < len(programs):
        raise ParameterError("program", sorted(program.name for program in programs), "expected different names")

    async def list_tools(context: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[tool.described() for tool in tools.values()])

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = tools.get(params.name)
        if tool is None:
            return _failed(f"unknown tool {params.name[:200]!r}; expected {' or '.join(tools)}")
        return await tool.call(open_target, params.arguments or {})

    return Server("rtlang", version=VERSION, on_list_tools=list_tools, on_call_tool=call_tool)


async def serve_stdio(server: Server[Any], output: IO[bytes]) -> None:
    """Serve one client over standard input and `output`, until it closes the input."""
    lines = anyio.wrap_file(io.TextIOWrapper(output, encoding="utf-8"))
    async with stdio_server(stdout=lines) as (read, write):
        await server.run(read, write, server.create_initialization_options())


def serve_http(server: Server[Any], host: str, port: int) -> None:
    """Serve streamable HTTP at `/mcp` until SIGINT or SIGTERM."""
    uvicorn.run(server.streamable_http_app(host=host), host=host, port=port, log_level="warning")
