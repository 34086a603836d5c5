"""State shared by all connections of a server: target, limits, metrics and graceful shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, Protocol, TypeVar

from starlette.routing import BaseRoute

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.config import ServeConfig
from rtlang.contract.events import Event
from rtlang.contract.params import MAX_CREDIT
from rtlang.contract.request_graph import RequestGraph
from rtlang.contract.runs.principal import Principal
from rtlang.contract.runs.run_options import Ability, RunOptions, abilities_of
from rtlang.contract.service.metrics import Metrics
from rtlang.contract.service.target import GraphRun, Listener, Target
from rtlang.protocol.messages import DEFAULT_CREDIT, CloseCode
from rtlang.serve.batch.file_store import FileStore
from rtlang.serve.connection import ServerInfo
from rtlang.serve.event_bridge import EventBridge
from rtlang.serve.network.key_table import KeyTable
from rtlang.serve.network.socket_counts import PrincipalConnections
from rtlang.serve.openai.chat import ChatFormat
from rtlang.serve.records.request_record import RequestRecords, current_record
from rtlang.serve.responses.mcp_servers import McpServers
from rtlang.serve.responses.state import ResponseState
from rtlang.serve.resumable import ResumeRegistry, cancel
from rtlang.work.fair_executor import FairExecutor, shared_limits
from rtlang.work.fair_queue import owner_of
from rtlang.work.loop_work import INLINE_S, LoopWork
from rtlang.work.prices import VALUE_S, events_price, nodes_price

_T = TypeVar("_T")
_NUM_THREADS = 4  # most of their time they wait for engines in other processes
_UNLIMITED = MAX_CREDIT // 2  # a client without a limit gives `MAX_CREDIT`, less what it has received elsewhere


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

    Attributes:
        work: runs the work of requests, in fair turns between their principals and clients.
        records: of the requests of all doors.
        responses: the state of the Responses API.
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
        model = str(server_info.models[0]["model"]) if server_info.models else None
        self.records = RequestRecords(loop, metrics, writes=config.request_log, model=model)
        account = metrics.principals.server_work
        limits = shared_limits(_NUM_THREADS)
        executor = FairExecutor(_NUM_THREADS, "rtlang-requests", limits, account, clock=time.perf_counter)
        self.work = LoopWork(loop, executor, account)
        self.event_bridge = EventBridge(loop)
        self.resumable_streams = ResumeRegistry(
            loop, server_info.epoch, config.resume_buffer_bytes, metrics, config.max_detached
        )
        self.responses = ResponseState()
        self.mcp_servers = McpServers(config.mcp_servers)
        self.keys = KeyTable(config)
        self.connections = PrincipalConnections(config)
        self.sockets: set[ServiceSocket] = set()
        self.http_streams: set[ServiceClient] = set()  # graphs of HTTP requests
        self.chat_format: ChatFormat | None = (
            None  # asked of the target at the first chat: it may have to load the model
        )
        self.numbers = count(1)
        self.files: FileStore | None = None  # opened at the first use
        self.routes: Sequence[BaseRoute] = ()  # of the application
        self.at_start: list[Callable[[], None]] = []  # called once the server listens
        self.at_end: list[Callable[[], None]] = [self.mcp_servers.close]
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
        record = current_record.get()
        if record is not None:
            options, listener = record.of_run(options, listener)
        made: list[GraphRun] = []
        has_left = False

        def call() -> GraphRun:
            run = self.target.submit(graph, listener, options=options)
            made.append(run)
            if has_left:
                cancel(run)
            return run

        try:
            price = nodes_price(graph.nodes) + (VALUE_S if options.known else 0.0)  # known values are measured
            return await self.run(options.principal, price, call, kind=WorkKind.SUBMIT)
        except asyncio.CancelledError:
            has_left = True
            for run in made:  # it ended before the thread could see that nobody waits
                cancel(run)
            if record is not None and not made:
                record.release()
            raise
        except BaseException:
            if record is not None and not made:
                record.release()
            raise

    async def run(
        self,
        principal: Principal | None,
        price: float,
        fn: Callable[[], _T],
        *,
        kind: WorkKind,
        may_wait: bool = False,
        is_bounded: bool = True,
    ) -> _T:
        """Run work of a principal's client; see `LoopWork.run`."""
        owner = owner_of(principal)
        return await self.work.run(owner, price, fn, kind=kind, may_wait=may_wait, is_bounded=is_bounded)

    async def encode(
        self, principal: Principal | None, events: Iterable[Event], fn: Callable[[], _T], *, more_s: float = 0.0
    ) -> _T:
        """Turn events of an accepted request into text: small ones here, large ones in turns with other work.

        Args:
            more_s: price of text that is written besides the events.
        """
        owner, price = owner_of(principal), events_price(events) + more_s
        if price <= INLINE_S:
            return self.work.run_here(owner, price, fn, kind=WorkKind.REPLY)
        return await self.work.run(owner, price, fn, kind=WorkKind.REPLY, is_bounded=False)

    def add_socket(self, socket: ServiceSocket, connections: set[Any]) -> None:
        """A socket was upgraded. `connections`: uvicorn's, of which it calls `shutdown` only."""
        self.sockets.add(socket)
        connections.add(socket)
        self.metrics.ws_connections.inc()

    def remove_socket(self, socket: ServiceSocket, connections: set[Any]) -> None:
        """A socket was lost. Idempotent."""
        if socket in self.sockets:
            self.sockets.discard(socket)
            self.metrics.ws_connections.dec()
        connections.discard(socket)
        self.check_idle()

    def principal_named(self, name: str) -> Principal | None:
        """The principal of a name, for work that no request asks for now; None if it has no key."""
        if self.keys.is_open:
            found = self.keys.principal_of(None)
            return found if found is not None and found.name == name else None
        return self.keys.current(Principal(name))

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
