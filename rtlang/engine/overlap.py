"""Steps on a device, one in flight while the host works on the results of the one before.

A step is launched before the host has seen what the step before it drew: a row that goes on takes its token on the device
(`Row.input_is_pending`). Only then does the host wait for the tokens of the step before, of which each may turn out to have been
the last, or one that the constraint replaces to end in time; the row launched after it was in vain then, and what it gives is not
looked at. Rows whose draw depends on what the host knows of the last token (masks, penalties) are drawn after that, while the
device is still busy with the layers.

Pages that a row in vain writes to are given away only to later steps, which run after it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rtlang.contract.errors import RequestError, RtlangError
from rtlang.contract.step import Row, SampledRow, Step
from rtlang.engine.constraints.compiler import ConstraintCompiler
from rtlang.engine.constraints.device import DeviceConstraints
from rtlang.engine.request import Request, RequestOutput, RequestStatus
from rtlang.engine.scheduler import Scheduler
from rtlang_grammars.machine.export import Walk

if TYPE_CHECKING:
    from rtlang.model.gpu.device_runner import DeviceRunner, Flight

logger = logging.getLogger(__name__)

MAX_FAILED_STEPS = 3
"""After so many failed steps in a row the engine gives up."""


@dataclass(slots=True)
class _Launched:
    """A step on its way, and its requests in row order.

    Attributes:
        walks: by row, of those whose constraint the device follows by itself.
        in_vain: requests whose row was computed after a wrong token.
    """

    step: Step
    requests: list[Request]
    flight: Flight
    walks: dict[int, Walk]
    is_drawn: bool = False
    in_vain: set[Request] = field(default_factory=set)


class Overlap:
    """The engine's steps on a runner that overlaps them. Used from the engine's thread.

    Args:
        apply: takes in what rows gave; returns the outputs.
        fail: ends a request with an error.
        executor: runs what takes long beside the steps, instead of an own thread; for tests.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        runner: DeviceRunner,
        compiler: ConstraintCompiler,
        apply: Callable[[Iterable[tuple[Request, Row, SampledRow]]], list[RequestOutput]],
        fail: Callable[[Request, RtlangError], None],
        executor: Executor | None = None,
    ) -> None:
        self._scheduler, self._runner, self._compiler = scheduler, runner, compiler
        self._apply, self._fail = apply, fail
        self._constraints = DeviceConstraints(runner, executor)
        self._before: _Launched | None = None
        self._num_failed = 0

    @property
    def is_busy(self) -> bool:
        """A step is in flight."""
        return self._before is not None

    def step(self, step: Step | None) -> list[RequestOutput]:
        """Launch `step`, which has just been scheduled, and take in what the step before gave; returns its outputs.

        Raises:
            RuntimeError: step after step fails.
        """
        before, self._before = self._before, None
        launched = self._launch(step) if step is not None else None
        outputs: list[RequestOutput] = []
        try:
            if before is not None:
                outputs = self._collect(before, launched)
            if launched is not None and not launched.is_drawn:
                self._draw(launched)
        except Exception as error:  # the device lost what it was computing: nothing in its memory is to be trusted
            self._fail_all(error)
            return outputs
        self._before = launched
        return outputs

    def _launch(self, step: Step) -> _Launched | None:
        try:
            flight = self._runner.launch(step)
        except Exception as error:  # nothing of it was computed; who was in it is told, the rest goes on
            self._count_failure(error)
            logger.exception("step %d failed", step.step_id)
            for request in self._scheduler.fail_step(step):
                self._fail(request, RequestError(f"the step that computed it failed: {error}"))
            return None
        requests = self._scheduler.launched(step)
        launched = _Launched(step, requests, flight, self._constraints.walks(requests, step.rows))
        if not any(self._waits(launched, index) for index in range(len(requests))):
            self._draw(launched)
        return launched

    def _collect(self, before: _Launched, launched: _Launched | None) -> list[RequestOutput]:
        result = self._runner.collect(before.flight)
        self._num_failed = 0
        found: list[tuple[Request, Row, SampledRow]] = []
        for request, row, out in zip(before.requests, before.step.rows, result.rows, strict=True):
            request.num_in_flight_tokens -= len(row.token_ids)
            if request.status is RequestStatus.FINISHED or request in before.in_vain:
                continue
            request.num_pending_tokens -= row.samples
            request.num_pending_scores -= len(row.score_token_ids)
            found.append((request, row, out))
        outputs = self._apply(found)
        row_after = dict(zip(launched.requests, launched.step.rows, strict=True)) if launched is not None else {}
        for request, _, out in found:
            is_replaced = out.token_id is not None and request.token_ids[-1] != out.token_id
            if is_replaced and request.status is not RequestStatus.FINISHED and request in row_after:
                assert launched is not None
                assert row_after[request].input_is_pending
                launched.in_vain.add(request)
                request.num_computed_tokens -= 1
                request.num_pending_tokens -= 1
            if out.token_id is not None:
                self._constraints.follow(request)
        return outputs

    def _draw(self, launched: _Launched) -> None:
        """Draw the tokens of a launched step, with what is now known of the tokens before."""
        rows, bitmask = list(launched.step.rows), None
        requests: list[Request] = []
        for index, (request, row) in enumerate(zip(launched.requests, rows, strict=True)):
            is_live = request.status is not RequestStatus.FINISHED and request not in launched.in_vain
            if index in launched.walks:
                rows[index] = replace(row, mask_row=None)
            elif row.mask_row is not None:
                rows[index] = replace(row, mask_row=len(requests) if is_live else None)
                requests += [request] if is_live else []
            elif row.input_is_pending and request.needs_history:
                rows[index] = replace(row, output_token_ids=request.output_token_ids)
        if requests:
            bitmask = self._filled(requests)
        self._runner.draw(launched.flight, rows, bitmask, launched.walks)
        launched.is_drawn = True

    def _waits(self, launched: _Launched, index: int) -> bool:
        """Whether the row's draw needs what the host learns from the step before."""
        request, row = launched.requests[index], launched.step.rows[index]
        is_masked_here = row.mask_row is not None and index not in launched.walks
        return is_masked_here or (row.input_is_pending and request.needs_history)

    def _filled(self, requests: list[Request]) -> NDArray[np.int32]:
        bitmask = np.empty((len(requests), -(-self._runner.model_config.vocab_size // 32)), dtype=np.int32)
        self._compiler.fill([request.session for request in requests if request.session], bitmask).result()
        return bitmask

    def _fail_all(self, error: Exception) -> None:
        self._before = None
        self._count_failure(error)
        logger.exception("a step in flight failed")
        for request in self._scheduler.fail(list(self._scheduler.running)):
            self._fail(request, RequestError(f"the step that computed it failed: {error}"))
        self._scheduler.cache.clear()

    def _count_failure(self, error: Exception) -> None:
        self._num_failed += 1
        if self._num_failed >= MAX_FAILED_STEPS:
            raise RuntimeError(f"{self._num_failed} steps in a row failed, the last with: {error}") from error
