"""A session with an MCP server, by the `mcp` package, and the results of its tools as plain data."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import AsyncIterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rtlang.contract.errors import ConfigError, ParameterError

if TYPE_CHECKING:
    from mcp import Client

MAX_TOOLS = 1024
"""Tools of one server that are read."""
_CONNECTION_CLOSED = -32000
_WRAPPED = "result"
"""The only property of an output schema under which servers put a value that is no object."""


def is_url(server: str | Sequence[str]) -> bool:
    """Whether a server is named by the URL of a streamable HTTP endpoint, and not by a command."""
    return isinstance(server, str) and server.startswith(("http://", "https://"))


def words_of(server: str | Sequence[str]) -> str | list[str]:
    """The URL of a server, or the words of its command.

    Raises:
        ParameterError: it is neither.
    """
    if isinstance(server, str) and is_url(server):
        return server
    try:
        words = shlex.split(server) if isinstance(server, str) else list(server)
    except ValueError:
        words = []
    if not words or not all(isinstance(word, str) and word for word in words):
        raise ParameterError("server", server, "expected an http(s):// URL, a command, or a list of its words")
    return words


def mcp_package() -> Any:
    """The package `mcp`.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        import_module("jsonschema")  # the package loads it at the first call, on an event loop
        return import_module("mcp")
    except ImportError as error:
        raise ConfigError("mcp", None, f"MCP needs a package: pip install 'rtlang[mcp]' ({error})") from None


@contextlib.asynccontextmanager
async def open_session(
    server: str | list[str],
    timeout_s: float,
    *,
    headers: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
) -> AsyncIterator[Client]:
    """A session with a server; a command is started, and ended with the session.

    Args:
        server: a URL, or the words of a command.
        timeout_s: seconds that each answer of the server may take.
        headers: of each request to a URL.
        env, cwd: of the command.
    """
    package = mcp_package()
    async with contextlib.AsyncExitStack() as exits:
        target: Any = server
        if isinstance(server, list):
            from mcp.client.stdio import get_default_environment

            variables = None if env is None else get_default_environment() | dict(env)
            target = package.StdioServerParameters(command=server[0], args=server[1:], env=variables, cwd=cwd)
        elif headers is not None:
            from mcp.client.streamable_http import streamable_http_client
            from mcp.shared._httpx_utils import create_mcp_http_client

            client = await exits.enter_async_context(create_mcp_http_client(headers=dict(headers)))
            target = streamable_http_client(server, http_client=client)
        yield await exits.enter_async_context(package.Client(target, read_timeout_seconds=timeout_s))


async def all_tools(client: Client) -> list[Any]:
    """The tools of a server, at most `MAX_TOOLS`."""
    found: list[Any] = []
    cursor: str | None = None
    while True:
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if not cursor or len(found) > MAX_TOOLS:
            return found[:MAX_TOOLS]


def result_value(result: Any, output_schema: Mapping[str, Any] | None) -> Any:
    """The result of a tool: its structured content if the tool declares it, else its text."""
    if output_schema is None or result.structured_content is None:
        return result_text(result)
    found = result.structured_content
    is_wrapped = list(output_schema.get("properties", ())) == [_WRAPPED] and list(found) == [_WRAPPED]
    return found[_WRAPPED] if is_wrapped else found


def result_text(result: Any) -> str:
    """The content of a result as text. Images and sounds are named, since a model of text cannot read them."""
    return "\n".join(_text_of(block) for block in result.content)


def _text_of(block: Any) -> str:
    match block.type:
        case "text":
            return str(block.text)
        case "resource":
            return str(getattr(block.resource, "text", f"[{block.resource.uri}]"))
        case "resource_link":
            return f"[{block.uri}]"
    return f"[{block.type} {block.mime_type}]"


def is_broken(error: BaseException) -> bool:
    """Whether an error of a call means that the session is of no more use; else the server refused the call."""
    package = mcp_package()
    return not isinstance(error, package.MCPError) or error.error.code == _CONNECTION_CLOSED


def reason_of(error: BaseException) -> str:
    """The message of an error; for a group of errors, of the first one."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__
