"""Sessions with the MCP servers that the operator lists, opened at the first use and again after a failure.

Sessions are shared by all principals, so a server whose answers depend on who asks should not be listed. They live on the event loop of a
thread of their own: the `mcp` package reads a long result in time that grows with the square of its length.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from rtlang.contract.errors import ConfigError, McpError, ParameterError
from rtlang.tool_servers.session import (
    all_tools,
    is_broken,
    mcp_package,
    open_session,
    reason_of,
    result_text,
    words_of,
)

TIMEOUT_S = 60.0
"""Seconds for opening a session, and for each call."""
MAX_OUTPUT_CHARS = 1 << 20
"""Characters of a result that the model is shown."""
_CLOSE_S = 5.0  # for the end of all sessions

_T = TypeVar("_T")


class CallOutcome(NamedTuple):
    """The end of a call: its output, or the reason why it failed."""

    output: str | None
    error: str | None


class McpServers:
    """The listed servers. Used on the event loop of the server.

    Args:
        listed: texts `LABEL=URL` or `LABEL=COMMAND`.
    Raises:
        ConfigError: one is malformed, or the package `mcp` is not installed.
    """

    def __init__(self, listed: Sequence[str], timeout_s: float = TIMEOUT_S) -> None:
        self._servers = listed_servers(listed)
        self._timeout_s = timeout_s
        self._sessions: dict[str, _Session] = {}  # this and the next belong to the thread
        self._closing: asyncio.Event
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop

    @property
    def labels(self) -> list[str]:
        """The labels of the servers."""
        return list(self._servers)

    async def tools(self, label: str) -> list[Any]:
        """The tools of a server, as the package describes them.

        Raises:
            McpError: it cannot be reached, or does not answer in time.
        """
        return await self._on_thread(self._tools(label))

    async def call(self, label: str, name: str, arguments: Mapping[str, Any]) -> CallOutcome:
        """Call a tool. A failure is an outcome and no exception, because the model reads it."""
        return await self._on_thread(self._call(label, name, arguments))

    def close(self) -> None:
        """End all sessions, and the servers that were started. Idempotent."""
        if self._thread is not None:
            self._loop.call_soon_threadsafe(self._closing.set)
            self._thread.join(_CLOSE_S)
            self._thread = None

    async def _on_thread(self, work: Coroutine[Any, Any, _T]) -> _T:
        if self._thread is None:
            begun: Future[None] = Future()
            main = self._until_closed(begun)
            self._thread = threading.Thread(target=asyncio.run, args=(main,), name="rtlang-mcp-servers", daemon=True)
            self._thread.start()
            begun.result()  # about a millisecond, once
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def _until_closed(self, begun: Future[None]) -> None:
        self._loop, self._closing = asyncio.get_running_loop(), asyncio.Event()
        begun.set_result(None)
        await self._closing.wait()
        ending = [session.task for session in self._sessions.values()]
        for session in self._sessions.values():
            session.stop.set()
        if ending:
            await asyncio.wait(ending, timeout=_CLOSE_S)

    async def _tools(self, label: str) -> list[Any]:
        return (await self._session(label)).tools

    async def _call(self, label: str, name: str, arguments: Mapping[str, Any]) -> CallOutcome:
        try:
            session = await self._session(label)
            result = await asyncio.wait_for(session.client.call_tool(name, dict(arguments)), self._timeout_s)
        except TimeoutError:
            return CallOutcome(None, f"no result within {self._timeout_s:g} s")
        except Exception as error:  # of the package, its transports and the server
            if is_broken(error) and label in self._sessions:
                self._sessions.pop(label).stop.set()
            return CallOutcome(None, reason_of(error))
        text = result_text(result)[:MAX_OUTPUT_CHARS]
        if result.structured_content is not None and not text:
            text = json.dumps(result.structured_content, ensure_ascii=False)[:MAX_OUTPUT_CHARS]
        return CallOutcome(None, text or "the tool reports an error") if result.is_error else CallOutcome(text, None)

    async def _session(self, label: str) -> _Session:
        found = self._sessions.get(label)
        if found is None or found.task.done():
            found = self._sessions[label] = _Session(label, self._servers[label], self._timeout_s)
        try:
            await asyncio.wait_for(asyncio.shield(found.ready), self._timeout_s)
        except TimeoutError:
            found.task.cancel()
            raise McpError(label, f"no answer within {self._timeout_s:g} s") from None
        return found


def listed_servers(listed: Sequence[str]) -> dict[str, str | list[str]]:
    """The servers by their labels.

    Raises:
        ConfigError: a text is malformed, or the package `mcp` is not installed.
    """
    found: dict[str, str | list[str]] = {}
    for text in listed:
        label, equals, server = text.partition("=")
        is_label = label.isascii() and label.replace("-", "_").isidentifier() and len(label) <= 64
        if not equals or not is_label or label in found:
            raise ConfigError("mcp_servers", text, "expected LABEL=URL or LABEL=COMMAND, with labels that differ")
        try:
            found[label] = words_of(server)
        except ParameterError as error:
            raise ConfigError("mcp_servers", text, error.allowed) from None
    if found:
        mcp_package()
    return found


class _Session:
    """One session, held open by a task of its own, in which it must be closed, too."""

    def __init__(self, label: str, server: str | list[str], timeout_s: float) -> None:
        self._label, self._server, self._timeout_s = label, server, timeout_s
        self.client: Any = None
        self.tools: list[Any] = []
        loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[None] = loop.create_future()
        self.stop = asyncio.Event()
        self.task = loop.create_task(self._run(), context=contextvars.Context())

    async def _run(self) -> None:
        try:
            async with open_session(self._server, self._timeout_s) as self.client:
                self.tools = await all_tools(self.client)
                self.ready.set_result(None)
                await self.stop.wait()
        except BaseException as error:
            if not self.ready.done():
                self.ready.set_exception(McpError(self._label, reason_of(error)))
                self.ready.exception()  # it may have no reader
            if isinstance(error, asyncio.CancelledError):
                raise
