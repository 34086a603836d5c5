"""Metrics of a runtime and its server.

Each runtime has its own `Metrics` object; there is no global registry, so runtimes in one process stay separate. This is a thin layer on
prometheus-client: names have the prefix `rtlang_` and the usual suffixes. Labels have fixed sets of values, or are names of principals, of
which there are a bounded number (`PrincipalMetrics`), so that request text never becomes a label.
"""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from rtlang.contract.runs.principal import Principal
from rtlang.contract.service.principal_metrics import PrincipalMetrics, seen_by_one

PREFIX = "rtlang_"
CONTENT_TYPE = CONTENT_TYPE_LATEST
FINISHED_REASONS = ("stop", "length", "cancelled", "error")
REPLICA_STATES = ("loading", "ready", "restarting", "draining", "spare", "dead")
DRAFT_SOURCES = ("own_text", "stored_text", "call_site", "structure", "draft_model")

# Seconds: from a fraction of a step of a small model to a long program.
_LATENCY_BUCKETS = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
)  # fmt: skip
# Seconds: work that should overlap with one step.
_STEP_BUCKETS = (
    0.00001, 0.00003, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 10.0,
)  # fmt: skip


class Metrics:
    """The counters, gauges and histograms of one runtime. Thread-safe.

    Counters (`.inc(amount)`): prefix_cache_queries, prefix_cache_hits (tokens looked up and found), prompt_tokens,
    generation_tokens, num_preemptions, engine_steps, engine_restarts, retention_refused, retention_revoked, ws_slow_closed,
    sockets_refused, cache_evicted_pages, cache_host_loaded_pages, cache_disk_loaded_pages, cache_host_recomputed_pages,
    cache_disk_recomputed_pages, cache_disk_bad_pages, cache_peer_loaded_pages, cache_peer_recomputed_pages,
    cache_peer_bad_pages, cache_served_pages, cache_kept_states, cache_evicted_states, cache_state_hits, cache_state_misses,
    cache_replayed_tokens, draft_model_steps, moved_programs, request_success(reason) for each finished request, and
    draft_tokens(source, computed, accepted).
    Gauges (`.set(value)`, `.inc()`, `.dec()`): step_cost_error (a share), num_requests_running, num_requests_waiting,
    kv_cache_usage_perc (0 to 1), kv_pages_free, kv_pages_held, kv_pages, states, states_free, cache_host_used_bytes, cache_disk_used_bytes,
    cache_peers_connected, programs_unplaced, sockets, ws_connections, ws_streams_detached, ws_resume_buffer_bytes; replicas(counts).
    Histograms (`.observe(seconds)`): time_to_first_token, inter_token_latency, e2e_request_latency, request_queue_time,
    engine_step_gap (from the end of one step to the launch of the next), grammar_compile, mask.
    By principal: `principals`, see `PrincipalMetrics`.
    """

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.principals = PrincipalMetrics(registry, PREFIX)

        def counter(name: str, help_text: str) -> Counter:
            return Counter(PREFIX + name, help_text, registry=registry)

        def gauge(name: str, help_text: str) -> Gauge:
            return Gauge(PREFIX + name, help_text, registry=registry)

        def histogram(name: str, help_text: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(PREFIX + name, help_text, registry=registry, buckets=buckets)

        self.num_requests_running = gauge("num_requests_running", "Requests in the batch.")
        self.num_requests_waiting = gauge("num_requests_waiting", "Requests waiting for their first step.")
        self.kv_cache_usage_perc = gauge("kv_cache_usage_perc", "Share of KV pages in use, 0 to 1.")
        self.kv_pages_free = gauge("kv_pages_free", "Free KV pages.")
        self.kv_pages_held = gauge("kv_pages_held", "KV pages kept for sequences that open programs continue later.")
        self.kv_pages = gauge("kv_pages", "KV pages in the pool.")
        self.states = gauge("states", "Slots for states of recurrent layers; 0 for a model without any.")
        self.states_free = gauge("states_free", "Free slots for states.")
        self.ws_connections = gauge("ws_connections", "Open WebSocket connections.")
        self.ws_streams_detached = gauge("ws_streams_detached", "Graphs without a connection that can be resumed.")
        self.ws_resume_buffer_bytes = gauge(
            "ws_resume_buffer_bytes", "Approximate size of the events retained for resumption."
        )

        self.prefix_cache_queries = counter("prefix_cache_queries", "Tokens looked up in the prefix cache.")
        self.prefix_cache_hits = counter("prefix_cache_hits", "Tokens found in the prefix cache.")
        self.cache_evicted_pages = counter("cache_evicted_pages", "Cached KV pages evicted from the pool.")
        self.cache_kept_states = counter("cache_kept_states", "States kept as checkpoints of the prefix cache.")
        self.cache_evicted_states = counter("cache_evicted_states", "Checkpoints evicted for other states.")
        self.cache_state_hits = counter("cache_state_hits", "Look-ups of a prompt that found a checkpoint.")
        self.cache_state_misses = counter(
            "cache_state_misses", "Look-ups of a prompt that found KV pages, but no checkpoint."
        )
        self.cache_replayed_tokens = counter(
            "cache_replayed_tokens",
            "Tokens that look-ups found in KV pages after the deepest checkpoint, which are computed again.",
        )
        self.cache_host_loaded_pages = counter(
            "cache_host_loaded_pages", "KV pages loaded into the pool from cache_host_bytes."
        )
        self.cache_disk_loaded_pages = counter(
            "cache_disk_loaded_pages", "KV pages loaded into the pool from cache_dir."
        )
        self.cache_host_recomputed_pages = counter(
            "cache_host_recomputed_pages", "KV pages in cache_host_bytes that were computed again, which was faster."
        )
        self.cache_disk_recomputed_pages = counter(
            "cache_disk_recomputed_pages", "KV pages in cache_dir that were computed again, which was faster."
        )
        self.cache_disk_bad_pages = counter(
            "cache_disk_bad_pages", "Files of cache_dir that were damaged or belonged elsewhere."
        )
        self.cache_peer_loaded_pages = counter("cache_peer_loaded_pages", "KV pages loaded into the pool from peers.")
        self.cache_peer_recomputed_pages = counter(
            "cache_peer_recomputed_pages", "KV pages of peers that were computed again, which was faster."
        )
        self.cache_peer_bad_pages = counter("cache_peer_bad_pages", "KV pages of peers that were damaged.")
        self.cache_peers_connected = gauge("cache_peers_connected", "Peers whose KV pages can be fetched.")
        self.cache_served_pages = counter("cache_served_pages", "KV pages sent to peers.")
        self.cache_host_used_bytes = gauge("cache_host_used_bytes", "Size of the KV pages in host memory.")
        self.cache_disk_used_bytes = gauge("cache_disk_used_bytes", "Size of the files in cache_dir.")
        self.prompt_tokens = counter("prompt_tokens", "Prompt tokens, including cached tokens.")
        self.generation_tokens = counter("generation_tokens", "Generated tokens.")
        self.num_preemptions = counter("num_preemptions", "Preemptions of running requests for lack of KV pages.")
        self.retention_refused = counter(
            "retention_refused", "Sequences of open programs that were not kept, because older programs had the share."
        )
        self.retention_revoked = counter(
            "retention_revoked", "Sequences of open programs that were no longer kept, because their pages were needed."
        )
        self.returning_tokens = counter(
            "returning_tokens", "Prompt tokens that an earlier request of the same session had."
        )
        self.returning_tokens_cached = counter("returning_tokens_cached", "Returning tokens that were cached.")
        self.suspended_sessions = counter(
            "suspended_sessions", "Times that a session had to wait, since others needed the KV pool."
        )
        self.engine_steps = counter("engine_steps", "Forward passes.")
        self.draft_model_steps = counter("draft_model_steps", "Forward passes of the draft model.")
        self.engine_restarts = counter("engine_restarts", "Processes of the engine that ended and were replaced.")
        self.moved_programs = counter(
            "moved_programs", "Programs that left an engine before they had ended, whatever the reason."
        )
        self.programs_unplaced = gauge("programs_unplaced", "Programs that wait for an engine to be ready.")
        replicas = Gauge(PREFIX + "replicas", "Engines in other processes, by state.", ["state"], registry=registry)
        self._replicas = {state: replicas.labels(state) for state in REPLICA_STATES}
        self.sockets = gauge("sockets", "Open connections of all kinds.")
        self.sockets_refused = counter("sockets_refused", "Connections closed because of the limits on connections.")
        self.ws_slow_closed = counter(
            "ws_slow_closed", "WebSocket connections closed because they did not read their output."
        )
        self._request_success = Counter(
            PREFIX + "request_success", "Finished requests by reason.", ["finished_reason"], registry=registry
        )
        self._success_by_reason = {reason: self._request_success.labels(reason) for reason in FINISHED_REASONS}

        self.step_cost_error = gauge("step_cost_error", "Recent error of the predicted time of a step, relative to it.")
        self._draft_tokens, self._draft_tokens_accepted = (
            Counter(PREFIX + name, help_text, ["source"], registry=registry)
            for name, help_text in (
                ("draft_tokens", "Draft tokens computed, by source."),
                ("draft_tokens_accepted", "Draft tokens that were right, by source."),
            )
        )
        for source in DRAFT_SOURCES:
            self.draft_tokens(source, 0, 0)

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
        """Count a finished request. `reason` is one of FINISHED_REASONS; other values raise KeyError."""
        self._success_by_reason[reason].inc()

    def replicas(self, counts: Mapping[str, int]) -> None:
        """Take over how many engines in other processes are in each of REPLICA_STATES; those left out are 0."""
        for state, gauge in self._replicas.items():
            gauge.set(counts.get(state, 0))

    def draft_tokens(self, source: str, num_computed: int, num_accepted: int) -> None:
        """Count draft tokens of a source: one of DRAFT_SOURCES."""
        self._draft_tokens.labels(source).inc(num_computed)
        self._draft_tokens_accepted.labels(source).inc(num_accepted)

    def snapshot(self) -> dict[str, float]:
        """All samples by name, followed by the label in braces if there is one, without histogram buckets."""
        values: dict[str, float] = {}
        for family in self.registry.collect():
            for sample in family.samples:
                if not sample.name.endswith(("_bucket", "_created")):
                    label = ",".join(sample.labels.values())
                    values[sample.name + (f"{{{label}}}" if label else "")] = sample.value
        return values

    def render(self) -> bytes:
        """All samples in the Prometheus text format, with content type CONTENT_TYPE."""
        return generate_latest(self.registry)

    def render_for(self, principal: Principal) -> bytes:
        """`render` as a principal may see it. One without a namespace is an operator's, see `seen_by` of snapshots: it sees all."""
        rendered = self.render()
        return seen_by_one(rendered.decode(), principal.name).encode() if principal.namespace else rendered
