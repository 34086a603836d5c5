"""The process of an engine without a model: each step gives every open graph one token, at a set rate.

It speaks the messages of `rtlang.fleet.host`, so that a frontend does for its tokens all that it does for those of a model. Graphs have
one generation with `max_tokens`. A step takes no time: whatever is late is late in the frontend.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from itertools import cycle, islice
from typing import Any

from rtlang.contract.events import Completion, Event, GraphFinished, NodeFinished, TextDelta, Timing
from rtlang.contract.params import FinishReason, Usage
from rtlang.contract.request_graph import Generate, RequestGraph
from rtlang.contract.runs.principal import Principal
from rtlang.fleet.messages.frames import FrameWriter, Message, read_messages
from rtlang.protocol.event_codec import event_to_wire

RATE_VARIABLE = "RTLANG_BENCH_TOKENS_PER_S"
PIECES = (" the", " sea", "", " é", ", and", " 漢", "", " wind")
"""The texts of the tokens 0, 1, ...; two of eight have none, like the first bytes of a character."""


class NullGraph:
    """One open graph."""

    def __init__(self, graph_id: int, client_id: Any, node: Generate) -> None:
        self.graph_id, self.client_id, self._node, self._num_tokens = graph_id, client_id, node, 0

    def step(self) -> Iterator[Event]:
        """The events of the next token."""
        node_id, number = self._node.node_id, self._num_tokens
        self._num_tokens += 1
        token_id = number % len(PIECES)
        yield TextDelta(self.graph_id, node_id, 0, PIECES[token_id], (token_id,))
        if self.has_ended:
            ids = tuple(each % len(PIECES) for each in range(self._num_tokens))
            completion = Completion("".join(islice(cycle(PIECES), len(ids))), ids, FinishReason.LENGTH)
            usage = Usage(1, 0, len(ids))
            yield NodeFinished(self.graph_id, node_id, self._node.name, (completion,), usage, Timing())
            yield GraphFinished(self.graph_id, {}, usage, ())

    @property
    def has_ended(self) -> bool:
        """Whether all tokens are computed."""
        return self._num_tokens >= self._node.params.max_tokens


class NullEngine:
    """Answers the messages of one connection.

    Args:
        rate: tokens per second of each graph.
    """

    def __init__(self, connection: socket.socket, rate: float) -> None:
        self._connection, self._writer, self._step_s = connection, FrameWriter(connection, _message), 1 / rate
        self._graphs: dict[int, NullGraph] = {}  # the reader adds and cancels, the stepper ends
        self._lock = threading.Lock()

    def serve(self) -> None:
        """Work until the connection ends."""
        threading.Thread(target=self._step_forever, name="steps", daemon=True).start()
        for message in read_messages(self._connection):
            self._take(message)

    def _take(self, message: Message) -> None:
        match message["t"]:
            case "config":
                ready = {"tool_format": None, "vocab_size": len(PIECES), "max_model_len": 1 << 20, "pages_at": None}
                self._writer.put({"t": "ready", "model_identity": "null", "cache_tokens": 0} | ready)
            case "ping":
                self._writer.put({"t": "pong", "age": 0.0})
            case "open":
                graph_id, principal = message["s"], Principal.from_plain(message.get("principal") or {})
                nodes = RequestGraph.from_plain(message["graph"]).nodes
                node = next(each for each in nodes if isinstance(each, Generate))
                with self._lock:
                    self._graphs[graph_id] = NullGraph(graph_id, principal.client_id, node)
            case "cancel":
                with self._lock:
                    self._graphs.pop(message["s"], None)
            case "call":
                value: Any = [] if message["m"] != "metrics" else ""
                self._writer.put(
                    {"t": "reply", "q": message["q"], "value": None if message["m"] == "snapshot" else value}
                )

    def _step_forever(self) -> None:
        due = time.monotonic()
        while True:
            due = max(due + self._step_s, time.monotonic())
            time.sleep(due - time.monotonic() if due > time.monotonic() else 0.0)
            with self._lock:
                graphs = list(self._graphs.values())
            for graph in graphs:
                items = [(graph.graph_id, event) for event in graph.step()]
                self._writer.put(*items, channel=graph.graph_id, client=graph.client_id)
                if graph.has_ended:
                    with self._lock:
                        self._graphs.pop(graph.graph_id, None)


def _message(item: Any) -> Message:
    return item if isinstance(item, dict) else event_to_wire(*item)


def main() -> None:
    """The first argument is the file descriptor of the connection, as `ProcessLauncher` gives it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    NullEngine(socket.socket(fileno=int(sys.argv[1].partition(",")[0])), float(os.environ[RATE_VARIABLE])).serve()


if __name__ == "__main__":
    main()
