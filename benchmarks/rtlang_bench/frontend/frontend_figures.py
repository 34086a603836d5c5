"""Figures of the frontend alone: many streams of an engine without a model, and many readers of the snapshot feed.

Fairness is Jain's index (the square of the sum over n times the sum of squares) of the tokens of each stream when half of all tokens have
come, while all streams run. The time to a first token counts from the moment when the client has sent the request, all of them at once.
Processor time is that of the frontend's process, all threads, without the engine's process: with opens and ends over all tokens, and for
an event from the moment when every stream has a token until the first one ends. Where the client counts ids, each token is an event, also
one without text.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import rtlang
from rtlang.bench.measure import percentile
from rtlang.bench.server_process import ServerProcess
from rtlang_bench.figure import Figure, fairness
from rtlang_bench.frontend.feed_client import feed_gaps
from rtlang_bench.frontend.load_client import Load, Report, run_load
from rtlang_bench.frontend.null_server import MODULE
from rtlang_bench.serve.streams import Canary

FAIRNESS, FIRST_TOKEN_RATIO, EVENT_US = 0.95, 2.0, 120.0
FEED_GAP_MS, CANARY_GAP_MS = 500.0, 250.0
_RATE = 2.0  # tokens a second of each stream
_BODY = {"prompt": [1, 2, 3], "stream": True, "ignore_eos": True}


def stream_figures(num_streams: int, num_tokens: int) -> Iterator[Figure]:
    """Of `num_streams` streams that are opened at once, over server-sent events and over WebSockets."""
    for kind in ("sse", "sse_ids", "ws"):
        with ServerProcess("--rate", str(_RATE), command=(MODULE,)) as server:
            load = _load(kind, server, num_streams, num_tokens)
            yield from _figures(kind, load, run_load(load))


def _load(kind: str, server: ServerProcess, num_streams: int, num_tokens: int) -> Load:
    if kind == "ws":
        body: dict[str, Any] = {"prompt": "Once", "params": {"max_tokens": num_tokens, "ignore_eos": True}}
        return Load(server.url, body, num_streams, num_tokens, pid=server.pid)
    counts_ids = kind == "sse_ids"
    body = {**_BODY, "max_tokens": num_tokens, "return_token_ids": counts_ids}
    return Load(server.http_url, body, num_streams, num_tokens, counts_ids=counts_ids, pid=server.pid)


def _figures(kind: str, load: Load, report: Report) -> Iterator[Figure]:
    name, num_tokens = f"frontend_{kind}", max(1, report.num_tokens)
    reason = report.failures[0][:100] if report.failures else f"{load.num_streams} streams of {load.num_tokens} tokens"
    yield Figure(f"{name}_failed", len(report.failures), "==", 0, "streams", reason)
    yield Figure(f"{name}_fairness", fairness(report.tokens_at_half or [0]), ">=", FAIRNESS, "", "Jain's index")
    median, last = (percentile(report.first_s, share) for share in (0.5, 0.99))
    note = f"p50 {median:.2f} s, p99 {last:.2f} s"
    yield Figure(f"{name}_first_token", last / median, "<=", FIRST_TOKEN_RATIO, "times", note)
    whole_us = report.cpu_s / num_tokens * 1e6
    event_us = report.steady_cpu_s / max(1, report.num_steady_tokens) * 1e6
    note = f"{report.num_steady_tokens} events; {whole_us:.0f} us a token with opens and ends"
    yield Figure(f"{name}_event", event_us, "<=", EVENT_US, "us", note)


def feed_figures(server: ServerProcess, num_readers: int, seconds: float) -> Iterator[Figure]:
    """Of readers of the snapshot stream at its default interval of 250 ms, beside a stream that changes it all the time."""
    with rtlang.connect(server.url) as remote, Canary(remote) as canary:
        started = time.perf_counter()
        gaps = feed_gaps(server.http_url, num_readers, seconds)
        gap = canary.longest_gap(started, time.perf_counter())
    note = f"{num_readers} readers; p50 {percentile(gaps, 0.5) * 1e3:.0f} ms, {len(gaps)} snapshots"
    yield Figure("feed_p99_gap", percentile(gaps, 0.99) * 1e3, "<=", FEED_GAP_MS, "ms", note)
    yield Figure("feed_canary_gap", gap * 1e3, "<=", CANARY_GAP_MS, "ms", "longest gap of a stream beside the readers")
