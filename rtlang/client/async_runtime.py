"""A connection to a server for asyncio: graphs and generations as coroutines and async iterators.

    async with rt.connect_async("ws://127.0.0.1:8420") as remote:
        async for event in remote.stream(graph):
            ...

The body is `ClientSession`, as for `rt.connect`; one task runs it, another one writes. A stream is at most `WINDOW` tokens
ahead of its reader, so a slow reader slows its own stream only. Everything runs on the loop that opened the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as connect_websocket
from websockets.exceptions import ConnectionClosed

from rtlang.client.address import (
    CLOSE_TIMEOUT_S,
    ServerAddresses,
    connect_options,
    dial_error,
    greeting,
    hello,
    server_resume_s,
)
from rtlang.client.client_protocol import ClientProtocol
from rtlang.client.client_session import ClientSession, Link
from rtlang.client.remote_cache import AsyncRemoteCache, CacheRequests
from rtlang.client.remote_run import Answer, RemoteGraphRun
from rtlang.contract.errors import ConnectionLostError
from rtlang.contract.events import CallRequested, Event, GraphFailed, GraphFinished, NodeFailed, NodeFinished, TextDelta
from rtlang.contract.graph.host_calls import HostFunction, answer_call
from rtlang.contract.params import Constraint, SamplingParams
from rtlang.contract.request_graph import Node, RequestGraph
from rtlang.contract.runs.known import ContinueFrom, Known
from rtlang.contract.runs.run_options import DEFAULT_OPTIONS, Ability, RunOptions
from rtlang.contract.service.generation import Prompt, generation_graph
from rtlang.contract.service.target import Listener

WINDOW = 1024
"""Tokens that a stream may be ahead of its reader."""


class _FutureAnswer(Answer):
    """An answer that a coroutine can wait for."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(is_awaited=True)
        self.done: asyncio.Future[None] = loop.create_future()

    def wake(self) -> None:
        """See `Answer.wake`."""
        if not self.done.done():
            self.done.set_result(None)


class _LoopTransport:
    """The I/O of a client for asyncio. `write` is a task that sends the output."""

    def __init__(self, servers: ServerAddresses, api_key: str | None, timeout_s: float) -> None:
        self._servers, self._api_key, self._timeout_s = servers, api_key, timeout_s
        self.closing = asyncio.Event()
        self._has_output = asyncio.Event()

    @property
    def is_closing(self) -> bool:
        """See `Transport.is_closing`."""
        return self.closing.is_set()

    async def dial(self, url: str) -> Link:
        """See `Transport.dial`."""
        socket: ClientConnection | None = None
        try:
            options = connect_options(self._api_key, self._timeout_s)
            socket = await connect_websocket(self._servers.address(url), **options)
            await socket.send(hello())
            return Link(socket, greeting(await asyncio.wait_for(socket.recv(), self._timeout_s)))
        except BaseException as error:
            if socket is not None:
                await socket.close()
            lost = dial_error(url, error, self._timeout_s)
            if lost is None:
                raise
            raise lost from error

    async def receive(self, link: Link) -> str | bytes:
        """See `Transport.receive`."""
        return await link.websocket.recv()  # type: ignore[no-any-return]

    async def close(self, link: Link) -> None:
        """See `Transport.close`."""
        await link.websocket.close()

    async def pause(self, seconds: float) -> None:
        """See `Transport.pause`."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.closing.wait(), seconds)

    def flush(self, session: ClientSession) -> None:
        """See `Transport.flush`."""
        self._has_output.set()

    def later(self, seconds: float, act: Callable[[], None]) -> asyncio.TimerHandle:
        """See `Transport.later`."""
        return asyncio.get_running_loop().call_later(seconds, act)

    async def write(self, session: ClientSession) -> None:
        """Send the output of the protocol, in order."""
        while True:
            await self._has_output.wait()
            self._has_output.clear()
            link = session.link
            assert link is not None
            with contextlib.suppress(ConnectionClosed):
                for data in session.protocol.take_output():
                    if session.link is not link:  # the new connection begins with what it needs to know
                        break
                    await link.websocket.send(data)


class AsyncRemoteRuntime:
    """A connection to a server. Made by `connect_async`; an async context manager, which connects and closes.

    Attributes:
        models, limits: the server's description of itself, once connected.
        cache: the prefix cache of the server, for this client's namespace.
    """

    def __init__(
        self, url: str | Sequence[str], *, api_key: str | None, timeout_s: float, resume_s: float | None
    ) -> None:
        self._servers = ServerAddresses(url)
        self.models: tuple[dict[str, Any], ...] = ()
        self.limits: dict[str, Any] = {}
        self._timeout_s = timeout_s
        cache_requests = CacheRequests(self.url, api_key, timeout_s)
        self.cache = AsyncRemoteCache(cache_requests)
        self._transport = _LoopTransport(self._servers, api_key, timeout_s)
        self._session = ClientSession(
            self._servers, cache_requests, self._transport, server_resume_s(resume_s), contextlib.nullcontext()
        )
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def url(self) -> str:
        """The URL of the server that is used."""
        return self._servers.url

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Connect.

        Raises:
            ConnectionLostError: the server is unreachable, refused the connection, or did not answer in time.
        """
        await self._session.open()
        self.models, self.limits = self._session.protocol.models, self._session.protocol.limits
        self._tasks = [
            asyncio.create_task(self._session.read()),
            asyncio.create_task(self._transport.write(self._session)),
        ]

    async def submit(
        self, graph: RequestGraph, listener: Listener, options: RunOptions = DEFAULT_OPTIONS
    ) -> RemoteGraphRun:
        """Run a graph on the server; see `rtlang.contract.service.target.Target`. The listener is called on the loop.

        Methods of the run do not wait: a refused `extend` ends the graph with GraphFailed.

        Raises:
            GraphError: the graph is malformed or too large for the server. OverloadError: the server is full or draining.
            ConnectionLostError: the connection is lost, or the server did not answer within the timeout.
        """
        graph.validate()
        protocol = self._connected()
        loop = asyncio.get_running_loop()
        run = protocol.submit(self, graph, listener, lambda: _FutureAnswer(loop), options)
        self._flush()
        answer = run.opening
        assert isinstance(answer, _FutureAnswer)
        try:
            await self._answered(answer)
        except BaseException:
            protocol.cancel(run)
            protocol.finish(run)
            self._flush()
            raise
        if answer.error is not None:
            raise answer.error
        return run

    async def stream(
        self, graph: RequestGraph, *, functions: Mapping[str, HostFunction] | None = None, **options: Any
    ) -> AsyncIterator[Event]:
        """Run a graph and yield its events, the final one included. Leaving the loop cancels the graph.

        Args:
            functions: the functions of host calls by name, each called with a tuple of plain values in a thread.
            options: the fields of `RunOptions`, without `credit`, which follows the reader.
        Raises:
            As `submit`; the error of a graph that ended early comes as GraphFailed.
        """
        events: deque[Event] = deque()
        arrived = asyncio.Event()
        loop = asyncio.get_running_loop()

        def listen(event: Event) -> None:
            events.append(event)
            arrived.set()

        credit = WINDOW if Ability.CREDIT in self._connected().abilities else None
        run = await self.submit(graph, listen, RunOptions(credit=credit, **options))
        is_over, num_read = False, 0
        try:
            while not is_over:
                while not events:
                    arrived.clear()
                    await arrived.wait()
                event = events.popleft()
                if isinstance(event, TextDelta):
                    num_read += len(event.token_ids)
                    if 2 * num_read >= WINDOW:
                        run.grant(num_read)
                        num_read = 0
                elif isinstance(event, CallRequested):
                    function = (functions or {}).get(event.function)
                    answer_call(event, function, lambda: _ThreadSafeRun(loop, run))
                is_over = isinstance(event, (GraphFinished, GraphFailed))
                yield event
        finally:
            if not is_over:
                run.cancel()

    async def generate(
        self,
        prompt: Prompt | None = None,
        *,
        token_ids: Iterable[int] | None = None,
        params: SamplingParams | None = None,
        constraint: Constraint | None = None,
        deadline_s: float | None = None,
        seed: int | None = None,
    ) -> NodeFinished:
        """Continue a prompt or tokens, or answer chat messages with role and content. For its pieces, `stream` a `generation_graph`.

        Raises:
            RtlangError: as `submit` and `generation_graph`, or the error of the generation.
        """
        graph = generation_graph(prompt, params or SamplingParams(), constraint, token_ids=token_ids)
        found: NodeFinished | None = None
        async with contextlib.aclosing(self.stream(graph, deadline_s=deadline_s, seed=seed)) as events:  # type: ignore[type-var]
            async for event in events:
                match event:
                    case NodeFinished():
                        found = event
                    case NodeFailed() | GraphFailed():
                        raise event.error
        assert found is not None
        return found

    async def close(self) -> None:
        """Close the connection; running graphs end with GraphFailed(AbortedError). Idempotent."""
        if self._session.link is None:
            return
        if not self._transport.is_closing:
            self._transport.closing.set()
            self._session.act(ClientProtocol.bye)
        reader, writer = self._tasks
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(reader), CLOSE_TIMEOUT_S)  # the server answers bye by closing
        for task in (reader, writer):
            task.cancel()
        await asyncio.gather(reader, writer, return_exceptions=True)
        await self._transport.close(self._session.link)

    # Called by RemoteGraphRun

    def extend(self, run: RemoteGraphRun, nodes: Sequence[Node], known: Known, continue_from: ContinueFrom) -> None:
        """Add `nodes` to `run`."""
        self._connected().extend(run, nodes, lambda: Answer(is_awaited=False), known, continue_from)
        self._flush()

    def close_graph(self, run: RemoteGraphRun) -> None:
        """Close `run`."""
        self._session.act(lambda protocol: protocol.close_graph(run))

    def cancel(self, run: RemoteGraphRun) -> None:
        """Cancel `run`."""
        self._session.act(lambda protocol: protocol.cancel(run))

    def grant(self, run: RemoteGraphRun, num_tokens: int) -> None:
        """Grant credit to `run`."""
        self._session.act(lambda protocol: protocol.grant(run, num_tokens))

    def answer_call(self, run: RemoteGraphRun, node_id: int, answer: Mapping[str, Any]) -> None:
        """Send the answer to a host call of `run`."""
        self._session.act(lambda protocol: protocol.answer_call(run, node_id, answer))

    # Private

    def _connected(self) -> ClientProtocol:
        if self._session.lost is not None:
            raise ConnectionLostError(str(self._session.lost))
        if not self._session.is_open or self._transport.is_closing:
            raise ConnectionLostError(f"{self.url}: not connected")
        return self._session.protocol

    async def _answered(self, answer: _FutureAnswer) -> None:
        while True:
            done, _ = await asyncio.wait((answer.done,), timeout=self._timeout_s)
            if done:
                return
            if self._session.backoff.is_over.is_set():  # not reconnecting
                raise ConnectionLostError(f"{self.url}: no answer within {self._timeout_s:g} s")

    def _flush(self) -> None:
        self._transport.flush(self._session)


class _ThreadSafeRun:
    """Answers host calls from the threads of their functions."""

    def __init__(self, loop: asyncio.AbstractEventLoop, run: RemoteGraphRun) -> None:
        self._loop, self._run = loop, run

    def resolve(self, node_id: int, value: Any) -> None:
        """See `GraphRun.resolve`."""
        self._loop.call_soon_threadsafe(self._run.resolve, node_id, value)

    def reject(self, node_id: int, code: str, message: str, facts: Mapping[str, Any] | None = None) -> None:
        """See `GraphRun.reject`."""
        self._loop.call_soon_threadsafe(self._run.reject, node_id, code, message, facts)


def connect_async(
    url: str | Sequence[str], *, api_key: str | None = None, timeout_s: float = 10.0, resume_s: float | None = None
) -> AsyncRemoteRuntime:
    """A connection to a server for asyncio, opened by `async with`. The arguments are those of `connect`.

    Raises:
        ConfigError: `url` or `resume_s` is invalid.
    """
    return AsyncRemoteRuntime(url, api_key=api_key, timeout_s=timeout_s, resume_s=resume_s)
