"""Measures what the language itself costs: processor time per generation call, and memory per waiting program.

The target answers at once and computes nothing. So all that is left is recording, the passes, submission, the delivery of events and the
reading of values. Validation of graphs is the runtime's part and measured beside it. A target answers within the submission, or on a thread
of its own as a runtime does; a plain program then switches threads twice at every break, which is measured without a limit.
"""

from __future__ import annotations

import asyncio
import gc
import queue
import statistics
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import process_time
from types import FunctionType
from typing import Any

from rtlang.bench.machine import resident_bytes
from rtlang.compiler.pipeline import Passes
from rtlang.contract.errors import AbortedError
from rtlang.contract.events import Completion, Event, GraphFailed, GraphFinished, NodeFinished, Timing
from rtlang.contract.params import FinishReason, Usage
from rtlang.contract.request_graph import Generate, Node, RequestGraph
from rtlang.contract.runs.run_options import DEFAULT_OPTIONS, Ability, RunOptions
from rtlang.contract.service.target import Listener
from rtlang.lang.decorator import program
from rtlang.lang.program import Program
from rtlang.lang.program_state import expr as rt

NUM_CALLS = 20  # generations of one program
_TIMING, _USAGE = Timing(), Usage(8, 0, 2)
_ANSWER = (Completion("no", (1, 2), FinishReason.STOP),)


def users_program(function: Callable[..., Any]) -> Program[..., Any]:
    """A program as a user's module holds it: recording looks for the first line outside of this package."""
    names = {**function.__globals__, "__name__": "programs"}
    return program(FunctionType(function.__code__, names, function.__name__))


@users_program
def straight(s: Any, num_calls: int) -> None:
    """A chat whose answers Python never looks at: one graph."""
    for number in range(num_calls):
        s += rt.user("Question ", number, "?")
        s += rt.assistant(rt.gen(f"answer {number}", max_tokens=16))


@users_program
def breaking(s: Any, num_calls: int) -> None:
    """A chat that looks at every answer: a graph break per call."""
    for number in range(num_calls):
        s += rt.user("Question ", number, "?")
        s += rt.assistant(rt.gen(f"answer {number}", max_tokens=16))
        if s[f"answer {number}"] == "stop":
            return


@users_program
async def waiting(s: Any, num_calls: int) -> None:
    """`breaking` as a coroutine, which holds no thread while it waits."""
    for number in range(num_calls):
        s += rt.user("Question ", number, "?")
        s += rt.assistant(rt.gen(f"answer {number}", max_tokens=16))
        if await s[f"answer {number}"] == "stop":
            return


class InstantTarget:
    """A target that answers every generation with the same text.

    Args:
        has_thread: answer on a thread of its own, not within the submission.
        is_held: answers wait for `release`.
        validates: validate graphs, as a runtime does.
    """

    tool_format: str | None = None
    abilities: frozenset[Ability] = frozenset()

    def __init__(self, *, has_thread: bool = True, is_held: bool = False, validates: bool = False) -> None:
        self._has_thread, self._is_held, self._validates = has_thread, is_held, validates
        self._held: list[tuple[Callable[[Event], None], list[Event]]] = []
        self._inbox: queue.SimpleQueue[tuple[Callable[[Event], None], list[Event]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="rtlang-instant", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """See `Target.is_alive`."""
        return self._thread.is_alive()

    @property
    def num_held(self) -> int:
        """Number of submissions whose answers wait for `release`."""
        return len(self._held)

    def submit(self, graph: RequestGraph, listener: Listener, options: RunOptions = DEFAULT_OPTIONS) -> _InstantRun:
        """See `Target.submit`."""
        options.check_abilities(self.abilities)
        if self._validates:
            graph.validate()
        run = _InstantRun(self, listener)
        run.answer(graph.nodes, is_last=not options.is_open)
        return run

    def post(self, listener: Listener, events: list[Event]) -> None:
        """Deliver events."""
        if self._is_held:
            self._held.append((listener, events))
        elif not self._has_thread:
            for event in events:
                listener(event)
        else:
            self._inbox.put((listener, events))

    def release(self) -> None:
        """Deliver what was held, and hold no more."""
        self._is_held = False
        for each in self._held:
            self._inbox.put(each)
        self._held.clear()

    def close(self) -> None:
        """See `Target.close`."""
        self._inbox.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (item := self._inbox.get()) is not None:
            listener, events = item
            for event in events:
                listener(event)


@dataclass(slots=True)
class _InstantRun:
    target: InstantTarget
    listener: Listener
    known: dict[int, Node] = field(default_factory=dict)

    @property
    def graph_id(self) -> int:
        return 0

    def extend(self, nodes: Sequence[Node]) -> None:
        if self.target._validates:
            RequestGraph(tuple(nodes)).validate(self.known)
        self.answer(nodes, is_last=False)

    def resolve(self, node_id: int, value: object) -> None:
        raise AssertionError("the workload has no host calls")

    def reject(self, node_id: int, code: str, message: str, facts: Mapping[str, Any] | None = None) -> None:
        raise AssertionError("the workload has no host calls")

    def answer(self, nodes: Sequence[Node], *, is_last: bool) -> None:
        if self.target._validates:
            self.known.update((node.node_id, node) for node in nodes)
        events: list[Event] = [
            NodeFinished(0, node.node_id, node.name, _ANSWER, _USAGE, _TIMING)
            for node in nodes
            if isinstance(node, Generate)
        ]
        if is_last:
            events.append(GraphFinished(0, {}, _USAGE))
        self.target.post(self.listener, events)

    def grant(self, num_tokens: int) -> None:
        pass

    def close(self) -> None:
        self.answer((), is_last=True)

    def cancel(self) -> None:
        self.target.post(self.listener, [GraphFailed(0, AbortedError("the graph was cancelled"))])


@dataclass(frozen=True, slots=True)
class Case:
    """A program, and the target that it runs on. `limit_us` is the most that a call may cost; None measures without a limit."""

    name: str
    program: Program[..., Any]
    limit_us: float | None
    has_thread: bool = True
    validates: bool = False
    passes: Passes = True


CASES = (
    Case("no breaks", straight, 60.0),
    Case("no breaks, with validation of the graph", straight, 60.0, validates=True),
    Case("the same without the pass fold", straight, None, validates=True, passes="-fold"),
    Case("a break per call", breaking, 90.0, has_thread=False),
    Case("a break per call, async", waiting, 90.0),
    Case("a break per call, with two thread switches", breaking, None),
)


@dataclass(frozen=True, slots=True)
class Cost:
    """Processor time per generation call, in microseconds: the median of several runs, and the smallest and largest."""

    name: str
    median_us: float
    low_us: float
    high_us: float
    limit_us: float | None

    @property
    def is_met(self) -> bool:
        """Whether the median keeps the limit."""
        return self.limit_us is None or self.median_us <= self.limit_us

    def __str__(self) -> str:
        figures = f"{self.name:<43} {self.median_us:6.1f} us ({self.low_us:.1f} to {self.high_us:.1f})"
        if self.limit_us is None:
            return figures
        return f"{figures}, limit {self.limit_us:.0f} us: {'ok' if self.is_met else 'too slow'}"


def measure_calls(num_programs: int = 64, num_calls: int = NUM_CALLS, repeats: int = 7) -> list[Cost]:
    """Measure the processor time of one generation call, with `num_programs` programs at once, in every case."""
    return [_measure(case, num_programs, num_calls, repeats) for case in CASES]


def _measure(case: Case, num_programs: int, num_calls: int, repeats: int) -> Cost:
    inputs = [{"num_calls": num_calls}] * num_programs
    target = InstantTarget(has_thread=case.has_thread, validates=case.validates)
    times = []
    try:
        case.program.run_batch(inputs, runtime=target, on_error="raise", passes=case.passes)
        for _ in range(repeats):
            gc.collect()
            started = process_time()
            results = case.program.run_batch(inputs, runtime=target, on_error="raise", passes=case.passes)
            times.append((process_time() - started) / (num_programs * num_calls) * 1e6)
            assert results[-1].text(f"answer {num_calls - 1}") == "no"
    finally:
        target.close()
    return Cost(case.name, statistics.median(times), min(times), max(times), case.limit_us)


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident memory of the process before and while programs wait."""

    num_programs: int
    before_bytes: int
    waiting_bytes: int
    limit_bytes: int = 1_000_000_000

    @property
    def is_met(self) -> bool:
        """Whether the process keeps the limit."""
        return self.waiting_bytes <= self.limit_bytes

    def __str__(self) -> str:
        each = (self.waiting_bytes - self.before_bytes) / self.num_programs / 1000
        return (
            f"{self.num_programs} async programs waiting at once: {self.waiting_bytes / 1e6:.0f} MB resident, "
            f"{each:.1f} kB a program, limit {self.limit_bytes / 1e6:.0f} MB: {'ok' if self.is_met else 'too much'}"
        )


def measure_memory(num_programs: int, num_calls: int = NUM_CALLS) -> Memory:
    """Start so many async programs, wait until each waits at its first break, read the memory, and let them end.

    Raises:
        OSError: the system does not report the resident memory.
    """
    target = InstantTarget(is_held=True)
    gc.collect()
    before = resident_bytes()

    async def run() -> int:
        tasks = [asyncio.ensure_future(waiting.arun(num_calls=num_calls, runtime=target)) for _ in range(num_programs)]
        while target.num_held < num_programs:
            await asyncio.sleep(0.01)
        held = resident_bytes()
        target.release()
        results = await asyncio.gather(*tasks)
        assert all(result.error is None for result in results)
        return held

    try:
        return Memory(num_programs, before, asyncio.run(run()))
    finally:
        target.close()
