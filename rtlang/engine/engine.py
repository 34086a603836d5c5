"""The engine: requests in, outputs out, one step at a time.

`add` validates and queues, `abort` ends at once, `step` computes. There is no thread and no clock here: time is an argument, and
whatever concerns one request (its constraint, its stops, its numbers) fails that request alone, as the error of its last output.
A step that fails as a whole fails the requests in it and no others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

import numpy as np

from rtlang.cache.prefix_cache import PrefixCache
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import (
    AbortedError,
    CapacityError,
    ContextLengthError,
    ParameterError,
    RequestError,
    RtlangError,
)
from rtlang.contract.params import Constraint, FinishReason, SamplingParams
from rtlang.contract.step import Row, SampledRow, Step, StepOutput
from rtlang.engine.constraints.compiler import ConstraintCompiler
from rtlang.engine.constraints.session import ConstraintSession
from rtlang.engine.detokenizer import IncrementalDetokenizer
from rtlang.engine.output_processor import advance
from rtlang.engine.overlap import Overlap
from rtlang.engine.request import Request, RequestOutput, RequestStatus
from rtlang.engine.scheduler import Scheduler

if TYPE_CHECKING:
    from rtlang.model.gpu.device_runner import DeviceRunner
    from rtlang.model.host_runner import HostRunner

logger = logging.getLogger(__name__)

MAX_FAILED_STEPS = 3
"""After so many failed steps in a row the engine gives up."""


class Engine:
    """Wires scheduler, runner and constraints. Used from one thread at a time.

    Args:
        runner: a loaded model runner.
        compiler: compiles constraints on threads of its own.
        wake: called, from any thread, when a compiled constraint, or a mask, makes a request ready.
        check_every_step: verify all accounting after each step (slow).
    """

    def __init__(
        self,
        config: RuntimeConfig,
        runner: HostRunner | DeviceRunner,
        compiler: ConstraintCompiler,
        wake: Callable[[], None],
        *,
        check_every_step: bool = False,
    ) -> None:
        self.cache = PrefixCache(runner.num_pages, config.page_size, sharing=config.prefix_sharing)
        self.scheduler = Scheduler(
            self.cache,
            policy_name=config.policy,
            max_rows=config.max_rows,
            max_step_tokens=config.max_step_tokens,
        )
        self.num_steps = self.num_generated_tokens = self.num_prompt_tokens = self.num_cached_tokens = 0
        self._runner, self._compiler, self._wake = runner, compiler, wake
        self._page_size = config.page_size
        self._check = check_every_step
        self._requests: dict[int, Request] = {}
        self._compiling: dict[Request, Future[ConstraintSession]] = {}
        self._failed: list[RequestOutput] = []
        self._held: list[Request] = []  # whose masks were being made when the last step was built, and since
        self._is_stalled = False  # nothing could be computed then, because of those
        self._next_id = 1
        self._num_failed_steps = 0
        self._overlap: Overlap | None = None
        if runner.overlaps:
            self._overlap = Overlap(self.scheduler, runner, compiler, self._apply, self._fail)

    @property
    def has_work(self) -> bool:
        """Whether `step` has something to do now; requests whose constraint or mask is still being made do not count."""
        is_stalled = self._is_stalled and all(request.is_held for request in self._held)
        return bool(
            (not is_stalled and (self.scheduler.running or self.scheduler.num_waiting))
            or self._failed
            or (self._overlap is not None and self._overlap.is_busy)
            or any(future.done() for future in self._compiling.values())
        )

    @property
    def num_requests(self) -> int:
        """Requests accepted and not ended."""
        return len(self._requests)

    def add(
        self,
        token_ids: Sequence[int],
        params: SamplingParams,
        listener: Callable[[RequestOutput], None],
        *,
        now: float,
        constraint: Constraint | None = None,
        seed: int = 0,
        choice: int = 0,
        priority: int = 0,
        program_time: float | None = None,
        score_from: int | None = None,
        generates: bool = True,
    ) -> Request:
        """Accept a request; from here on its listener gets exactly one last output.

        Args:
            token_ids: the prompt.
            seed, choice: key of the noise, with the index of each output token.
            score_from: report log-probabilities of prompt tokens from this index on.
            generates: False: only score.
        Raises:
            RequestError, ParameterError: the request can never run; says why.
        """
        tokenizer, model = self._runner.tokenizer, self._runner.model_config
        if not token_ids:
            raise RequestError("the prompt is empty, and the model has no token to start from")
        for name, ids in (
            ("stop_token_ids", params.stop_token_ids),
            ("logit_bias", [pair[0] for pair in params.logit_bias]),
        ):
            for token_id in ids:
                if token_id >= model.vocab_size:
                    raise ParameterError(name, token_id, f"ids below {model.vocab_size} are allowed")
        if tokenizer.vocab_size > model.vocab_size and max(token_ids) >= model.vocab_size:
            raise RequestError(
                f"the prompt has token {max(token_ids)} of the tokenizer, and the model's vocabulary has {model.vocab_size}"
            )
        room = self._runner.max_model_len - len(token_ids)
        if room < (1 if generates else 0):
            raise ContextLengthError(len(token_ids), params.max_tokens, self._runner.max_model_len)
        request = Request(
            request_id=self._next_id,
            token_ids=list(token_ids),
            params=params,
            listener=listener,
            output_text=IncrementalDetokenizer(tokenizer, params),
            constraint=constraint,
            seed=seed,
            choice=choice,
            priority=priority,
            program_time=now if program_time is None else program_time,
            arrival_time=now,
            score_from=score_from,
            generates=generates,
            eos_ids=tokenizer.eos_token_ids,
            stop_ids=frozenset(params.stop_token_ids) | (frozenset() if params.ignore_eos else tokenizer.eos_token_ids),
        )
        request.max_tokens = min(params.max_tokens, room) if generates else 0
        num_pages = -(-(len(token_ids) + request.max_tokens) // self._page_size)
        if num_pages > self._runner.num_pages:
            raise CapacityError(num_pages, self._runner.num_pages)
        self._next_id += 1
        self._is_stalled = False
        self._requests[request.request_id] = request
        if constraint is None:
            self.scheduler.add(request)
        else:
            request.status = RequestStatus.COMPILING
            future = self._compiler.session(constraint, request.max_tokens)
            self._compiling[request] = future
            future.add_done_callback(lambda _: self._wake())
        return request

    def abort(self, request: Request) -> None:
        """End a request now; its pages are free when this returns. Its listener gets a last output with the next step."""
        if request.status is not RequestStatus.FINISHED:
            self._fail(request, AbortedError("the request was cancelled"))

    def step(self, now: float) -> list[RequestOutput]:
        """Compute one step; returns what it brought, last outputs of failed and aborted requests included.

        Raises:
            RuntimeError: step after step fails; the engine is of no more use.
        """
        self._admit_compiled()
        # Before the schedule: who gets ready in between has work to be done.
        self._held = [each for each in self._held if each.is_held and each.status is not RequestStatus.FINISHED]
        step = self.scheduler.schedule(now)
        self._is_stalled = step is None and bool(self._held)
        outputs: list[RequestOutput] = []
        if self._overlap is not None:
            outputs = self._overlap.step(step)
            self.num_steps += step is not None
        elif step is not None:
            try:
                result = self._compute(step)
            except Exception as error:  # a whole forward pass failed; who was in it is told, the rest goes on
                self._fail_step(step, error)
            else:
                self._num_failed_steps = 0
                outputs = self._update(step, result)
            self.num_steps += 1
        outputs += self._failed
        self._failed = []
        if self._check:
            self.scheduler.check()
        return outputs

    def _compute(self, step: Step) -> StepOutput:
        bitmask = None
        filling: Future[None] | None = None
        if step.num_mask_rows:
            bitmask = np.empty((step.num_mask_rows, -(-self._runner.model_config.vocab_size // 32)), dtype=np.int32)
            requests = [self._requests[row.request_id] for row in step.rows if row.mask_row is not None]
            filling = self._compiler.fill([request.session for request in requests if request.session], bitmask)
        runner = self._runner
        assert not runner.overlaps
        in_flight = runner.launch(step)
        if filling is not None:
            filling.result()
        return runner.collect(in_flight, bitmask)

    def _update(self, step: Step, result: StepOutput) -> list[RequestOutput]:
        return self._apply(zip(self.scheduler.computed(step), step.rows, result.rows, strict=True))

    def _apply(self, results: Iterable[tuple[Request, Row, SampledRow]]) -> list[RequestOutput]:
        """Take in what rows gave."""
        outputs: list[RequestOutput] = []
        for request, row, out in results:
            try:
                if request.session is not None and row.mask_row is not None:
                    request.session.raise_if_failed()
                output = advance(request, out)
            except RtlangError as error:
                self._fail(request, error)
                continue
            except Exception as error:
                logger.exception("request %d failed", request.request_id)
                self._fail(request, RequestError(f"{type(error).__name__}: {error}"))
                continue
            if out.token_id is not None:
                self.num_generated_tokens += 1
            if output is None:
                continue
            outputs.append(output)
            if output.is_last:
                self._end(request)
            elif row.mask_row is not None:
                self._prepare_if_slow(request)
        return outputs

    def _prepare_if_slow(self, request: Request) -> None:
        """Have the next mask made now, where masks take long: the request is left out of the steps until it is there."""
        if request.session is not None and request.session.is_slow and self._overlap is None:
            self._compiler.prepare(request.session, self._wake)
            self._held.append(request)

    def _end(self, request: Request) -> None:
        self._is_stalled = False
        if request.session is not None:
            request.session.close()
        self.num_prompt_tokens += request.num_prompt_tokens
        self.num_cached_tokens += request.num_cached_tokens
        self.scheduler.remove(request)
        self._requests.pop(request.request_id, None)

    def _fail(self, request: Request, error: RtlangError) -> None:
        future = self._compiling.pop(request, None)
        if future is not None:
            future.cancel()
        self._end(request)
        reason = FinishReason.CANCELLED if isinstance(error, AbortedError) else FinishReason.ERROR
        self._failed.append(RequestOutput(request, finish_reason=reason, error=error))

    def _fail_step(self, step: Step, error: Exception) -> None:
        self._num_failed_steps += 1
        if self._num_failed_steps >= MAX_FAILED_STEPS:
            raise RuntimeError(f"{self._num_failed_steps} steps in a row failed, the last with: {error}") from error
        logger.exception("step %d failed", step.step_id)
        for request in self.scheduler.fail_step(step):
            self._fail(request, RequestError(f"the step that computed it failed: {error}"))

    def _admit_compiled(self) -> None:
        for request in [request for request, future in self._compiling.items() if future.done()]:
            future = self._compiling.pop(request)
            try:
                request.session = future.result()
            except RtlangError as error:
                self._fail(request, error)
            except Exception as error:
                logger.exception("the constraint of request %d failed", request.request_id)
                self._fail(request, RequestError(f"constraint: {type(error).__name__}: {error}"))
            else:
                self._prepare_if_slow(request)
                self.scheduler.add(request)
