"""A runtime on a server, used through the Target interface.

One socket carries all graphs. Each graph is a stream of `rtlang.v1` whose id is the local graph id; a reader thread decodes messages
into the events of `rtlang.contract.events` and calls the listeners. `submit` and `extend` wait for the server's answer, so a refusal is
raised by the call that caused it. If the connection breaks, every running graph ends with GraphFailed(ConnectionLostError); if the
server closed it because a listener blocked the reader, with GraphFailed(SlowConsumerError). With `resume_s`, the reader reconnects first
and every graph continues where it was.
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

from rtlang.client.address import CLOSE_TIMEOUT_S
from rtlang.client.client_protocol import ClientProtocol, Notices
from rtlang.client.reconnect_backoff import ReconnectBackoff
from rtlang.client.remote_cache import CacheRequests, RemoteCache
from rtlang.client.remote_run import Answer, RemoteGraphRun
from rtlang.contract.budget import Budget
from rtlang.contract.errors import (
    AbortedError,
    ConnectionLostError,
    ProtocolError,
    RtlangError,
    SlowConsumerError,
)
from rtlang.contract.generation import Generation, Prompt, generation_graph
from rtlang.contract.graph import Node, RequestGraph
from rtlang.contract.params import Constraint, SamplingParams
from rtlang.contract.pictures.page import table_fragment
from rtlang.contract.principal import Principal
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
        url: str,
        dial: Callable[[], ServerConnection],
        timeout_s: float,
        resume_s: float | None,
        cache: RemoteCache | None = None,
    ) -> None:
        """Connect.

        Args:
            dial: opens a connection.
            resume_s: how long to reconnect after a connection breaks, in seconds; None disables it.
            cache: becomes the attribute of this name.
        Raises:
            ConnectionLostError: raised by `dial`.
        """
        self.url, self.cache = url, cache or RemoteCache(CacheRequests(url, None, timeout_s))
        self._dial, self._server_connection = dial, dial()
        self._resume_s, self._backoff = resume_s, ReconnectBackoff(resume_s or 0.0)
        welcome = self._server_connection.welcome
        self.models: tuple[dict[str, Any], ...] = tuple(welcome.get("models") or ())
        self.tool_format: str | None = next((each.get("tool_format") for each in self.models), None)
        self._protocol = ClientProtocol(welcome, resume_s)
        self.limits = self._protocol.limits
        self._timeout_s, self._pid = timeout_s, os.getpid()
        self._lock = threading.Lock()  # guards everything below and the order of messages
        self._is_closing = threading.Event()
        self._lost: RtlangError | None = None
        self._reader = threading.Thread(target=self._read, name="rtlang-client", daemon=True)

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

    def submit(
        self,
        graph: RequestGraph,
        listener: Listener,
        *,
        inputs: Mapping[str, str] | None = None,
        is_open: bool = False,
        priority: int = 0,
        deadline_s: float | None = None,
        seed: int | None = None,
        budget: Budget | None = None,
        principal: Principal | None = None,
        credit: int | None = None,
        reports_progress: bool = False,
    ) -> RemoteGraphRun:
        """Run a graph on the server; see `rtlang.contract.target.Target`. Waits until the server has accepted it.

        Called from a listener, it does not wait: there a refusal ends the graph with GraphFailed instead.

        Raises:
            GraphError: the graph is malformed or too large for the server. OverloadError: the server is full or draining.
            ConnectionLostError: the connection is lost, or the server did not answer within the timeout.
        """
        del principal  # the server derives it from the key
        graph.validate()
        with self._lock:
            self._check_connected()
            run = self._protocol.submit(
                self,
                graph,
                listener,
                self._new_answer,
                inputs=inputs,
                is_open=is_open,
                priority=priority,
                deadline_s=deadline_s,
                seed=seed,
                budget=budget,
                credit=credit,
                reports_progress=reports_progress,
            )
            self._flush()
        self._await(run.opening, run)
        return run

    def extend(self, run: RemoteGraphRun, nodes: Sequence[Node]) -> None:
        """Add `nodes` to `run`; called by `RemoteGraphRun.extend`."""
        with self._lock:
            self._check_connected()
            extensions = self._protocol.extend(run, nodes, self._new_answer)
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
        return Generation.start(self.submit, graph, listener, priority=priority, deadline_s=deadline_s, seed=seed)

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
                    for message in read_messages(self._server_connection.websocket.recv()):
                        if message.get("t") in ("delta", "event", "end"):
                            self._backoff.end()
                        with self._lock:
                            notices = self._protocol.take(message)
                            self._flush()
                        _notify(notices)
                except ConnectionClosed as error:
                    reason = describe_close(error)
                    is_slow = error.rcvd is not None and error.rcvd.code == CloseCode.SLOW
                    if (error.rcvd is not None and not is_slow) or not self._connect_again():
                        return
                    is_slow = False
        except ProtocolError as error:
            reason = f"protocol violation by the server: {error.message}"
        except Exception:
            # Whatever fails here, every graph must get its final event.
            logger.exception("the reader of %s failed", self.url)
        finally:
            self._disconnect(f"{self.url}: {reason}", is_slow)
            self._server_connection.exits.close()

    def _connect_again(self) -> bool:
        """Replace a broken connection within `resume_s`; returns whether that succeeded."""
        while self._resume_s is not None:
            pause_s = self._backoff.next_pause()
            if pause_s is None or self._is_closing.wait(pause_s):
                return False
            try:
                link = self._dial()
            except ConnectionLostError as error:
                logger.info("%s: reconnecting failed: %s", self.url, error)
                continue
            with self._lock:
                broken, self._server_connection = self._server_connection, link
                if not self._protocol.runs:
                    self._backoff.end()
                self._protocol.reconnected(link.welcome)
                if self._is_closing.is_set():
                    self._protocol.bye()
                self._flush()
            broken.exits.close()
            return True
        return False

    def _disconnect(self, reason: str, is_slow: bool) -> None:
        lost = ConnectionLostError(reason)
        error: RtlangError = SlowConsumerError(reason) if is_slow else lost
        with self._lock:
            self._lost = lost
            if self._is_closing.is_set():
                error = AbortedError("the connection was closed by this client")
            notices = self._protocol.lose(lost, error)
            self._protocol.take_output()
        _notify(notices)


def _notify(notices: Notices) -> None:
    for run, event in notices:
        run.notify(event)
