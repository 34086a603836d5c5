"""Divides the work of one graph into slices, one a turn of the engine thread, so that a large graph does not hold up the others.

Nodes that are added in one go, and those of a block, arrive over several turns and start once all are there. Actions that are ready
together run over several turns, in the same order (`node_table.py`). Between two turns the engine thread serves other graphs and computes a
step.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from rtlang.contract.request_graph import Node
from rtlang.runtime.nodes.node_table import Waits

TURN_WORK = 100
"""Work of one turn, in actions of about 30 us; texts and generations count as more of them."""
NODES_A_TURN = 200
_CHARS_A_ACTION = 40  # that are encoded in the time of one action

Later = Callable[[Callable[[], None]], None]
"""Calls a function in a later turn of the engine thread."""


@dataclass(slots=True)
class _Arrival:
    """Nodes that are on their way; see `WorkSlices.add_later`."""

    nodes: Iterator[Node | None]
    num_left: int
    add: Callable[[Sequence[Node]], None]
    then: Callable[[], None]


class WorkSlices:
    """The work of one graph. Used on the engine thread only.

    Args:
        actions: the ready actions.
        on_idle: called when nothing is ready and no node is on its way.
        is_ended: whether the graph has ended.
        later: None does everything at once.
        check: called before each action; what it raises ends the work.
    """

    def __init__(
        self,
        actions: Waits,
        on_idle: Callable[[], None],
        is_ended: Callable[[], bool],
        later: Later | None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._actions, self._on_idle, self._is_ended = actions, on_idle, is_ended
        self._later, self._check = later, check
        self._arriving: deque[_Arrival] = deque()
        self._is_draining = self._is_continuing = False
        self._work = 0

    @property
    def num_arriving(self) -> int:
        """Nodes that are on their way."""
        return sum(arrival.num_left for arrival in self._arriving)

    def add_later(
        self,
        nodes: Iterator[Node | None],
        num_nodes: int,
        add: Callable[[Sequence[Node]], None],
        then: Callable[[], None],
    ) -> None:
        """Add nodes as they are made.

        Args:
            nodes: `num_nodes` nodes; None before one of them is a part of the work to make it.
            add: adds some of them.
            then: called when all are added.
        """
        is_arriving = bool(self._arriving)
        self._arriving.append(_Arrival(nodes, num_nodes, add, then))
        if not is_arriving:
            self._arrive()

    def _arrive(self) -> None:
        num_steps = sys.maxsize if self._later is None else NODES_A_TURN
        has_arrived = False
        while self._arriving and num_steps > 0 and not self._is_ended():
            self._check()
            arrival = self._arriving[0]
            steps = list(islice(arrival.nodes, num_steps))
            num_steps -= max(1, len(steps))
            self._work += len(steps)
            nodes = [node for node in steps if node is not None]
            arrival.num_left -= len(nodes)
            if nodes:
                arrival.add(nodes)
            if arrival.num_left <= 0:
                self._arriving.popleft()
                has_arrived = True
                arrival.then()
        if self._arriving and self._later is not None and not self._is_ended():
            self._later(self._arrive)
        if has_arrived:
            self.drain()

    def spend_on_text(self, num_chars: int) -> None:
        """The running action encodes a text."""
        self._work += num_chars // _CHARS_A_ACTION

    def drain(self) -> None:
        """Do what is ready, some of it in later turns. Does nothing within an action: its caller goes on."""
        if self._is_draining or self._is_continuing or self._is_ended():
            return
        self._is_draining = True
        self._work = 0
        while self._actions.is_ready and not self._is_ended():
            self._work += 1
            if self._later is not None and self._work > TURN_WORK:
                self._is_continuing = True
                self._later(self._go_on)
                break
            self._check()
            self._actions.take()()
        self._is_draining = False
        if not self._actions.is_ready and not self._arriving and not self._is_ended():
            self._on_idle()

    def _go_on(self) -> None:
        self._is_continuing = False
        self.drain()
