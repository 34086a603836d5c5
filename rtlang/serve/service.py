"""State shared by all connections of a server: target, limits, metrics and graceful shutdown."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Protocol

from rtlang.contract.config import ServeConfig
from rtlang.contract.params import MAX_CREDIT
from rtlang.contract.request_graph import RequestGraph
from rtlang.contract.runs.principal import Principal
from rtlang.contract.runs.run_options import Ability, RunOptions, abilities_of
from rtlang.contract.service.metrics import Metrics
from rtlang.contract.service.target import GraphRun, Listener, Target
from rtlang.protocol.messages import DEFAULT_CREDIT, CloseCode
from rtlang.serve.connection import ServerInfo
from rtlang.serve.event_bridge import EventBridge
from rtlang.serve.network.key_table import KeyTable
from rtlang.serve.network.socket_counts import PrincipalConnections
from rtlang.serve.openai.chat import ChatFormat
from rtlang.serve.resumable import ResumeRegistry, cancel

_INLINE_NODES = 400  # of a graph that is submitted on the event loop: 1 ms
_UNLIMITED = MAX_CREDIT // 2  # a client without a limit gives `MAX_CREDIT`, less what it has received elsewhere


def _cancel_unread(submitting: asyncio.Future[GraphRun]) -> None:
    if not submitting.cancelled() and submitting.exception() is None:
        cancel(submitting.result())


class ServiceClient(Protocol):
    """A reader of graphs, as the service sees it: a WebSocket connection or the response to an HTTP request."""

    @property
    def num_running(self) -> int:
        """Number of graphs that have not ended."""

    @property
    def principal(self) -> Principal | None:
        """The principal of the client; None before it is known."""

    def drain(self, deadline_s: float) -> None:
        """Tell the client that the server shuts down in `deadline_s` seconds."""

    def end(self, code: int, reason: str) -> None:
        """Close the connection with a close frame."""


class ServiceSocket(ServiceClient, Protocol):
    """A WebSocket connection, as the service sees it."""

    def tell_engine(self, state: str) -> None:
        """Tell the client the new state of the engine."""


class StreamService:
    """State shared by all connections of a server. Owned by the server's event loop.

    Args:
        target: runs the graphs.
        config: limits and access control.
        server_info: sent in `welcome`.
        metrics: receives connection counts.
        loop: the event loop that owns this object.
    """

    def __init__(
        self,
        target: Target,
        config: ServeConfig,
        server_info: ServerInfo,
        metrics: Metrics,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.abilities = abilities_of(target)
        self.target, self.config, self.server_info, self.metrics, self.loop = target, config, server_info, metrics, loop
        self.event_bridge = EventBridge(loop)
        self.resumable_streams = ResumeRegistry(
            loop, server_info.epoch, config.resume_buffer_bytes, metrics, config.max_detached
        )
        self.keys = KeyTable(config)
        self.connections = PrincipalConnections(config)
        self.sockets: set[ServiceSocket] = set()
        self.http_streams: set[ServiceClient] = set()  # graphs of HTTP requests
        self.chat_format: ChatFormat | None = (
            None  # asked of the target at the first chat: it may have to load the model
        )
        self.numbers = count(1)
        self.is_draining = False
        self.idle = asyncio.Event()
        watch = getattr(target, "watch", None)
        if watch is not None:
            watch(self._note_state)

    def accepted(self, options: RunOptions) -> RunOptions:
        """The options of a client's run, with the credit with which a run begins if the client gives none.

        Raises:
            GraphError: the target lacks an ability that an option needs; names the option.
        """
        has_credit = Ability.CREDIT in self.abilities
        if has_credit and options.credit is None:
            options = replace(options, credit=DEFAULT_CREDIT)
        if not has_credit and options.credit is not None and options.credit > _UNLIMITED:
            options = replace(options, credit=None)
        options.check_abilities(self.abilities, "this server")
        return options

    async def submit(self, graph: RequestGraph, listener: Listener, options: RunOptions) -> GraphRun:
        """`Target.submit`; for a large graph on a thread, since it takes milliseconds. A graph that nobody waits for any more is cancelled.

        Raises:
            RtlangError: the target refuses the graph, or lacks an ability that an option needs.
        """
        options.check_abilities(self.abilities, "this server")
        call = partial(self.target.submit, graph, listener, options=options)
        if len(graph.nodes) <= _INLINE_NODES:
            return call()
        submitting = self.loop.run_in_executor(None, call)
        try:
            return await asyncio.shield(submitting)
        except asyncio.CancelledError:
            submitting.add_done_callback(_cancel_unread)
            raise

    def _note_state(self, state: str) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the server has stopped
            self.loop.call_soon_threadsafe(self._tell_state, str(state))

    def _tell_state(self, state: str) -> None:
        """Tell every client the new state of the engine."""
        for socket in self.sockets:
            socket.tell_engine(state)

    def reload_keys(self, *, only_if_changed: bool = True) -> None:
        """Read the keys again, and close the connections whose key was removed, with their graphs."""
        if not self.keys.reload(only_if_changed=only_if_changed):
            return
        self.resumable_streams.end_streams(lambda principal: self.keys.current(principal) is None)
        for socket in (*self.sockets, *self.http_streams):
            if socket.principal is not None and self.keys.current(socket.principal) is None:
                socket.end(CloseCode.KEY, "the API key was removed")

    def drain(self, deadline_s: float) -> None:
        """Stop accepting work and tell every client that the server shuts down in `deadline_s` seconds."""
        self.is_draining = True
        self.resumable_streams.close()  # no client can reconnect any more
        for socket in (*self.sockets, *self.http_streams):
            socket.drain(deadline_s)
        self.check_idle()

    def check_idle(self) -> None:
        """Set `idle` if no graph is running, clear it otherwise."""
        if not any(socket.num_running for socket in (*self.sockets, *self.http_streams)):
            self.idle.set()
        else:
            self.idle.clear()

    def close_all(self, code: int, reason: str) -> None:
        """Close every connection; running graphs are cancelled, including resumable ones."""
        self.resumable_streams.close()
        for socket in (*self.sockets, *self.http_streams):
            socket.end(code, reason)
