"""A listener that keeps the events of one graph, joins its texts, and waits for its end."""

from __future__ import annotations

import queue
from typing import Any

from rtlang.contract.events import Event, GraphFailed, GraphFinished, TextDelta

TIMEOUT_S = 120.0


class Ear:
    """Listens to one graph.

    Attributes:
        events: all, in the order of their delivery.
        text: what was delivered, by node and choice.
        token_ids: the delivered tokens, by node and choice.
        end: the final events; there must be one.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.text: dict[tuple[int, int], str] = {}
        self.token_ids: dict[tuple[int, int], list[int]] = {}
        self.end: queue.Queue[GraphFinished | GraphFailed] = queue.Queue()

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, TextDelta):
            key = event.node_id, event.choice
            self.text[key] = self.text.get(key, "") + event.text
            self.token_ids.setdefault(key, []).extend(event.token_ids)
        elif isinstance(event, (GraphFinished, GraphFailed)):
            self.end.put(event)

    @property
    def num_tokens(self) -> int:
        """Number of tokens that were delivered."""
        return sum(map(len, self.token_ids.values()))

    def values(self) -> dict[str, Any]:
        """Wait for the end; returns the values of the graph, which must not have failed."""
        end = self.end.get(timeout=TIMEOUT_S)
        assert isinstance(end, GraphFinished), end
        assert not end.failed_node_ids
        return end.values
