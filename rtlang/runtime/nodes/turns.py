"""Divides the work of one graph into turns of the engine thread, so that a large graph does not hold up the others.

Nodes that are added in one go arrive over several turns and start once all are there. Actions that are ready together run over several
turns, in the same order. Between two turns the engine thread serves other graphs and computes a step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from rtlang.contract.graph import Node
from rtlang.runtime.nodes.waiting import WaitingActions

TURN_WORK = 100
"""Work of one turn, in actions of about 30 us; texts and generations count as more of them."""
NODES_A_TURN = 200
_CHARS_A_ACTION = 40  # that are encoded in the time of one action

Later = Callable[[Callable[[], None]], None]
"""Calls a function in a later turn of the engine thread."""


class Turns:
    """The work of one graph. Used on the engine thread only.

    Args:
        actions: the ready actions.
        add: adds some nodes.
        on_idle: called when nothing is ready and no node is on its way.
        is_ended: whether the graph has ended.
        later: None does everything at once.
    """

    def __init__(
        self,
        actions: WaitingActions,
        add: Callable[[Sequence[Node]], None],
        on_idle: Callable[[], None],
        is_ended: Callable[[], bool],
        later: Later | None,
    ) -> None:
        self._actions, self._add, self._on_idle, self._is_ended = actions, add, on_idle, is_ended
        self._later = later
        self._arriving: deque[Node] = deque()
        self._is_draining = self._is_continuing = False
        self._work = 0

    def add_nodes(self, nodes: Sequence[Node]) -> None:
        """Add nodes, and start those whose dependencies are done."""
        is_arriving = bool(self._arriving)
        self._arriving.extend(nodes)
        if not is_arriving:
            self._arrive()

    def _arrive(self) -> None:
        if self._is_ended():
            return
        num_now = len(self._arriving) if self._later is None else min(len(self._arriving), NODES_A_TURN)
        self._add([self._arriving.popleft() for _ in range(num_now)])
        if self._arriving and self._later is not None:
            self._later(self._arrive)
        else:
            self.drain()

    def spend(self, work: int) -> None:
        """The running action does the work of this many others."""
        self._work += work

    def spend_on_text(self, num_chars: int) -> None:
        """The running action encodes a text."""
        self._work += num_chars // _CHARS_A_ACTION

    def drain(self, *, generations_last: bool = False) -> None:
        """Do what is ready, some of it in later turns. Does nothing within an action: its caller goes on."""
        if self._is_draining or self._is_continuing or self._is_ended():
            return
        self._is_draining = True
        self._work = 0
        while self._actions.ready and not self._is_ended():
            self._work += 1
            if self._later is not None and self._work > TURN_WORK:
                self._is_continuing = True
                self._later(lambda: self._go_on(generations_last))
                break
            self._actions.take(generations_last=generations_last)()
        self._is_draining = False
        if not self._actions.ready and not self._arriving and not self._is_ended():
            self._on_idle()

    def _go_on(self, generations_last: bool) -> None:
        self._is_continuing = False
        self.drain(generations_last=generations_last)
