"""Actions that wait until slots (values, or ends of nodes) are filled."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rtlang.contract.graph import Generate, Node, num_requests
from rtlang.runtime.nodes.losers import Slot


@dataclass(slots=True)
class Waiting:
    """An action that runs once all slots that it waits for are filled. `node` is what it starts."""

    run: Callable[[], None]
    node: Node | None = None
    num_missing: int = 0


class WaitingActions:
    """The actions of one graph.

    Attributes:
        ready: those that wait for nothing any more, in the order of nodes where they waited for the same one.
    """

    def __init__(self) -> None:
        self.ready: deque[Waiting] = deque()
        self._by_slot: dict[Slot, list[Waiting]] = {}

    def add(self, missing: Iterable[Slot], run: Callable[[], None], node: Node | None = None) -> None:
        """Add an action that waits for the slots `missing`, each given once."""
        waiting = Waiting(run, node)
        for slot in missing:
            waiting.num_missing += 1
            self._by_slot.setdefault(slot, []).append(waiting)
        if not waiting.num_missing:
            self.ready.append(waiting)

    def release(self, slot: Slot) -> None:
        """A slot was filled."""
        for waiting in self._by_slot.pop(slot, ()):
            waiting.num_missing -= 1
            if waiting.num_missing == 0:
                self.ready.append(waiting)

    def take(self, *, generations_last: bool) -> Callable[[], None]:
        """Remove and return the next ready action; there must be one."""
        if generations_last:
            for index, waiting in enumerate(self.ready):
                if not isinstance(waiting.node, Generate):
                    del self.ready[index]
                    return waiting.run
        return self.ready.popleft().run

    @property
    def num_ready_requests(self) -> int:
        """Requests of the generations that are ready to start."""
        return sum(num_requests(each.node) for each in self.ready if isinstance(each.node, Generate))
