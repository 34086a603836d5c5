"""Carries events from the engine thread to the server's event loop.

The engine calls a listener for every event of every graph. Waking the loop costs a system call and a thread switch, so the first event
of a burst schedules one flush, later ones only join the queue, and each sink receives its events in groups. No delay is added: the engine
thread holds the interpreter lock until the step's events are out (with 64 streams, there were 1.1 messages per step; waiting another
millisecond reduced this to 1.0 and delayed every token by a millisecond).
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Protocol

from rtlang.contract.events import Event

logger = logging.getLogger(__name__)

_TURN_EVENTS, _TURN_S = (
    256,
    0.002,
)  # events, and processor time after which no other connection gets events, in one turn of the loop
_SINKS_A_LOOK = 4  # at the clock, which is a system call


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
        # Routed; the next sink first. A dict would pass over all the places of earlier sinks to find it.
        self._undelivered: OrderedDict[EventSink, list[tuple[int, Event]]] = OrderedDict()
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
        """Route and deliver events for one turn of the loop."""
        self._is_armed = False
        started = time.thread_time()
        for _ in range(min(len(self._pending), _TURN_EVENTS)):
            route, event = self._pending.popleft()
            try:
                place = route(event)
            except Exception:
                logger.exception("routing an event failed; the event is dropped")
                continue
            if place is not None:
                self._undelivered.setdefault(place[0], []).append((place[1], event))
        num_delivered = 0
        while self._undelivered:
            if num_delivered % _SINKS_A_LOOK == 0 and time.thread_time() - started >= _TURN_S:
                break
            num_delivered += 1
            sink, events = self._undelivered.popitem(last=False)
            try:
                sink.deliver(events)
            except Exception:
                # A bug in one connection must not affect the others.
                logger.exception("delivering %d events to a connection failed", len(events))
                sink.abort()
        if (self._pending or self._undelivered) and not self._is_armed:
            self._is_armed = True
            self._loop.call_soon(self._flush)


class HeldEvents:
    """A listener that holds the events of a graph back until `release`: those that come before the client knows that it is accepted."""

    def __init__(self, listener: Callable[[Event], None]) -> None:
        self._listener = listener
        self._held: list[Event] | None = []
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        with self._lock:
            if self._held is not None:
                self._held.append(event)
                return
        self._listener(event)

    def release(self) -> None:
        """Pass on the events so far, and later ones at once."""
        with self._lock:
            held, self._held = self._held or [], None
            for event in held:
                self._listener(event)
