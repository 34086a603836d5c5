"""OpenTelemetry spans of a runtime: `rtlang.run` for a graph, below it one for each node, and `rtlang.step` and `rtlang.compile` of the
engine.

The run is a child of the span at the door of its request, in whatever process that is (`RequestContext`), or of the present span of the
program. Nodes of the model follow the semantic conventions of OpenTelemetry for generative AI: https://opentelemetry.io/docs/specs/semconv/gen-ai/.
The spans go to the tracer provider of the process. Without the package `opentelemetry`, `runtime_spans` is None and nothing is recorded;
without a configured provider, the API drops the spans. No text of a request becomes an attribute.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from rtlang.contract.accounts.tracing import SCOPE, parent_of, trace_api
from rtlang.contract.errors import RtlangError
from rtlang.contract.events import Event, GraphFailed, GraphFinished, NodeFailed, NodeFinished
from rtlang.contract.request_graph import Generate, Node, Select
from rtlang.contract.runs.run_options import DEFAULT_OPTIONS, RunOptions
from rtlang.contract.service.target import Listener
from rtlang.runtime.reports.trace import HasPaths, path_in

PROVIDER = "rtlang"
_CHAT_DOORS = ("POST /v1/chat/completions", "POST /v1/responses")
_MAX_NODES = 4096  # whose parameters are kept for their spans
_Attribute = str | int | float | list[str]


def runtime_spans(model: str = "") -> Spans | None:
    """The spans of one runtime; None if the package `opentelemetry` is not installed.

    Args:
        model: the name of its model.
    """
    api = trace_api()
    return None if api is None else Spans(api, model)


class Spans:
    """Records spans after their end, with the times that the engine measured.

    Args:
        api: the module `opentelemetry.trace`.
        model: the name of the model, in names of spans.
    """

    def __init__(self, api: Any, model: str = "") -> None:
        self._api, self._model = api, model
        self._tracer = api.get_tracer(SCOPE)

    def listener(
        self,
        listener: Listener,
        nodes: Iterable[Node],
        options: RunOptions = DEFAULT_OPTIONS,
        graphs: Mapping[int, HasPaths] = MappingProxyType({}),
    ) -> Listener:
        """A listener for a graph that is submitted now: it also records the spans of its run and nodes.

        Args:
            graphs: the running graphs, by id.
        """
        request = options.context
        run = self._tracer.start_span("rtlang.run", parent_of(self._api, request))
        if not run.is_recording():
            return listener
        nodes = tuple(nodes)
        run.set_attribute("rtlang.num_nodes", len(nodes))
        run.set_attribute("rtlang.principal", options.principal.name)
        if request is not None:
            run.set_attribute("rtlang.request_id", request.request_id)
        is_chat = request is not None and request.door in _CHAT_DOORS
        asked = {node.node_id: _asked(node, is_chat=is_chat) for node in nodes[:_MAX_NODES]}
        context = self._api.set_span_in_context(run)

        def listen(event: Event) -> None:
            path = path_in(graphs, event)
            match event:
                case NodeFinished(timing=timing):
                    now = time.time_ns()
                    began = now - int(timing.total_s * 1e9)
                    node = self._node(event.node_id, path, asked, context, began)
                    for name, value in _answered(event).items():
                        node.set_attribute(name, value)
                    node.add_event("first step", timestamp=began + int(timing.queued_s * 1e9))
                    node.add_event("first token", timestamp=began + int(timing.first_token_s * 1e9))
                    node.end(end_time=now)
                case NodeFailed(error=error):
                    node = self._node(event.node_id, path, asked, context)
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

    def _node(
        self,
        node_id: int,
        path: str | None,
        asked: Mapping[int, Mapping[str, _Attribute]],
        context: Any,
        began: int | None = None,
    ) -> Any:
        found = asked.get(node_id, {})
        operation = found.get("gen_ai.operation.name")
        name = "rtlang.node" if operation is None else f"{operation} {self._model}".rstrip()
        node = self._tracer.start_span(name, context, start_time=began)
        node.set_attribute("rtlang.node_id", node_id)
        if path is not None:
            node.set_attribute("rtlang.path", path)
        if operation is not None:
            node.set_attribute("gen_ai.provider.name", PROVIDER)
            for field in ("gen_ai.request.model", "gen_ai.response.model"):
                node.set_attribute(field, self._model)
            for field, value in found.items():
                node.set_attribute(field, value)
        return node

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


def _asked(node: Node, *, is_chat: bool) -> dict[str, _Attribute]:
    """The attributes of what a node asks of the model; empty for a node without a model."""
    if isinstance(node, Select):
        return {"gen_ai.operation.name": "text_completion"}
    if not isinstance(node, Generate):
        return {}
    params = node.params
    asked: dict[str, _Attribute] = {
        "gen_ai.operation.name": "chat" if is_chat else "text_completion",
        "gen_ai.request.max_tokens": params.max_tokens,
        "gen_ai.request.temperature": params.temperature,
        "gen_ai.request.top_p": params.top_p,
    }
    if params.top_k:
        asked["gen_ai.request.top_k"] = params.top_k
    if params.n > 1:
        asked["gen_ai.request.choice.count"] = params.n
    if params.seed is not None:
        asked["gen_ai.request.seed"] = min(params.seed, (1 << 63) - 1)
    for name in ("frequency_penalty", "presence_penalty"):
        if value := getattr(params, name):
            asked[f"gen_ai.request.{name}"] = value
    return asked


def _answered(event: NodeFinished) -> dict[str, _Attribute]:
    """The attributes of the end of a node."""
    usage = event.usage
    if not event.completions and not usage.prompt_tokens:
        return {}
    answered: dict[str, _Attribute] = {
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.completion_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
    }
    if event.completions:
        answered["gen_ai.response.finish_reasons"] = [str(each.finish_reason) for each in event.completions]
    return answered
