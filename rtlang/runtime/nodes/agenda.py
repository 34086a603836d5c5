"""What a graph does next: actions that wait for the results of nodes, and those that are ready."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rtlang.contract.graph import Generate, Node, num_requests
from rtlang.runtime.nodes.losers import Slot


@dataclass(slots=True)
class _Action:
    run: Callable[[], None]
    node: Node | None  # the node that it starts
    num_missing: int


class Agenda:
    """The actions of one graph. Used on the engine thread only.

    Args:
        is_there: whether a slot is known, failed or cancelled.
    """

    def __init__(self, is_there: Callable[[Slot], bool]) -> None:
        self._is_there = is_there
        self._waiting: dict[Slot, list[_Action]] = {}
        self._ready: list[_Action] = []

    def __len__(self) -> int:
        return len(self._ready)

    def add(self, run: Callable[[], None], node: Node | None = None, *, after: Iterable[Slot] = ()) -> None:
        """Run something once all these slots are there. `node` is what it starts."""
        missing = [slot for slot in after if not self._is_there(slot)]
        action = _Action(run, node, len(missing))
        if not missing:
            self._ready.append(action)
        for slot in missing:
            self._waiting.setdefault(slot, []).append(action)

    def release(self, slot: Slot) -> None:
        """A slot is there now."""
        for action in self._waiting.pop(slot, ()):
            action.num_missing -= 1
            if action.num_missing == 0:
                self._ready.append(action)

    def take(self, *, generations_last: bool) -> Callable[[], None]:
        """Remove and return a ready action; there must be one."""
        if generations_last:
            for index in range(len(self._ready) - 1, -1, -1):
                if not isinstance(self._ready[index].node, Generate):
                    return self._ready.pop(index).run
        return self._ready.pop().run

    @property
    def num_ready_requests(self) -> int:
        """Requests of the generations that are ready to start."""
        return sum(num_requests(each.node) for each in self._ready if isinstance(each.node, Generate))
