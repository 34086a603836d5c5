"""The work on requests outside the steps: compile, replay given tokens, fetch pages, accept late tokens, fill slow masks.

Other threads do the work. Each ends by noting its request in one list and waking the engine; `poll` takes the list between two steps and
continues these requests. Nothing else is looked at, so a step without such requests pays nothing for them. A request enters the scheduler
once its constraint is compiled, its given tokens are replayed and its pages are fetched. A running request sits out steps while its
constraint works outside them.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace

from rtlang.contract.errors import RtlangError, internal_error
from rtlang.contract.process.current_work import CurrentWork
from rtlang.engine.constraints.compiler import ConstraintCompiler
from rtlang.engine.constraints.session import ConstraintSession
from rtlang.engine.constraints.stop_search import StopPattern
from rtlang.engine.requests.output_processor import advance_late, num_remaining, replay, take_session, take_stops
from rtlang.engine.requests.request import Request, RequestOutput, RequestStatus
from rtlang.engine.tiers.page_transfers import PageTransfers
from rtlang.work.fair_queue import owner_of
from rtlang_grammars.spec.work_limit import WorkLimit

logger = logging.getLogger(__name__)

MAX_REPLAYED = 256
"""Tokens of earlier runs that are replayed between two steps: about 2 ms."""
MAX_WORK = 400
"""Work of all constraints of a step on the engine thread, in units of WorkLimit: about 4 ms. More is done on other threads."""
MAX_LATE = 64
"""Late tokens that are processed between two steps."""

Compiling = Future[ConstraintSession] | Future[tuple[StopPattern, ...]]


class Preparation:
    """The requests that other threads work on. Used on the engine thread.

    Args:
        compiler: accepts late tokens and fills slow masks on its threads.
        wake: called from any thread when `poll` has something to do.
        queue: adds a request to the scheduler.
        fail: ends a request with an error.
        transfers: fetches pages from the tiers below the pool; None without such tiers.
        work: the record of the engine thread's work.
        prepares_masks: whether slow masks are filled between the steps, which a pipelined runner does not wait for.
    """

    def __init__(
        self,
        compiler: ConstraintCompiler,
        wake: Callable[[], None],
        queue: Callable[[Request], None],
        fail: Callable[[Request, RtlangError], None],
        transfers: PageTransfers | None,
        work: CurrentWork,
        *,
        prepares_masks: bool,
    ) -> None:
        self._compiler, self._wake = compiler, wake
        self._queue, self._fail = queue, fail
        self._transfers, self._prepares_masks = transfers, prepares_masks
        self._ready: deque[Request] = deque()  # filled by other threads
        self._compiling: dict[Request, Sequence[Compiling]] = {}
        self._sitting_out: set[Request] = set()  # requests in the scheduler whose constraint works outside the steps
        self._current = work
        self._num_replayable, self._work = 0, WorkLimit(0)  # left of the limits between two steps

    @property
    def has_reports(self) -> bool:
        """Whether `poll` has something to do."""
        return bool(self._ready) or (self._transfers is not None and self._transfers.has_reports)

    @property
    def holds_up(self) -> bool:
        """Whether requests of the scheduler sit out steps."""
        return bool(self._sitting_out)

    def begin(self, request: Request, compiling: Sequence[Compiling]) -> None:
        """Prepare a new request, whose constraint and stop patterns, as far as it has any, are being compiled."""
        if compiling:
            request.enter(RequestStatus.COMPILING)
            self._compiling[request] = compiling
            for each in compiling:
                each.add_done_callback(lambda _: self._note(request))
        elif request.spec.given_ids:
            request.enter(RequestStatus.COMPILING)
            self._ready.append(request)
        else:
            self._admit(request)

    def forget(self, request: Request) -> None:
        """The request has ended."""
        self._sitting_out.discard(request)
        for compiling in self._compiling.pop(request, ()):
            compiling.cancel()

    def poll(self) -> list[RequestOutput]:
        """Continue the requests that other threads are done with. Returns outputs; a last one ends its request."""
        self._num_replayable, self._work = MAX_REPLAYED, WorkLimit(MAX_WORK)
        outputs: list[RequestOutput] = []
        num_late = 0
        for _ in range(len(self._ready)):
            request = self._ready.popleft()
            if request.status is RequestStatus.FINISHED or request.is_constraint_busy:  # a later note continues it
                continue
            if request.late is not None:
                num_late += 1
                if num_late > MAX_LATE:
                    self._ready.append(request)
                    continue
            self._sitting_out.discard(request)
            self._current.begin(request.program.graph_id)
            try:
                output = self._continue(request)
            except RtlangError as error:
                self._fail(request, error)
            except Exception as error:
                self._fail(request, internal_error(logger, f"request {request.request_id} failed", error))
            else:
                if output is not None:
                    outputs.append(output)
        self._current.begin(0)
        if self._transfers is not None:
            for request in self._transfers.poll():
                if request.status is RequestStatus.FETCHING:
                    self._queue(request)
        return outputs

    def accept_late(self, request: Request) -> None:
        """Let another thread accept the late token of a request, which sits out steps until then."""
        assert request.late is not None
        self._sitting_out.add(request)
        self._accept_beside(request, request.late.token_id)

    def prepare_mask(self, request: Request) -> None:
        """Begin to fill the next mask if masks of this grammar are slow; the request sits out steps until it is ready."""
        if self._prepares_masks and request.session is not None and request.session.is_slow:
            self._sitting_out.add(request)
            self._compiler.prepare(request.session, lambda: self._note(request), owner_of(request.spec.principal))

    def _note(self, request: Request) -> None:
        """A thread is done with a request. Any thread."""
        self._ready.append(request)
        self._wake()

    def _continue(self, request: Request) -> RequestOutput | None:
        if request.late is not None:
            output = advance_late(request)
            if not output.is_last:
                self.prepare_mask(request)
            return output
        if request.status is not RequestStatus.COMPILING:  # its mask is ready
            return None
        compiling = self._compiling.get(request)
        if compiling is not None:
            compiled = [
                each.result() for each in compiling if each.done()
            ]  # the error of one fails the request at once
            if len(compiled) < len(compiling):
                return None
            del self._compiling[request]
            self._take_compiled(request, compiled)
        if request.num_given < len(request.spec.given_ids):
            return self._replay(request)
        self._admit(request)
        return None

    @staticmethod
    def _take_compiled(request: Request, compiled: Sequence[ConstraintSession | tuple[StopPattern, ...]]) -> None:
        patterns: tuple[StopPattern, ...] = ()
        for each in compiled:
            if isinstance(each, ConstraintSession):
                take_session(request, each)
            else:
                patterns = each
        take_stops(request, patterns)

    def _replay(self, request: Request) -> RequestOutput | None:
        """Replay given tokens, for a limited time, so that running requests are not delayed."""
        if self._num_replayable <= 0:
            self._ready.append(request)
            return None
        start, given_ids = request.num_given, request.spec.given_ids
        output = replay(request, self._num_replayable, self._work)
        self._num_replayable -= max(1, request.num_given - start)
        if output is not None:
            return self._end_replayed(request, output)
        if request.num_given == len(given_ids):
            self._admit(request)
        elif self._num_replayable > 0 and request.session is not None:
            self._accept_beside(request, given_ids[request.num_given])
        else:
            self._ready.append(request)
        return None

    def _end_replayed(self, request: Request, output: RequestOutput) -> RequestOutput | None:
        """End a request whose text ended within its given tokens; their log-probabilities are computed first."""
        given_ids = tuple(request.output_token_ids)
        request.spec, request.num_given = replace(request.spec, given_ids=given_ids), len(given_ids)
        if request.next_score is None:
            return output
        request.spec, request.given_end = replace(request.spec, score_only=True), output
        self._queue(request)
        return None

    def _accept_beside(self, request: Request, token_id: int) -> None:
        assert request.session is not None
        remaining, owner = num_remaining(request), owner_of(request.spec.principal)
        self._compiler.accept_beside(request.session, token_id, remaining, lambda: self._note(request), owner)

    def _admit(self, request: Request) -> None:
        """Queue a request with its constraint and its given tokens, once its pages are fetched."""
        self.prepare_mask(request)
        if self._transfers is None or not self._transfers.fetch(request):
            self._queue(request)
