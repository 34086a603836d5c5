"""OpenTelemetry spans of a runtime: `rtlang.run` for a graph, below it `rtlang.node`, and `rtlang.step` and `rtlang.compile` of the engine.

The spans go to the tracer provider of the process. Without the package `opentelemetry`, `runtime_spans` is None and nothing is recorded;
without a configured provider, the API drops the spans. No text of a request becomes an attribute.
"""

from __future__ import annotations

import time
from importlib.util import find_spec
from typing import Any

from rtlang.contract.errors import RtlangError
from rtlang.contract.events import Event, GraphFailed, GraphFinished, NodeFailed, NodeFinished
from rtlang.contract.service.target import Listener

SCOPE = "rtlang"


def runtime_spans() -> Spans | None:
    """The spans of one runtime; None if the package `opentelemetry` is not installed."""
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.trace") is None:
        return None
    from opentelemetry import trace

    return Spans(trace)


class Spans:
    """Records spans behind their end, with the times that the engine measured.

    Args:
        api: the module `opentelemetry.trace`.
    """

    def __init__(self, api: Any) -> None:
        self._api = api
        self._tracer = api.get_tracer(SCOPE)

    def listener(self, listener: Listener, num_nodes: int) -> Listener:
        """A listener for a graph that is submitted now: it also records the spans of its run and nodes."""
        run = self._tracer.start_span("rtlang.run", attributes={"rtlang.num_nodes": num_nodes})
        if not run.is_recording():
            return listener
        context = self._api.set_span_in_context(run)

        def listen(event: Event) -> None:
            match event:
                case NodeFinished(timing=timing, usage=usage):
                    now = time.time_ns()
                    began = now - int(timing.total_s * 1e9)
                    node = self._tracer.start_span("rtlang.node", context, start_time=began)
                    node.set_attribute("rtlang.node_id", event.node_id)
                    node.set_attribute("rtlang.prompt_tokens", usage.prompt_tokens)
                    node.set_attribute("rtlang.cached_tokens", usage.cached_tokens)
                    node.set_attribute("rtlang.completion_tokens", usage.completion_tokens)
                    node.add_event("first step", timestamp=began + int(timing.queued_s * 1e9))
                    node.add_event("first token", timestamp=began + int(timing.first_token_s * 1e9))
                    node.end(end_time=now)
                case NodeFailed(error=error):
                    node = self._tracer.start_span("rtlang.node", context)
                    node.set_attribute("rtlang.node_id", event.node_id)
                    self._fail(node, error)
                    node.end()
                case GraphFinished():
                    run.end()
                case GraphFailed(error=error):
                    self._fail(run, error)
                    run.end()
                case _:
                    pass
            listener(event)

        return listen

    def step(self, started: float, ended: float, now: float, **attributes: int) -> None:
        """Record a step that ran from `started` to `ended`; `now` is the time of the same clock, all in seconds."""
        self._interval("rtlang.step", started, ended, now, attributes)

    def compiled(self, seconds: float) -> None:
        """Record a compilation that has just ended."""
        self._interval("rtlang.compile", -seconds, 0.0, 0.0, {})

    def _interval(self, name: str, started: float, ended: float, now: float, attributes: dict[str, int]) -> None:
        wall = time.time_ns()
        span = self._tracer.start_span(name, start_time=wall - int((now - started) * 1e9))
        if span.is_recording():
            for key, value in attributes.items():
                span.set_attribute(f"rtlang.{key}", value)
        span.end(end_time=wall - int((now - ended) * 1e9))

    def _fail(self, span: Any, error: RtlangError) -> None:
        span.set_attribute("error.type", error.code)
        span.set_status(self._api.StatusCode.ERROR)
