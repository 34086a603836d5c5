"""The client's state of a graph that runs on a server."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rtlang.contract.errors import RtlangError
from rtlang.contract.events import Event
from rtlang.contract.graph import Node, RequestGraph, nodes_to_plain
from rtlang.contract.host_calls import checked_answer
from rtlang.contract.params import check_credit
from rtlang.contract.run_ledger import RunLedger
from rtlang.contract.target import Listener
from rtlang.protocol.continuation import continuation_to_wire
from rtlang.protocol.event_codec import Offsets
from rtlang.protocol.plain_values import value_to_wire
from rtlang.protocol.serialization import Encoding

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
    """An extend that the server has not answered yet: the fields of its message, and the message with its number, encoded."""

    answer: Answer
    fields: Mapping[str, Any]
    message: bytes

    @classmethod
    def numbered(cls, request: int, answer: Answer, fields: Mapping[str, Any]) -> PendingExtend:
        """The extend with the number `request`."""
        return cls(answer, fields, Encoding.MSGPACK.pack({**fields, "q": request}))


@dataclass(slots=True)
class Reopening:
    """The data with which another server continues a graph: the `open` message, whose nodes are replaced, and the output so far."""

    message: dict[str, Any]
    outputs: tuple[int, ...] | None
    ledger: RunLedger = field(default_factory=RunLedger)


class GraphOwner(Protocol):
    """The part of the runtime that a graph calls."""

    def extend(self, run: RemoteGraphRun, nodes: Sequence[Node]) -> None:
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
        opening, extending: open and extends that the server has not answered.
        rid, epoch: ids of the stream and of the server process, once the open is acknowledged; until then `opening_message` is retained.
        num_taken: messages of the stream received so far.
        last_request, last_acknowledged: numbers of the last extend, and of the last one that was answered; 0 if none.
        was_closed, was_cancelled: whether a close or cancel was sent, which must be sent again on a new connection.
        call_answers: answers to host calls whose node has not ended; they are sent again on a new connection.
        is_attaching: whether an attach on a new connection is unanswered.
        reopening: what a new server needs to go on with the graph, if the connection may be replaced.
        num_granted, num_received: all credit granted to the stream, and tokens received, since it was opened on this server.
    """

    def __init__(
        self, runtime: GraphOwner, graph_id: int, graph: RequestGraph, listener: Listener, opening: Answer
    ) -> None:
        self._runtime, self._graph_id, self.listener = runtime, graph_id, listener
        self.known: dict[int, Node] = {node.node_id: node for node in graph.nodes}
        self.inputs = graph.inputs
        self.is_open = self.has_ended = False
        self.offsets: Offsets = {}
        self.opening = opening
        self.extending: dict[int, PendingExtend] = {}
        self.call_answers: dict[int, bytes] = {}
        self.rid: str | None = None
        self.epoch, self.opening_message = "", b""
        self.num_taken = self.last_request = self.last_acknowledged = 0
        self.was_closed = self.was_cancelled = self.is_attaching = False
        self.reopening: Reopening | None = None
        self.num_granted = self.num_received = 0

    @property
    def graph_id(self) -> int:
        """Id of the graph, unique within its runtime."""
        return self._graph_id

    def extend(self, nodes: Sequence[Node]) -> None:
        """Add nodes to a graph submitted with is_open=True; see `rtlang.contract.target.GraphRun`."""
        self._runtime.extend(self, nodes)

    def resolve(self, node_id: int, value: Any) -> None:
        """Answer a host call; see `rtlang.contract.target.GraphRun`."""
        self._runtime.answer_call(self, node_id, {"t": "resolve", "value": value_to_wire(checked_answer(value))})

    def reject(self, node_id: int, code: str, message: str, facts: Mapping[str, Any] | None = None) -> None:
        """Let a host call fail; see `rtlang.contract.target.GraphRun`."""
        answer = {"t": "reject", "code": code, "message": message, "facts": dict(facts or {})}
        self._runtime.answer_call(self, node_id, answer)

    def grant(self, num_tokens: int) -> None:
        """Add credit; see `rtlang.contract.target.GraphRun`."""
        check_credit(num_tokens)
        self._runtime.grant(self, num_tokens)

    def close(self) -> None:
        """Close the graph: no more nodes will follow. Idempotent."""
        self._runtime.close_graph(self)

    def cancel(self) -> None:
        """Cancel the graph. Idempotent."""
        self._runtime.cancel(self)

    def reopen_messages(self, epoch: str, frame_bytes: object) -> list[bytes]:
        """Messages that continue the stream on a new connection to the server process `epoch`."""
        if self.rid is not None and self.epoch != epoch and self.reopening is not None:
            self._reopen(self.reopening, frame_bytes)
        self.is_attaching = self.rid is not None
        if not self.is_attaching:  # the open was never acknowledged
            return [self.opening_message, *self.unacknowledged()]
        place = {"rid": self.rid, "epoch": self.epoch, "from": self.num_taken, "q": self.last_acknowledged}
        return [Encoding.MSGPACK.pack({"t": "attach", "s": self.graph_id, **place})]

    def _reopen(self, reopening: Reopening, frame_bytes: object) -> None:
        """Prepare to open the graph again on another server, which goes on behind the output that has arrived."""
        pending = [each for _, each in sorted(self.extending.items())]
        refusable = {node["id"] for each in pending for node in each.fields["nodes"]}
        batches = in_batches([node for node_id, node in self.known.items() if node_id not in refusable], frame_bytes)
        ledger = reopening.ledger
        continue_from = ledger.continue_from(self.known.values())
        others = set(ledger.known.keys() | continue_from.keys()) - self.known.keys()  # of nodes in blocks
        first, *later = ({node["id"] for node in batch} for batch in batches)
        is_done = not self.is_open and not self.was_closed and not pending
        extensions: list[tuple[Answer, Mapping[str, Any]]] = []
        for batch, node_ids in zip(batches[1:], later, strict=True):
            fields = {"t": "extend", "s": self.graph_id, "nodes": batch, "close": is_done and batch is batches[-1]}
            fields |= continuation_to_wire(ledger.known, continue_from, node_ids)
            extensions.append((Answer(is_awaited=False), fields))
        extensions += [(each.answer, each.fields) for each in pending]
        self.extending = {q: PendingExtend.numbered(q, *each) for q, each in enumerate(extensions, 1)}
        self.last_request = len(self.extending)
        body = dict(reopening.message["body"])
        body["graph"] = {**body["graph"], "nodes": batches[0]}
        if reopening.outputs is not None:
            body["graph"]["outputs"] = [each for each in reopening.outputs if each in self.known]
        body["open"] = len(batches) > 1 or not is_done
        self.num_granted, self.num_received = max(0, self.num_granted - self.num_received), 0
        opening = reopening.message | continuation_to_wire(ledger.known, continue_from, first | others)
        opening |= {"body": body, "idem": secrets.token_hex(16), "credit": self.num_granted}
        self.opening_message = Encoding.MSGPACK.pack(opening)
        self.rid, self.epoch, self.num_taken, self.last_acknowledged = None, "", 0, 0
        self.offsets.clear()

    def unacknowledged(self) -> list[bytes]:
        """Messages that the server may not have received, to be sent again."""
        said = [kind for kind, was in (("close", self.was_closed), ("cancel", self.was_cancelled)) if was]
        extensions = [extension.message for _, extension in sorted(self.extending.items())]
        return (
            extensions
            + list(self.call_answers.values())
            + [Encoding.MSGPACK.pack({"t": kind, "s": self.graph_id}) for kind in said]
        )

    def resolve_extends(self, last_acknowledged: int, refused: Collection[int]) -> list[bytes]:
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


def in_batches(nodes: Sequence[Node], frame_bytes: object) -> list[list[dict[str, Any]]]:
    """Split nodes in plain form into batches of at most an eighth of a frame; a larger single node forms its own batch.

    This leaves room in each frame for the rest of the message, and lets the server handle other messages between two batches.

    Args:
        frame_bytes: the server's frame limit; anything but an integer means no limit.
    """
    batches: list[list[dict[str, Any]]] = [[]]
    num_bytes = 0
    for node in nodes_to_plain(nodes):
        size = len(Encoding.MSGPACK.pack(node))
        if batches[-1] and isinstance(frame_bytes, int) and num_bytes + size > frame_bytes // 8:
            batches.append([])
            num_bytes = 0
        batches[-1].append(node)
        num_bytes += size
    return batches
