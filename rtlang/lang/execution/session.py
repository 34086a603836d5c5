"""The session of a running program: submits recorded nodes, receives events, and lets the body wait.

A `Session` is the driver of a recording. The body's thread records and submits, the runtime's thread delivers events; they share one
condition variable. However a run ends (completed, failed, cancelled, deadline passed, runtime gone), the session sets `final` once and
wakes every waiter, and reading an unfinished value raises it. So no wait lasts forever.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rtlang.compiler.fold_text import fold_text
from rtlang.contract.errors import AbortedError, DeadlineError, OverloadError, ParameterError, RtlangError
from rtlang.contract.events import Event, GraphFailed, GraphFinished, NodeFailed, NodeFinished
from rtlang.contract.graph import Node, RequestGraph
from rtlang.contract.params import SamplingParams, Usage, check_run_options, seconds_left
from rtlang.contract.target import GraphRun, Target
from rtlang.lang.execution.interruptible_condition import InterruptibleCondition
from rtlang.lang.recording import Outcome, Recording

MAX_OVERLOAD_WAIT_S = 5.0
MAX_WAIT_S = 3600.0  # maximum time of one wait; condition variables cannot wait arbitrarily long


def check_options(params: object, priority: object, deadline_s: object) -> None:
    """Raise ParameterError unless these are valid options of a run."""
    check_run_options(priority, deadline_s)
    if params is not None and not isinstance(params, SamplingParams):
        raise ParameterError("params", params, "expected rt.Sampling(...)")


class Session:
    """One run of a program on a target. Owned by the code that executes the body.

    Args:
        is_async: whether the body is a coroutine.
        params: default sampling parameters of the program's generations.
        deadline_s: seconds from now after which the run ends with DeadlineError.
        on_event: called with every event of the graph, on the runtime's thread.
        on_end: called once when `final` is set, from any thread.
        on_wait: called when the body is about to block its thread.
        on_overload: called when the target's queue is full; waits, and returns whether to retry.
    """

    def __init__(
        self,
        target: Target,
        *,
        is_async: bool = False,
        params: SamplingParams | None = None,
        priority: int = 0,
        deadline_s: float | None = None,
        on_event: Callable[[Event], None] | None = None,
        on_end: Callable[[], None] | None = None,
        on_wait: Callable[[], None] | None = None,
        on_overload: Callable[[OverloadError], bool] | None = None,
    ) -> None:
        check_options(params, priority, deadline_s)
        self.is_async = is_async
        self.recording = Recording(self, params)
        self.final: GraphFinished | RtlangError | None = None
        self.deadline = None if deadline_s is None else time.monotonic() + seconds_left(deadline_s)
        self.submitted: list[Node] = []
        self._target, self._priority = target, priority
        self._on_event, self._on_end, self._on_wait, self._on_overload = on_event, on_end, on_wait, on_overload
        self._outcomes: dict[int, Outcome] = {}
        self._condition = InterruptibleCondition()
        self._flush_lock = threading.RLock()
        self._run: GraphRun | None = None
        self._unsent: list[Node] = []

    @property
    def usage(self) -> Usage:
        """Tokens used so far."""
        if isinstance(self.final, GraphFinished):
            return self.final.usage
        finished = [event.usage for event in list(self._outcomes.values()) if isinstance(event, NodeFinished)]
        return sum(finished, Usage())

    # Driver

    @property
    def tool_format(self) -> str | None:
        """See `Target.tool_format`."""
        return self._target.tool_format

    def outcome(self, node_id: int) -> Outcome | None:
        """The outcome of a node, or None; if the graph has ended, nodes without an outcome of their own share its error."""
        found = self._outcomes.get(node_id)
        if found is not None or self.final is None:
            return found
        if isinstance(self.final, RtlangError):
            return self._outcomes.get(node_id, self.final)
        return self._outcomes.get(node_id) or RtlangError(
            f"the runtime ended the graph without a result for node {node_id}"
        )

    def wait(self, node_ids: Sequence[int]) -> None:
        """Submit recorded nodes and block until these nodes have outcomes."""
        self._flush(is_last=False)
        self._block(lambda: self._have(node_ids))

    async def wait_async(self, node_ids: Sequence[int]) -> None:
        """Like the blocking method, for coroutines."""
        await self._flush_async(is_last=False)
        await self._sleep(lambda: self._have(node_ids))

    # The end of a run

    def finish(self) -> None:
        """Submit the remaining nodes and close the graph, because the body has returned."""
        self.recording.close()
        self._flush(is_last=True)

    async def finish_async(self) -> None:
        """Like `finish`, for coroutines."""
        self.recording.close()
        await self._flush_async(is_last=True)

    def wait_final(self) -> None:
        """Block until the graph has ended."""
        self._block(lambda: self.final is not None)

    async def wait_final_async(self) -> None:
        """Like the blocking method, for coroutines."""
        await self._sleep(lambda: self.final is not None)

    def cancel(self) -> None:
        """Cancel the run, unless it has ended."""
        self.recording.close()
        self._end(AbortedError("the program was cancelled"))

    def expire(self) -> bool:
        """End the run if its deadline has passed; returns whether it has ended."""
        if self.deadline is not None and time.monotonic() >= self.deadline:
            self._end(DeadlineError("the deadline passed before the program ended"))
        return self.final is not None

    @contextmanager
    def ended_by_errors(self) -> Iterator[None]:
        """Context manager that cancels the run if the block raises."""
        try:
            yield
        except BaseException:
            self.cancel()
            raise

    # Submitting

    def _flush(self, *, is_last: bool) -> None:
        while True:
            try:
                self._send(is_last)
                return
            except OverloadError as error:
                if self._on_overload is None or self.expire() or not self._on_overload(error):
                    self._end(error)

    async def _flush_async(self, *, is_last: bool) -> None:
        while True:
            try:
                self._send(is_last)
                return
            except OverloadError as error:
                if self._on_overload is None or self.expire():
                    self._end(error)
                else:
                    await asyncio.sleep(min(error.retry_after_s, MAX_OVERLOAD_WAIT_S))

    def _send(self, is_last: bool) -> None:
        with self._flush_lock:
            recording = self.recording
            self._unsent.extend(recording.take(is_last=is_last))
            if self.final is not None:
                return
            graph = fold_text(RequestGraph(tuple(self._unsent), recording.inputs), recording.branch_points)
            try:
                if self._run is not None:
                    if graph.nodes:
                        self._run.extend(graph.nodes)
                    if is_last:
                        self._run.close()
                elif graph.nodes:
                    self._run = self._target.submit(
                        graph,
                        self._listen,
                        is_open=not is_last,
                        priority=self._priority,
                        deadline_s=None if self.deadline is None else max(self.deadline - time.monotonic(), 1e-3),
                    )
                elif is_last:
                    self._end(GraphFinished(0, {}, Usage()))
            except OverloadError:
                raise
            except RtlangError as error:
                self._end(error)
                return
            self.submitted.extend(graph.nodes)
            self._unsent.clear()
            self._cancel_if_failed()  # it may have ended during submission

    # Events

    def _listen(self, event: Event) -> None:
        with self._condition.lock:
            if self.final is not None:
                return
            if isinstance(event, NodeFinished):
                self._outcomes[event.node_id] = event
            elif isinstance(event, NodeFailed):
                self._outcomes[event.node_id] = event.error
        if self._on_event is not None:
            self._on_event(event)
        if isinstance(event, GraphFinished):
            self._end(event)
        elif isinstance(event, GraphFailed):
            self._end(event.error)
        elif isinstance(event, (NodeFinished, NodeFailed)):
            with self._condition.lock:
                self._condition.notify_all()

    def _end(self, final: GraphFinished | RtlangError) -> None:
        with self._condition.lock:
            if self.final is not None:
                return
            self.final = final
            self._condition.notify_all()
        self._cancel_if_failed()
        if self._on_end is not None:
            self._on_end()

    def _cancel_if_failed(self) -> None:
        if self._run is not None and isinstance(self.final, RtlangError):
            self._run.cancel()

    # Waiting

    def remaining_s(self) -> float | None:
        """Seconds until the deadline, at most `MAX_WAIT_S`; None without a deadline or after the end of the graph."""
        if self.deadline is None or self.final is not None:
            return None
        return min(max(self.deadline - time.monotonic(), 0.0), MAX_WAIT_S)

    def _have(self, node_ids: Sequence[int]) -> bool:
        if self.final is not None:  # ends nodes without an outcome too
            return True
        outcomes = self._outcomes
        for node_id in node_ids:  # noqa: SIM110 - called at every notification
            if node_id not in outcomes:
                return False
        return True

    def _block(self, is_ready: Callable[[], bool]) -> None:
        if is_ready():
            return
        if self._on_wait is not None:
            self._on_wait()
        while not is_ready():
            if self.expire():
                return
            self._condition.wait(is_ready, self.remaining_s())

    async def _sleep(self, is_ready: Callable[[], bool]) -> None:
        while not is_ready():
            if self.expire():
                return
            await self._condition.wait_async(is_ready, self.remaining_s())
