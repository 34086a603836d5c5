"""A runtime at the far end of a socket, shaped as a Target.

One socket carries all graphs. Each is a stream of `rtlang.v1` whose id is its graph id here; a reader thread turns messages back
into the events of `rtlang.contract.events` and calls the listeners. `submit` and `extend` wait for the server's answer, so that a
refusal is raised where it was caused. If the connection breaks, every running graph gets GraphFailed(ConnectionLostError), once;
if the server closed it because a listener held up the reader, GraphFailed(SlowConsumerError). With `resume_s`, the reader first
connects again, and every graph goes on where it was.
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

from rtlang.client.remote_run import Answer, Extension, Link, Outage, RemoteGraphRun, in_batches
from rtlang.contract.errors import (
    AbortedError,
    ConnectionLostError,
    GraphError,
    ProtocolError,
    RtlangError,
    SlowConsumerError,
)
from rtlang.contract.events import Event, GraphFailed, GraphFinished, NodeFailed, NodeFinished, TextDelta
from rtlang.contract.graph import Node, RequestGraph
from rtlang.contract.params import Constraint, SamplingParams, seconds_left
from rtlang.contract.target import Listener
from rtlang.protocol.event_codec import check_offset, closed_because, error_from_wire, event_from_wire, read_messages
from rtlang.protocol.field_checks import check_int, check_ints, check_str
from rtlang.protocol.generation import generation_graph
from rtlang.protocol.messages import MAX_ID, CloseCode, stream_of
from rtlang.protocol.serialization import Encoding

logger = logging.getLogger(__name__)

CLOSE_TIMEOUT_S = 2.0


class RemoteRuntime:
    """A connection to a server, shaped as a Target. Safe to use from any thread; made by `connect`."""

    def __init__(self, url: str, dial: Callable[[], Link], timeout_s: float, resume_s: float | None) -> None:
        """Connect.

        Args:
            dial: makes a connection.
            resume_s: connect again for so long where one breaks; None not to.
        Raises:
            ConnectionLostError: of `dial`.
        """
        self.url = url
        self._dial, self._link = dial, dial()
        self._resume_s, self._outage = resume_s, Outage(resume_s or 0.0)
        welcome = self._link.welcome
        self.models: tuple[dict[str, Any], ...] = tuple(welcome.get("models") or ())
        self.limits: dict[str, Any] = dict(welcome.get("limits") or {})
        self._timeout_s, self._pid = timeout_s, os.getpid()
        self._lock = threading.Lock()  # of everything below, and of the order of messages
        self._runs: dict[int, RemoteGraphRun] = {}
        self._last_id = self._last_request = 0
        self._is_closing = threading.Event()
        self._lost: RtlangError | None = None
        self._reader = threading.Thread(target=self._read, name="rtlang-client", daemon=True)

    def start(self) -> None:  # `connect` calls it once
        """Begin to read."""
        self._reader.start()

    @property
    def is_alive(self) -> bool:
        """See `Target.is_alive`."""
        return not self._is_closing.is_set() and self._lost is None and not self._is_elsewhere

    @property
    def _is_elsewhere(self) -> bool:
        """This is a fork of the process that connected: the socket is that one's, and nobody reads here."""
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
    ) -> RemoteGraphRun:
        """Run a graph on the server; see `rtlang.contract.target.Target`. Waits until the server has accepted it.

        Called from a listener, it does not wait: there a refusal ends the graph with GraphFailed instead.

        Raises:
            GraphError: malformed, or too large for the server. OverloadError: the server is full, or draining.
            ConnectionLostError: the server is gone, or said nothing within the timeout.
        """
        graph.validate()
        body: dict[str, Any] = {"inputs": dict(inputs or {}), "priority": priority, "open": is_open}
        message: dict[str, Any] = {"t": "open", "kind": "program", "body": body}
        if self._resume_s is not None:
            message |= {"detach_ms": max(1, round(self._resume_s * 1000)), "idem": secrets.token_hex(16)}
        if deadline_s is not None:
            message["deadline_ms"] = max(1, round(seconds_left(deadline_s) * 1000))
        batches = in_batches(graph.nodes, self.limits.get("max_frame_bytes"))
        with self._lock:
            self._check_there()
            self._last_id += 1
            run = RemoteGraphRun(self, self._last_id, graph, listener, self._answer())
            run.is_open = is_open
            message["s"] = run.graph_id
            body["graph"] = {"nodes": batches[0], "inputs": list(graph.inputs)}
            body["open"] = is_open or len(batches) > 1
            run.opening_message = self._pack(message)
            # A graph larger than one frame follows in pieces.
            self._register(run, batches[1:], lambda: Answer(is_awaited=False), closes=not is_open)
            self._runs[run.graph_id] = run
            self._send(run.opening_message, *run.unheard())
        self._await(run.opening, run)
        return run

    def extend(self, run: RemoteGraphRun, nodes: Sequence[Node]) -> None:
        """Add `nodes` to `run`; `RemoteGraphRun.extend` calls it."""
        with self._lock:
            self._check_there()
            if run.has_ended or not run.is_open:
                raise GraphError(None, "graph", "the graph has ended" if run.has_ended else "the graph is closed")
            RequestGraph(tuple(nodes), run.inputs).validate(run.known)
            batches = in_batches(nodes, self.limits.get("max_frame_bytes"))
            extensions = self._register(run, batches, self._answer, closes=False)
            if not run.is_attaching:  # else they are said when the server has answered
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
        """Close `run`; `RemoteGraphRun.close` calls it."""
        with self._lock:
            if run.is_open and not run.has_ended and self._lost is None:
                run.was_closed = True
                if not run.is_attaching:
                    self._send(self._pack({"t": "close", "s": run.graph_id}))
            run.is_open = False

    def cancel(self, run: RemoteGraphRun) -> None:
        """Cancel `run`; `RemoteGraphRun.cancel` calls it."""
        with self._lock:
            if not run.has_ended and self._lost is None:
                run.was_cancelled = True
                if not run.is_attaching:
                    self._send(self._pack({"t": "cancel", "s": run.graph_id}))

    def generate(
        self,
        prompt: str | Sequence[Mapping[str, str]],
        *,
        params: SamplingParams | None = None,
        constraint: Constraint | None = None,
        listener: Listener = lambda event: None,
        deadline_s: float | None = None,
    ) -> Future[NodeFinished]:
        """Continue a prompt, or answer chat messages with role and content.

        Returns:
            A future of the finished node; `asyncio.wrap_future` makes it awaitable. It fails with the error of node or graph.
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
        """End the connection; running graphs get GraphFailed(AbortedError). Idempotent. In a fork of the process it does nothing."""
        if self._is_elsewhere:
            return
        with self._lock:
            was_closing = self._is_closing.is_set()
            self._is_closing.set()
            if not was_closing and self._lost is None:
                self._send(self._pack({"t": "bye"}))
        if threading.current_thread() is not self._reader:
            self._reader.join(CLOSE_TIMEOUT_S)  # the server answers bye by closing
            self._link.exits.close()
            if not self._outage.is_over.is_set():  # the reader may wait for a server that says nothing
                self._lose(f"{self.url}: closed", is_slow=False)
                return
            self._reader.join()

    # Writing. All of it under the lock.

    def _check_there(self) -> None:
        if self._is_elsewhere:
            raise ConnectionLostError(
                f"{self.url}: process {self._pid} connected, of which this is a fork; connect here"
            )
        if self._is_closing.is_set():
            raise ConnectionLostError(f"{self.url}: the connection was closed here")
        if self._lost is not None:
            raise ConnectionLostError(str(self._lost))

    def _pack(self, message: Mapping[str, Any]) -> bytes:
        packed = Encoding.MSGPACK.pack(message)
        limit = self.limits.get("max_frame_bytes")
        if isinstance(limit, int) and len(packed) > limit:
            raise GraphError(None, "graph", f"a piece of {len(packed)} bytes; the server takes {limit} in one")
        return packed

    def _register(
        self,
        run: RemoteGraphRun,
        batches: Sequence[list[dict[str, Any]]],
        answer: Callable[[], Answer],
        *,
        closes: bool,
    ) -> list[Extension]:
        """Number extensions, and note that they wait for the server's word; with `closes` the last one is the graph's last."""
        fields = {"t": "extend", "s": run.graph_id}
        extensions = {}
        for request, batch in enumerate(batches, self._last_request + 1):
            is_last = closes and batch is batches[-1]
            message = self._pack({**fields, "nodes": batch, "q": request, "close": is_last})
            extensions[request] = Extension(answer(), message)
        self._last_request += len(extensions)
        run.extending.update(extensions)
        return list(extensions.values())

    def _send(self, *packed: bytes) -> None:
        if self._is_elsewhere:
            return
        # On a broken connection the reader ends all graphs, or says this again; here there is nobody to tell twice.
        with contextlib.suppress(ConnectionClosed, OSError):
            for data in packed:
                self._link.websocket.send(data)

    def _answer(self) -> Answer:
        return Answer(threading.current_thread() is not self._reader)

    def _await(self, answer: Answer, run: RemoteGraphRun) -> None:
        """Wait for an answer, without the lock."""
        if not answer.is_awaited:
            return
        while not answer.is_there.wait(self._timeout_s):
            if not self._outage.is_over.is_set():  # the word comes after it, or its failure
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
                    for message in read_messages(self._link.websocket.recv()):
                        self._take(message)
                except ConnectionClosed as error:
                    reason = closed_because(error)
                    is_slow = error.rcvd is not None and error.rcvd.code == CloseCode.SLOW
                    if (error.rcvd is not None and not is_slow) or not self._connect_again():
                        return
                    is_slow = False
        except ProtocolError as error:
            reason = f"the server broke the protocol: {error.message}"
        except Exception:
            # Whatever is wrong here, no graph may be left without an end.
            logger.exception("the reader of %s failed", self.url)
        finally:
            self._lose(f"{self.url}: {reason}", is_slow)
            self._link.exits.close()

    def _connect_again(self) -> bool:
        """Replace a broken connection, within `resume_s`; whether that was possible."""
        while self._resume_s is not None:
            pause_s = self._outage.next_pause()
            if pause_s is None or self._is_closing.wait(pause_s):
                return False
            try:
                link = self._dial()
            except ConnectionLostError as error:
                logger.info("%s: not there yet: %s", self.url, error)
                continue
            with self._lock:
                broken, self._link = self._link, link
                if not self._runs:
                    self._outage.end()
                for run in sorted(self._runs.values(), key=lambda run: run.graph_id):
                    self._send(*run.move())
                if self._is_closing.is_set():
                    self._send(self._pack({"t": "bye"}))
            broken.exits.close()
            return True
        return False

    def _take_attached(self, run: RemoteGraphRun, message: Mapping[str, Any]) -> None:
        last_answered, refused = check_int(message, "last_q", 0, MAX_ID), check_ints(message, "refused")
        with self._lock:
            run.is_attaching = False
            self._send(*run.settle(last_answered, refused))

    def _take(self, message: dict[str, Any]) -> None:
        kind, stream = message.get("t"), stream_of(message)
        with self._lock:
            run = None if stream is None else self._runs.get(stream)
        if run is None:
            # About a stream that is gone, or about the connection: a fatal error is followed by a close frame that says the same.
            logger.debug("%s: %s %s", self.url, kind, message.get("message", ""))
        elif kind in ("delta", "event", "end"):
            run.num_taken += 1
            self._outage.end()
            event = event_from_wire(message, run.graph_id)
            if isinstance(event, TextDelta):
                check_offset(run.offsets, event, message)
            if isinstance(event, (GraphFinished, GraphFailed)):
                self._finish(run)
            run.tell(event)
        elif kind == "ack" and "from" in message:
            self._take_attached(run, message)
        elif kind in ("ack", "error"):
            self._take_answer(run, message, error_from_wire(message) if kind == "error" else None)

    def _take_answer(self, run: RemoteGraphRun, message: Mapping[str, Any], error: RtlangError | None) -> None:
        request = message.get("q")
        answer: Answer | None
        if isinstance(request, int):
            run.last_answered = max(run.last_answered, request)
            extension = run.extending.pop(request, None)
            answer = None if extension is None else extension.answer
        else:
            answer = None if run.opening.is_there.is_set() else run.opening
            if answer is not None and error is None:
                run.rid, run.epoch, run.opening_message = check_str(message, "rid"), check_str(message, "epoch"), b""
        if error is not None:
            if answer is run.opening:
                self._finish(run)
            if answer is None or not answer.is_awaited:
                # Nobody waits for this word, and without the nodes that it refuses the graph cannot end well.
                run.cancel()
                self._finish(run)
                run.tell(GraphFailed(run.graph_id, error))
        if answer is not None:
            answer.give(error)

    def _finish(self, run: RemoteGraphRun) -> None:
        """Take a run off the list; what still waits for an answer gets one."""
        with self._lock:
            self._runs.pop(run.graph_id, None)
            run.has_ended = True
            extensions, run.extending = run.extending, {}
        for extension in extensions.values():
            extension.answer.give(GraphError(None, "graph", "the graph has ended"))

    def _lose(self, reason: str, is_slow: bool) -> None:
        lost = ConnectionLostError(reason)
        error: RtlangError = SlowConsumerError(reason) if is_slow else lost
        with self._lock:
            self._lost = lost
            runs = tuple(self._runs.values())
            if self._is_closing.is_set():
                error = AbortedError("the connection was closed here")
        for run in runs:
            was_opened = run.opening.is_there.is_set() or not run.opening.is_awaited
            run.opening.give(lost)
            for extension in tuple(run.extending.values()):
                extension.answer.give(lost)
            self._finish(run)
            if was_opened:
                run.tell(GraphFailed(run.graph_id, error))
