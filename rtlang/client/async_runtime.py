"""A connection to a server for asyncio: graphs and generations as coroutines and async iterators.

    async with rt.connect_async("ws://127.0.0.1:8420") as remote:
        async for event in remote.stream(graph):
            ...

The protocol is `ClientProtocol`, as for `rt.connect`; this shell has one task that reads the socket. A stream is at most `WINDOW` tokens
ahead of its reader, so a slow reader slows its own stream only. Everything runs on the loop that opened the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as connect_websocket
from websockets.exceptions import ConnectionClosed

from rtlang.client.address import (
    CLOSE_TIMEOUT_S,
    Attempts,
    ServerAddresses,
    connect_options,
    dial_error,
    greeting,
    hello,
    may_connect_again,
    server_resume_s,
)
from rtlang.client.client_protocol import ClientProtocol, Notices
from rtlang.client.reconnect_backoff import ReconnectBackoff
from rtlang.client.remote_cache import AsyncRemoteCache, CacheRequests
from rtlang.client.remote_run import Answer, RemoteGraphRun
from rtlang.contract.errors import (
    AbortedError,
    ConnectionLostError,
    ProtocolError,
    RtlangError,
    SlowConsumerError,
)
from rtlang.contract.events import CallRequested, Event, GraphFailed, GraphFinished, NodeFailed, NodeFinished, TextDelta
from rtlang.contract.generation import Prompt, generation_graph
from rtlang.contract.graph import Node, RequestGraph
from rtlang.contract.host_calls import HostFunction, answer_call
from rtlang.contract.known import ContinueFrom, Known
from rtlang.contract.params import Constraint, SamplingParams
from rtlang.contract.run_options import DEFAULT_OPTIONS, Ability, RunOptions
from rtlang.contract.target import Listener
from rtlang.protocol.event_codec import describe_close, read_messages
from rtlang.protocol.messages import CloseCode

logger = logging.getLogger(__name__)

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
        self._api_key, self._timeout_s = api_key, timeout_s
        self._cache_requests = CacheRequests(self.url, api_key, timeout_s)
        self.cache = AsyncRemoteCache(self._cache_requests)
        self._resume_s = server_resume_s(resume_s)
        self._backoff = ReconnectBackoff(resume_s or 0.0)
        self._socket: ClientConnection | None = None
        self._protocol: ClientProtocol | None = None
        self._lost: RtlangError | None = None
        self._is_closing = asyncio.Event()
        self._has_output = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._retry: asyncio.TimerHandle | None = None

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
        attempts = Attempts()
        found = await self._dialled(self._servers.in_turn(), attempts)
        if found is None:
            raise attempts.error()
        self._socket, welcome = found
        self._protocol = ClientProtocol(welcome, self._resume_s)
        self.models, self.limits = self._protocol.models, self._protocol.limits
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._write())]

    async def submit(
        self, graph: RequestGraph, listener: Listener, options: RunOptions = DEFAULT_OPTIONS
    ) -> RemoteGraphRun:
        """Run a graph on the server; see `rtlang.contract.target.Target`. The listener is called on the loop.

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
        if self._protocol is None or self._socket is None:
            return
        if not self._is_closing.is_set():
            self._is_closing.set()
            if self._lost is None:
                self._protocol.bye()
                self._flush()
        reader, writer = self._tasks
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(reader), CLOSE_TIMEOUT_S)  # the server answers bye by closing
        for task in (reader, writer):
            task.cancel()
        await asyncio.gather(reader, writer, return_exceptions=True)
        await self._socket.close()

    # Called by RemoteGraphRun

    def extend(self, run: RemoteGraphRun, nodes: Sequence[Node], known: Known, continue_from: ContinueFrom) -> None:
        """Add `nodes` to `run`."""
        self._connected().extend(run, nodes, lambda: Answer(is_awaited=False), known, continue_from)
        self._flush()

    def close_graph(self, run: RemoteGraphRun) -> None:
        """Close `run`."""
        if self._lost is None and self._protocol is not None:
            self._protocol.close_graph(run)
            self._flush()

    def cancel(self, run: RemoteGraphRun) -> None:
        """Cancel `run`."""
        if self._lost is None and self._protocol is not None:
            self._protocol.cancel(run)
            self._flush()

    def grant(self, run: RemoteGraphRun, num_tokens: int) -> None:
        """Grant credit to `run`."""
        if self._lost is None and self._protocol is not None:
            self._protocol.grant(run, num_tokens)
            self._flush()

    def answer_call(self, run: RemoteGraphRun, node_id: int, answer: Mapping[str, Any]) -> None:
        """Send the answer to a host call of `run`."""
        if self._lost is None and self._protocol is not None:
            self._protocol.answer_call(run, node_id, answer)
            self._flush()

    # Private

    def _connected(self) -> ClientProtocol:
        if self._lost is not None:
            raise ConnectionLostError(str(self._lost))
        if self._protocol is None or self._is_closing.is_set():
            raise ConnectionLostError(f"{self.url}: not connected")
        return self._protocol

    async def _answered(self, answer: _FutureAnswer) -> None:
        while True:
            done, _ = await asyncio.wait((answer.done,), timeout=self._timeout_s)
            if done:
                return
            if self._backoff.is_over.is_set():  # not reconnecting
                raise ConnectionLostError(f"{self.url}: no answer within {self._timeout_s:g} s")

    def _flush(self) -> None:
        self._has_output.set()

    async def _dial(self, url: str) -> tuple[ClientConnection, dict[str, Any]]:
        socket: ClientConnection | None = None
        try:
            options = connect_options(self._api_key, self._timeout_s)
            socket = await connect_websocket(self._servers.address(url), **options)
            await socket.send(hello())
            return socket, greeting(await asyncio.wait_for(socket.recv(), self._timeout_s))
        except BaseException as error:
            if socket is not None:
                await socket.close()
            lost = dial_error(url, error, self._timeout_s)
            if lost is None:
                raise
            raise lost from error

    async def _dialled(self, urls: Iterable[str], attempts: Attempts) -> tuple[ClientConnection, dict[str, Any]] | None:
        """A connection to the first of these servers that answers and serves the model, and its welcome; None if there is none."""
        for url in urls:
            try:
                socket, welcome = await self._dial(url)
            except ConnectionLostError as error:
                attempts.note(error)
                continue
            reason = None if self._protocol is None else self._protocol.other_model(welcome)
            if reason is None:
                self._servers.url = url
                self._cache_requests.move_to(url)
                return socket, welcome
            attempts.note_useless(url, reason)
            await socket.close()
        return None

    async def _write(self) -> None:
        """Send the queued messages of the protocol, in order."""
        assert self._protocol is not None
        while True:
            await self._has_output.wait()
            self._has_output.clear()
            socket = self._socket
            assert socket is not None
            # If the connection is broken, the reader fails all graphs or queues this again.
            with contextlib.suppress(ConnectionClosed):
                for data in self._protocol.take_output():
                    await socket.send(data)

    async def _read(self) -> None:
        assert self._protocol is not None
        reason, is_slow = "the connection broke", False
        try:
            while True:
                try:
                    assert self._socket is not None
                    is_draining = False
                    for message in read_messages(await self._socket.recv()):
                        if message.get("t") in ("delta", "event", "end"):
                            self._backoff.end()
                        is_draining = is_draining or message.get("t") == "drain"
                        _notify(self._protocol.take(message))
                        self._flush()
                        self._plan_retry()
                    if is_draining:
                        await self._leave()
                except ConnectionClosed as error:
                    reason = describe_close(error)
                    is_slow = error.rcvd is not None and error.rcvd.code == CloseCode.SLOW
                    if not may_connect_again(error.rcvd):
                        return
                    failed = await self._connect_again()
                    if failed is not None:
                        reason = f"{reason}; {failed}" if failed else reason
                        return
                    reason, is_slow = "the connection broke", False
        except ProtocolError as error:
            reason = f"protocol violation by the server: {error.message}"
        except asyncio.CancelledError:
            reason = "closed"
            raise
        except Exception:
            logger.exception("the reader of %s failed", self.url)
        finally:
            self._lose(f"{self.url}: {reason}", is_slow)

    async def _connect_again(self) -> str | None:
        """Replace a broken connection within `resume_s`. Returns None if that succeeded, else why it failed, as far as that is known."""
        reason = ""
        while self._resume_s is not None:
            pause_s = self._backoff.next_pause()
            if pause_s is None:
                break
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._is_closing.wait(), pause_s)
            if self._is_closing.is_set():
                break
            attempts = Attempts()
            found = await self._dialled(self._servers.in_turn(), attempts)
            if found is not None:
                self._use(*found)
                return None
            reason = attempts.error().message
            logger.info("reconnecting failed: %s", reason)
            if attempts.are_all_useless:
                break
        return reason

    async def _leave(self) -> None:
        """Go on at another server, because this one is going to end; stay if there is none."""
        if self._resume_s is not None and not self._is_closing.is_set():
            before = self._socket
            found = await self._dialled(self._servers.in_turn(others_only=True), Attempts())
            if found is not None and before is not None:
                self._use(*found)
                await before.close()

    def _use(self, socket: ClientConnection, welcome: Mapping[str, Any]) -> None:
        """Continue all graphs on this connection, in place of the present one."""
        assert self._protocol is not None
        self._socket = socket
        if not self._protocol.runs:
            self._backoff.end()
        notices = self._protocol.reconnected(welcome)
        if self._is_closing.is_set():
            self._protocol.bye()
        self._flush()
        self._plan_retry()
        _notify(notices)

    def _plan_retry(self) -> None:
        """Set the timer for graphs that a busy server refused to go on with."""
        assert self._protocol is not None
        pause_s = self._protocol.retry_pause()
        if pause_s is not None and self._retry is None:
            self._retry = asyncio.get_running_loop().call_later(pause_s, self._open_again)

    def _open_again(self) -> None:
        assert self._protocol is not None
        self._retry = None
        if self._lost is None:
            _notify(self._protocol.retry())
            self._flush()
            self._plan_retry()

    def _lose(self, reason: str, is_slow: bool) -> None:
        assert self._protocol is not None
        lost = self._lost = ConnectionLostError(reason)
        error: RtlangError = SlowConsumerError(reason) if is_slow else lost
        if self._is_closing.is_set():
            error = AbortedError("the connection was closed by this client")
        _notify(self._protocol.lose(lost, error))


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


def _notify(notices: Notices) -> None:
    for run, event in notices:
        run.notify(event)


def connect_async(
    url: str | Sequence[str], *, api_key: str | None = None, timeout_s: float = 10.0, resume_s: float | None = None
) -> AsyncRemoteRuntime:
    """A connection to a server for asyncio, opened by `async with`. The arguments are those of `connect`.

    Raises:
        ConfigError: `url` or `resume_s` is invalid.
    """
    return AsyncRemoteRuntime(url, api_key=api_key, timeout_s=timeout_s, resume_s=resume_s)
