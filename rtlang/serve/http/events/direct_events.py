"""Writes parts of a response straight to its connection, in the turn of the event loop in which they arrive.

Waking the task of a response for each token costs more than everything else that the server does for it: the task goes through every layer
of the application twice. So the task writes the beginning, the end, large events and errors, and in between it sleeps, while the text that
arrives is encoded and written where it is delivered. Parts are left to the task whenever order or backpressure ask for it: while it has
others to write, and while the connection takes no bytes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from starlette.types import Scope

from rtlang.contract.events import Event, TextDelta
from rtlang.serve.network.body_writer import BODY_WRITER, BodyWriter

MAX_EVENTS = 32
"""Events that are encoded in one turn of the loop; more are encoded on a thread."""
_MAX_CHARS = 4_096  # of an event


_P = TypeVar("_P")
_P_contra = TypeVar("_P_contra", contravariant=True)


class PartWriter(Protocol[_P_contra]):
    """Writes parts of one response past its task."""

    @property
    def is_ready(self) -> bool:
        """Whether the connection takes a part now."""

    def write(self, part: _P_contra) -> None:
        """Write a part. Only while `is_ready`, and while the task has nothing to write before it."""


class DirectWriter:
    """Writes parts of one response past its task. Owned by the server's event loop.

    Attributes:
        written_at: when it wrote last, by `time.monotonic`; 0 before.
    """

    def __init__(self) -> None:
        self._writer: BodyWriter | None = None
        self.written_at = 0.0

    @property
    def is_ready(self) -> bool:
        """Whether the response has begun and goes on, and its connection takes a part now."""
        return self._writer is not None and self._writer.is_ready

    def open(self, scope: Scope) -> None:
        """Begin to write, if the connection allows it: the task has written the beginning of the response. Idempotent."""
        if self._writer is None:
            give = scope.get("state", {}).get(BODY_WRITER)
            self._writer = None if give is None else give()

    def close(self) -> None:
        """Write nothing any more."""
        self._writer = None

    def write(self, data: bytes) -> None:
        """Write a part. Only while `is_ready`, and while the task has nothing to write before it."""
        if data:
            assert self._writer is not None
            self._writer.write(data)
            self.written_at = time.monotonic()


class DirectEvents(Generic[_P]):
    """Encodes and writes the events of one graph while the task of the response sleeps.

    Args:
        encode: encodes events for which `is_small` holds.
    """

    def __init__(self, writer: PartWriter[_P], encode: Callable[[Sequence[Event]], _P]) -> None:
        self._writer, self._encode = writer, encode

    def take(self, events: Sequence[tuple[int, Event]]) -> bool:
        """Write events. False if they are left to the task, which must not have any others when this is called."""
        if not self._writer.is_ready:
            return False
        plain = [event for _, event in events]
        if not is_small(plain):
            return False
        self._writer.write(self._encode(plain))
        return True


def is_small(events: Sequence[Event]) -> bool:
    """Whether events are a few pieces of text without log-probabilities, which take microseconds to encode."""
    return len(events) <= MAX_EVENTS and all(
        isinstance(event, TextDelta) and not event.logprobs and len(event.text) <= _MAX_CHARS for event in events
    )
