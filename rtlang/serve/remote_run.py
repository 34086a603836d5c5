"""A graph that runs on a server, as its client keeps it, and the connection that carries it."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from websockets.sync.client import ClientConnection

from rtlang.errors import RtlangError
from rtlang.events import Event
from rtlang.lang.graph import Node, RequestGraph, nodes_to_plain
from rtlang.lang.target import Listener
from rtlang.serve.encoding import Encoding
from rtlang.serve.wire import Offsets

if TYPE_CHECKING:
    from rtlang.serve.remote import RemoteRuntime

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


class RemoteGraphRun:
    """A graph on the server. Made by `RemoteRuntime.submit`; safe to use from any thread."""

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
        # For a connection that takes over from a broken one: what to say of the stream, and what to say again.
        self.rid: str | None = None
        self.epoch = ""
        self.num_taken = self.last_request = 0
        self.opening_messages: tuple[bytes, ...] = ()
        self.was_closed = self.was_cancelled = False

    @property
    def graph_id(self) -> int:
        """Unique within its runtime."""
        return self._graph_id

    def extend(self, nodes: Sequence[Node]) -> None:
        """Add nodes to a graph submitted with is_open=True; see `rtlang.lang.target.GraphRun`."""
        self._runtime.extend(self, nodes)

    def close(self) -> None:
        """No more nodes will come. Idempotent."""
        self._runtime.close_graph(self)

    def cancel(self) -> None:
        """End now. Idempotent."""
        self._runtime.cancel(self)

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
