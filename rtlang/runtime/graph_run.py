"""One submitted graph: on the engine thread its execution, listener, admission share and deadline, for the caller its handle."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from rtlang.contract.accounts.request_account import RequestAccount, WorkKind
from rtlang.contract.errors import (
    AbortedError,
    EngineDeadError,
    GraphError,
    InternalError,
    RtlangError,
    internal_error,
)
from rtlang.contract.events import (
    CreditSpent,
    Event,
    GraphFailed,
    GraphFinished,
    NodeFinished,
    TextDelta,
    note_end,
)
from rtlang.contract.graph.checks import NodeChecks
from rtlang.contract.graph.host_calls import measured_answer
from rtlang.contract.graph.value_size import Measured
from rtlang.contract.node_work import NodeWork
from rtlang.contract.params import MAX_CREDIT, check_credit, seconds_left
from rtlang.contract.process.stoppable_work import WorkStopped
from rtlang.contract.request_graph import Node
from rtlang.contract.runs.known import ContinueFrom, Known, check_continue_from
from rtlang.contract.runs.principal import Principal
from rtlang.contract.runs.run_options import RunOptions
from rtlang.contract.service.target import Listener
from rtlang.engine.program_pages import ProgramPages
from rtlang.engine.requests.credit import Credit
from rtlang.engine.requests.program_account import ProgramAccount
from rtlang.engine.requests.request import Request, RequestOutput, RequestSpec
from rtlang.runtime.admission import Share, admit_extension
from rtlang.runtime.executors.host import Answer, Host
from rtlang.runtime.graph_execution import GraphExecution
from rtlang.runtime.nodes.work_slices import Offload
from rtlang.runtime.process.loop import EngineLoop, Timer

if TYPE_CHECKING:  # they load torch
    from rtlang.engine.requests.value_check import ValueChecker
    from rtlang.model.runner import Runner

logger = logging.getLogger(__name__)

_COUNT_EVERY_S = 0.005  # of work: a counter costs as much as a small node

_T = TypeVar("_T")

MANY_ITEMS = 20_000
"""Characters and items of values that are freed beside the engine thread when a graph has ended."""
FREE_US = 0.02
"""Of one of them."""

Beside = Callable[[WorkKind, int, Callable[[], Any], Callable[[Any], None]], "Future[None]"]
"""Does work on another thread: its kind, its price in microseconds, the work, and a function that is called on the engine thread with the
result of the work or its exception."""


@dataclass(frozen=True, slots=True)
class RuntimeServices:
    """What a runtime gives to all of its graphs; used on the engine thread.

    Attributes:
        is_broken: whether the engine has stopped working.
        on_end: called once for each graph, with its id, after its final event.
        pages_of: given the time of arrival and the options, returns the access to the cache with which a graph keeps pages, if any.
        offload_of: returns the function with which work of a client runs on another thread, see `Beside`; None does it on the engine
            thread.
        count_work: called with the name of a principal, a kind of work and seconds of the engine thread.
    """

    loop: EngineLoop
    runner: Runner
    checker: ValueChecker
    is_broken: Callable[[], bool]
    on_end: Callable[[int], None]
    pages_of: Callable[[float, RunOptions], ProgramPages] | None = None
    offload_of: Callable[[Principal], Beside] | None = None
    count_work: Callable[[str, WorkKind, float], None] = lambda principal, kind, seconds: None


class GraphRun:
    """Runs one graph. Used on the engine thread only.

    Exceptions from the listener, and from code that acts for this graph, end this graph and never reach the engine.

    Args:
        share: the graph's share of admitted requests; released as nodes end.
        options: with a seed. Their times begin now, unless they have begun.
        outputs: see `RequestGraph.outputs`.
        answer: ends nodes instead of the engine; see `Answer`.
    """

    def __init__(
        self,
        graph_id: int,
        listener: Listener,
        share: Share,
        options: RunOptions,
        services: RuntimeServices,
        *,
        outputs: Collection[int] | None = None,
        answer: Answer | None = None,
    ) -> None:
        loop, runner = services.loop, services.runner
        pages_of = services.pages_of
        self._do_beside = None if services.offload_of is None else services.offload_of(options.principal)
        self.graph_id = graph_id
        self._listener, self._share, self._priority = listener, share, options.priority
        self._principal, self._session = options.principal, options.session
        self._services, self._loop, self._is_broken = services, loop, services.is_broken
        self._arrival = loop.clock()
        options = options.begun(self._arrival)
        self._work = work = loop.work
        self._program = ProgramAccount(self._arrival, graph_id=graph_id)
        self._program.deadline = options.deadline
        self._program.account.context = options.context
        self._uncounted_s, self._is_told = 0.0, False
        self._credit = None if options.credit is None else Credit(options.credit)
        host = Host(
            runner.tokenizer,
            runner.max_model_len,
            self._submit,
            self._abort,
            loop.clock,
            answer=answer,
            pages=None if pages_of is None else pages_of(self._arrival, options),
            later=lambda act: loop.call_later_turn(partial(self._guard, act), options.principal.client_id),
            offload=None if self._do_beside is None else self._offload(self._do_beside),
            work=work,
            turn=loop.turn,
            reserve=share.reserve,
            worked=self._note_work,
            call_at=lambda when, act: loop.call_at(when, partial(self._guard, act)).cancel,
            has_states=runner.num_states > 0,
        )
        self._execution = GraphExecution(
            graph_id, options, host, self._on_event, self._end, outputs=outputs, on_expand=share.expand
        )
        self._aborted: set[Request] = set()
        self._known_ids = set(options.known)  # nodes with outcomes of an earlier run, which cost nothing now
        self._beside: set[Future[None]] = set()  # work on other threads
        self._timer: Timer | None = None
        if options.deadline is not None:
            self._timer = loop.call_at(options.deadline, partial(self.fail, options.deadline_error()))
        self._budget_timer: Timer | None = None
        if options.budget is not None and options.budget.seconds is not None:
            seconds = seconds_left(options.budget.seconds)
            spend = partial(self._guard, self._execution.spend_time)
            self._budget_timer = loop.call_at(self._arrival + seconds, spend)

    @property
    def principal(self) -> Principal:
        """Who runs the graph."""
        return self._principal

    @property
    def is_ended(self) -> bool:
        """Whether the final event was sent."""
        return self._execution.is_ended

    @property
    def work_ahead(self) -> NodeWork:
        """The estimated work of the nodes that have not begun."""
        return self._execution.work_ahead

    def path_of(self, node_id: int) -> str | None:
        """See `GraphExecution.path_of`."""
        return self._execution.path_of(node_id)

    def add_nodes(
        self, nodes: Sequence[Node], known: Known | None = None, continue_from: ContinueFrom | None = None
    ) -> None:
        """Add validated nodes, known outcomes and tokens of theirs, and start those whose dependencies are done."""
        self._known_ids.update(known or ())
        self._guard(lambda: self._execution.add_nodes(nodes, known, continue_from))

    def close(self) -> None:
        """End the graph once its nodes have ended: no more will be added."""
        self._guard(self._execution.close)

    def resolve(self, node_id: int, value: Measured) -> None:
        """Set the value of a host call."""
        self._guard(lambda: self._execution.resolve(node_id, value))

    def reject(self, node_id: int, code: str, message: str, facts: Mapping[str, Any] | None = None) -> None:
        """Let a host call fail."""
        self._guard(lambda: self._execution.reject(node_id, code, message, facts))

    def grant(self, num_tokens: int) -> None:
        """Add credit; ignored by a graph without a limit."""
        if self._credit is not None and not self._is_broken():
            num_tokens = min(num_tokens, MAX_CREDIT - self._credit.num_tokens)
            self._loop.engine.grant(self._credit, num_tokens)

    def cancel(self) -> None:
        """End the graph now with AbortedError."""
        self.fail(AbortedError("the graph was cancelled"))

    def fail(self, error: RtlangError) -> None:
        """End the graph now with `error`."""
        self._execution.fail(error)

    def _offload(self, beside: Beside) -> Offload:
        """Work of this graph on another thread; what has not begun is dropped when the graph ends."""

        def run(price_us: int, work: Callable[[], Any], then: Callable[[Any], None], kind: WorkKind) -> None:
            def end(result: Any) -> None:
                self._beside.discard(future)
                self._guard(lambda: then(result))

            timed = partial(_timed, work, kind, self._program.account)
            future = beside(
                kind, price_us, partial(self._work.run_beside, self.graph_id, self._work.node_id, timed), end
            )
            self._beside.add(future)

        return run

    def _guard(self, act: Callable[[], None]) -> None:
        """Act for this graph unless it has ended; an unexpected exception fails the graph, and so does work that was stopped."""
        if self.is_ended:
            return
        self._work.begin(self.graph_id)
        try:
            act()
        except WorkStopped as stopped:
            node_id = self._work.sample().node_id
            name = "the graph" if node_id is None else f"node {node_id}"
            event = f"{name} held {stopped.thread} for {stopped.seconds:g} s and was stopped"
            fault = InternalError.made(event)
            logger.error("internal error %s: graph %d: %s", fault.id, self.graph_id, event)
            self.fail(fault)
        except Exception as error:
            self.fail(internal_error(logger, f"graph {self.graph_id} failed", error))

    def _on_event(self, event: Event) -> None:
        self._share.note(event)
        was_asked = self._work.asked_to_stop is not None
        match event:
            case TextDelta():
                pass
            case NodeFinished():
                if not (event.is_replayed or event.node_id in self._known_ids):
                    note_end(self._program.account, event, self._loop.clock() - self._arrival)
                event = replace(event, account=self._program.account.copy())
            case GraphFinished() | GraphFailed():
                self._execution.settle_work()
                self._is_told = True
                self._count_work()
                event = replace(event, account=self._program.account)
        is_heard = notify(self._listener, event)
        if not was_asked and self._work.asked_to_stop is not None:
            self._work.asked_to_stop = None  # the listener, which is no work of the graph, took the time
        if is_heard and self._credit is not None and isinstance(event, TextDelta) and event.token_ids:
            was_spent = self._credit.is_spent
            self._credit.num_tokens -= len(event.token_ids)
            if self._credit.is_spent and not was_spent:
                is_heard = notify(self._listener, CreditSpent(self.graph_id, event.node_id))
        if not is_heard:
            self._loop.call_at(self._arrival, self.cancel)  # not now: the execution is in the middle of its work

    def _note_work(self, seconds: float) -> None:
        """Work of the engine thread on nodes."""
        self._uncounted_s += seconds
        if not self._is_told:  # else its account was given away
            self._program.account.add_work(WorkKind.VALUE, seconds)
        if self._uncounted_s > _COUNT_EVERY_S or self._is_told:
            self._count_work()

    def _count_work(self) -> None:
        self._services.count_work(self._principal.name, WorkKind.VALUE, self._uncounted_s)
        self._uncounted_s = 0.0

    def _submit(self, spec: RequestSpec) -> Request:
        def start(spec: RequestSpec) -> Request:
            return self._loop.engine.add(spec, self._loop.clock())

        def guarded(output: RequestOutput) -> None:
            self._guard(lambda: spec.listener(output))

        own = spec.params.priority
        whole = replace(
            spec,
            listener=guarded,
            priority=self._priority if own is None else self._principal.priority_of(own),
            principal=self._principal,
            program=self._program,
            credit=self._credit,
            session=self._session,
        )
        if spec.constraint is None:
            return start(whole)
        attempts: list[Request] = []

        def is_wanted() -> bool:
            return not (self.is_ended or any(each in self._aborted for each in attempts))

        attempts.append(self._services.checker.start(start, whole, self._abort, is_wanted))
        return attempts[0]

    def _abort(self, request: Request) -> None:
        self._aborted.add(request)
        if not self._is_broken():
            self._loop.engine.abort(request)

    def _end(self) -> None:
        self._services.on_end(self.graph_id)
        for future in self._beside:
            future.cancel()
        self._beside.clear()
        for timer in (self._timer, self._budget_timer):
            if timer is not None:
                timer.cancel()
        self._listener = (
            _ignore  # it refers to the program's side, and this object waits for a collection of reference cycles
        )
        self._free_values()

    def _free_values(self) -> None:
        """Free large values beside the engine thread, one after the other: a list of a million items takes 20 ms."""
        values, num_items = self._execution.table.values, self._execution.table.num_items
        if self._do_beside is not None and num_items > MANY_ITEMS:
            with contextlib.suppress(RuntimeError):  # the runtime was closed
                self._do_beside(WorkKind.VALUE, int(FREE_US * num_items), partial(_free, values), lambda done: None)


class LocalGraphRun:
    """A submitted graph; see `rtlang.contract.service.target.ResumableRun`. Used by one thread at a time.

    Args:
        checks: the checks of the submitted graph, for nodes that are added later.
        act: called with a graph id and a function of its `GraphRun`, which it calls on the engine thread unless the graph has ended.
            Raises EngineDeadError once the runtime has ended.
        max_model_len: bounds the results of later nodes; None for a runtime without a model.
    """

    def __init__(
        self,
        graph_id: int,
        checks: NodeChecks,
        share: Share,
        act: Callable[[int, Callable[[GraphRun], None]], None],
        max_model_len: int | None = None,
    ) -> None:
        self._graph_id, self._share, self._act = graph_id, share, act
        self._checks, self._max_model_len = checks, max_model_len
        self._is_closed = False
        self._extend_lock = threading.Lock()  # extensions may come from several threads
        self._granted, self._grant_lock = 0, threading.Lock()  # credit on its way to the engine thread

    @property
    def graph_id(self) -> int:
        return self._graph_id

    def extend(
        self, nodes: Sequence[Node], *, known: Known | None = None, continue_from: ContinueFrom | None = None
    ) -> None:
        if self._is_closed:
            raise GraphError(None, "nodes", "the graph is closed")
        check_continue_from(continue_from or {}, nodes)
        with self._extend_lock:
            admit_extension(nodes, self._checks, self._share, self._max_model_len, known)
            self._act(self._graph_id, lambda run: run.add_nodes(nodes, known, continue_from))

    def resolve(self, node_id: int, value: Any) -> None:
        answer = measured_answer(value)
        self._try(lambda run: run.resolve(node_id, answer))

    def reject(self, node_id: int, code: str, message: str, facts: Mapping[str, Any] | None = None) -> None:
        self._try(lambda run: run.reject(node_id, code, message, facts))

    def grant(self, num_tokens: int) -> None:
        check_credit(num_tokens)
        if num_tokens == 0:
            return
        with self._grant_lock:
            is_first = self._granted == 0
            self._granted += num_tokens
        if is_first:  # else the command that is on its way takes this one too: many small grants must not fill the queue of commands
            self._try(self._take_grants)

    def _take_grants(self, run: GraphRun) -> None:
        with self._grant_lock:
            num_tokens, self._granted = self._granted, 0
        run.grant(num_tokens)

    def close(self) -> None:
        self._is_closed = True
        self._try(GraphRun.close)

    def cancel(self) -> None:
        self._is_closed = True
        self._try(GraphRun.cancel)

    def _try(self, act: Callable[[GraphRun], None]) -> None:
        with contextlib.suppress(EngineDeadError):  # the final event was already sent
            self._act(self._graph_id, act)


def _ignore(event: Event) -> None:
    """Listens to nothing."""


def _free(values: dict[tuple[int, int], Any]) -> None:
    while values:
        values.popitem()


def _timed(work: Callable[[], _T], kind: WorkKind, account: RequestAccount) -> _T:
    """Do work on another thread, and count the time of that thread."""
    started = time.thread_time()
    try:
        return work()
    finally:
        account.add_work(kind, time.thread_time() - started)


def notify(listener: Listener, event: Event) -> bool:
    """Call a listener; returns False if it raised. Listeners are foreign code: nothing they raise may reach the engine."""
    try:
        listener(event)
    except BaseException:
        logger.exception("the listener of graph %d raised an exception; the graph is cancelled", event.graph_id)
        return False
    return True
