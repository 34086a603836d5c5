"""Adds up the seconds of jobs by principal and kind."""

from __future__ import annotations

import threading

from rtlang.contract.accounts.request_account import WorkKind


class SummedWork:
    """A `TakesWork` that tests can read."""

    def __init__(self) -> None:
        self._seconds: dict[str, dict[WorkKind, float]] = {}
        self._lock = threading.Lock()

    def add(self, principal: str, kind: WorkKind, seconds: float) -> None:
        """Note work of a principal."""
        with self._lock:
            by_kind = self._seconds.setdefault(principal, {})
            by_kind[kind] = by_kind.get(kind, 0.0) + seconds

    def snapshot(self) -> dict[str, dict[WorkKind, float]]:
        """The seconds so far: {principal: {kind: seconds}}."""
        with self._lock:
            return {name: dict(by_kind) for name, by_kind in self._seconds.items()}
