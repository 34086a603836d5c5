"""A listener that keeps the events of one graph, joins its texts, and waits for events and for the end."""

from __future__ import annotations

import queue
import threading
from typing import Any

from rtlang.contract.events import Event, GraphFailed, GraphFinished, TextDelta

TIMEOUT_S = 150.0  # an engine of several processes may have to be started twice


class Ear:
    """Listens to one graph.

    Attributes:
        events: all, in the order of their delivery.
        text: what was delivered, by node and choice.
        token_ids: the delivered tokens, by node and choice.
        finals: the final events; there must be one.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.text: dict[tuple[int, int], str] = {}
        self.token_ids: dict[tuple[int, int], list[int]] = {}
        self.finals: list[GraphFinished | GraphFailed] = []
        self._has_ended = threading.Event()
        self._unread: queue.SimpleQueue[Event] = queue.SimpleQueue()

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, TextDelta):
            key = event.node_id, event.choice
            self.text[key] = self.text.get(key, "") + event.text
            self.token_ids.setdefault(key, []).extend(event.token_ids)
        elif isinstance(event, (GraphFinished, GraphFailed)):
            self.finals.append(event)
            self._has_ended.set()
        self._unread.put(event)

    @property
    def num_tokens(self) -> int:
        """Number of tokens that were delivered."""
        return sum(map(len, self.token_ids.values()))

    def wait_for(self, kind: type[Event]) -> Event:
        """The next event of `kind`, behind the one that the last call returned."""
        while not isinstance(event := self._unread.get(timeout=TIMEOUT_S), kind):
            pass
        return event

    def end(self) -> GraphFinished | GraphFailed:
        """Wait for the end; returns the final event."""
        assert self._has_ended.wait(TIMEOUT_S), "no final event"
        return self.finals[0]

    def values(self) -> dict[str, Any]:
        """Wait for the end; returns the values of the graph, which must not have failed."""
        end = self.end()
        assert isinstance(end, GraphFinished), end
        assert not end.failed_node_ids
        return end.values
