"""Chooses the engine of each graph of a target. `ProgramBalancer` is the load balancer of a fleet."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from rtlang.contract.events import Event
from rtlang.fleet.engines.engine_run import EngineRun
from rtlang.fleet.messages.frames import Message


class LoadBalancer:
    """A `Placement` that learns from graphs and engines. Called under the lock of its target, except `accept`.

    This one is for engines that are alike: it learns nothing, and each graph goes to the first engine and stays.
    """

    def choose(self, graph_id: int, engines: Collection[str]) -> str:
        """See `Placement.choose`."""
        return next(iter(engines))

    def accept(self, run: EngineRun, inputs: Mapping[str, str]) -> None:
        """A graph was accepted, and will be placed next."""

    def forget(self, graph_id: int) -> None:
        """A graph has ended."""

    def note_opened(self, graph_id: int, engine: str) -> None:
        """See `Placement.note_opened`."""

    def note_left(self, graph_id: int, engine: str) -> None:
        """See `Placement.note_left`."""

    def note_output(self, graph_id: int, engine: str, event: Event, is_open: Callable[[str], bool]) -> bool:
        """A graph gave output on an engine, and goes on; returns whether it should move to another engine.

        Args:
            is_open: tells whether an engine takes graphs.
        """
        return False

    def moves(self, is_open: Callable[[str], bool]) -> list[tuple[int, str]]:
        """The graphs that should move now, and where; they are moved at once, if they still can be. Called about once a second, and when
        an engine is ready.

        Args:
            is_open: tells whether an engine takes graphs.
        """
        return []

    def note_ready(self, engine: str, ready: Message) -> None:
        """A new engine is ready, with an empty cache."""

    def note_load(self, engine: str, load: Message) -> None:
        """An engine reported its load."""

    def forget_engine(self, engine: str) -> None:
        """An engine has ended or was removed."""
