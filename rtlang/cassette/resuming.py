"""Runs of a remote runtime that continue from a recording."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from rtlang.contract.errors import CassetteError, RtlangError
from rtlang.contract.events import CallRequested, Event, GraphFailed, GraphFinished, NodeFailed, NodeFinished
from rtlang.contract.process.call_context import EMIT
from rtlang.contract.request_graph import Call, Node, RequestGraph, Text
from rtlang.contract.runs.known import Known, KnownOutcome
from rtlang.contract.runs.run_options import RunOptions
from rtlang.contract.service.target import ForwardedRun, Listener, Target
from rtlang.runtime.scripted_runtime import AskedNode, ModelFreeRuntime


class ResumingRun(ForwardedRun):
    """Answers a graph from a recording; from the first missing outcome on, the graph runs on a remote runtime.

    Nodes that ended before keep their recorded events; the equal events of the remote runtime are dropped.
    """

    def __init__(
        self,
        runtime: ModelFreeRuntime,
        target: Target,
        graph: RequestGraph,
        listener: Listener,
        known: Known,
        options: RunOptions,
    ) -> None:
        self._target, self._graph, self._listener = target, graph, listener
        self._options = options.begun(time.monotonic())
        self._nodes = list(graph.nodes)
        self._known: dict[int, KnownOutcome] = dict(known)
        self._ended: set[int] = set()
        self._is_closed, self._is_remote = not options.is_open, False
        self._lock = threading.RLock()
        with self._lock:
            self.run = runtime.submit(
                graph,
                self._on_local_event,
                replace(self._options, known=known, budget=None),  # outcomes that are known spend nothing
                answer=self._answer,
            )

    def extend(self, nodes: Sequence[Node], *, known: Known | None = None) -> None:
        with self._lock:
            self._known.update(known or {})
            if self._is_remote:
                self.run.extend(nodes)
            else:
                local: Any = self.run
                local.extend(nodes, known=known)
            self._nodes.extend(nodes)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            self.run.close()

    def cancel(self) -> None:
        with self._lock:
            self._is_closed = True
            self.run.cancel()

    # On the thread of the runtime without a model

    def _on_local_event(self, event: Event) -> None:
        if self._is_remote:
            return
        if isinstance(event, (NodeFinished, NodeFailed)):
            self._ended.add(event.node_id)
        self._listener(event)

    def _answer(self, asked: AskedNode) -> bool:
        if isinstance(asked.node, Text) or is_emission(asked.node):
            return False
        self._move(asked.graph_id)
        asked.end(KnownOutcome(CassetteError("", "the run continues on another runtime")))  # has no listener any more
        return True

    def _move(self, graph_id: int) -> None:
        """Continue on the remote runtime."""
        with self._lock:
            if self._is_remote:
                return
            self._is_remote = True
            local, options = self.run, replace(self._options, is_open=not self._is_closed)
            graph = RequestGraph(tuple(self._nodes), self._graph.inputs, self._graph.outputs)
            try:
                self.run = self._target.submit(graph, self._on_remote_event, options=options)
            except RtlangError as error:
                self._listener(GraphFailed(graph_id, error))
            local.cancel()

    # On the thread of the remote runtime

    def _on_remote_event(self, event: Event) -> None:
        if not isinstance(event, (GraphFinished, GraphFailed)) and event.node_id in self._ended:
            if isinstance(event, CallRequested):
                self._answer_call(event.node_id, is_emission=event.function == EMIT)
            return
        if isinstance(event, CallRequested) and event.node_id in self._known:
            self._answer_call(event.node_id)
        else:
            self._listener(event)

    def _answer_call(self, node_id: int, *, is_emission: bool = False) -> None:
        """Answer with the recorded value, in a separate thread, because the remote run may not be known yet."""
        known = self._known.get(node_id)

        def act() -> None:
            with self._lock:
                run = self.run
            if known is not None and isinstance(known.end, NodeFinished):
                run.resolve(node_id, known.end.value)
            elif is_emission:
                run.resolve(node_id, None)
            else:
                run.reject(
                    node_id,
                    "call",
                    "the recording has no value of this call; run the program with rt.record(path, runtime) to add it",
                )

        _in_thread(act)


def is_emission(node: Node) -> bool:
    """Whether a node sends a value to the stream."""
    return isinstance(node, Call) and node.function == EMIT


def _in_thread(act: Callable[[], None]) -> None:
    threading.Thread(target=act, name="rtlang-cassette", daemon=True).start()
