"""Watches the engine thread, and the threads that work beside it: names the graph whose work stalls one, and asks that work to stop.

The thread only writes what it works on (`CurrentWork`). A monitor thread reads that twice a second, and counts readings of the same work;
readings, not seconds, so that a process that was suspended blames nobody. A computed step counts for no graph and has more time, since a
long one is no fault; so has work on another thread, which may be priced at 5 s and delays only what waits for that thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from rtlang.contract.process.current_work import CurrentWork, WorkBeside, WorkSample
from rtlang.contract.process.thread_watch import stack_of

INTERVAL_S = 0.5
"""Seconds between two readings."""
SOFT_LIMIT_S = 2.0
"""Seconds after which work of one graph is reported, and interrupted if it is stoppable."""
ASK_S = 4.0
"""Seconds after which sliced work is asked to stop."""
HELD_S = 10.0
"""Seconds after which the work of one graph is given up: only a new process helps."""
STEP_LIMIT_S = 30.0
"""Seconds after which a step, or other work for no single graph, is reported."""
BESIDE_LIMIT_S, BESIDE_HELD_S = 30.0, 60.0
"""Seconds after which work on another thread is reported, and interrupted if it is stoppable, and after which it is given up."""
_NUM_FRAMES = 8


@dataclass(frozen=True, slots=True)
class Stall:
    """Work that holds the engine thread.

    Attributes:
        graph_id: the graph for which the thread works; None for a step, or work for no graph.
        node_id: the node that was begun last.
        row_graph_ids: the graphs with rows in the steps that are being computed.
        seconds: for which it has held the thread.
        stack: "function (file:line)", the innermost first; empty if it is not known.
        is_interrupted: whether it was made to end by this report.
        is_held: whether it did not end when it was asked, and is given up.
        is_beside: whether it holds a thread beside the engine's.
    """

    graph_id: int | None
    node_id: int | None
    row_graph_ids: frozenset[int]
    seconds: float
    stack: tuple[str, ...]
    is_interrupted: bool = False
    is_held: bool = False
    is_beside: bool = False

    @property
    def function(self) -> str:
        """The innermost function."""
        return self.stack[0] if self.stack else "an unknown function"

    def described(self, principal: str | None) -> str:
        """A line for the log: the graph, its principal and node, the function, the time, and what follows."""
        if self.graph_id is None:
            what = (
                f"a step with rows of {len(self.row_graph_ids)} graphs" if self.row_graph_ids else "work for no graph"
            )
        else:
            node = "" if self.node_id is None else f", node {self.node_id}"
            what = f"graph {self.graph_id} of principal {principal or 'unknown'}{node}"
        follows = "; it is stopped" if self.is_interrupted else "; it does not stop" if self.is_held else ""
        stack = " < ".join(self.stack) or "an unknown function"
        thread = "a thread beside the engine's" if self.is_beside else "the engine thread"
        return f"{thread} is held for {self.seconds:g} s by {what}, in {stack}{follows}"


class WorkMonitor:
    """Reads one record on a thread of its own, from `start` to `close`.

    Args:
        on_stall: called on that thread after SOFT_LIMIT_S, each time that the seconds have doubled, and once after HELD_S; for work on
            other threads, after BESIDE_LIMIT_S and BESIDE_HELD_S.
        stack: returns the stack of a thread.
    """

    def __init__(
        self,
        work: CurrentWork,
        on_stall: Callable[[Stall], None],
        stack: Callable[[int], list[str]] = stack_of,
    ) -> None:
        self._work, self._on_stall, self._stack = work, on_stall, stack
        self._last: WorkSample | None = None
        self._num_beside: dict[WorkBeside, int] = {}  # readings of work on other threads
        self._num_same = 0
        self._next_report_s = SOFT_LIMIT_S
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rtlang-monitor", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """End the thread, without waiting. Idempotent."""
        self._is_over.set()

    def tick(self) -> None:
        """Read the record once; INTERVAL_S have passed since the last reading."""
        now, last = self._work.sample(), self._last
        self._last = now
        self._look_beside(now)
        is_same = last is not None and (now.turn, now.graph_id, now.is_resting) == (last.turn, last.graph_id, False)
        if not is_same:
            self._num_same, self._next_report_s = 0, SOFT_LIMIT_S if now.graph_id is not None else STEP_LIMIT_S
            return
        self._num_same += 1
        seconds = self._num_same * INTERVAL_S
        is_held = now.graph_id is not None and seconds == HELD_S
        if now.graph_id is not None and seconds == ASK_S:
            self._work.asked_to_stop = now.graph_id, seconds
        if seconds < self._next_report_s and not is_held:
            return
        self._next_report_s = max(self._next_report_s, 2 * seconds)
        stack = tuple(self._stack(now.thread)[:_NUM_FRAMES])
        is_interrupted = self._work.interrupt(now, seconds)
        self._on_stall(Stall(now.graph_id, now.node_id, now.row_graph_ids, seconds, stack, is_interrupted, is_held))

    def _look_beside(self, now: WorkSample) -> None:
        self._num_beside = {work: self._num_beside.get(work, -1) + 1 for work in now.beside}
        for work, number in self._num_beside.items():
            seconds = number * INTERVAL_S
            if seconds not in (BESIDE_LIMIT_S, BESIDE_HELD_S):
                continue
            stack = tuple(self._stack(work.thread)[:_NUM_FRAMES])
            is_interrupted = self._work.interrupt_beside(work, seconds)
            is_held = seconds == BESIDE_HELD_S and not is_interrupted
            rows = frozenset[int]()
            self._on_stall(
                Stall(work.graph_id, work.node_id, rows, seconds, stack, is_interrupted, is_held, is_beside=True)
            )

    def _run(self) -> None:
        while not self._is_over.wait(INTERVAL_S):
            self.tick()
