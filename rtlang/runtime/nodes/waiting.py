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

    Args:
        generations_last: actions that start generations come after all others that are ready.

    Attributes:
        ready: those that wait for nothing any more, in the order of nodes where they waited for the same one.
        num_ready_requests: requests of the generations that come last and are ready.
    """

    def __init__(self, *, generations_last: bool = False) -> None:
        self.ready: deque[Waiting] = deque()
        self.num_ready_requests = 0
        self._generations_last = generations_last
        self._generations: deque[Waiting] = deque()  # that are ready and come last
        self._by_slot: dict[Slot, list[Waiting]] = {}

    def add(self, missing: Iterable[Slot], run: Callable[[], None], node: Node | None = None) -> None:
        """Add an action that waits for the slots `missing`, each given once."""
        waiting = Waiting(run, node)
        for slot in missing:
            waiting.num_missing += 1
            self._by_slot.setdefault(slot, []).append(waiting)
        if not waiting.num_missing:
            self._note_ready(waiting)

    def release(self, slot: Slot) -> None:
        """A slot was filled."""
        for waiting in self._by_slot.pop(slot, ()):
            waiting.num_missing -= 1
            if waiting.num_missing == 0:
                self._note_ready(waiting)

    def _note_ready(self, waiting: Waiting) -> None:
        if self._generations_last and isinstance(waiting.node, Generate):
            self._generations.append(waiting)
            self.num_ready_requests += num_requests(waiting.node)
        else:
            self.ready.append(waiting)

    @property
    def is_ready(self) -> bool:
        """Whether an action is ready."""
        return bool(self.ready or self._generations)

    def take(self) -> Callable[[], None]:
        """Remove and return the next ready action; there must be one."""
        if self.ready:
            return self.ready.popleft().run
        waiting = self._generations.popleft()
        assert isinstance(waiting.node, Generate)
        self.num_ready_requests -= num_requests(waiting.node)
        return waiting.run
