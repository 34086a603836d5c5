"""The timeline of a runtime in the Chrome trace event format, which chrome://tracing and Perfetto open.

One track shows the engine's steps; each graph is a process of its own whose nodes are asynchronous spans, divided into waiting, prefill and
decode. Format: "Trace Event Format", Google, 2016.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from rtlang.contract.errors import ConfigError
from rtlang.contract.events import Event, GraphFailed, GraphFinished, NodeFailed, NodeFinished
from rtlang.contract.service.target import Listener
from rtlang.engine.engine import Engine
from rtlang.engine.requests.request import RequestOutput

MAX_EVENTS = 2_000_000
"""Number of trace events kept in memory; later ones are counted but dropped."""

ENGINE_PROCESS = 0


class HasPaths(Protocol):
    """A running graph."""

    def path_of(self, node_id: int) -> str | None:
        """The path of a node, by the id under which it runs; None if it has none."""


def path_in(graphs: Mapping[int, HasPaths], event: Event) -> str | None:
    """The path of the node of an event; None if it has none."""
    graph = graphs.get(event.graph_id)
    return None if graph is None or not isinstance(event, (NodeFinished, NodeFailed)) else graph.path_of(event.node_id)


def traced(listener: Listener, traces: Callable[[], Sequence[Trace]], graphs: Mapping[int, HasPaths]) -> Listener:
    """A listener that also passes events to the traces that are open then. `graphs`: the running graphs, by id."""

    def listen(event: Event) -> None:
        for trace in traces():
            trace.on_event(event, path_in(graphs, event))
        listener(event)

    return listen


class Trace:
    """Collects the timeline until `close` writes it. A context manager; filled on the engine thread.

    Args:
        path: the file to write; its folder must exist.
        clock: the engine's clock, in seconds.
        on_close: called once when the trace ends.
    Raises:
        ConfigError: the folder of `path` does not exist.
    """

    def __init__(
        self, path: str | os.PathLike[str], clock: Callable[[], float], on_close: Callable[[Trace], None]
    ) -> None:
        self.path = Path(path)
        if not self.path.parent.is_dir():
            raise ConfigError("path", str(path), "expected a file in an existing folder")
        self.num_dropped = 0
        self._clock, self._on_close = clock, on_close
        self._started = clock()
        self._lock = threading.Lock()
        self._is_closed = False
        self._num_steps = 0
        self._events: list[dict[str, Any]] = [_name("process_name", ENGINE_PROCESS, "engine")]

    def after_step(self, engine: Engine, outputs: Sequence[RequestOutput], started: float, ended: float) -> None:
        """Record one step of the engine, which ran from `started` to `ended`."""
        cache = engine.cache
        self._num_steps += 1
        args = {
            "step": self._num_steps,
            "running": len(engine.scheduler.running),
            "waiting": engine.scheduler.num_waiting,
            "tokens": sum(len(output.token_ids) for output in outputs),
        }
        step = {"ph": "X", "name": "step", "pid": ENGINE_PROCESS, "tid": 0, "ts": self._us(started), "args": args}
        pages = {"in use": cache.num_in_use, "cached": cache.num_cached}
        self._add(
            step | {"dur": round((ended - started) * 1e6, 1)},
            {"ph": "C", "name": "KV pages", "pid": ENGINE_PROCESS, "ts": self._us(ended), "args": pages},
        )

    def on_event(self, event: Event, path: str | None = None) -> None:
        """Record an event of a graph; of the end of a node, with its path, which is its name in the trace."""
        now = self._clock()
        match event:
            case NodeFinished(timing=timing, usage=usage):
                began = now - timing.total_s
                args: dict[str, Any] = {
                    "prompt_tokens": usage.prompt_tokens,
                    "cached_tokens": usage.cached_tokens,
                    "completion_tokens": usage.completion_tokens,
                    "drafts": {
                        each.source: {"computed": each.num_drafted, "accepted": each.num_accepted}
                        for each in event.drafts
                    },
                    "finish_reason": [str(completion.finish_reason) for completion in event.completions],
                }
                name = path or event.name or f"node {event.node_id}"
                self._span(event.graph_id, event.node_id, name, began, now, args)
                self._span(event.graph_id, event.node_id, "waiting", began, began + timing.queued_s)
                self._span(
                    event.graph_id, event.node_id, "prefill", began + timing.queued_s, began + timing.first_token_s
                )
                self._span(event.graph_id, event.node_id, "decode", began + timing.first_token_s, now)
            case NodeFailed(error=error):
                name = path or event.name or f"node {event.node_id}"
                self._instant(event.graph_id, f"{name} failed: {error.code}", now, {"message": error.message})
            case GraphFailed(error=error):
                self._instant(event.graph_id, f"graph failed: {error.code}", now, {"message": error.message})
            case GraphFinished():
                self._instant(event.graph_id, "graph finished", now, {})
            case _:
                return

    def close(self) -> None:
        """End the trace and write the file. Idempotent.

        Raises:
            OSError: the file cannot be written.
        """
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        self._on_close(self)
        other = {"num_dropped_events": self.num_dropped}
        document = {"traceEvents": self._events, "displayTimeUnit": "ms", "otherData": other}
        self.path.write_text(json.dumps(document), encoding="utf-8")

    def __enter__(self) -> Trace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _us(self, seconds: float) -> float:
        return round(max(0.0, seconds - self._started) * 1e6, 1)

    def _span(
        self, graph_id: int, node_id: int, name: str, began: float, ended: float, args: dict[str, Any] | None = None
    ) -> None:
        common = {"cat": "node", "id": node_id, "name": name, "pid": graph_id, "tid": 0}
        self._add(
            common | {"ph": "b", "ts": self._us(began), "args": args or {}},
            common | {"ph": "e", "ts": self._us(ended)},
        )

    def _instant(self, graph_id: int, name: str, now: float, args: dict[str, Any]) -> None:
        self._add({"ph": "i", "s": "p", "name": name, "pid": graph_id, "tid": 0, "ts": self._us(now), "args": args})

    def _add(self, *events: dict[str, Any]) -> None:
        with self._lock:
            if self._is_closed or len(self._events) + len(events) > MAX_EVENTS:
                self.num_dropped += len(events)
                return
            self._events.extend(events)


def _name(kind: str, process: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "args": {"name": name}}
