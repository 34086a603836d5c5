"""Remembers the graphs that failed because they end engines, so that they are recognized when a client runs them again.

A program that is resumed from its journal, or simply started again, would otherwise end two more engines each time. A graph is known by its
nodes and inputs as they were submitted, and by its principal; options such as the seed and known outcomes may differ.
"""

from __future__ import annotations

import hashlib
import json

from rtlang.fleet.engines.crash_suspects import FORGET_S
from rtlang.fleet.engines.engine_run import EngineRun

MAX_CULPRITS = 1000


class Culprits:
    """The graphs that failed so within FORGET_S. Thread-safe: each step is one operation on a dictionary."""

    def __init__(self) -> None:
        self._noted: dict[bytes, float] = {}  # the oldest first
        self._until: dict[str, float] = {}  # by principal, when its last one is forgotten

    def note(self, run: EngineRun, now: float) -> None:
        """A graph has failed because it ends engines."""
        key, name = _key_of(run), run.share.principal.name
        self._noted.pop(key, None)
        self._noted[key] = now
        if len(self._noted) > MAX_CULPRITS:
            self._noted.pop(next(iter(self._noted)), None)
        self._until.pop(name, None)
        self._until[name] = now + FORGET_S
        if len(self._until) > MAX_CULPRITS:
            self._until.pop(next(iter(self._until)), None)

    def has(self, run: EngineRun, now: float) -> bool:
        """Whether the graph is that of a culprit. Costs nothing for principals without one."""
        if now >= self._until.get(run.share.principal.name, 0.0):
            return False
        at = self._noted.get(_key_of(run))
        return at is not None and now < at + FORGET_S


def _key_of(run: EngineRun) -> bytes:
    plain = run.graph.to_plain(), sorted(run.options.inputs.items()), run.share.principal.name
    return hashlib.sha256(json.dumps(plain, sort_keys=True, default=repr).encode()).digest()
