"""Runs the engine's steps: launch, mask, sample, collect, and one way to handle failures.

On the host a step is computed at once, while its masks are filled on other threads. On a device the pipeline keeps one step in flight: a
step is launched before the host has seen the tokens of the previous one, and a row that continues reads its input token on the device
(`Row.input_is_pending`). Rows whose sampling depends on the previous token (masks, penalties) are sampled once that token is known, while
the device is still busy with the layers.

A row with drafts is launched only when the host has seen all tokens before them, and its request sits out steps until their results are
there: only these say how long its text is. `scheduler.py` decides when to wait for that; the results of a step are then collected before
the next one is launched.

A token of the previous step may turn out to end its request, or the constraint may replace it. The row launched after it was then computed
from the wrong token, and its result is discarded. Pages written by such a row are reused by later steps only, which run after it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtlang.contract.errors import EngineDeadError
from rtlang.contract.process.log_limit import LimitedLog
from rtlang.contract.step import Row, SampledRow, Step
from rtlang.engine.constraints.compiler import ConstraintCompiler
from rtlang.engine.device_constraints import DeviceConstraints
from rtlang.engine.fault_isolation import FaultIsolation
from rtlang.engine.planning.step_cost import StepCost, size_of
from rtlang.engine.requests.request import Request, RequestOutput, RequestStatus
from rtlang.engine.scheduling.scheduler import Scheduler
from rtlang.model.runner import Runner
from rtlang_grammars.machine.export import Walk

logger = logging.getLogger(__name__)

SampledRows = Iterable[tuple[Request, Row, SampledRow]]


@dataclass(slots=True)
class _Masks:
    """A bitmask, int32 [num_rows, ceil(vocab_size / 32)], that is being filled on other threads."""

    bitmask: NDArray[np.int32]
    filling: Future[None]

    def wait(self) -> NDArray[np.int32]:
        self.filling.result()
        return self.bitmask


@dataclass(slots=True)
class _LaunchedStep:
    """A launched step, with its requests in row order.

    Attributes:
        masks: masks of all constrained rows, if filling could start before the launch.
        walks: by row, positions of the constraints that the device tracks itself.
        discarded: requests whose row was computed from the wrong token.
    """

    step: Step
    requests: list[Request]
    flight: Any
    masks: _Masks | None
    walks: dict[int, Walk] = field(default_factory=dict)
    is_sampled: bool = False
    discarded: set[Request] = field(default_factory=set)


class StepPipeline:
    """Runs steps on a runner. Used on the engine thread.

    Args:
        apply: processes the results of rows; returns the outputs.
        isolation: is told which steps failed.
        cost: is told how long steps of a device take; those of the host are measured outside.
        forget_pages: puts all requests back, because the content of the pages is lost.
        clock: in seconds, without the time of a draft model.
        executor: runs slow background work instead of a dedicated thread; for tests.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        runner: Runner,
        compiler: ConstraintCompiler,
        apply: Callable[[SampledRows], list[RequestOutput]],
        isolation: FaultIsolation,
        cost: StepCost,
        forget_pages: Callable[[], None],
        executor: Executor | None = None,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self._scheduler, self._runner, self._compiler = scheduler, runner, compiler
        self._apply, self._isolation = apply, isolation
        self._log = LimitedLog(logger)  # a step may fail again and again, for want of memory
        self._constraints = DeviceConstraints(runner, executor)
        self._in_flight: _LaunchedStep | None = None
        self._cost, self._clock, self._forget_pages = cost, clock, forget_pages
        self._started: float | None = None  # when the runner began the step in flight, as far as it is known
        self._resting_since: float | None = None  # when the results of the last step came, if its requests go on

    @property
    def is_busy(self) -> bool:
        """Whether a step is in flight."""
        return self._in_flight is not None

    def run(self, step: Step | None) -> list[RequestOutput]:
        """Launch the step that was just scheduled, if any, and process the results that are due; returns their outputs.

        The requests of a step that raises are put back, and the isolation is told.
        """
        previous, self._in_flight = self._in_flight, None
        failed: Exception | None = None
        launched = None
        if previous is None:
            self._started = self._clock()
        if step is not None and self._resting_since is not None:
            self._cost.observe_host(self._clock() - self._resting_since)
            self._resting_since = None
        if step is not None:
            try:
                launched = self._launch(step)
            except EngineDeadError:  # no step will succeed
                raise
            except Exception as error:  # nothing was computed
                kind = type(error).__name__
                self._log.error(f"{kind} in a step: %d of %d rows", step.step_id, len(step.rows), exc_info=error)
                self._scheduler.cache.discard_pending()
                failed = error
        outputs: list[RequestOutput] = []
        due = previous
        try:
            if previous is not None:
                outputs = self._collect(previous, launched)
            due = launched
            if launched is not None and not launched.is_sampled:
                self._sample(launched)
            if launched is not None and not self._runner.is_pipelined:
                outputs, launched = self._collect(launched, None), None
        except EngineDeadError:
            raise
        except Exception as error:
            assert due is not None
            self._started = None
            self._recover(due, error)
            return outputs
        if failed is not None:
            assert step is not None
            requests = self._scheduler.requests_of(step)
            self._scheduler.put_back(requests)
            self._isolation.note_failure(requests, _num_tokens(step), failed)
        self._in_flight = launched
        return outputs

    def _launch(self, step: Step) -> _LaunchedStep:
        is_pipelined = self._runner.is_pipelined
        masks = self._start_masks(*self._masked(step)) if step.num_mask_rows and not is_pipelined else None
        flight = self._runner.launch(step)
        requests = self._scheduler.launched(step)
        walks = self._constraints.walks(requests, step.rows) if is_pipelined else {}
        launched = _LaunchedStep(step, requests, flight, masks, walks)
        if is_pipelined and not _must_wait(launched):
            self._runner.sample(flight, step.rows, None, walks)
            launched.is_sampled = True
        return launched

    def _sample(self, launched: _LaunchedStep) -> None:
        """Sample the tokens of a launched step, with everything now known about the previous tokens."""
        rows, bitmask = list(launched.step.rows), None
        if launched.masks is not None:
            bitmask = launched.masks.wait()
        elif self._runner.is_pipelined:
            bitmask = self._fill_late_masks(launched, rows)
        for index, request in enumerate(launched.requests):
            if rows[index].mask_row is not None and request.session is not None and request.session.temperatures:
                rows[index] = rows[index]._replace(temperatures=request.session.temperatures)
        self._runner.sample(launched.flight, rows, bitmask, launched.walks)
        launched.is_sampled = True

    def _fill_late_masks(self, launched: _LaunchedStep, rows: list[Row]) -> NDArray[np.int32] | None:
        """Fill the masks of a pipelined step, and put mask rows and history into `rows`. The device builds those of rows with a walk.

        It may take over a row here whose automaton was exported meanwhile: all tokens before the row are known by now.
        """
        requests: list[Request] = []
        drafts: list[Sequence[int]] = []
        num_masks = 0
        for index, (request, row) in enumerate(zip(launched.requests, rows, strict=True)):
            is_live = request.status is not RequestStatus.FINISHED and request not in launched.discarded
            if row.input_is_pending and request.needs_history:
                rows[index] = row = row._replace(
                    output_token_ids=request.output_token_ids, max_surprise=request.max_surprise
                )
            if row.mask_row is not None and index not in launched.walks:
                is_masked = is_live and request.session is not None  # a limited thought may have ended: see `advance`
                walk = self._constraints.walk_now(request) if is_masked and not row.num_draft_tokens else None
                if walk is not None:
                    launched.walks[index], rows[index] = walk, row._replace(input_is_pending=False)
                    continue
                rows[index] = row._replace(mask_row=num_masks if is_masked else None)
                if is_masked:
                    requests.append(request)
                    drafts.append(row.draft_token_ids)
                    num_masks += row.num_sampled
        masks = self._start_masks(requests, drafts)
        return None if masks is None else masks.wait()

    def _collect(self, launched: _LaunchedStep, following: _LaunchedStep | None) -> list[RequestOutput]:
        """Process the results of a step, and discard the rows of the following step that depend on a replaced or late token."""
        result = self._runner.collect(launched.flight)
        now = self._clock()
        if self._runner.is_pipelined and self._started is not None:
            self._cost.observe(size_of(launched.step), now - self._started)
        self._started = now  # a step that was launched meanwhile begins now
        self._isolation.note_success(launched.requests)
        settled, lost = self._settled(launched, result.rows)
        found: list[tuple[Request, Row, SampledRow]] = []
        for request, row, out in zip(launched.requests, launched.step.rows, settled, strict=True):
            request.pending.num_computed_tokens -= len(row.token_ids) - row.num_draft_tokens
            request.pending.num_drafts -= row.num_draft_tokens
            if request.status is RequestStatus.FINISHED or request in launched.discarded:
                continue
            request.pending.num_tokens -= row.needs_sample
            request.pending.num_scores -= len(row.score_token_ids)
            found.append((request, row, out))
        if not self._runner.is_pipelined:
            return self._apply(found)
        outputs = self._apply(found)
        if any(_goes_on(request) for request, _, _ in found):
            self._resting_since = now
        replaced = [
            request
            for request, _, out in found
            if request in lost
            or request.late is not None
            or (out.tokens and request.token_ids[-1] != out.tokens[0].token_id)
        ]
        if replaced and following is not None:
            self._discard(following, replaced)
        return outputs

    @staticmethod
    def _discard(following: _LaunchedStep, replaced: Sequence[Request]) -> None:
        """Discard the rows of a step whose input token was replaced, or is late: it will follow, or another one."""
        row_after = dict(zip(following.requests, following.step.rows, strict=True))
        for request in replaced:
            if request.status is not RequestStatus.FINISHED and request in row_after:
                assert row_after[request].input_is_pending
                following.discarded.add(request)
                request.num_computed_tokens -= 1
                if request.states is not None:
                    request.states.undo()
                request.pending.num_tokens -= 1

    def _settled(self, launched: _LaunchedStep, results: Sequence[SampledRow]) -> tuple[list[SampledRow], set[Request]]:
        """Sample the lost rows with masks of the host. Returns the results of all rows, and the requests of the lost ones."""
        settled, requests = list(results), launched.requests
        lost = [
            index
            for index, row in enumerate(settled)
            if row.is_lost
            and requests[index].session is not None
            and requests[index].status is not RequestStatus.FINISHED
            and requests[index] not in launched.discarded
        ]
        masks = self._start_masks([requests[index] for index in lost])
        if masks is not None:
            for index, row in zip(lost, self._runner.sample_again(launched.flight, lost, masks.wait()), strict=True):
                settled[index] = row
                self._constraints.leave(requests[index])
        return settled, {requests[index] for index in lost}

    def forget(self, request: Request) -> None:
        """Forget a request that has ended."""
        self._constraints.forget(request)

    def _masked(self, step: Step) -> tuple[list[Request], list[Sequence[int]]]:
        """Requests of the rows that need a mask, in row order, and their drafts."""
        rows = zip(self._scheduler.requests_of(step), step.rows, strict=True)
        masked = [(request, row.draft_token_ids) for request, row in rows if row.mask_row is not None]
        return [request for request, _ in masked], [draft for _, draft in masked]

    def _start_masks(self, requests: Sequence[Request], drafts: Sequence[Sequence[int]] = ()) -> _Masks | None:
        if not requests:
            return None
        num_rows = len(requests) + sum(map(len, drafts))
        bitmask = np.empty((num_rows, -(-self._runner.model_config.vocab_size // 32)), dtype=np.int32)
        sessions = [request.session for request in requests if request.session]
        if num_rows == len(requests):
            return _Masks(bitmask, self._compiler.fill(sessions, bitmask))
        return _Masks(bitmask, self._compiler.fill(sessions, bitmask, drafts))

    def _recover(self, launched: _LaunchedStep, error: Exception) -> None:
        """Put the requests back whose results were lost. On a device that is every running one, since its memory cannot be trusted."""
        kind = type(error).__name__
        self._log.error(f"{kind}: the results of %d rows were lost", len(launched.requests), exc_info=error)
        if self._runner.is_pipelined:
            for request in launched.requests:
                request.pending.num_tokens = request.pending.num_scores = request.pending.num_computed_tokens = 0
                request.pending.num_drafts = 0
            self._forget_pages()
        else:
            self._scheduler.put_back(launched.requests)
        self._isolation.note_failure(launched.requests, _num_tokens(launched.step), error)


def _must_wait(launched: _LaunchedStep) -> bool:
    """Whether sampling some row needs the previous token of its request, or a mask of the host."""
    walks = launched.walks
    return any(
        (row.mask_row is not None and index not in walks) or (row.input_is_pending and request.needs_history)
        for index, (request, row) in enumerate(zip(launched.requests, launched.step.rows, strict=True))
    )


def _goes_on(request: Request) -> bool:
    """Whether the next step may have its next token."""
    return request.status is RequestStatus.RUNNING and not request.is_ending and not request.is_awaiting_mask


def _num_tokens(step: Step) -> int:
    return sum(len(row.token_ids) for row in step.rows)
