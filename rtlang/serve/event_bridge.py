"""Events on their way from the engine's thread to the event loop.

The engine calls a listener for every event of every graph. Waking the loop costs a system call and a switch of threads, so the
first event of a burst arms one flush and the rest only join a queue; whoever is to send them gets them grouped. No delay is needed
for that: the engine's thread keeps the interpreter until its step is told (64 streams a step went out in 1.1 messages a step;
waiting a millisecond more made it 1.0, and every token a millisecond late).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Protocol

from rtlang.contract.events import Event

logger = logging.getLogger(__name__)


class EventSink(Protocol):
    """Takes the events of its streams."""

    def deliver(self, events: list[tuple[int, Event]]) -> None:
        """Events by stream, in the order in which they happened."""

    def abort(self) -> None:
        """End at once: `deliver` failed, and what it was to deliver has not been sent."""


Route = Callable[[Event], tuple[EventSink, int] | None]
"""Where an event goes: a sink and its stream, or None for nowhere. Called once for every event, in their order, on the loop."""


class EventBridge:
    """A queue into `loop`. `put` is called from any thread, everything else happens on the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._pending: deque[tuple[Route, Event]] = deque()
        self._is_armed = False

    def listener(self, sink: EventSink, stream: int) -> Callable[[Event], None]:
        """What to give a Target as the listener of `stream`."""
        place = sink, stream
        return self.routed(lambda event: place)

    def routed(self, route: Route) -> Callable[[Event], None]:
        """What to give a Target as the listener of a stream whose place `route` tells, on the loop, for each event."""

        def put(event: Event) -> None:
            self._pending.append((route, event))
            if not self._is_armed:
                # Two threads may both get here; the second flush finds nothing, which is harmless. A flush lowers the flag before
                # it empties the queue, so an event appended after that arms another.
                self._is_armed = True
                try:
                    self._loop.call_soon_threadsafe(self._flush)
                except RuntimeError:  # the loop is closed: the server is gone and nobody is left to tell
                    self._pending.clear()

        return put

    def _flush(self) -> None:
        self._is_armed = False
        by_sink: dict[EventSink, list[tuple[int, Event]]] = {}
        for _ in range(len(self._pending)):
            route, event = self._pending.popleft()
            try:
                place = route(event)
            except Exception:
                logger.exception("an event was lost on its way")
                continue
            if place is not None:
                by_sink.setdefault(place[0], []).append((place[1], event))
        for sink, events in by_sink.items():
            try:
                sink.deliver(events)
            except Exception:
                # A bug in one connection must not cost the others their events.
                logger.exception("a connection failed to take %d events", len(events))
                sink.abort()
