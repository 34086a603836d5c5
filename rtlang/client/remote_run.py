"""The client's state of a graph that runs on a server."""

from __future__ import annotations

import logging
import secrets
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from rtlang.contract.errors import ProtocolError, RtlangError
from rtlang.contract.events import Event
from rtlang.contract.graph.host_calls import checked_answer
from rtlang.contract.params import MAX_CREDIT, check_credit
from rtlang.contract.request_graph import Node, RequestGraph, last_id, nodes_to_plain
from rtlang.contract.runs.known import ContinueFrom, Known
from rtlang.contract.runs.run_ledger import RunLedger
from rtlang.contract.runs.run_options import RunOptions
from rtlang.contract.service.target import Listener
from rtlang.protocol.continuation import continuation_to_wire
from rtlang.protocol.event_codec import Offsets
from rtlang.protocol.plain_values import value_to_wire
from rtlang.protocol.run_options import Place, deadline_ms, fields_of
from rtlang.protocol.serialization import Encoding, exact_size

logger = logging.getLogger(__name__)


class Answer:
    """The pending answer to an open or an extend. `is_awaited` is False if nobody waits for it; a graph then fails with its error."""

    def __init__(self, is_awaited: bool) -> None:
        self.is_awaited = is_awaited
        self.is_resolved = False
        self.error: RtlangError | None = None

    def resolve(self, error: RtlangError | None) -> None:
        """Set the outcome; only the first call has an effect."""
        if not self.is_resolved:
            self.error, self.is_resolved = error, True
            self.wake()

    def wake(self) -> None:
        """Called once, when the outcome is set."""


@dataclass(frozen=True, slots=True)
class PendingExtend:
    """An extend that the server has not answered yet: the fields of its message besides those that name the stream."""

    answer: Answer
    fields: Mapping[str, Any]


@dataclass(slots=True)
class Opening:
    """The data with which a server opens a graph, or goes on with it.

    Attributes:
        options: the options of the run, which has begun.
        outputs: the outputs of the graph; None for all.
        ledger: the output so far.
        begun_at: when the graph was submitted first, in seconds.
        detach_ms: how long the server keeps the graph without a connection, so that another one may open it again; None if it does not.
    """

    options: RunOptions
    outputs: tuple[int, ...] | None
    begun_at: float
    detach_ms: int | None
    ledger: RunLedger = field(default_factory=RunLedger)

    @property
    def is_repeatable(self) -> bool:
        """Whether another server may open the graph again."""
        return self.detach_ms is not None

    def at(self, now: float) -> dict[str, Any]:
        """The `open` message without stream and nodes, with what is left of its times."""
        body, left_ms = fields_of(self.options, Place.BODY), deadline_ms(self.options, now)
        if "seconds" in body.get("budget", ()):
            body["budget"]["seconds"] = max(0.001, body["budget"]["seconds"] - (now - self.begun_at))
        message: dict[str, Any] = {"t": "open", "kind": "program", "body": body}
        message |= fields_of(self.options, Place.BESIDE)
        if self.detach_ms is not None:
            message["detach_ms"] = self.detach_ms
        if left_ms is not None:
            message["deadline_ms"] = left_ms
        if self.detach_ms is not None:
            message["idem"] = secrets.token_hex(16)
        return message


class GraphOwner(Protocol):
    """The part of the runtime that a graph calls."""

    def extend(self, run: RemoteGraphRun, nodes: Sequence[Node], known: Known, continue_from: ContinueFrom) -> None:
        """Add `nodes` to `run`."""

    def close_graph(self, run: RemoteGraphRun) -> None:
        """Close `run`."""

    def cancel(self, run: RemoteGraphRun) -> None:
        """Cancel `run`."""

    def grant(self, run: RemoteGraphRun, num_tokens: int) -> None:
        """Grant credit to `run`."""

    def answer_call(self, run: RemoteGraphRun, node_id: int, answer: Mapping[str, Any]) -> None:
        """Send the answer to a host call of `run`."""


class RemoteGraphRun:
    """A graph on the server. Created by `RemoteRuntime.submit`; its public methods are safe to use from any thread.

    Attributes (owned by the runtime; guarded by its lock, except those that only the reader thread writes):
        stream: the id of its stream on the present connection; that of the graph, until a server refuses to go on with it.
        opening, extending: open and extends that the server has not answered.
        rid, epoch: ids of the stream and of the server process, once the open is acknowledged; until then `opening_message` is retained.
        refused_at: since when servers have been too busy to go on with the graph, in seconds; None if they are not.
        num_taken: messages of the stream received so far.
        last_request, last_acknowledged: numbers of the last extend, and of the last one that was answered; 0 if none.
        was_closed, was_cancelled: whether a close or cancel was sent, which must be sent again on a new connection.
        call_answers: answers to host calls whose node has not ended; they are sent again on a new connection.
        is_attaching: whether an attach on a new connection is unanswered.
        is_continued: whether the graph was opened before, on another server or under another stream.
        is_postponed: whether the server was too busy to go on with the graph, which is opened again later.
        num_gone: how often servers did not know the stream, since one knew it.
        source: what a server needs to open the graph, or to go on with it.
        num_granted, num_received: all credit granted to the stream, and tokens received, since it was opened on this server.
    """

    def __init__(
        self,
        runtime: GraphOwner,
        graph_id: int,
        graph: RequestGraph,
        listener: Listener,
        opening: Answer,
        source: Opening,
    ) -> None:
        self._runtime, self._graph_id, self.listener = runtime, graph_id, listener
        self.stream = graph_id
        self.known: dict[int, Node] = {node.node_id: node for node in graph.nodes}
        self.inputs = graph.inputs
        self.is_open, self.has_ended = source.options.is_open, False
        self.offsets: Offsets = {}
        self.opening, self.source = opening, source
        self.extending: dict[int, PendingExtend] = {}
        self.call_answers: dict[int, Mapping[str, Any]] = {}
        self.rid: str | None = None
        self.epoch = ""
        self.opening_message: dict[str, Any] = {}
        self.num_taken = self.last_request = self.last_acknowledged = 0
        self.was_closed = self.was_cancelled = self.is_attaching = self.is_continued = False
        self.is_postponed = False
        self.num_gone = 0
        self.refused_at: float | None = None
        self.num_granted, self.num_received = MAX_CREDIT if source.options.credit is None else source.options.credit, 0

    @property
    def graph_id(self) -> int:
        """Id of the graph, unique within its runtime."""
        return self._graph_id

    def extend(
        self, nodes: Sequence[Node], *, known: Known | None = None, continue_from: ContinueFrom | None = None
    ) -> None:
        """Add nodes to a graph submitted with is_open=True; see `rtlang.contract.service.target.ResumableRun`.

        Args:
            continue_from: tokens of these nodes, as for `submit`.
        """
        self._runtime.extend(self, nodes, known or {}, continue_from or {})

    def resolve(self, node_id: int, value: Any) -> None:
        """Answer a host call; see `rtlang.contract.service.target.GraphRun`."""
        sent = value_to_wire(checked_answer(value))
        try:
            exact_size(sent)
        except ProtocolError as error:
            self.reject(node_id, "call", f"expected plain data as its return value: {error.message}")
            return
        self._runtime.answer_call(self, node_id, {"t": "resolve", "value": sent})

    def reject(self, node_id: int, code: str, message: str, facts: Mapping[str, Any] | None = None) -> None:
        """Let a host call fail; see `rtlang.contract.service.target.GraphRun`."""
        answer = {"t": "reject", "code": code, "message": message, "facts": dict(facts or {})}
        self._runtime.answer_call(self, node_id, answer)

    def grant(self, num_tokens: int) -> None:
        """Add credit; see `rtlang.contract.service.target.GraphRun`."""
        check_credit(num_tokens)
        self._runtime.grant(self, num_tokens)

    def close(self) -> None:
        """Close the graph: no more nodes will follow. Idempotent."""
        self._runtime.close_graph(self)

    def cancel(self) -> None:
        """Cancel the graph. Idempotent."""
        self._runtime.cancel(self)

    @property
    def may_send(self) -> bool:
        """Whether the server has been told of the stream, so that a message about it need not wait."""
        return not self.is_attaching and not self.is_postponed

    def is_unknown_to(self, epoch: str) -> bool:
        """Whether the server process `epoch` does not know the stream, so that only `open_again` can go on with it."""
        return self.rid is not None and self.epoch != epoch and self.source.is_repeatable

    def reconnect_messages(self) -> list[dict[str, Any]]:
        """Messages that continue the stream on a new connection to a server process that knows it, or was never told."""
        self.is_attaching = self.rid is not None
        if not self.is_attaching:  # the open was never acknowledged
            return self.opening_messages()
        place = {"rid": self.rid, "epoch": self.epoch, "from": self.num_taken, "q": self.last_acknowledged}
        return [{"t": "attach", "s": self.stream, **place}]

    def opening_messages(self) -> list[dict[str, Any]]:
        """The prepared opening, and all that follows it."""
        return [self.opening_message | {"s": self.stream}, *self.unacknowledged()]

    def open_again(self, frame_bytes: object, now: float) -> None:
        """Prepare to open the graph as another stream, which goes on behind the output that has arrived."""
        self.is_continued = True
        self.rid, self.epoch, self.is_attaching, self.is_postponed = None, "", False, False
        self.num_taken = self.last_acknowledged = 0
        self.offsets.clear()
        self.prepare(frame_bytes, now)

    def prepare(self, frame_bytes: object, now: float) -> None:
        """Prepare the message that opens the graph, and extends with the nodes for which it has no room."""
        source, ledger = self.source, self.source.ledger
        pending = [each for _, each in sorted(self.extending.items())]
        refusable = {node["id"] for each in pending for node in each.fields["nodes"]}
        continue_from = ledger.continue_from(self.known.values())
        parts = in_batches(
            [node for node_id, node in self.known.items() if node_id not in refusable],
            frame_bytes,
            ledger.known,
            continue_from,
        )
        is_done = not self.is_open and not self.was_closed and not pending
        extensions: list[PendingExtend] = []
        for part in parts[1:]:
            fields = {"t": "extend", **part, "close": is_done and part is parts[-1]}
            extensions.append(PendingExtend(Answer(is_awaited=False), fields))
        self.extending = dict(enumerate(extensions + pending, 1))
        self.last_request = len(self.extending)
        message = source.at(now)
        nodes = parts[0].pop("nodes")
        message["body"]["graph"] = graph = {"nodes": nodes, "inputs": list(self.inputs)}
        if source.outputs is not None:
            sent = {node["id"] for node in nodes}
            graph["outputs"] = [each for each in source.outputs if each in sent]
        message["body"]["open"] = len(parts) > 1 or not is_done
        self.num_granted, self.num_received = max(0, self.num_granted - self.num_received), 0
        self.opening_message = message | parts[0] | {"credit": self.num_granted}

    def unacknowledged(self) -> list[dict[str, Any]]:
        """Messages that the server may not have received, to be sent again."""
        extensions = [self.extend_message(q) for q in sorted(self.extending)]
        answers = [{**answer, "s": self.stream} for answer in self.call_answers.values()]
        said = [kind for kind, was in (("close", self.was_closed), ("cancel", self.was_cancelled)) if was]
        return [*extensions, *answers, *({"t": kind, "s": self.stream} for kind in said)]

    def extend_message(self, request: int) -> dict[str, Any]:
        """The message of an unanswered extend."""
        return {**self.extending[request].fields, "s": self.stream, "q": request}

    def resolve_extends(self, last_acknowledged: int, refused: Collection[int]) -> list[dict[str, Any]]:
        """Resolve extends up to `last_acknowledged`, except `refused` ones, whose errors arrive separately. Returns messages to resend."""
        for request in [number for number in self.extending if number <= last_acknowledged and number not in refused]:
            self.extending.pop(request).answer.resolve(None)
        missed = {number: self.extending.pop(number) for number in refused if number in self.extending}
        again = self.unacknowledged()
        self.extending.update(missed)
        return again

    def notify(self, event: Event) -> None:
        """Call the listener; its exceptions are logged."""
        try:
            self.listener(event)
        except Exception:  # must not affect the other graphs of this connection
            logger.exception("the listener of graph %d raised an exception", self.graph_id)


def in_batches(
    nodes: Sequence[Node],
    frame_bytes: object,
    known: Known = MappingProxyType({}),
    continue_from: ContinueFrom = MappingProxyType({}),
) -> list[dict[str, Any]]:
    """Split nodes, and what is known of them, into parts of at most an eighth of a frame; a larger single node forms its own part.

    This leaves room in each frame for the rest of the message, and lets the server handle other messages between two parts.

    Args:
        frame_bytes: the server's frame limit; anything but an integer means no limit.
    Returns:
        The fields `nodes`, `known` and `continue_from` of a message; those without content are left out, except `nodes`.
    """
    limit = frame_bytes // 8 if isinstance(frame_bytes, int) else None
    outcomes = {name: sorted(items, key=_node_of) for name, items in continuation_to_wire(known, continue_from).items()}
    parts: list[dict[str, Any]] = [{"nodes": []}]
    num_bytes = 0
    for node, plain in zip(nodes, nodes_to_plain(nodes), strict=True):
        own = {}
        for name, items in outcomes.items():
            first = bisect_left(items, node.node_id, key=_node_of)
            if found := items[first : bisect_right(items, last_id(node), first, key=_node_of)]:
                own[name] = found  # those of its blocks included
        size = exact_size(plain) + (len(Encoding.MSGPACK.pack(own)) if own else 0)
        if parts[-1]["nodes"] and limit is not None and num_bytes + size > limit:
            parts.append({"nodes": []})
            num_bytes = 0
        parts[-1]["nodes"].append(plain)
        for name, found in own.items():
            parts[-1].setdefault(name, []).extend(found)
        num_bytes += size
    return parts


def _node_of(item: Mapping[str, Any]) -> int:
    return int(item["n"])
