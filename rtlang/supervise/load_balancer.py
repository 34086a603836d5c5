"""The interface of the rules by which a target chooses the engine of each graph, and the rule of a target with one engine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from rtlang.contract.events import Event
from rtlang.supervise.engine_pool import Placement
from rtlang.supervise.engine_run import EngineRun
from rtlang.supervise.frames import Message


class LoadBalancer(Placement, Protocol):
    """Chooses engines, and learns from what they do. Called under the lock of its target, except `accept`."""

    def accept(self, run: EngineRun, inputs: Mapping[str, str]) -> None:
        """A graph was accepted, and will be placed next."""

    def forget(self, graph_id: int) -> None:
        """A graph has ended."""

    def note_output(self, graph_id: int, engine: str, event: Event, is_open: Callable[[str], bool]) -> bool:
        """A graph gave output on an engine, and goes on; returns whether it should move to another engine.

        Args:
            is_open: tells whether an engine takes graphs.
        """

    def note_ready(self, engine: str, ready: Message) -> None:
        """A new engine is ready, with an empty cache."""

    def note_load(self, engine: str, load: Message, now: float) -> None:
        """An engine reported its load."""

    def forget_engine(self, engine: str) -> None:
        """An engine has ended or was removed."""


class FirstEngine:
    """The load balancer of a target whose engines are alike: each graph goes to the first one."""

    def choose(self, graph_id: int, engines: Collection[str]) -> str:
        """See `Placement.choose`."""
        return next(iter(engines))

    def note_opened(self, graph_id: int, engine: str) -> None:
        """Nothing is kept."""

    def note_left(self, graph_id: int, engine: str) -> None:
        """Nothing is kept."""

    def accept(self, run: EngineRun, inputs: Mapping[str, str]) -> None:
        """Nothing is kept."""

    def forget(self, graph_id: int) -> None:
        """Nothing is kept."""

    def note_output(self, graph_id: int, engine: str, event: Event, is_open: Callable[[str], bool]) -> bool:
        """Graphs stay."""
        return False

    def note_ready(self, engine: str, ready: Message) -> None:
        """Nothing is kept."""

    def note_load(self, engine: str, load: Message, now: float) -> None:
        """Nothing is kept."""

    def forget_engine(self, engine: str) -> None:
        """Nothing is kept."""
