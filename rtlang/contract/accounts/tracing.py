"""OpenTelemetry in a process, if its package is installed: the API, and conversions between request contexts and spans.

Without the package `opentelemetry-api` there is no tracer; without a configured provider, the API records nothing.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from rtlang.contract.accounts.request_context import RequestContext, trace_ids

SCOPE = "rtlang"


def trace_api() -> Any | None:
    """The module `opentelemetry.trace`; None if the package is not installed."""
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.trace") is None:
        return None
    from opentelemetry import trace

    return trace


def flush_spans() -> None:
    """Send what the provider of the process has not sent yet, because the process ends."""
    api = trace_api()
    flush = None if api is None else getattr(api.get_tracer_provider(), "force_flush", None)
    if flush is not None:
        flush()


def parent_of(api: Any, context: RequestContext | None) -> Any | None:
    """The parent of a span for a request that came with a trace; None for the present one of the calling code."""
    if context is None or context.traceparent is None:
        return None
    trace_id, span_id, flags = trace_ids(context.traceparent)
    state = None if context.tracestate is None else api.TraceState.from_header([context.tracestate])
    given = api.SpanContext(trace_id, span_id, True, api.TraceFlags(flags), state)
    return api.set_span_in_context(api.NonRecordingSpan(given))


def traceparent_of(span: Any) -> str | None:
    """The header that makes other spans children of a span; None if it belongs to no trace."""
    found = span.get_span_context()
    return f"00-{found.trace_id:032x}-{found.span_id:016x}-{found.trace_flags:02x}" if found.is_valid else None
