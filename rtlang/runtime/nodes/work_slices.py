"""Divides the work of one graph into slices, one a turn of the engine thread, so that a large graph does not hold up the others.

Nodes that are added in one go, and those of a block, arrive over several turns and start once all are there. Actions that are ready
together run over several turns, in the same order (`node_table.py`). Between two turns the engine thread serves other graphs and computes a
step. All graphs share the work of a turn (`turn_work.py`).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.request_graph import Apply, Call, Decide, Generate, Node, Text, num_requests
from rtlang.runtime.nodes.node_table import Waits
from rtlang.runtime.process.turn_work import TurnWork

SMALL_WORK_US = 500.0
"""Work above this price leaves the engine thread."""
STEP_US = 15.0
"""Of a node that arrives, or of a part of the work to make one."""
ACTION_US = 30.0
OPERAND_US = 0.9
"""Of an operand of a node, once when it arrives and once when it starts."""
PART_US = 0.35
"""Likewise, of a part of a text. One of 32,768 parts is the only work that takes longer than a turn: 11 ms."""
START_US = 60.0
"""Of a request that is given to the engine."""
STARTS_A_TURN = 16
"""Requests of one node that start in one turn; each copies its prompt."""
CHAR_US = 0.75
"""Of a character that is encoded."""

Later = Callable[[Callable[[], None]], None]
"""Calls a function in a later turn of the engine thread."""

_T = TypeVar("_T")


class Offload(Protocol):
    """Runs `work` on another thread, and then `then` with its result or its exception on the engine thread. Neither runs once the graph
    has ended. `price_us`: estimated microseconds of the work; `kind`: what it is counted as.
    """

    def __call__(
        self, price_us: int, work: Callable[[], _T], then: Callable[[_T | Exception], None], kind: WorkKind
    ) -> None: ...


@dataclass(slots=True)
class _Arrival:
    """Nodes that are on their way; see `WorkSlices.add_later`."""

    nodes: Iterator[Node | None]
    num_left: int
    add: Callable[[Sequence[Node]], None]
    then: Callable[[], None]
    next_node: Node | None = None  # it was made, but not added


class WorkSlices:
    """The work of one graph. Used on the engine thread only.

    Args:
        actions: the ready actions.
        on_idle: called when nothing is ready and no node is on its way.
        is_ended: whether the graph has ended.
        later: None does everything at once.
        offload: None does all work on this thread.
        check: called before each action; what it raises ends the work.
        worked: called with the seconds of this thread that a turn has taken.
        turn: the work of the present turn, of this graph and others.
    """

    def __init__(
        self,
        actions: Waits,
        on_idle: Callable[[], None],
        is_ended: Callable[[], bool],
        later: Later | None,
        offload: Offload | None = None,
        check: Callable[[], None] = lambda: None,
        worked: Callable[[float], None] = lambda seconds: None,
        turn: TurnWork | None = None,
    ) -> None:
        self._actions, self._on_idle, self._is_ended = actions, on_idle, is_ended
        self._later, self._offload, self._check, self._worked = later, offload, check, worked
        self._arriving: deque[_Arrival] = deque()
        self._is_draining = self._is_continuing = False
        self._began: float | None = None  # when the running turn began, or was settled last
        self._turn = TurnWork() if turn is None else turn

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

    def settle(self) -> None:
        """Tell the time of the running turn so far, if one runs: the graph ends within it."""
        if self._began is not None:
            now = time.thread_time()
            self._worked(now - self._began)
            self._began = now

    def _in_turn(self, act: Callable[[], None]) -> None:
        """Act, and tell the time that it took; within a turn, the time belongs to that one."""
        if self._began is not None:
            act()
            return
        self._began = time.thread_time()
        try:
            act()
        finally:
            self.settle()
            self._began = None

    def _arrive(self) -> None:
        self._in_turn(self._take_arrivals)

    def _take_arrivals(self) -> None:
        has_arrived = False
        while self._arriving and not self._is_ended():
            self._check()
            arrival = self._arriving[0]
            nodes = self._next_nodes(arrival)
            arrival.num_left -= len(nodes)
            if nodes:
                arrival.add(nodes)
            if arrival.num_left > 0:
                break
            self._arriving.popleft()
            has_arrived = True
            arrival.then()
        if self._arriving and self._later is not None and not self._is_ended():
            self._later(self._arrive)
        if has_arrived:
            self.drain()

    def _next_nodes(self, arrival: _Arrival) -> list[Node]:
        """The nodes of an arrival for which the turn has room."""
        nodes: list[Node] = []
        while len(nodes) < arrival.num_left:
            step = next(arrival.nodes) if arrival.next_node is None else arrival.next_node
            arrival.next_node = None
            price_us = STEP_US if step is None else STEP_US + price_of_operands(step)
            if not self._has_room(price_us):
                arrival.next_node = step
                break
            self._turn.spend(price_us)
            if step is not None:
                nodes.append(step)
        return nodes

    def _has_room(self, price_us: float = 0.0) -> bool:
        return self._later is None or self._turn.has_room(price_us)

    def spend(self, price_us: float) -> None:
        """The running action does work of this price."""
        self._turn.spend(price_us)

    def is_small(self, price_us: float) -> bool:
        """Whether `do` does work of this price on the engine thread."""
        return self._offload is None or price_us <= SMALL_WORK_US

    def do(
        self,
        price_us: float,
        work: Callable[[], _T],
        then: Callable[[_T | Exception], None],
        kind: WorkKind = WorkKind.VALUE,
    ) -> None:
        """Do a part of an action: here if it is small, else on another thread.

        Args:
            price_us: estimated microseconds.
            work: touches nothing of the graph.
            then: called with the result of `work`, or its exception, now or later, unless the graph ends before that.
            kind: what the time of another thread is counted as.
        """
        if self._offload is not None and not self.is_small(price_us):
            self._offload(int(price_us), work, then, kind)
            return
        self.spend(price_us)
        result: _T | Exception
        try:
            result = work()
        except Exception as error:
            result = error
        then(result)

    def drain(self) -> None:
        """Do what is ready, some of it in later turns. Does nothing within an action: its caller goes on."""
        if not (self._is_draining or self._is_continuing or self._is_ended()):
            self._in_turn(self._drain)

    def _drain(self) -> None:
        self._is_draining = True
        while self._actions.is_ready and not self._is_ended():
            price_us = action_price(self._actions.next_node)
            if self._later is not None and not self._turn.has_room(price_us):
                self._is_continuing = True
                self._later(self._go_on)
                break
            self._turn.spend(price_us)
            self._check()
            self._actions.take()()
        self._is_draining = False
        if not self._actions.is_ready and not self._arriving and not self._is_ended():
            self._on_idle()

    def _go_on(self) -> None:
        self._is_continuing = False
        self.drain()


def action_price(node: Node | None) -> float:
    """Estimated microseconds of an action, apart from the work that it counts itself: the start of a node, or None for anything else."""
    if node is None:
        return ACTION_US
    num_starts = min(STARTS_A_TURN, num_requests(node)) if isinstance(node, Generate) else 0
    return ACTION_US + price_of_operands(node) + START_US * num_starts


def price_of_operands(node: Node) -> float:
    """Estimated microseconds of the operands of a node that are looked at one by one, and of the parts of a text."""
    match node:
        case Apply() | Call():
            return OPERAND_US * len(node.args)
        case Text():
            return PART_US * len(node.parts)
        case Decide():
            return OPERAND_US * (len(node.of) + len(node.by or ()))
    return 0.0
