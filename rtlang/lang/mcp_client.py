"""Tools of MCP servers, for `rt.gen(tools=...)`: `rt.mcp(command or URL)`.

The `mcp` package speaks the protocol on an event loop in a thread of its own, so any thread may call tools. A tool's schema binds its
arguments as the schema of a function does. By its annotations, a durable run repeats a call with an unknown outcome or fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rtlang.contract.errors import McpError, ParameterError
from rtlang.lang.effect_marks import effect
from rtlang.lang.output_types.tool_calls import BoundTool
from rtlang.tool_servers.session import (
    all_tools,
    is_broken,
    mcp_package,
    open_session,
    reason_of,
    result_text,
    result_value,
    words_of,
)
from rtlang_grammars import GrammarError
from rtlang_grammars.formats.tools import Tool

if TYPE_CHECKING:
    from mcp import Client


class McpTools:
    """The tools of an MCP server, as an iterable for `tools=`; a context manager. It connects on first use.

        with rt.mcp("npx -y @modelcontextprotocol/server-filesystem .") as files:
            ...  # s += rt.gen("call", tools=files)

    Args: see `mcp`.
    """

    def __init__(self, server: str | list[str], **options: Any) -> None:
        self._server, self._options = server, options
        self._lock = threading.Lock()
        self._connection: _Connection | None = None

    def __iter__(self) -> Iterator[BoundTool]:
        return iter(self._connected().tools.values())

    def __len__(self) -> int:
        return len(self._connected().tools)

    def __getitem__(self, name: str) -> BoundTool:
        """The tool of this name.

        Raises:
            ParameterError: the server has no such tool; lists its tools.
        """
        found = self._connected().tools
        if name not in found:
            raise ParameterError("name", name, f"expected one of {', '.join(found)}")
        return found[name]

    def call(self, name: str, /, **arguments: Any) -> Any:
        """Call a tool; see `BoundTool.call`."""
        return self[name].call(**arguments)

    def close(self) -> None:
        """Disconnect, and end a server that was started. A later use connects again."""
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def __enter__(self) -> Self:
        self._connected()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Call a tool on the current connection, which may be newer than the tool."""
        return self._connected().call(name, arguments)

    def _connected(self) -> _Connection:
        with self._lock:
            if self._connection is None or not self._connection.is_open:
                self._connection = _Connection(self._server, self._call, **self._options)
            return self._connection


def mcp(
    server: str | Sequence[str],
    *,
    only: Sequence[str] | None = None,
    prefix: str = "",
    headers: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    timeout_s: float = 60.0,
) -> McpTools:
    """The tools of an MCP server.

    Args:
        server: an `http(s)://` URL of a streamable HTTP endpoint, or the command of a server that speaks over stdio: text as in a shell, or
            a list of words. The command gets a few variables of the environment, such as PATH and HOME, and those in `env`.
        only: names of the tools to take; default: all.
        prefix: text before the names of the tools, to tell servers apart.
        headers: of each request to a URL, such as `{"Authorization": "Bearer ..."}`.
        env, cwd: of the command.
        timeout_s: seconds after which connecting, or a call, fails.
    Raises:
        ParameterError: an argument is invalid; names it. ConfigError: the package `mcp` is not installed. McpError, when it connects: the
            server cannot be reached, or does not speak MCP.
    """
    words = words_of(server)
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float) or not 0 < timeout_s <= 86_400:
        raise ParameterError("timeout_s", timeout_s, "expected seconds above 0 and at most 86400")
    if headers is not None and isinstance(words, list):
        raise ParameterError("headers", headers, "allowed only with a URL")
    for name, value in (("env", env), ("cwd", cwd)):
        if value is not None and isinstance(words, str):
            raise ParameterError(name, value, "allowed only with a command")
    mcp_package()
    options = {"only": only, "prefix": prefix, "headers": headers, "env": env, "cwd": cwd, "timeout_s": timeout_s}
    return McpTools(words, **options)


class _Connection:
    """A session with a server, on a thread of its own."""

    def __init__(
        self,
        server: str | list[str],
        call: Callable[[str, Mapping[str, Any]], Any],
        *,
        only: Sequence[str] | None,
        prefix: str,
        headers: Mapping[str, str] | None,
        env: Mapping[str, str] | None,
        cwd: str | os.PathLike[str] | None,
        timeout_s: float,
    ) -> None:
        self._server, self._call, self._timeout_s = server, call, timeout_s
        self._name = server if isinstance(server, str) else server[0]
        self._loop = asyncio.new_event_loop()
        self._client: Client | None = None
        self._stop = asyncio.Event()
        self.is_open = True
        ready: Future[list[Any]] = Future()
        how = {"headers": headers, "env": env, "cwd": cwd}
        self._thread = threading.Thread(target=self._run, args=(ready, how), name="rtlang-mcp", daemon=True)
        self._thread.start()
        try:
            listed = ready.result(timeout_s)
        except TimeoutError:
            self.close()
            raise McpError(self._name, f"no answer within {timeout_s:g} s") from None
        try:
            self.tools = self._bound(listed, only, prefix)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the session and wait for its thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._stop.set)
        if threading.current_thread() is not self._thread:
            self._thread.join(self._timeout_s)

    def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """The result of a tool."""
        if not self.is_open or self._client is None:
            raise McpError(self._name, "the connection is closed")
        calling = asyncio.run_coroutine_threadsafe(self._client.call_tool(name, dict(arguments)), self._loop)
        try:
            result = calling.result(self._timeout_s)
        except TimeoutError:
            calling.cancel()
            raise McpError(self._name, f"the tool {name!r} gave no result within {self._timeout_s:g} s") from None
        except Exception as error:
            if is_broken(error):
                self.is_open = False
                self._loop.call_soon_threadsafe(self._stop.set)
            raise McpError(self._name, f"the tool {name!r} failed: {reason_of(error)}") from error
        if result.is_error:
            raise McpError(self._name, result_text(result) or "the tool reports an error")
        return result

    def _bound(self, listed: Sequence[Any], only: Sequence[str] | None, prefix: str) -> dict[str, BoundTool]:
        names = [tool.name for tool in listed]
        missing = [name for name in only or () if name not in names]
        if missing:
            raise ParameterError("only", missing[0], f"expected names among {', '.join(names)}")
        found = [self._bound_tool(tool, prefix) for tool in listed if only is None or tool.name in only]
        return {each.tool.name: each for each in found}

    def _bound_tool(self, tool: Any, prefix: str) -> BoundTool:
        try:
            made = Tool(f"{prefix}{tool.name}", tool.input_schema, tool.description or "")
        except GrammarError as error:
            raise ParameterError("tools", tool.name, error.reason) from None

        def call(**arguments: Any) -> Any:
            return result_value(self._call(tool.name, arguments), tool.output_schema)

        hints = tool.annotations
        if hints is not None and (hints.read_only_hint or hints.idempotent_hint):
            call = effect(on_unknown="retry")(call)
        call.__name__ = call.__qualname__ = tool.name
        return BoundTool(made, call)

    def _run(self, ready: Future[list[Any]], how: Mapping[str, Any]) -> None:
        try:
            self._loop.run_until_complete(self._serve(ready, how))
        except BaseException as error:
            if not ready.done():
                ready.set_exception(McpError(self._name, reason_of(error)))
        finally:
            self.is_open, self._client = False, None
            self._loop.close()

    async def _serve(self, ready: Future[list[Any]], how: Mapping[str, Any]) -> None:
        async with open_session(self._server, self._timeout_s, **how) as client:
            self._client = client
            ready.set_result(await all_tools(client))
            await self._stop.wait()
