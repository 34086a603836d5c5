"""Events on their way from the engine's thread to the event loop.

The engine calls a listener for every event of every graph. Waking the loop costs a system call and a switch of threads, so the
first event of a burst arms one flush and the rest only join a queue; whoever is to send them gets them grouped.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

from rtlang.events import Event

# The loop's clock ticks in milliseconds: this is the least delay that is not zero. Without it the loop wakes for the first event
# of a step while the engine is still telling the others, and each message carries one delta (python -m tests.serve.bench_handover).
FLUSH_DELAY_S = 0.001


class Sink(Protocol):
    """Takes the events of its streams."""

    def deliver(self, events: list[tuple[int, Event]]) -> None:
        """Events by stream, in the order in which they happened."""


class Handover:
    """A queue into `loop`. `put` is called from any thread, everything else happens on the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._pending: deque[tuple[Sink, int, Event]] = deque()
        self._is_armed = False

    def listener(self, sink: Sink, stream: int) -> Callable[[Event], None]:
        """What to give a Target as the listener of `stream`."""

        def put(event: Event) -> None:
            self._pending.append((sink, stream, event))
            if not self._is_armed:
                # Two threads may both get here; the second flush finds nothing, which is harmless. A flush lowers the flag before
                # it empties the queue, so an event appended after that arms another.
                self._is_armed = True
                try:
                    self._loop.call_soon_threadsafe(self._arm)
                except RuntimeError:  # the loop is closed: the server is gone and nobody is left to tell
                    self._pending.clear()

        return put

    def _arm(self) -> None:
        self._loop.call_later(FLUSH_DELAY_S, self._flush)

    def _flush(self) -> None:
        self._is_armed = False
        by_sink: dict[Sink, list[tuple[int, Event]]] = {}
        for _ in range(len(self._pending)):
            sink, stream, event = self._pending.popleft()
            by_sink.setdefault(sink, []).append((stream, event))
        for sink, events in by_sink.items():
            sink.deliver(events)
