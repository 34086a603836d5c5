"""The span of a request at its door, of kind SERVER: the parent of the spans of its runs, in whatever process they are.

Names and attributes follow the semantic conventions of OpenTelemetry for HTTP servers; those of generative AI are on the spans of the nodes
(`rtlang.runtime.reports.spans`), so that nothing counts tokens twice. A graph that leaves its engine is an event here, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Self

from rtlang.contract.accounts.request_context import RequestContext
from rtlang.contract.accounts.tracing import SCOPE, parent_of, trace_api, traceparent_of

_FAULT = 500


class DoorSpans:
    """Makes the spans of a server.

    Args:
        api: the module `opentelemetry.trace`.
    """

    def __init__(self, api: Any) -> None:
        self.api = api
        self._tracer = api.get_tracer(SCOPE)

    @classmethod
    def of_process(cls) -> Self | None:
        """The spans of this process; None if the package `opentelemetry-api` is not installed."""
        api = trace_api()
        return None if api is None else cls(api)

    def begin(self, context: RequestContext) -> DoorSpan:
        """A request has come in. A trace that the client gives goes on if nothing is recorded here."""
        span = self._tracer.start_span(context.door, parent_of(self.api, context), kind=self.api.SpanKind.SERVER)
        if span.is_recording():
            state = span.get_span_context().trace_state.to_header() or None
            context = replace(context, traceparent=traceparent_of(span), tracestate=state)
        return DoorSpan(self.api, span, context)


class DoorSpan:
    """The span of one request.

    Attributes:
        context: of the request, with this span as its place in the trace.
    """

    def __init__(self, api: Any, span: Any, context: RequestContext) -> None:
        self._api, self._span, self.context = api, span, context

    def end(self, principal: str, door: str, status: int, code: str | None, moves: Iterable[tuple[int, str]]) -> None:
        """The request has ended."""
        span = self._span
        if not span.is_recording():
            return
        span.update_name(door)
        span.set_attribute("rtlang.request_id", self.context.request_id)
        span.set_attribute("rtlang.principal", principal)
        method, _, route = door.partition(" ")
        if route:
            span.set_attribute("http.request.method", method)
            span.set_attribute("http.route", route)
            span.set_attribute("http.response.status_code", status)
        for moment_ns, reason in moves:
            span.add_event("rtlang.moved", {"rtlang.reason": reason}, moment_ns)
        if code is not None:
            span.set_attribute("error.type", code)
        if status >= _FAULT:
            span.set_status(self._api.StatusCode.ERROR)
        span.end()
