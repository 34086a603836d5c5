"""What a runtime and its server count and measure.

One `Metrics` object belongs to one runtime and is passed to whoever counts; there is no global registry, so two runtimes in a
process do not mix. It is a thin layer on prometheus-client: the names are fixed here, with the field's suffixes under the prefix
`rtlang:`, and the only label (`finished_reason`) takes the values of an enum, so that no text of a request becomes a label.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

PREFIX = "rtlang:"
CONTENT_TYPE = CONTENT_TYPE_LATEST
FINISHED_REASONS = ("stop", "length", "cancelled", "error")

# Seconds. From a fraction of a small model's step to a long program.
_LATENCY_BUCKETS = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
)  # fmt: skip
# Seconds. Work that should hide inside one step.
_STEP_BUCKETS = (
    0.00001, 0.00003, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 10.0,
)  # fmt: skip


class Metrics:
    """The counters, gauges and histograms of one runtime. Every attribute may be used from any thread.

    Counters (`.inc(amount)`): prefix_cache_queries, prefix_cache_hits (tokens asked for; tokens found), prompt_tokens,
    generation_tokens, num_preemptions, engine_steps, ws_slow_closed, and request_success(reason) for each finished request.
    Gauges (`.set(value)`, `.inc()`, `.dec()`): num_requests_running, num_requests_waiting, kv_cache_usage_perc (0 to 1),
    kv_pages_free, kv_pages_total, ws_connections, ws_streams_detached, ws_resume_buffer_bytes.
    Histograms (`.observe(seconds)`): time_to_first_token, inter_token_latency, e2e_request_latency, request_queue_time,
    engine_step_gap (from the end of one step to the launch of the next), grammar_compile, mask.
    """

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()

        def counter(name: str, help_text: str) -> Counter:
            return Counter(PREFIX + name, help_text, registry=registry)

        def gauge(name: str, help_text: str) -> Gauge:
            return Gauge(PREFIX + name, help_text, registry=registry)

        def histogram(name: str, help_text: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(PREFIX + name, help_text, registry=registry, buckets=buckets)

        self.num_requests_running = gauge("num_requests_running", "Requests in the batch.")
        self.num_requests_waiting = gauge("num_requests_waiting", "Requests waiting for their first step.")
        self.kv_cache_usage_perc = gauge("kv_cache_usage_perc", "Share of KV pages in use, 0 to 1.")
        self.kv_pages_free = gauge("kv_pages_free", "KV pages that hold nothing.")
        self.kv_pages_total = gauge("kv_pages_total", "KV pages in the pool.")
        self.ws_connections = gauge("ws_connections", "WebSocket connections open.")
        self.ws_streams_detached = gauge(
            "ws_streams_detached", "Graphs that run on without a connection, to be resumed."
        )
        self.ws_resume_buffer_bytes = gauge("ws_resume_buffer_bytes", "Kept for streams that may be resumed, about.")

        self.prefix_cache_queries = counter("prefix_cache_queries", "Tokens looked up in the prefix cache.")
        self.prefix_cache_hits = counter("prefix_cache_hits", "Tokens found in the prefix cache.")
        self.prompt_tokens = counter("prompt_tokens", "Prompt tokens, cached ones included.")
        self.generation_tokens = counter("generation_tokens", "Tokens generated.")
        self.num_preemptions = counter("num_preemptions", "Times a running request was put back for want of pages.")
        self.engine_steps = counter("engine_steps", "Forward passes.")
        self.ws_slow_closed = counter("ws_slow_closed", "WebSocket connections closed for not taking their output.")
        self._request_success = Counter(
            PREFIX + "request_success", "Requests ended, by reason.", ["finished_reason"], registry=registry
        )
        self._success_by_reason = {reason: self._request_success.labels(reason) for reason in FINISHED_REASONS}

        self.time_to_first_token = histogram(
            "time_to_first_token_seconds", "From arrival to the first token.", _LATENCY_BUCKETS
        )
        self.inter_token_latency = histogram(
            "inter_token_latency_seconds", "Between two tokens of a request.", _LATENCY_BUCKETS
        )
        self.e2e_request_latency = histogram(
            "e2e_request_latency_seconds", "From arrival to the end of a request.", _LATENCY_BUCKETS
        )
        self.request_queue_time = histogram(
            "request_queue_time_seconds", "From arrival to the first step.", _LATENCY_BUCKETS
        )
        self.engine_step_gap = histogram("engine_step_gap_seconds", "Between two forward passes.", _STEP_BUCKETS)
        self.grammar_compile = histogram("grammar_compile_seconds", "Compiling one constraint.", _LATENCY_BUCKETS)
        self.mask = histogram("mask_seconds", "Filling the token masks of one step.", _STEP_BUCKETS)

    def request_success(self, reason: str) -> None:
        """Count a request that ended for `reason`, one of FINISHED_REASONS (KeyError otherwise)."""
        self._success_by_reason[reason].inc()

    def snapshot(self) -> dict[str, float]:
        """Every sample by name, the label appended in braces where there is one; histogram buckets are left out."""
        values: dict[str, float] = {}
        for family in self.registry.collect():
            for sample in family.samples:
                if not sample.name.endswith(("_bucket", "_created")):
                    label = ",".join(sample.labels.values())
                    values[sample.name + (f"{{{label}}}" if label else "")] = sample.value
        return values

    def render(self) -> bytes:
        """All samples in the Prometheus text format, of CONTENT_TYPE."""
        return generate_latest(self.registry)
