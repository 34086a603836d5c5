"""The client side of one `rtlang.v1` connection as a state machine without I/O, clock and threads.

A shell puts a socket around it: it calls one method at a time, sends what `take_output` returns after each, and passes the events that
`take` returns to their listeners. Every graph is a stream whose id is the local graph id. After a connection was replaced, `reconnected`
queues what lets every graph go on: an attach, or on another server process an open that begins behind the output so far.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rtlang.client.remote_run import Answer, GraphOwner, PendingExtend, RemoteGraphRun, Reopening, in_batches
from rtlang.contract.budget import Budget
from rtlang.contract.errors import GraphError, RtlangError
from rtlang.contract.events import CallRequested, Event, GraphFailed, GraphFinished, NodeFailed, NodeFinished, TextDelta
from rtlang.contract.graph import Node, RequestGraph
from rtlang.contract.params import MAX_CREDIT, check_credit, seconds_left
from rtlang.contract.target import Listener
from rtlang.protocol.event_codec import check_offset, error_from_wire, event_from_wire
from rtlang.protocol.field_checks import check_int, check_ints, check_str, optional
from rtlang.protocol.messages import MAX_ID, stream_of
from rtlang.protocol.serialization import Encoding

logger = logging.getLogger(__name__)

Notices = list[tuple[RemoteGraphRun, Event]]
"""Events to pass to the listeners of their graphs, in order."""


class ClientProtocol:
    """The streams of one client. Not thread-safe.

    Args:
        welcome: the server's greeting on the first connection.
        resume_s: how long the server keeps graphs without a connection, in seconds; None if they end with it.

    Attributes:
        limits: the server's limits.
        runs: the graphs that have not ended, by id.
    """

    def __init__(self, welcome: Mapping[str, Any], resume_s: float | None) -> None:
        self.limits: dict[str, Any] = dict(welcome.get("limits") or {})
        self.runs: dict[int, RemoteGraphRun] = {}
        self._resume_s = resume_s
        self._last_id = 0
        self._output: list[bytes] = []

    def take_output(self) -> list[bytes]:
        """Remove and return the messages to send, in order."""
        output, self._output = self._output, []
        return output

    # What the client does

    def submit(
        self,
        owner: GraphOwner,
        graph: RequestGraph,
        listener: Listener,
        new_answer: Callable[[], Answer],
        *,
        inputs: Mapping[str, str] | None = None,
        is_open: bool = False,
        priority: int = 0,
        deadline_s: float | None = None,
        seed: int | None = None,
        budget: Budget | None = None,
        credit: int | None = None,
        reports_progress: bool = False,
    ) -> RemoteGraphRun:
        """Open a stream; `run.opening` is answered later. A graph larger than one frame is sent in batches.

        Raises:
            GraphError: a node is too large for the server.
        """
        if credit is not None:
            check_credit(credit)
        body: dict[str, Any] = {"inputs": dict(inputs or {}), "priority": priority}
        if seed is None and self._resume_s is not None:
            seed = secrets.randbits(63)  # so that another server gives the same texts
        if seed is not None:
            body["seed"] = seed
        if budget is not None:
            body["budget"] = budget.to_plain()
        num_granted = MAX_CREDIT if credit is None else credit
        message: dict[str, Any] = {"t": "open", "kind": "program", "body": body, "credit": num_granted}
        if reports_progress:
            message["progress"] = True
        if self._resume_s is not None:
            message |= {"detach_ms": max(1, round(self._resume_s * 1000)), "idem": secrets.token_hex(16)}
        if deadline_s is not None:
            message["deadline_ms"] = max(1, round(seconds_left(deadline_s) * 1000))
        batches = in_batches(graph.nodes, self.limits.get("max_frame_bytes"))
        self._last_id += 1
        run = RemoteGraphRun(owner, self._last_id, graph, listener, new_answer())
        run.is_open, run.num_granted = is_open, num_granted
        message["s"] = run.graph_id
        body["graph"] = {"nodes": batches[0], "inputs": list(graph.inputs)}
        if graph.outputs is not None:
            sent = {node["id"] for node in batches[0]}
            body["graph"]["outputs"] = [node_id for node_id in graph.outputs if node_id in sent]
        body["open"] = is_open or len(batches) > 1
        run.opening_message = self._pack(message)
        if self._resume_s is not None:
            run.reopening = Reopening(message, graph.outputs)
        self._register(run, batches[1:], lambda: Answer(is_awaited=False), closes=not is_open)
        self.runs[run.graph_id] = run
        self._output += [run.opening_message, *run.unacknowledged()]
        return run

    def extend(
        self, run: RemoteGraphRun, nodes: Sequence[Node], new_answer: Callable[[], Answer]
    ) -> list[PendingExtend]:
        """Add nodes; each extend is answered later. Call `take_back` if one of them is refused.

        Raises:
            GraphError: the nodes are invalid, too large, or the graph is closed.
        """
        if run.has_ended or not run.is_open:
            raise GraphError(None, "graph", "the graph has ended" if run.has_ended else "the graph is closed")
        RequestGraph(tuple(nodes), run.inputs).validate(run.known)
        batches = in_batches(nodes, self.limits.get("max_frame_bytes"))
        extensions = self._register(run, batches, new_answer, closes=False)
        if not run.is_attaching:  # otherwise they are sent once the attach is answered
            self._output += [extension.message for extension in extensions]
        run.known.update({node.node_id: node for node in nodes})
        return extensions

    def take_back(self, run: RemoteGraphRun, nodes: Sequence[Node]) -> None:
        """Forget nodes that the server has refused."""
        for node in nodes:
            run.known.pop(node.node_id, None)

    def close_graph(self, run: RemoteGraphRun) -> None:
        """Close the graph: no more nodes follow."""
        if run.is_open and not run.has_ended:
            run.was_closed = True
            self._send_for(run, {"t": "close"})
        run.is_open = False

    def cancel(self, run: RemoteGraphRun) -> None:
        """Cancel the graph."""
        if not run.has_ended:
            run.was_cancelled = True
            self._send_for(run, {"t": "cancel"})

    def grant(self, run: RemoteGraphRun, num_tokens: int) -> None:
        """Grant credit; lost grants are repeated on the next connection."""
        num_tokens = min(num_tokens, MAX_CREDIT - run.num_granted)
        if not run.has_ended and num_tokens > 0:
            run.num_granted += num_tokens
            self._send_for(run, {"t": "credit", "n": num_tokens})

    def answer_call(self, run: RemoteGraphRun, node_id: int, answer: Mapping[str, Any]) -> None:
        """Answer a host call; answers of ended nodes are ignored."""
        if not run.has_ended:
            packed = self._pack({**answer, "s": run.graph_id, "n": node_id})
            run.call_answers[node_id] = packed
            if not run.is_attaching:
                self._output.append(packed)

    def bye(self) -> None:
        """End the connection in an orderly way."""
        self._output.append(self._pack({"t": "bye"}))

    def finish(self, run: RemoteGraphRun) -> None:
        """Forget a graph, and answer its extends."""
        self.runs.pop(run.graph_id, None)
        run.has_ended = True
        extensions, run.extending = run.extending, {}
        for extension in extensions.values():
            extension.answer.resolve(GraphError(None, "graph", "the graph has ended"))

    # What the connection does

    def reconnected(self, welcome: Mapping[str, Any]) -> None:
        """Continue all graphs on a new connection; messages that the old one did not send are included."""
        self._output.clear()
        for _, run in sorted(self.runs.items()):
            self._output += run.reopen_messages(str(welcome.get("epoch", "")), self.limits.get("max_frame_bytes"))

    def take(self, message: Mapping[str, Any]) -> Notices:
        """Process one message of the server.

        Raises:
            ProtocolError: the message is malformed, or an offset is not the next one.
        """
        kind, stream = message.get("t"), stream_of(message)
        run = None if stream is None else self.runs.get(stream)
        if run is None:
            # The stream has ended, or the message concerns the connection: a fatal error is followed by a close frame with the same text.
            logger.debug("%s %s", kind, message.get("message", ""))
        elif kind in ("delta", "event", "end"):
            return self._take_event(run, message)
        elif kind == "ack" and "from" in message:
            run.is_attaching = False
            self._output += run.resolve_extends(check_int(message, "last_q", 0, MAX_ID), check_ints(message, "refused"))
            self._repeat_grants(run, message)
        elif kind in ("ack", "error"):
            return self._take_answer(run, message, error_from_wire(message) if kind == "error" else None)
        return []

    def lose(self, lost: RtlangError, error: RtlangError) -> Notices:
        """End all graphs, because the connection is gone for good: opens and extends with `lost`, running graphs with `error`."""
        notices: Notices = []
        for run in tuple(self.runs.values()):
            was_opened = run.opening.is_resolved or not run.opening.is_awaited
            run.opening.resolve(lost)
            for extension in tuple(run.extending.values()):
                extension.answer.resolve(lost)
            self.finish(run)
            if was_opened:
                notices.append((run, GraphFailed(run.graph_id, error)))
        return notices

    def _take_event(self, run: RemoteGraphRun, message: Mapping[str, Any]) -> Notices:
        run.num_taken += 1
        event = event_from_wire(message, run.graph_id)
        if isinstance(event, TextDelta):
            check_offset(run.offsets, event, message)
            run.num_received += len(event.token_ids)
        if isinstance(event, (NodeFinished, NodeFailed)):
            run.call_answers.pop(event.node_id, None)
        if isinstance(event, (GraphFinished, GraphFailed)):
            self.finish(run)
        if event is None:
            return []
        if run.reopening is None or run.reopening.ledger.take(event):
            return [(run, event)]
        # Another server repeats what the listener has had: tokens that no reader will pay for, calls that are answered.
        if isinstance(event, TextDelta):
            self.grant(run, len(event.token_ids))
        elif isinstance(event, CallRequested) and event.node_id in run.call_answers:
            self._output.append(run.call_answers[event.node_id])
        return []

    def _take_answer(self, run: RemoteGraphRun, message: Mapping[str, Any], error: RtlangError | None) -> Notices:
        request = message.get("q")
        answer: Answer | None
        notices: Notices = []
        if isinstance(request, int):
            run.last_acknowledged = max(run.last_acknowledged, request)
            extension = run.extending.pop(request, None)
            answer = None if extension is None else extension.answer
        else:
            answer = None if run.opening.is_resolved else run.opening
            if error is None and run.rid is None:
                run.rid, run.epoch, run.opening_message = check_str(message, "rid"), check_str(message, "epoch"), b""
                self._repeat_grants(run, message)
        if error is not None:
            if answer is run.opening:
                self.finish(run)
            if answer is None or not answer.is_awaited:
                # No caller waits for this answer, and the graph cannot complete without the refused nodes.
                self.cancel(run)
                self.finish(run)
                notices.append((run, GraphFailed(run.graph_id, error)))
        if answer is not None:
            answer.resolve(error)
        return notices

    def _repeat_grants(self, run: RemoteGraphRun, message: Mapping[str, Any]) -> None:
        num_known = optional(check_int, message, "granted", 0, MAX_ID)
        if num_known is not None and num_known < run.num_granted and not run.has_ended:
            self._send_for(run, {"t": "credit", "n": run.num_granted - num_known})

    def _send_for(self, run: RemoteGraphRun, message: Mapping[str, Any]) -> None:
        if not run.is_attaching:
            self._output.append(self._pack({**message, "s": run.graph_id}))

    def _pack(self, message: Mapping[str, Any]) -> bytes:
        packed = Encoding.MSGPACK.pack(message)
        self._check_size(packed)
        return packed

    def _check_size(self, packed: bytes) -> None:
        limit = self.limits.get("max_frame_bytes")
        if isinstance(limit, int) and len(packed) > limit:
            raise GraphError(None, "graph", f"the message of {len(packed)} bytes exceeds the server's limit of {limit}")

    def _register(
        self,
        run: RemoteGraphRun,
        batches: Sequence[list[dict[str, Any]]],
        new_answer: Callable[[], Answer],
        *,
        closes: bool,
    ) -> list[PendingExtend]:
        """Number extends and register them as unanswered; with `closes`, the last one closes the graph."""
        extensions = {}
        for request, batch in enumerate(batches, run.last_request + 1):
            fields = {"t": "extend", "s": run.graph_id, "nodes": batch, "close": closes and batch is batches[-1]}
            extensions[request] = PendingExtend.numbered(request, new_answer(), fields)
            self._check_size(extensions[request].message)
        run.last_request += len(extensions)
        run.extending.update(extensions)
        return list(extensions.values())
