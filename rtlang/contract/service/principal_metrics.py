"""Metrics by principal: the same account as in the log line of a request, summed by the name of the principal.

The engine counts tokens, waits and work of its part while requests run, and the server the requests and its own part. Labels are bounded:
the first `MAX_NAMED` principals have labels of their own and the others share OTHERS; doors, kinds and causes are fixed sets.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge

from rtlang.contract.accounts.request_account import RequestAccount

MAX_NAMED = 64
OTHERS = "others"
NOBODY = "-"
"""The label of requests without a valid key."""
BY_PRINCIPAL = re.compile(r"rtlang_(?:engine_|server_)?principal_")
"""The beginning of the names of metrics by principal; a principal that is not an operator sees only its own samples."""


class ThreadWork:
    """Receives seconds of threads; see `rtlang.work.work_account.TakesWork`. Thread-safe."""

    def __init__(self, counter: Counter, label: Callable[[str], str]) -> None:
        self._counter, self._label = counter, label

    def add(self, principal: str, kind: str, seconds: float) -> None:
        """Note work of a principal."""
        self._counter.labels(self._label(principal), kind).inc(max(0.0, seconds))


class PrincipalMetrics:
    """The counters of one registry. Thread-safe.

    Args:
        prefix: of all names.
    Attributes:
        engine_work, server_work: receive the work of the threads of an engine, and of a server.
    """

    def __init__(self, registry: CollectorRegistry, prefix: str) -> None:
        self._lock = threading.Lock()
        self._named: set[str] = set()

        def counter(name: str, help_text: str, *labels: str) -> Counter:
            return Counter(prefix + name, help_text, labels, registry=registry)

        kind, cause = ("principal", "kind"), ("principal", "cause")
        self._tokens = counter("engine_principal_tokens", "Tokens of requests, by principal and kind.", *kind)
        self._engine_waits = counter(
            "engine_principal_wait_seconds", "Waits of requests in the engine, by principal and cause.", *cause
        )
        engine_work = self._engine_work = counter(
            "engine_principal_work_seconds", "Work of the engine for requests, by principal and kind.", *kind
        )
        self._server_waits = counter(
            "server_principal_wait_seconds", "Waits of requests in the server, by principal and cause.", *cause
        )
        server_work = counter(
            "server_principal_work_seconds", "Work of the server for requests, by principal and kind.", *kind
        )
        self.engine_work = ThreadWork(engine_work, self.label)
        self.server_work = ThreadWork(server_work, self.label)
        self._requests = counter(
            "principal_requests", "Ended requests, by principal and status.", "principal", "status"
        )
        self._seconds = counter("principal_request_seconds", "Durations of ended requests, by principal.", "principal")
        self._open = Gauge(
            prefix + "principal_open_requests",
            "Requests that have not ended, streams included, by principal.",
            ("principal",),
            registry=registry,
        )
        self._doors = counter("door_requests", "Ended requests, by door and status.", "door", "status")

    def label(self, principal: str) -> str:
        """The label of a principal: its name, or OTHERS."""
        if principal not in self._named:
            with self._lock:
                if len(self._named) >= MAX_NAMED:
                    return OTHERS
                self._named.add(principal)
        return principal

    def count_engine(self, principal: str, account: RequestAccount) -> None:
        """Count a part of an account in the engine."""
        label = self.label(principal)
        for kind, number in account.tokens.items():
            self._tokens.labels(label, kind).inc(number)
        self._count_seconds(label, account.waits, self._engine_waits)
        self._count_seconds(label, account.work, self._engine_work)

    def count_server_wait(self, principal: str, cause: str, seconds: float) -> None:
        """Count a wait in the server."""
        self._server_waits.labels(self.label(principal), cause).inc(seconds)

    def begin(self, principal: str) -> None:
        """A request begins."""
        self._open.labels(self.label(principal)).inc()

    def end(self, principal: str, door: str, status: int, seconds: float) -> None:
        """A request has ended."""
        label = self.label(principal)
        self._open.labels(label).dec()
        self._requests.labels(label, str(status)).inc()
        self._seconds.labels(label).inc(seconds)
        self._doors.labels(door, str(status)).inc()

    def _count_seconds(self, label: str, seconds: Mapping[str, float], counter: Counter) -> None:
        for kind, value in seconds.items():
            counter.labels(label, kind).inc(value)


def seen_by_one(rendered: str, principal: str) -> str:
    """The metrics as a principal that is not an operator may see them, in the text format: without samples of other principals."""
    own = f'principal="{_escaped(principal)}"'
    kept = [line for line in rendered.splitlines(keepends=True) if not BY_PRINCIPAL.match(line) or own in line]
    return "".join(kept)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
