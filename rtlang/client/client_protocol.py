"""The client side of one `rtlang.v1` connection as a state machine without I/O and threads.

A shell puts a socket around it: it calls one method at a time, sends what `take_output` returns after each, and passes the events that
`take` returns to their listeners. Every graph is a stream. After a connection was replaced, `reconnected` queues what lets every graph go
on: an attach, or on a server process that does not know the stream an open that begins behind the output so far. If that server is too
busy for it, `retry_pause` says when to call `retry`.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from rtlang.client.remote_run import Answer, GraphOwner, Opening, PendingExtend, RemoteGraphRun, in_batches
from rtlang.contract.errors import AbortedError, GoneError, GraphError, OverloadError, RtlangError
from rtlang.contract.events import CallRequested, Event, GraphFailed, GraphFinished, NodeFailed, NodeFinished, TextDelta
from rtlang.contract.params import MAX_CREDIT
from rtlang.contract.request_graph import Node, RequestGraph
from rtlang.contract.runs.known import ContinueFrom, Known, check_continue_from
from rtlang.contract.runs.run_options import ALL_ABILITIES, DEFAULT_OPTIONS, Ability, RunOptions
from rtlang.contract.service.target import Listener
from rtlang.protocol.event_codec import check_offset, error_from_wire, event_from_wire
from rtlang.protocol.field_checks import MAX_ID, check_int, check_ints, check_str, optional
from rtlang.protocol.messages import stream_of
from rtlang.protocol.serialization import Encoding

logger = logging.getLogger(__name__)

MAX_GONE = 3
"""How often in a row a graph is opened again because its server does not know its stream."""
MIN_RETRY_S, MAX_RETRY_S = 0.05, 5.0
"""Limits of the pause before a graph is opened again at a busy server."""

Notices = list[tuple[RemoteGraphRun, Event]]
"""Events to pass to the listeners of their graphs, in order."""


class ClientProtocol:
    """The streams of one client. Not thread-safe.

    Args:
        welcome: the server's greeting on the first connection.
        resume_s: how long the server keeps graphs without a connection, in seconds; None if they end with it.
        clock: the time in seconds.

    Attributes:
        models: the served models, as the first server describes them.
        limits: the limits of the present server.
        runs: the graphs that have not ended, by the id of their stream.
    """

    def __init__(
        self, welcome: Mapping[str, Any], resume_s: float | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.models: tuple[dict[str, Any], ...] = tuple(welcome.get("models") or ())
        self.limits: dict[str, Any] = dict(welcome.get("limits") or {})
        self.runs: dict[int, RemoteGraphRun] = {}
        self._caps: tuple[str, ...] = tuple(welcome.get("caps") or ())
        self._resume_s, self._clock = resume_s, clock
        self._last_stream = 0
        self._output: list[bytes] = []
        self._refused: list[tuple[float, RemoteGraphRun]] = []  # and when to open them again

    @property
    def model_identity(self) -> str | None:
        """The identity of the served model; None if the server has several models, or does not say."""
        identity = self.models[0].get("identity") if len(self.models) == 1 else None
        return identity if isinstance(identity, str) else None

    @property
    def abilities(self) -> frozenset[Ability]:
        """The abilities that the server announces. One that takes the tokens of an earlier run takes its outcomes as well."""
        found = frozenset(each for each in ALL_ABILITIES if each.value in self._caps)
        return found | {Ability.KNOWN} if Ability.CONTINUE in found else found - {Ability.KNOWN}

    def other_model(self, welcome: Mapping[str, Any]) -> str | None:
        """What makes a server useless to go on at: it serves another model. None if it serves the same, or does not say."""
        ours, theirs = self.models, tuple(welcome.get("models") or ())
        for field in ("identity", "model"):
            before, now = ([str(each.get(field) or "") for each in models] for models in (ours, theirs))
            if before and now and all(before + now):
                if before == now:
                    return None
                return f"it serves {', '.join(now)}, and this connection began with {', '.join(before)}"
        return None

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
        options: RunOptions = DEFAULT_OPTIONS,
    ) -> RemoteGraphRun:
        """Open a stream; `run.opening` is answered later. A graph larger than one frame is sent in batches.

        Raises:
            GraphError: a node is too large for the server.
        """
        check_continue_from(options.continue_from, graph.nodes)
        now, resume_s = self._clock(), self._resume_s
        options = options.begun(now)
        if options.seed is None and resume_s is not None:
            options = replace(options, seed=secrets.randbits(63))  # so that another server gives the same texts
        detach_ms = None if resume_s is None else max(1, round(resume_s * 1000))
        source = Opening(options, graph.outputs, now, detach_ms)
        source.ledger.give(options.known, options.continue_from)
        run = RemoteGraphRun(
            owner,
            self._last_stream + 1,
            graph,
            listener,
            new_answer(),
            source,
        )
        run.prepare(self.limits.get("max_frame_bytes"), now)
        packed = [self._pack(each) for each in run.opening_messages()]
        self._last_stream += 1
        self.runs[run.stream] = run
        self._output += packed
        return run

    def extend(
        self,
        run: RemoteGraphRun,
        nodes: Sequence[Node],
        new_answer: Callable[[], Answer],
        known: Known = MappingProxyType({}),
        continue_from: ContinueFrom = MappingProxyType({}),
    ) -> list[PendingExtend]:
        """Add nodes; each extend is answered later. Call `take_back` if one of them is refused.

        Raises:
            GraphError: the nodes are invalid, too large, or the graph is closed.
        """
        if run.has_ended or not run.is_open:
            raise GraphError(None, "graph", "the graph has ended" if run.has_ended else "the graph is closed")
        RequestGraph(tuple(nodes), run.inputs).validate(run.known)
        check_continue_from(continue_from, nodes)
        extensions: dict[int, PendingExtend] = {}
        parts = in_batches(nodes, self.limits.get("max_frame_bytes"), known, continue_from)
        for request, part in enumerate(parts, run.last_request + 1):
            extensions[request] = PendingExtend(new_answer(), {"t": "extend", **part, "close": False})
        run.extending.update(extensions)
        try:
            packed = [self._pack(run.extend_message(request)) for request in extensions]
        except GraphError:
            for request in extensions:
                del run.extending[request]
            raise
        run.last_request += len(extensions)
        run.source.ledger.give(known, continue_from)
        if run.may_send:  # otherwise they are sent once the stream is known to the server
            self._output += packed
        run.known.update({node.node_id: node for node in nodes})
        return list(extensions.values())

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
            packed = self._pack({**answer, "s": run.stream, "n": node_id})
            run.call_answers[node_id] = {**answer, "n": node_id}
            if run.may_send:
                self._output.append(packed)

    def bye(self) -> None:
        """End the connection in an orderly way."""
        self._output.append(self._pack({"t": "bye"}))

    def finish(self, run: RemoteGraphRun) -> None:
        """Forget a graph, and answer its extends."""
        self.runs.pop(run.stream, None)
        run.has_ended = True
        extensions, run.extending = run.extending, {}
        for extension in extensions.values():
            extension.answer.resolve(GraphError(None, "graph", "the graph has ended"))

    # What the connection does

    def reconnected(self, welcome: Mapping[str, Any]) -> Notices:
        """Continue all graphs on a new connection; messages that the old one did not send are included."""
        self._output.clear()
        self._refused.clear()
        self.limits.clear()
        self.limits.update(welcome.get("limits") or {})
        self._caps = tuple(welcome.get("caps") or ())
        notices: Notices = []
        epoch = str(welcome.get("epoch", ""))
        for _, run in sorted(self.runs.items()):
            run.refused_at, run.num_gone = None, 0
            if run.is_unknown_to(epoch) or run.is_postponed:
                notices += self._open_again(run, is_id_used=False)
            else:
                self._output += [self._pack(each) for each in run.reconnect_messages()]
        return notices

    def retry_pause(self) -> float | None:
        """Seconds until `retry` has to be called, because the server was too busy to go on with a graph; None if it was not."""
        return max(0.0, min(at for at, _ in self._refused) - self._clock()) if self._refused else None

    def retry(self) -> Notices:
        """Open the graphs again whose time has come."""
        now = self._clock()
        due = [run for at, run in self._refused if at <= now and not run.has_ended]
        self._refused = [(at, run) for at, run in self._refused if at > now]
        return [notice for run in due for notice in self._open_again(run)]

    def _open_again(self, run: RemoteGraphRun, *, is_id_used: bool = True) -> Notices:
        """Open a graph as another stream, behind the output that has arrived."""
        if run.was_cancelled:
            return self._fail(run, AbortedError("the graph was cancelled"))
        if is_id_used:  # on this connection
            del self.runs[run.stream]
            self._last_stream += 1
            run.stream = self._last_stream
            self.runs[run.stream] = run
        run.open_again(self.limits.get("max_frame_bytes"), self._clock())
        try:
            self._output += [self._pack(each) for each in run.opening_messages()]
        except GraphError as error:  # its results are larger than a message may be
            return self._fail(run, error)
        return []

    def _fail(self, run: RemoteGraphRun, error: RtlangError) -> Notices:
        self.finish(run)
        return [(run, GraphFailed(run.graph_id, error))]

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
            again = run.resolve_extends(check_int(message, "last_q", 0, MAX_ID), check_ints(message, "refused"))
            self._output += [self._pack(each) for each in again]
            self._repeat_grants(run, message)
        elif kind in ("ack", "error"):
            return self._take_answer(run, message, error_from_wire(message) if kind == "error" else None)
        return []

    def lose(self, lost: RtlangError, error: RtlangError) -> Notices:
        """End all graphs, because the connection is gone for good: opens and extends with `lost`, running graphs with `error`."""
        self._refused.clear()
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
        if not run.source.is_repeatable or run.source.ledger.take(event):
            return [(run, event)]
        # Another server repeats what the listener has had: tokens that no reader will pay for, calls that are answered.
        if isinstance(event, TextDelta):
            self.grant(run, len(event.token_ids))
        elif isinstance(event, CallRequested) and event.node_id in run.call_answers:
            self._output.append(self._pack({**run.call_answers[event.node_id], "s": run.stream}))
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
                run.rid, run.epoch = check_str(message, "rid"), check_str(message, "epoch")
                run.opening_message, run.refused_at, run.num_gone = {}, None, 0
                self._repeat_grants(run, message)
            elif error is not None and run.source.is_repeatable:
                if isinstance(error, GoneError) and run.num_gone < MAX_GONE:
                    run.num_gone += 1
                    return self._open_again(run)
                if isinstance(error, OverloadError) and run.is_continued and run.rid is None:
                    return self._postpone(run, error)
        if error is not None:
            if answer is run.opening:
                self.finish(run)
            if answer is None or not answer.is_awaited:
                # No caller waits for this answer, and the graph cannot complete without the refused nodes.
                self.cancel(run)
                notices += self._fail(run, error)
        if answer is not None:
            answer.resolve(error)
        return notices

    def _postpone(self, run: RemoteGraphRun, error: OverloadError) -> Notices:
        """Open a graph again later: another server has no room for it."""
        now = self._clock()
        run.refused_at = now if run.refused_at is None else run.refused_at
        assert self._resume_s is not None
        if now - run.refused_at >= self._resume_s:
            return self._fail(run, error)
        run.is_postponed = True
        self._refused.append((now + max(MIN_RETRY_S, min(error.retry_after_s, MAX_RETRY_S)), run))
        return []

    def _repeat_grants(self, run: RemoteGraphRun, message: Mapping[str, Any]) -> None:
        num_known = optional(check_int, message, "granted", 0, MAX_ID)
        if num_known is not None and num_known < run.num_granted and not run.has_ended:
            self._send_for(run, {"t": "credit", "n": run.num_granted - num_known})

    def _send_for(self, run: RemoteGraphRun, message: Mapping[str, Any]) -> None:
        if run.may_send:
            self._output.append(self._pack({**message, "s": run.stream}))

    def _pack(self, message: Mapping[str, Any]) -> bytes:
        packed = Encoding.MSGPACK.pack(message)
        limit = self.limits.get("max_frame_bytes")
        if isinstance(limit, int) and len(packed) > limit:
            raise GraphError(None, "graph", f"the message of {len(packed)} bytes exceeds the server's limit of {limit}")
        return packed
