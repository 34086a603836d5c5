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
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self

from websockets.exceptions import ConnectionClosed

from rtlang.client.remote_run import (
    PendingAck,
    PendingExtend,
    ReconnectBackoff,
    RemoteGraphRun,
    Reopening,
    ServerConnection,
    in_batches,
)
from rtlang.contract.budget import Budget
from rtlang.contract.errors import (
    AbortedError,
    ConnectionLostError,
    GraphError,
    ProtocolError,
    RtlangError,
    SlowConsumerError,
)
from rtlang.contract.events import CallRequested, Event, GraphFailed, GraphFinished, NodeFailed, NodeFinished, TextDelta
from rtlang.contract.graph import Node, RequestGraph
from rtlang.contract.params import MAX_CREDIT, Constraint, SamplingParams, seconds_left
from rtlang.contract.pictures.page import table_fragment
from rtlang.contract.principal import Principal
from rtlang.contract.target import Listener
from rtlang.protocol.event_codec import check_offset, describe_close, error_from_wire, event_from_wire, read_messages
from rtlang.protocol.field_checks import check_int, check_ints, check_str
from rtlang.protocol.generation import generation_graph
from rtlang.protocol.messages import MAX_ID, CloseCode, stream_of
from rtlang.protocol.serialization import Encoding

logger = logging.getLogger(__name__)

CLOSE_TIMEOUT_S = 2.0


class RemoteRuntime:
    """A connection to a server that implements Target. Safe to use from any thread; created by `connect`."""

    def __init__(
        self, url: str, dial: Callable[[], ServerConnection], timeout_s: float, resume_s: float | None
    ) -> None:
        """Connect.

        Args:
            dial: opens a connection.
            resume_s: how long to reconnect after a connection breaks, in seconds; None disables it.
        Raises:
            ConnectionLostError: raised by `dial`.
        """
        self.url = url
        self._dial, self._server_connection = dial, dial()
        self._resume_s, self._backoff = resume_s, ReconnectBackoff(resume_s or 0.0)
        welcome = self._server_connection.welcome
        self.models: tuple[dict[str, Any], ...] = tuple(welcome.get("models") or ())
        self.tool_format: str | None = next((each.get("tool_format") for each in self.models), None)
        self.limits: dict[str, Any] = dict(welcome.get("limits") or {})
        self._timeout_s, self._pid = timeout_s, os.getpid()
        self._lock = threading.Lock()  # guards everything below and the order of messages
        self._runs: dict[int, RemoteGraphRun] = {}
        self._last_id = self._last_request = 0
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
    ) -> RemoteGraphRun:
        """Run a graph on the server; see `rtlang.contract.target.Target`. Waits until the server has accepted it.

        Called from a listener, it does not wait: there a refusal ends the graph with GraphFailed instead.

        Raises:
            GraphError: the graph is malformed or too large for the server. OverloadError: the server is full or draining.
            ConnectionLostError: the connection is lost, or the server did not answer within the timeout.
        """
        del principal  # the server derives it from the key
        graph.validate()
        body: dict[str, Any] = {"inputs": dict(inputs or {}), "priority": priority, "open": is_open}
        if seed is None and self._resume_s is not None:
            seed = secrets.randbits(63)  # so that another server gives the same texts
        if seed is not None:
            body["seed"] = seed
        if budget is not None:
            body["budget"] = budget.to_plain()
        message: dict[str, Any] = {"t": "open", "kind": "program", "body": body, "credit": MAX_CREDIT}
        if self._resume_s is not None:
            message |= {"detach_ms": max(1, round(self._resume_s * 1000)), "idem": secrets.token_hex(16)}
        if deadline_s is not None:
            message["deadline_ms"] = max(1, round(seconds_left(deadline_s) * 1000))
        batches = in_batches(graph.nodes, self.limits.get("max_frame_bytes"))
        with self._lock:
            self._check_connected()
            self._last_id += 1
            run = RemoteGraphRun(self, self._last_id, graph, listener, self._answer())
            run.is_open = is_open
            message["s"] = run.graph_id
            body["graph"] = {"nodes": batches[0], "inputs": list(graph.inputs)}
            if graph.outputs is not None:
                sent = {node["id"] for node in batches[0]}
                body["graph"]["outputs"] = [node_id for node_id in graph.outputs if node_id in sent]
            body["open"] = is_open or len(batches) > 1
            run.opening_message = self._pack(message)
            if self._resume_s is not None:
                run.reopening = Reopening(message, graph.outputs)
            # A graph larger than one frame is sent in batches.
            self._register(run, batches[1:], lambda: PendingAck(is_awaited=False), closes=not is_open)
            self._runs[run.graph_id] = run
            self._send(run.opening_message, *run.unacknowledged())
        self._await(run.opening, run)
        return run

    def extend(self, run: RemoteGraphRun, nodes: Sequence[Node]) -> None:
        """Add `nodes` to `run`; called by `RemoteGraphRun.extend`."""
        with self._lock:
            self._check_connected()
            if run.has_ended or not run.is_open:
                raise GraphError(None, "graph", "the graph has ended" if run.has_ended else "the graph is closed")
            RequestGraph(tuple(nodes), run.inputs).validate(run.known)
            batches = in_batches(nodes, self.limits.get("max_frame_bytes"))
            extensions = self._register(run, batches, self._answer, closes=False)
            if not run.is_attaching:  # otherwise they are sent once the attach is answered
                self._send(*(extension.message for extension in extensions))
            run.known.update({node.node_id: node for node in nodes})
        try:
            for extension in extensions:
                self._await(extension.answer, run)
        except RtlangError:
            with self._lock:
                for node in nodes:
                    run.known.pop(node.node_id, None)
            raise

    def close_graph(self, run: RemoteGraphRun) -> None:
        """Close `run`; called by `RemoteGraphRun.close`."""
        with self._lock:
            if run.is_open and not run.has_ended and self._lost is None:
                run.was_closed = True
                if not run.is_attaching:
                    self._send(self._pack({"t": "close", "s": run.graph_id}))
            run.is_open = False

    def cancel(self, run: RemoteGraphRun) -> None:
        """Cancel `run`; called by `RemoteGraphRun.cancel`."""
        with self._lock:
            if not run.has_ended and self._lost is None:
                run.was_cancelled = True
                if not run.is_attaching:
                    self._send(self._pack({"t": "cancel", "s": run.graph_id}))

    def grant(self, run: RemoteGraphRun, num_tokens: int) -> None:
        """Grant credit to `run`; called by `RemoteGraphRun.grant`."""
        with self._lock:
            if not run.has_ended and self._lost is None and not run.is_attaching:
                self._send(self._pack({"t": "credit", "s": run.graph_id, "n": num_tokens}))

    def answer_call(self, run: RemoteGraphRun, node_id: int, answer: Mapping[str, Any]) -> None:
        """Send the answer to a host call of `run`; called by its `resolve` and `reject`. Answers of ended nodes are ignored."""
        with self._lock:
            if not run.has_ended and self._lost is None:
                packed = self._pack({**answer, "s": run.graph_id, "n": node_id})
                run.call_answers[node_id] = packed
                if not run.is_attaching:
                    self._send(packed)

    def generate(
        self,
        prompt: str | Sequence[Mapping[str, str]],
        *,
        params: SamplingParams | None = None,
        constraint: Constraint | None = None,
        listener: Listener = lambda event: None,
        deadline_s: float | None = None,
    ) -> Future[NodeFinished]:
        """Continue a prompt, or answer chat messages with role and content, in one call.

        Returns:
            A future of the finished node (`asyncio.wrap_future` makes it awaitable). It fails with the error of the node or graph.
        Raises:
            As `submit`.
        """
        future: Future[NodeFinished] = Future()

        def listen(event: Event) -> None:
            if not future.done():
                match event:
                    case NodeFinished():
                        future.set_result(event)
                    case NodeFailed() | GraphFailed():
                        future.set_exception(event.error)
            listener(event)

        graph = generation_graph(prompt, params or SamplingParams(), constraint)
        self.submit(graph, listen, deadline_s=deadline_s)
        return future

    def close(self) -> None:
        """Close the connection; running graphs end with GraphFailed(AbortedError). Idempotent; does nothing in a forked process."""
        if self._is_forked:
            return
        with self._lock:
            was_closing = self._is_closing.is_set()
            self._is_closing.set()
            if not was_closing and self._lost is None:
                self._send(self._pack({"t": "bye"}))
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

    def _pack(self, message: Mapping[str, Any]) -> bytes:
        packed = Encoding.MSGPACK.pack(message)
        limit = self.limits.get("max_frame_bytes")
        if isinstance(limit, int) and len(packed) > limit:
            raise GraphError(None, "graph", f"the message of {len(packed)} bytes exceeds the server's limit of {limit}")
        return packed

    def _register(
        self,
        run: RemoteGraphRun,
        batches: Sequence[list[dict[str, Any]]],
        answer: Callable[[], PendingAck],
        *,
        closes: bool,
    ) -> list[PendingExtend]:
        """Number extends and register them as unanswered; with `closes`, the last one closes the graph."""
        fields = {"t": "extend", "s": run.graph_id}
        extensions = {}
        for request, batch in enumerate(batches, self._last_request + 1):
            is_last = closes and batch is batches[-1]
            message = self._pack({**fields, "nodes": batch, "q": request, "close": is_last})
            extensions[request] = PendingExtend(answer(), message, frozenset(node["id"] for node in batch))
        self._last_request += len(extensions)
        run.extending.update(extensions)
        return list(extensions.values())

    def _send(self, *packed: bytes) -> None:
        if self._is_forked:
            return
        # If the connection is broken, the reader fails all graphs or sends this again; nothing to do here.
        with contextlib.suppress(ConnectionClosed, OSError):
            for data in packed:
                self._server_connection.websocket.send(data)

    def _answer(self) -> PendingAck:
        return PendingAck(threading.current_thread() is not self._reader)

    def _await(self, answer: PendingAck, run: RemoteGraphRun) -> None:
        """Wait for an answer; call without holding the lock."""
        if not answer.is_awaited:
            return
        while not answer.is_resolved.wait(self._timeout_s):
            if not self._backoff.is_over.is_set():  # reconnecting; the answer follows
                continue
            run.cancel()
            self._finish(run)
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
                        self._take(message)
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
                if not self._runs:
                    self._backoff.end()
                epoch, frame_bytes = str(link.welcome.get("epoch", "")), self.limits.get("max_frame_bytes")
                for run in sorted(self._runs.values(), key=lambda run: run.graph_id):
                    self._send(*run.reopen_messages(epoch, frame_bytes))
                if self._is_closing.is_set():
                    self._send(self._pack({"t": "bye"}))
            broken.exits.close()
            return True
        return False

    def _take_attached(self, run: RemoteGraphRun, message: Mapping[str, Any]) -> None:
        last_acknowledged, refused = check_int(message, "last_q", 0, MAX_ID), check_ints(message, "refused")
        with self._lock:
            run.is_attaching = False
            self._send(*run.resolve_extends(last_acknowledged, refused))

    def _take(self, message: dict[str, Any]) -> None:
        kind, stream = message.get("t"), stream_of(message)
        with self._lock:
            run = None if stream is None else self._runs.get(stream)
        if run is None:
            # The stream has ended, or the message concerns the connection: a fatal error is followed by a close frame with the same text.
            logger.debug("%s: %s %s", self.url, kind, message.get("message", ""))
        elif kind in ("delta", "event", "end"):
            run.num_taken += 1
            self._backoff.end()
            event = event_from_wire(message, run.graph_id)
            if isinstance(event, TextDelta):
                check_offset(run.offsets, event, message)
            if isinstance(event, (NodeFinished, NodeFailed)):
                with self._lock:
                    run.call_answers.pop(event.node_id, None)
            if isinstance(event, (GraphFinished, GraphFailed)):
                self._finish(run)
            if event is None:
                pass
            elif run.reopening is None or run.reopening.ledger.take(event):
                run.notify(event)
            elif isinstance(event, CallRequested):  # another server asks again for a call that is answered
                with self._lock:
                    self._send(*(run.call_answers[event.node_id],) * (event.node_id in run.call_answers))
        elif kind == "ack" and "from" in message:
            self._take_attached(run, message)
        elif kind in ("ack", "error"):
            self._take_answer(run, message, error_from_wire(message) if kind == "error" else None)

    def _take_answer(self, run: RemoteGraphRun, message: Mapping[str, Any], error: RtlangError | None) -> None:
        request = message.get("q")
        answer: PendingAck | None
        if isinstance(request, int):
            run.last_acknowledged = max(run.last_acknowledged, request)
            extension = run.extending.pop(request, None)
            answer = None if extension is None else extension.answer
        else:
            answer = None if run.opening.is_resolved.is_set() else run.opening
            if error is None and run.rid is None:
                run.rid, run.epoch, run.opening_message = check_str(message, "rid"), check_str(message, "epoch"), b""
                run.catching_up = []
        if error is not None:
            if answer is run.opening:
                self._finish(run)
            if answer is None or not answer.is_awaited:
                # No caller waits for this answer, and the graph cannot complete without the refused nodes.
                run.cancel()
                self._finish(run)
                run.notify(GraphFailed(run.graph_id, error))
        if answer is not None:
            answer.resolve(error)

    def _finish(self, run: RemoteGraphRun) -> None:
        """Remove a run and resolve its unanswered extends."""
        with self._lock:
            self._runs.pop(run.graph_id, None)
            run.has_ended = True
            extensions, run.extending = run.extending, {}
        for extension in extensions.values():
            extension.answer.resolve(GraphError(None, "graph", "the graph has ended"))

    def _disconnect(self, reason: str, is_slow: bool) -> None:
        lost = ConnectionLostError(reason)
        error: RtlangError = SlowConsumerError(reason) if is_slow else lost
        with self._lock:
            self._lost = lost
            runs = tuple(self._runs.values())
            if self._is_closing.is_set():
                error = AbortedError("the connection was closed by this client")
        for run in runs:
            was_opened = run.opening.is_resolved.is_set() or not run.opening.is_awaited
            run.opening.resolve(lost)
            for extension in tuple(run.extending.values()):
                extension.answer.resolve(lost)
            self._finish(run)
            if was_opened:
                run.notify(GraphFailed(run.graph_id, error))
