"""The order in which emitted values are delivered: within one state, the order in which the body emitted them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rtlang.contract.events import CallRequested


class EmissionOrder:
    """Holds values back that are known before the ones emitted earlier. Guarded by the lock of the session.

    Args:
        before: of emissions, the one before in the same state; both by id. Grows while the body runs.
        has_ended: whether a node has an outcome.
    """

    def __init__(self, before: Mapping[int, int], has_ended: Callable[[int], bool]) -> None:
        self._before, self._has_ended = before, has_ended
        self._gone: set[int] = set()
        self._held: dict[int, CallRequested] = {}  # by the emission before

    @property
    def holds_any(self) -> bool:
        """Whether values are held back."""
        return bool(self._held)

    def take(self, event: CallRequested) -> list[CallRequested]:
        """A value is known; returns the values to deliver now."""
        before = self._before.get(event.node_id)
        if before is not None and before not in self._gone and not self._has_ended(before):
            self._held[before] = event
            return []
        return [event, *self.end(event.node_id)]

    def end(self, node_id: int) -> list[CallRequested]:
        """A node was delivered or has ended; returns the values to deliver now."""
        found: list[CallRequested] = []
        while True:
            self._gone.add(node_id)
            event = self._held.pop(node_id, None)
            if event is None:
                return found
            found.append(event)
            node_id = event.node_id
