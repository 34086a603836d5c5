"""Writes small events of a response to its connection at once, on the turn of the event loop that delivers them.

Waking the task of a response for each token costs more than everything else that the server does for it: the task goes through every layer
of the application twice. So the task writes the beginning, the end, large events and errors, and in between it sleeps, while the text that
arrives is encoded and written where it is delivered. Events go to the task whenever order or backpressure ask for it: while it has others,
and while the connection takes no bytes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from starlette.types import Scope

from rtlang.contract.events import Event, TextDelta
from rtlang.serve.network.body_writer import BODY_WRITER, BodyWriter

MAX_EVENTS = 32
"""Events that are encoded in one turn of the loop; more are encoded on a thread."""
_MAX_CHARS = 4_096  # of an event


class DirectEvents:
    """Encodes and writes the events of one response while its task sleeps. Owned by the server's event loop.

    Args:
        encode: encodes events for which `is_small` holds.

    Attributes:
        written_at: when it wrote last, by `time.monotonic`; 0 before.
    """

    def __init__(self, encode: Callable[[Sequence[Event]], bytes]) -> None:
        self._encode = encode
        self._writer: BodyWriter | None = None
        self.written_at = 0.0

    def open(self, scope: Scope) -> None:
        """Begin to write, if the connection of the request allows it: the task has written the beginning of the response. Idempotent."""
        if self._writer is not None:
            return
        give = scope.get("state", {}).get(BODY_WRITER)
        self._writer = None if give is None else give()

    def close(self) -> None:
        """Write nothing any more."""
        self._writer = None

    def take(self, events: Sequence[tuple[int, Event]]) -> bool:
        """Write events. False if they are left to the task, which must not have any others when this is called."""
        writer = self._writer
        if writer is None or not writer.is_ready:
            return False
        plain = [event for _, event in events]
        if not is_small(plain):
            return False
        data = self._encode(plain)
        if data:
            writer.write(data)
            self.written_at = time.monotonic()
        return True


def is_small(events: Sequence[Event]) -> bool:
    """Whether events are a few pieces of text without log-probabilities, which take microseconds to encode."""
    return len(events) <= MAX_EVENTS and all(
        isinstance(event, TextDelta) and not event.logprobs and len(event.text) <= _MAX_CHARS for event in events
    )
