"""The session of a running program: submits recorded nodes, receives events, and lets the body wait.

A `Session` is the driver of a recording. The body's thread records and submits, the runtime's thread delivers events; they share one
condition variable. However a run ends (completed, failed, cancelled, deadline passed, runtime gone), the session sets `final` once and
wakes every waiter, and reading an unfinished value raises it. So no wait lasts forever.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from rtlang.compiler.context import Savings, ShareOf
from rtlang.compiler.pipeline import chosen_passes
from rtlang.contract.errors import (
    AbortedError,
    DeadlineError,
    GraphError,
    OverloadError,
    ParameterError,
    RtlangError,
    SpentError,
)
from rtlang.contract.events import CallRequested, Event, GraphFailed, GraphFinished, NodeFailed, NodeFinished
from rtlang.contract.graph.frozen_copies import changed
from rtlang.contract.graph.host_calls import answer_call
from rtlang.contract.params import Usage
from rtlang.contract.process.call_context import EMIT, CallContext, idempotency_key_of
from rtlang.contract.request_graph import Generate, Node, Text
from rtlang.contract.runs.known_finder import KnownFinder, RunOutcomes
from rtlang.contract.runs.run_options import Ability, abilities_of
from rtlang.contract.service.target import GraphRun, Target
from rtlang.lang.recordings.driver import EndedDriver, Outcome, never, outcome_at_end
from rtlang.lang.recordings.recording import Recording
from rtlang.lang.sessions.compilation import EventCopies, RunCompilation
from rtlang.lang.sessions.emissions import EmissionOrder
from rtlang.lang.sessions.interruptible_condition import InterruptibleCondition
from rtlang.lang.sessions.program_options import (
    DEFAULT_PROGRAM_OPTIONS,
    ProgramOptions,
    Reusable,
    checked_outputs,
)

MAX_OVERLOAD_WAIT_S = 5.0
MAX_WAIT_S = 3600.0  # maximum time of one wait; condition variables cannot wait arbitrarily long

_ENDED = InterruptibleCondition()
"""Of all sessions that were released: nothing waits for them."""
_NO_COPIES = EventCopies(keeps_text=False)


class Session:
    """One run of a program on a target. Owned by the code that executes the body.

    Args:
        options: of the run; its runtime and on_error are not used here. Its deadline counts from now.
        is_async: whether the body is a coroutine.
        identity: see `RunOptions`.
        share_of: for a batch, the share of its runs that contain a piece of text whose order is free.
        on_event: called with every event of the graph, on the runtime's thread.
        on_end: called once when `final` is set, from any thread.
        on_wait: called when the body is about to block its thread.
        on_emission: called with the node and the value of each `State.emit`, in order; whoever takes it calls `acknowledge`. Without, the
            values are dropped.
        on_overload: called when the target's queue is full; waits, and returns whether to retry.
    """

    def __init__(
        self,
        target: Target,
        options: ProgramOptions = DEFAULT_PROGRAM_OPTIONS,
        *,
        is_async: bool = False,
        identity: Callable[[], str] | None = None,
        share_of: ShareOf | None = None,
        on_event: Callable[[Event], None] | None = None,
        on_end: Callable[[], None] | None = None,
        on_wait: Callable[[], None] | None = None,
        on_overload: Callable[[OverloadError], bool] | None = None,
        on_emission: Callable[[int, Any], None] | None = None,
    ) -> None:
        begun_at = time.monotonic() if options.run.begun_at is None else options.run.begun_at
        self._options = changed(options.run, begun_at=begun_at, identity=identity)
        self._options.check_abilities(abilities_of(target))
        self.target = target
        self.is_async = is_async
        self.recording = Recording(self, options.params)
        self.final: GraphFinished | RtlangError | None = None
        self.deadline = self._options.deadline
        self.passes = chosen_passes(options.passes)
        self._alone: tuple[str, ...] = ()
        self._finder = self._new_finder(options.base)
        self.outputs = checked_outputs(options.outputs)
        self._compilation = RunCompilation(self.recording, self.passes, self.outputs, share_of, self._alone)
        self._copies = EventCopies(keeps_text=on_event is not None and "merge" in self.passes)
        self._on_event, self._on_end, self._on_wait, self._on_overload = on_event, on_end, on_wait, on_overload
        self._outcomes: dict[int, Outcome] = {}
        self._started = time.monotonic()
        self._end_times: list[float] = []  # of the outcomes, in their order
        self._ended: float | None = None
        self._condition = InterruptibleCondition()
        self._flush_lock = threading.RLock()
        self._run: GraphRun | None = None
        self._on_emission = on_emission
        self._emissions = EmissionOrder(self.recording.nodes.emitted_before, self._outcomes.__contains__)
        self._run_id, self._handler = secrets.token_hex(16), options.ask

    def _new_finder(self, base: object) -> KnownFinder | None:
        """What finds the outcomes of an earlier run; None without one.

        Raises:
            ParameterError: the target takes no outcomes, or the earlier run had another model.
        """
        if base is None:
            return None
        found = check_base(base, self.target)._rt_base()
        if self._options.seed is None:
            self._options = replace(self._options, seed=found.outcomes.seed)
        self._alone = tuple(edit.path for edit in found.edits)
        keys = found.outcomes.new_keys(self._options.seed)
        return KnownFinder(keys, found.outcomes, found.edits, has_budget=self._options.budget is not None)

    @property
    def model_identity(self) -> str | None:
        """The identity of the model, if the target says it (`Target.abilities`)."""
        return _identity_of(self.target)

    def known_outcomes(self) -> RunOutcomes:
        """The outcomes of the run, for another one to take over."""
        return RunOutcomes.of(self.submitted, self._outcomes, self._options.seed, self.model_identity)

    @property
    def submitted(self) -> list[Node]:
        """The nodes that were submitted, in order."""
        return self._compilation.submitted

    @property
    def savings(self) -> Savings:
        """The effect of the passes on the submitted nodes."""
        return self._compilation.savings

    @property
    def usage(self) -> Usage:
        """Tokens used so far."""
        if isinstance(self.final, GraphFinished):
            return self.final.usage
        finished = [event.usage for event in list(self._outcomes.values()) if isinstance(event, NodeFinished)]
        return sum(finished, Usage())

    @property
    def cut(self) -> tuple[str, ...]:
        """Names of the generations that the budget of the run left fewer tokens than they asked for, or none."""
        names: list[str | None] = []
        for node_id, outcome in sorted(self._outcomes.items()):
            was_lowered = isinstance(outcome, NodeFinished) and outcome.max_tokens is not None
            nodes = self.recording.nodes
            if (was_lowered or isinstance(outcome, SpentError)) and isinstance(nodes.node(node_id), Generate):
                names.append(nodes.shown_name(node_id))
        return tuple(dict.fromkeys(name for name in names if name is not None))

    @property
    def seconds(self) -> float | None:
        """The duration of the run; None while it goes on."""
        return None if self._ended is None else self._ended - self._started

    def endings(self) -> Iterator[tuple[int, Outcome, float]]:
        """The nodes that have ended with an event: their ids, their outcomes, and when, in seconds since the start of the run."""
        with self._condition.lock:
            found = list(zip(self._outcomes.items(), self._end_times, strict=False))
        return ((node_id, outcome, at - self._started) for (node_id, outcome), at in found)

    @property
    def outcome_ids(self) -> tuple[int, ...]:
        """Ids of the nodes that have ended with an event, under which they ran."""
        return tuple(self._outcomes)

    # Driver

    @property
    def tool_format(self) -> str | None:
        """See `Target.tool_format`."""
        return self.target.tool_format

    def outcome(self, node_id: int) -> Outcome | None:
        """The outcome of a node, or None; if the graph has ended, nodes without an outcome of their own share its error."""
        found = self._outcomes.get(node_id)
        if found is not None or self.final is None:
            return found
        return outcome_at_end(node_id, self.final, self._outcomes, self.recording.outcomes.dropped)

    def wait(self, node_ids: Sequence[int], or_if: Callable[[], bool] = never) -> None:
        """Submit recorded nodes and block until these nodes have outcomes, or until `or_if` is true after a `wake`."""
        self._flush(awaited=node_ids)
        self._block(lambda: self._have(node_ids) or or_if())

    async def wait_async(self, node_ids: Sequence[int], or_if: Callable[[], bool] = never) -> None:
        """Like the blocking method, for coroutines."""
        await self._flush_async(awaited=node_ids)
        await self._sleep(lambda: self._have(node_ids) or or_if())

    def wake(self) -> None:
        """Let all that wait look again. From any thread."""
        with self._condition.lock:
            self._condition.notify_all()

    def submit(self, node_ids: Sequence[int]) -> None:
        """Submit recorded nodes without waiting; `node_ids` are needed first."""
        self._flush(awaited=node_ids)

    def submit_early(self) -> None:
        """Submit recorded nodes from another thread than the body's, unless the queue is full; then the body does it later."""
        with suppress(OverloadError):
            self._send()

    def wait_submitted(self, node_ids: Sequence[int]) -> None:
        """Block until these submitted nodes have outcomes, also after the end of the body."""
        self._block(lambda: self._have(node_ids))

    # The end of a run

    def finish(self, needed: Collection[int] | None = None, asked: Collection[int] = ()) -> None:
        """Submit the remaining nodes and close the graph, because the body has returned.

        Args:
            needed: the nodes whose outcome is read; None if all are.
            asked: the nodes that no decision may end.
        """
        self.recording.close()
        self._flush(is_last=True, needed=needed, asked=asked)

    async def finish_async(self, needed: Collection[int] | None = None, asked: Collection[int] = ()) -> None:
        """Like `finish`, for coroutines."""
        self.recording.close()
        await self._flush_async(is_last=True, needed=needed, asked=asked)

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

    def release(self) -> None:
        """Drop what only a running program needs: body and graph have ended, and the outcomes are read from now on."""
        assert self.final is not None, "the graph has not ended"
        self._condition, self._flush_lock = _ENDED, _ENDED.lock
        self._run = self._on_event = self._on_end = self._on_wait = self._on_overload = None
        self._copies, self._finder = _NO_COPIES, None
        for node_id, outcome in self._outcomes.items():
            if isinstance(outcome, NodeFinished) and outcome.account is not None:
                self._outcomes[node_id] = replace(outcome, account=None)
        if isinstance(self.final, GraphFinished):
            self.final = replace(self.final, account=None)
        self._compilation.release()
        self.recording.release(EndedDriver(self.is_async, self.final, self._outcomes, self.recording.outcomes.dropped))

    @contextmanager
    def ended_by_errors(self) -> Iterator[None]:
        """Context manager that cancels the run if the block raises."""
        try:
            yield
        except BaseException:
            self.cancel()
            raise

    # Submitting

    def _flush(self, **part: Any) -> None:
        while True:
            try:
                self._send(**part)
                return
            except OverloadError as error:
                if self._on_overload is None or self.expire() or not self._on_overload(error):
                    self._end(error)

    async def _flush_async(self, **part: Any) -> None:
        while True:
            try:
                self._send(**part)
                return
            except OverloadError as error:
                if self._on_overload is None or self.expire():
                    self._end(error)
                else:
                    await asyncio.sleep(min(error.retry_after_s, MAX_OVERLOAD_WAIT_S))

    def _send(
        self,
        *,
        is_last: bool = False,
        awaited: Sequence[int] = (),
        needed: Collection[int] | None = None,
        asked: Collection[int] = (),
    ) -> None:
        with self._flush_lock:
            if self.final is not None:
                return
            graph, savings = self._compilation.next_part(is_last=is_last, awaited=awaited, needed=needed, asked=asked)
            if savings.aliases:
                self._merge(savings)
            try:
                known = {} if self._finder is None else self._finder.add(graph.nodes)
                if self._run is not None:
                    if known:
                        run: Any = self._run
                        run.extend(graph.nodes, known=known)
                    elif graph.nodes:
                        self._run.extend(graph.nodes)
                    if is_last:
                        self._run.close()
                elif graph.nodes:
                    options = changed(self._options, is_open=not is_last, known=known)
                    self._run = self.target.submit(graph, self._listen, options=options)
                elif is_last:
                    self._end(GraphFinished(0, {}, Usage()))
            except OverloadError:
                raise
            except RtlangError as error:
                self._end(self.recording.outcomes.run_error(error) if isinstance(error, GraphError) else error)
                return
            self._compilation.commit(graph, savings, is_last=is_last)
            self._cancel_if_failed()  # it may have ended during submission

    def _merge(self, savings: Savings) -> None:
        """Let the events of each node that others equal count for these too, before the first can arrive."""
        with self._condition.lock:
            for copy_id, node_id in savings.aliases.items():
                node = self.recording.nodes.outer[copy_id]
                if isinstance(node, Text) or copy_id in self._outcomes or self._copies.has(copy_id):
                    continue
                outcome = self._outcomes.get(node_id)
                end = NodeFailed(0, node_id, None, outcome) if isinstance(outcome, RtlangError) else outcome
                for event in self._copies.add(node_id, copy_id, node.name, end):
                    self._deliver(event)

    # Events

    def _listen(self, event: Event) -> None:
        with self._condition.lock:
            if self.final is not None:
                return
            self._copies.note(event)
            copies = self._copies.of(event)
            self._record_outcome(event)
            for copy in copies:
                self._record_outcome(copy)
            emitted = self._emitted(event)
        for each in emitted:
            self._emit(each)
        if isinstance(event, CallRequested) and event.function != EMIT:
            function = self.recording.nodes.host_function(event.node_id)
            answer_call(event, function, self._answering_run, context=self._context_of(event))
        if self._on_event is not None:
            self._on_event(event)
            for copy in copies:
                self._on_event(copy)
        if isinstance(event, GraphFinished):
            self._end(event)
        elif isinstance(event, GraphFailed):
            self._end(event.error)
        elif isinstance(event, (NodeFinished, NodeFailed)):
            with self._condition.lock:
                self._condition.notify_all()

    def _emitted(self, event: Event) -> list[CallRequested]:
        """The values to deliver after an event."""
        match event:
            case CallRequested(function=function) if function == EMIT:
                return self._emissions.take(event)
            case NodeFinished() | NodeFailed() if self._emissions.holds_any:
                return self._emissions.end(event.node_id)
        return []

    def _emit(self, event: CallRequested) -> None:
        function = self.recording.nodes.host_function(event.node_id)
        if self._on_emission is None or function is None:
            answer_call(event, lambda plain: None, self._answering_run)
        else:
            self._on_emission(event.node_id, function(event.args))

    def acknowledge(self, node_id: int) -> None:
        """Note that the value of an emission was taken. Nothing happens after the end of the run."""
        with suppress(RtlangError):
            self._answering_run().resolve(node_id, None)

    def _context_of(self, event: CallRequested) -> CallContext:
        """The circumstances of a call: those that a journal knows, or of this run alone."""
        context = event.context
        if context is None:
            path = self.recording.nodes.path_at(event.node_id) or f"node {event.node_id}"
            context = CallContext(path, idempotency_key_of(self._run_id, path), self._options.seed)
        return context if self._handler is None else replace(context, handler=self._handler)

    def _answering_run(self) -> GraphRun:
        with self._flush_lock:  # the event may come before the submission has returned
            if self._run is None:  # which has failed, because the run has ended meanwhile
                raise AbortedError("the run ended while it was submitted")
            return self._run

    def _deliver(self, event: Event) -> None:
        self._record_outcome(event)
        if self._on_event is not None:
            self._on_event(event)

    def _record_outcome(self, event: Event) -> None:
        if isinstance(event, NodeFinished):
            self._outcomes[event.node_id] = event
        elif isinstance(event, NodeFailed):
            self._outcomes[event.node_id] = event.error
        else:
            return
        self._end_times.append(time.monotonic())

    def _end(self, final: GraphFinished | RtlangError) -> None:
        with self._condition.lock:
            if self.final is not None:
                return
            self.final = final
            self._ended = time.monotonic()
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


def check_base(base: object, target: Target) -> Reusable:
    """Check that a run on `target` may take over the outcomes of an earlier one.

    Raises:
        ParameterError: the target takes no outcomes, or the earlier run had another model.
    """
    if not isinstance(base, Reusable):
        raise ParameterError("base", base, "expected one result; a list of results is for run_batch")
    if Ability.KNOWN not in abilities_of(target):
        raise ParameterError(
            "base",
            base,
            f"a {type(target).__name__} takes no outcomes of earlier runs (rt.record reads its own); pass the runtime itself",
        )
    model = _identity_of(target)
    if base._rt_model != model:
        raise ParameterError("base", base, f"it was computed by model {base._rt_model}, the runtime serves {model}")
    return base


def _identity_of(target: Target) -> str | None:
    found = getattr(target, "model_identity", None)
    return found if isinstance(found, str) else None
