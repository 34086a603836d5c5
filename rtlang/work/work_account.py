"""The seconds of threads that one request has used. `PrincipalMetrics` counts them by principal."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol

from rtlang.contract.accounts.request_account import WorkKind


@dataclass(slots=True)
class RequestWork:
    """Work of one request. Used on one event loop.

    Attributes:
        seconds: time of threads by kind.
        waited_s: time in queues.
    """

    seconds: dict[WorkKind, float] = field(default_factory=dict)
    waited_s: float = 0.0

    def add(self, kind: WorkKind, seconds: float, waited_s: float) -> None:
        """Note one job."""
        self.seconds[kind] = self.seconds.get(kind, 0.0) + seconds
        self.waited_s += waited_s


request_work: ContextVar[RequestWork | None] = ContextVar("request_work", default=None)
"""Receives the work of the request that the present task serves; set it where the request begins."""


def note_request_work(kind: WorkKind, seconds: float, waited_s: float = 0.0) -> None:
    """Note work of the request that the present task serves, if somebody counts it."""
    found = request_work.get()
    if found is not None:
        found.add(kind, seconds, waited_s)


class TakesWork(Protocol):
    """Receives the seconds of jobs. Thread-safe."""

    def add(self, principal: str, kind: WorkKind, seconds: float) -> None:
        """Note work of a principal."""
