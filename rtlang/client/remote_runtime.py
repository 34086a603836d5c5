"""A runtime on a server, used through the Target interface.

One socket carries all graphs. Each graph is a stream of `rtlang.v1` whose id is the local graph id; a reader thread decodes messages
into the events of `rtlang.contract.events` and calls the listeners. `submit` and `extend` wait for the server's answer, so a refusal is
raised by the call that caused it. If the connection breaks, every running graph ends with GraphFailed(ConnectionLostError); if the
server closed it because a listener blocked the reader, with GraphFailed(SlowConsumerError). With `resume_s`, the reader reconnects first,
to the same server or to another one, and every graph continues where it was.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection

from rtlang.client.address import CLOSE_TIMEOUT_S, Attempts, ServerAddresses, may_connect_again
from rtlang.client.client_protocol import ClientProtocol, Notices
from rtlang.client.reconnect_backoff import ReconnectBackoff
from rtlang.client.remote_cache import CacheRequests, RemoteCache
from rtlang.client.remote_run import Answer, RemoteGraphRun
from rtlang.contract.errors import (
    AbortedError,
    ConnectionLostError,
    ProtocolError,
    RtlangError,
    SlowConsumerError,
)
from rtlang.contract.generation import Generation, Prompt, generation_graph
from rtlang.contract.graph import Node, RequestGraph
from rtlang.contract.known import ContinueFrom, Known
from rtlang.contract.params import Constraint, SamplingParams
from rtlang.contract.pictures.page import table_fragment
from rtlang.contract.run_options import DEFAULT_OPTIONS, Ability, RunOptions
from rtlang.contract.target import Listener
from rtlang.protocol.event_codec import describe_close, read_messages
from rtlang.protocol.messages import CloseCode

logger = logging.getLogger(__name__)


class ServerConnection(NamedTuple):
    """An open connection: the socket after the handshake, the stack that closes it, and the server's welcome."""

    websocket: ClientConnection
    exits: contextlib.ExitStack
    welcome: Mapping[str, Any]


class PendingAck(Answer):
    """An answer that a thread can wait for: `done` is set with it. The reader thread itself must not wait."""

    def __init__(self, is_awaited: bool) -> None:
        super().__init__(is_awaited)
        self.done = threading.Event()

    def wake(self) -> None:
        """See `Answer.wake`."""
        self.done.set()


class RemoteRuntime:
    """A connection to a server that implements Target. Safe to use from any thread; created by `connect`.

    Attributes:
        cache: the prefix cache of the server, for this client's namespace.
    """

    def __init__(
        self,
        servers: ServerAddresses,
        dial: Callable[[str], ServerConnection],
        timeout_s: float,
        resume_s: float | None,
        cache_requests: CacheRequests | None = None,
    ) -> None:
        """Connect.

        Args:
            dial: opens a connection to the server at a URL.
            resume_s: how long to reconnect after a connection breaks, in seconds; None disables it.
            cache_requests: the requests of `cache`.
        Raises:
            ConnectionLostError: raised by `dial` for every address.
        """
        self._servers, self._dial = servers, dial
        self._cache_requests = cache_requests or CacheRequests(servers.url, None, timeout_s)
        self.cache = RemoteCache(self._cache_requests)
        self._resume_s, self._backoff = resume_s, ReconnectBackoff(resume_s or 0.0)
        attempts = Attempts()
        connection = self._dialled(servers.in_turn(), attempts, lambda welcome: None)
        if connection is None:
            raise attempts.error()
        self._server_connection = connection
        self._protocol = ClientProtocol(connection.welcome, resume_s)
        self.models, self.limits = self._protocol.models, self._protocol.limits
        self.tool_format: str | None = next((each.get("tool_format") for each in self.models), None)
        self._timeout_s, self._pid = timeout_s, os.getpid()
        self._lock = threading.Lock()  # guards everything below and the order of messages
        self._is_closing = threading.Event()
        self._lost: RtlangError | None = None
        self._retry: threading.Timer | None = None
        self._reader = threading.Thread(target=self._read, name="rtlang-client", daemon=True)

    @property
    def url(self) -> str:
        """The URL of the server that is used."""
        return self._servers.url

    @property
    def abilities(self) -> frozenset[Ability]:
        """See `Target.abilities`: what the first server announced."""
        return self._protocol.abilities

    @property
    def model_identity(self) -> str:
        """See `Target.abilities`.

        Raises:
            AttributeError: the server does not say it, or takes no results of earlier runs.
        """
        found = self._protocol.model_identity
        if found is None or Ability.KNOWN not in self.abilities:
            raise AttributeError("the server does not say the identity of its model", name="model_identity", obj=self)
        return found

    def start(self) -> None:  # `connect` calls it once
        """Start the reader thread."""
        self._reader.start()

    def __repr__(self) -> str:
        return f"<RemoteRuntime {self.url}, {self._state}>"

    def _repr_html_(self) -> str:
        """The server and its models for a notebook."""
        rows = [
            (
                "model",
                str(each.get("model", ""))
                + (f", up to {each['max_model_len']} tokens" if "max_model_len" in each else ""),
            )
            for each in self.models
        ]
        return table_fragment(f"Runtime at {self.url}", (), rows, self._state)

    @property
    def _state(self) -> str:
        return "connected" if self.is_alive else "closed" if self._is_closing.is_set() else "connection lost"

    @property
    def is_alive(self) -> bool:
        """See `Target.is_alive`."""
        return not self._is_closing.is_set() and self._lost is None and not self._is_forked

    @property
    def _is_forked(self) -> bool:
        """Whether this process was forked after connecting: the parent owns the socket, and no reader runs here."""
        return self._pid != os.getpid()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def submit(self, graph: RequestGraph, listener: Listener, options: RunOptions = DEFAULT_OPTIONS) -> RemoteGraphRun:
        """Run a graph on the server; see `rtlang.contract.target.Target`. Waits until the server has accepted it.

        Called from a listener, it does not wait: there a refusal ends the graph with GraphFailed instead.

        Raises:
            GraphError: the graph is malformed or too large for the server. OverloadError: the server is full or draining.
            ConnectionLostError: the connection is lost, or the server did not answer within the timeout.
        """
        graph.validate()
        with self._lock:
            self._check_connected()
            run = self._protocol.submit(self, graph, listener, self._new_answer, options)
            self._flush()
        self._await(run.opening, run)
        return run

    def extend(self, run: RemoteGraphRun, nodes: Sequence[Node], known: Known, continue_from: ContinueFrom) -> None:
        """Add `nodes` to `run`; called by `RemoteGraphRun.extend`."""
        with self._lock:
            self._check_connected()
            extensions = self._protocol.extend(run, nodes, self._new_answer, known, continue_from)
            self._flush()
        try:
            for extension in extensions:
                self._await(extension.answer, run)
        except RtlangError:
            with self._lock:
                self._protocol.take_back(run, nodes)
            raise

    def close_graph(self, run: RemoteGraphRun) -> None:
        """Close `run`; called by `RemoteGraphRun.close`."""
        self._act(lambda: self._protocol.close_graph(run))

    def cancel(self, run: RemoteGraphRun) -> None:
        """Cancel `run`; called by `RemoteGraphRun.cancel`."""
        self._act(lambda: self._protocol.cancel(run))

    def grant(self, run: RemoteGraphRun, num_tokens: int) -> None:
        """Grant credit to `run`; called by `RemoteGraphRun.grant`."""
        self._act(lambda: self._protocol.grant(run, num_tokens))

    def answer_call(self, run: RemoteGraphRun, node_id: int, answer: Mapping[str, Any]) -> None:
        """Send the answer to a host call of `run`; called by its `resolve` and `reject`. Answers of ended nodes are ignored."""
        self._act(lambda: self._protocol.answer_call(run, node_id, answer))

    def generate(
        self,
        prompt: Prompt | None = None,
        *,
        token_ids: Iterable[int] | None = None,
        params: SamplingParams | None = None,
        constraint: Constraint | None = None,
        listener: Listener | None = None,
        priority: int = 0,
        deadline_s: float | None = None,
        seed: int | None = None,
    ) -> Generation:
        """Continue a prompt, tokens, or chat messages; see `Runtime.generate`.

        Raises:
            As `submit` and `generation_graph`.
        """
        graph = generation_graph(prompt, params or SamplingParams(), constraint, token_ids=token_ids)
        return Generation.start(self, graph, listener, RunOptions(priority=priority, deadline_s=deadline_s, seed=seed))

    def close(self) -> None:
        """Close the connection; running graphs end with GraphFailed(AbortedError). Idempotent; does nothing in a forked process."""
        if self._is_forked:
            return
        with self._lock:
            was_closing = self._is_closing.is_set()
            self._is_closing.set()
            if not was_closing and self._lost is None:
                self._protocol.bye()
                self._flush()
        if threading.current_thread() is not self._reader:
            self._reader.join(CLOSE_TIMEOUT_S)  # the server answers bye by closing
            self._server_connection.exits.close()
            if not self._backoff.is_over.is_set():  # the reader may be waiting for an unresponsive server
                self._disconnect(f"{self.url}: closed", is_slow=False)
                return
            self._reader.join()

    # Writing. All of it under the lock.

    def _check_connected(self) -> None:
        if self._is_forked:
            raise ConnectionLostError(
                f"{self.url}: the connection belongs to pid {self._pid}, from which this process was forked; "
                "call connect again in this process"
            )
        if self._is_closing.is_set():
            raise ConnectionLostError(f"{self.url}: the connection was closed by this client")
        if self._lost is not None:
            raise ConnectionLostError(str(self._lost))

    def _act(self, act: Callable[[], None]) -> None:
        with self._lock:
            if self._lost is None:
                act()
                self._flush()

    def _flush(self) -> None:
        self._send(*self._protocol.take_output())

    def _send(self, *packed: bytes) -> None:
        if self._is_forked:
            return
        # If the connection is broken, the reader fails all graphs or sends this again; nothing to do here.
        with contextlib.suppress(ConnectionClosed, OSError):
            for data in packed:
                self._server_connection.websocket.send(data)

    def _new_answer(self) -> PendingAck:
        return PendingAck(threading.current_thread() is not self._reader)

    def _await(self, answer: Answer, run: RemoteGraphRun) -> None:
        """Wait for an answer; call without holding the lock."""
        if not answer.is_awaited or not isinstance(answer, PendingAck):
            return
        while not answer.done.wait(self._timeout_s):
            if not self._backoff.is_over.is_set():  # reconnecting; the answer follows
                continue
            run.cancel()
            with self._lock:
                self._protocol.finish(run)
            raise ConnectionLostError(f"{self.url}: no answer within {self._timeout_s:g} s")
        if answer.error is not None:
            raise answer.error

    # Reading. All of it on the reader thread.

    def _read(self) -> None:
        reason, is_slow = "the connection broke", False
        try:
            while True:
                try:
                    is_draining = False
                    for message in read_messages(self._server_connection.websocket.recv()):
                        if message.get("t") in ("delta", "event", "end"):
                            self._backoff.end()
                        is_draining = is_draining or message.get("t") == "drain"
                        with self._lock:
                            notices = self._protocol.take(message)
                            self._flush()
                            self._plan_retry()
                        _notify(notices)
                    if is_draining:
                        self._leave()
                except ConnectionClosed as error:
                    reason = describe_close(error)
                    is_slow = error.rcvd is not None and error.rcvd.code == CloseCode.SLOW
                    if not may_connect_again(error.rcvd):
                        return
                    failed = self._connect_again()
                    if failed is not None:
                        reason = f"{reason}; {failed}" if failed else reason
                        return
                    reason, is_slow = "the connection broke", False
        except ProtocolError as error:
            reason = f"protocol violation by the server: {error.message}"
        except Exception:
            # Whatever fails here, every graph must get its final event.
            logger.exception("the reader of %s failed", self.url)
        finally:
            self._disconnect(f"{self.url}: {reason}", is_slow)
            self._server_connection.exits.close()

    def _connect_again(self) -> str | None:
        """Replace a broken connection within `resume_s`. Returns None if that succeeded, else why it failed, as far as that is known."""
        reason = ""
        while self._resume_s is not None:
            pause_s = self._backoff.next_pause()
            if pause_s is None or self._is_closing.wait(pause_s):
                break
            attempts = Attempts()
            connection = self._dialled(self._servers.in_turn(), attempts, self._protocol.other_model)
            if connection is not None:
                self._use(connection)
                return None
            reason = attempts.error().message
            logger.info("reconnecting failed: %s", reason)
            if attempts.are_all_useless:
                break
        return reason

    def _leave(self) -> None:
        """Go on at another server, because this one is going to end; stay if there is none."""
        if self._resume_s is not None and not self._is_closing.is_set():
            others = self._servers.in_turn(others_only=True)
            connection = self._dialled(others, Attempts(), self._protocol.other_model)
            if connection is not None:
                self._use(connection)

    def _dialled(
        self, urls: Iterable[str], attempts: Attempts, other_model: Callable[[Mapping[str, Any]], str | None]
    ) -> ServerConnection | None:
        """A connection to the first of these servers that answers and serves the model; None if there is none."""
        for url in urls:
            try:
                connection = self._dial(url)
            except ConnectionLostError as error:
                attempts.note(error)
                continue
            reason = other_model(connection.welcome)
            if reason is None:
                self._servers.url = url
                self._cache_requests.move_to(url)
                return connection
            attempts.note_useless(url, reason)
            connection.exits.close()
        return None

    def _use(self, connection: ServerConnection) -> None:
        """Continue all graphs on this connection, in place of the present one."""
        with self._lock:
            before, self._server_connection = self._server_connection, connection
            if not self._protocol.runs:
                self._backoff.end()
            notices = self._protocol.reconnected(connection.welcome)
            if self._is_closing.is_set():
                self._protocol.bye()
            self._flush()
            self._plan_retry()
        before.exits.close()
        _notify(notices)

    def _plan_retry(self) -> None:
        """Set the timer for graphs that a busy server refused to go on with. Under the lock."""
        pause_s = self._protocol.retry_pause()
        if pause_s is not None and self._retry is None:
            self._retry = threading.Timer(pause_s, self._open_again)
            self._retry.daemon = True
            self._retry.start()

    def _open_again(self) -> None:
        with self._lock:
            self._retry = None
            notices = self._protocol.retry() if self._lost is None else []
            self._flush()
            self._plan_retry()
        _notify(notices)

    def _disconnect(self, reason: str, is_slow: bool) -> None:
        lost = ConnectionLostError(reason)
        error: RtlangError = SlowConsumerError(reason) if is_slow else lost
        with self._lock:
            self._lost = lost
            if self._is_closing.is_set():
                error = AbortedError("the connection was closed by this client")
            if self._retry is not None:
                self._retry.cancel()
            notices = self._protocol.lose(lost, error)
            self._protocol.take_output()
        _notify(notices)


def _notify(notices: Notices) -> None:
    for run, event in notices:
        run.notify(event)
