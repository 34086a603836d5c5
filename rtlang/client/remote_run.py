"""A graph that runs on a server, as its client keeps it, and the connection that carries it."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from websockets.sync.client import ClientConnection

from rtlang.contract.errors import RtlangError
from rtlang.contract.events import Event
from rtlang.contract.graph import Node, RequestGraph, nodes_to_plain
from rtlang.contract.target import Listener
from rtlang.protocol.event_codec import Offsets
from rtlang.protocol.serialization import Encoding

if TYPE_CHECKING:
    from rtlang.client.remote_runtime import RemoteRuntime

logger = logging.getLogger(__name__)


class Link(NamedTuple):
    """One connection to a server: the greeted socket, what ends it, and what the server said."""

    websocket: ClientConnection
    exits: contextlib.ExitStack
    welcome: Mapping[str, Any]


class Answer:
    """The server's word on an open or an extend. `is_awaited` is False where the reader thread itself asked and cannot wait."""

    def __init__(self, is_awaited: bool) -> None:
        self.is_awaited = is_awaited
        self.is_there = threading.Event()
        self.error: RtlangError | None = None

    def give(self, error: RtlangError | None) -> None:
        """The first word counts."""
        if not self.is_there.is_set():
            self.error = error
            self.is_there.set()


@dataclass(frozen=True, slots=True)
class Extension:
    """Nodes that wait for the server's word, and the message that carries them."""

    answer: Answer
    message: bytes


class Outage:
    """When to try for a new connection, and for how long. Used by the reader thread; `is_over` by any."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s, self._pause_s = limit_s, 0.0
        self._until: float | None = None
        self.is_over = threading.Event()
        self.is_over.set()

    def next_pause(self) -> float | None:
        """Seconds until the next attempt; None where it is no use any more.

        A connection that breaks before it has brought anything belongs to the same outage.
        """
        now = time.monotonic()
        if self._until is None:
            self._until, self._pause_s = now + self._limit_s, 0.0
            self.is_over.clear()
            return 0.0
        self._pause_s = min(max(0.05, 2 * self._pause_s), 1.0)
        return self._pause_s if now + self._pause_s <= self._until else None

    def end(self) -> None:
        """The connection works."""
        self._until = None
        self.is_over.set()


class RemoteGraphRun:
    """A graph on the server. Made by `RemoteRuntime.submit`; its methods are safe to use from any thread.

    Attributes (the runtime's; under its lock, but what the reader thread alone writes):
        opening, extending: what waits for the server's word.
        rid, epoch: the server's names for the stream and for itself, once the open is acknowledged; till then `opening_message` is kept.
        num_taken: messages of the stream that have arrived.  last_answered: the last extension that was answered, 0 for none.
        was_closed, was_cancelled: said to the server, and to be said again on a new connection.
        is_attaching: a new connection has asked for the rest of the stream, and has no answer yet.
    """

    def __init__(
        self, runtime: RemoteRuntime, graph_id: int, graph: RequestGraph, listener: Listener, opening: Answer
    ) -> None:
        self._runtime, self._graph_id, self.listener = runtime, graph_id, listener
        self.known: dict[int, Node] = {node.node_id: node for node in graph.nodes}
        self.inputs = graph.inputs
        self.is_open = self.has_ended = False
        self.offsets: Offsets = {}
        self.opening = opening
        self.extending: dict[int, Extension] = {}
        self.rid: str | None = None
        self.epoch, self.opening_message = "", b""
        self.num_taken = self.last_answered = 0
        self.was_closed = self.was_cancelled = self.is_attaching = False

    @property
    def graph_id(self) -> int:
        """Unique within its runtime."""
        return self._graph_id

    def extend(self, nodes: Sequence[Node]) -> None:
        """Add nodes to a graph submitted with is_open=True; see `rtlang.contract.target.GraphRun`."""
        self._runtime.extend(self, nodes)

    def close(self) -> None:
        """No more nodes will come. Idempotent."""
        self._runtime.close_graph(self)

    def cancel(self) -> None:
        """End now. Idempotent."""
        self._runtime.cancel(self)

    def move(self) -> list[bytes]:
        """What to say of the stream on a new connection."""
        self.is_attaching = self.rid is not None
        if not self.is_attaching:  # as far as we know, the server has not heard of it
            return [self.opening_message, *self.unheard()]
        place = {"rid": self.rid, "epoch": self.epoch, "from": self.num_taken, "q": self.last_answered}
        return [Encoding.MSGPACK.pack({"t": "attach", "s": self.graph_id, **place})]

    def unheard(self) -> list[bytes]:
        """What the server may not have heard, to be said again."""
        said = [kind for kind, was in (("close", self.was_closed), ("cancel", self.was_cancelled)) if was]
        extensions = [extension.message for _, extension in sorted(self.extending.items())]
        return extensions + [Encoding.MSGPACK.pack({"t": kind, "s": self.graph_id}) for kind in said]

    def settle(self, last_answered: int, refused: Collection[int]) -> list[bytes]:
        """The server has answered extensions up to a number, some by refusals that follow; returns what is to be said again."""
        for request in [number for number in self.extending if number <= last_answered and number not in refused]:
            self.extending.pop(request).answer.give(None)
        missed = {number: self.extending.pop(number) for number in refused if number in self.extending}
        again = self.unheard()
        self.extending.update(missed)
        return again

    def tell(self, event: Event) -> None:
        """Call the listener."""
        try:
            self.listener(event)
        except Exception:  # the other graphs of this connection are not to pay for it
            logger.exception("the listener of graph %d raised", self.graph_id)


def in_batches(nodes: Sequence[Node], frame_bytes: object) -> list[list[dict[str, Any]]]:
    """Nodes in plain form, split into parts of an eighth of a frame; a larger single node stays alone.

    So every frame has room for what is around the nodes, and the server serves others between two parts.

    Args:
        frame_bytes: the longest that the server takes, if it said so.
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
