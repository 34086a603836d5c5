"""Carries events from the engine thread to the server's event loop.

The engine calls a listener for every event of every graph. Waking the loop costs a system call and a thread switch, so the first event
of a burst schedules one flush, later ones only join the queue, and each sink receives its events in groups. No delay is added: the engine
thread holds the interpreter lock until the step's events are out (with 64 streams, there were 1.1 messages per step; waiting another
millisecond reduced this to 1.0 and delayed every token by a millisecond).
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
    """Receives the events of its streams."""

    def deliver(self, events: list[tuple[int, Event]]) -> None:
        """Send events, given as (stream id, event) in order."""

    def abort(self) -> None:
        """Close the connection at once, because `deliver` failed and its events are lost."""


Route = Callable[[Event], tuple[EventSink, int] | None]
"""Maps an event to its sink and stream id, or None to drop it. Called on the loop, once per event, in order."""


class EventBridge:
    """A queue into `loop`. Listeners may be called from any thread; everything else runs on the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._pending: deque[tuple[Route, Event]] = deque()
        self._is_armed = False

    def listener(self, sink: EventSink, stream: int) -> Callable[[Event], None]:
        """A listener that forwards events to `sink` as `stream`."""
        place = sink, stream
        return self.routed(lambda event: place)

    def routed(self, route: Route) -> Callable[[Event], None]:
        """A listener that asks `route`, on the loop, where each event goes."""

        def put(event: Event) -> None:
            self._pending.append((route, event))
            if not self._is_armed:
                # Two threads may both get here; the second flush then finds an empty queue, which is harmless. A flush clears the
                # flag before it empties the queue, so an event appended later schedules another flush.
                self._is_armed = True
                try:
                    self._loop.call_soon_threadsafe(self._flush)
                except RuntimeError:  # the loop is closed: the server has stopped
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
                logger.exception("routing an event failed; the event is dropped")
                continue
            if place is not None:
                by_sink.setdefault(place[0], []).append((place[1], event))
        for sink, events in by_sink.items():
            try:
                sink.deliver(events)
            except Exception:
                # A bug in one connection must not affect the others.
                logger.exception("delivering %d events to a connection failed", len(events))
                sink.abort()
