"""The continuous-batching engine: requests in, outputs out, one step at a time.

`add` validates and queues a request, `abort` ends one at once, `step` computes. The engine has no thread and no clock: time is an argument.
An error that concerns one request (its constraint, stop conditions or logits) ends that request alone, as the error of its last output. A
step that fails as a whole is repeated in parts, until the request that makes it fail is found (fault_isolation.py).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter

from rtlang.cache.prefix_cache import PrefixCache
from rtlang.cache.scope import Namespaces
from rtlang.cache.system_memory import trim_heap
from rtlang.cache.tiers.tier import CacheTier
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import (
    AbortedError,
    CapacityError,
    NumericsError,
    OverloadError,
    ParameterError,
    RtlangError,
    internal_error,
)
from rtlang.contract.params import FinishReason
from rtlang.contract.process.current_work import CurrentWork
from rtlang.contract.step import Step
from rtlang.engine.constraints.compiler import ConstraintCompiler
from rtlang.engine.constraints.thought_limit import limited_text
from rtlang.engine.drafts.defaults import drafter_for
from rtlang.engine.drafts.draft_model import DraftModel
from rtlang.engine.drafts.drafter import Drafter
from rtlang.engine.fault_isolation import FaultIsolation, is_memory_error
from rtlang.engine.planning.step_cost import StepCost, size_of
from rtlang.engine.preparation import MAX_WORK, Compiling, Preparation
from rtlang.engine.requests.credit import Credit
from rtlang.engine.requests.detokenizer import IncrementalDetokenizer
from rtlang.engine.requests.output_processor import advance, end_of_scoring
from rtlang.engine.requests.program_account import ProgramAccount
from rtlang.engine.requests.request import Request, RequestOutput, RequestSpec, RequestStatus
from rtlang.engine.requests.request_checks import check_request
from rtlang.engine.scheduling.scheduler import Scheduler
from rtlang.engine.scheduling.state_slots import state_slots_for
from rtlang.engine.scheduling.step_planner import planner_for
from rtlang.engine.sessions.engine_sessions import EngineSessions
from rtlang.engine.sessions.session_table import Turn
from rtlang.engine.step_pipeline import SampledRows, StepPipeline
from rtlang.engine.tiers.configured_tiers import CacheTiers
from rtlang.engine.tiers.fetch_price import compute_seconds
from rtlang.engine.tiers.page_transfers import PageTransfers
from rtlang.engine.token_rules.filters import filters_of
from rtlang.model.runner import Runner
from rtlang.work.fair_queue import owner_of
from rtlang_grammars.spec.structures import sequence
from rtlang_grammars.spec.work_limit import WorkLimit

logger = logging.getLogger(__name__)

MAX_REBUILDS = 5
"""Times that the runner is rebuilt; then the process should be restarted."""
RETRY_AFTER_S = 1.0
ROOM_RETRY_S = 0.1
"""Time after which sessions that wait for room are looked at again, if nothing else happens."""
_OBSERVE_EVERY = 4  # steps; to take in the time of one costs 13 us


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model on its device.

    Attributes:
        runner: loaded.
        cost: the cost of its steps, as far as it was measured before.
        draft_model: proposes drafts to it.
    """

    runner: Runner
    cost: StepCost = field(default_factory=StepCost)
    draft_model: DraftModel | None = None


class Engine:
    """Connects scheduler, runner and constraints. Used by one thread at a time.

    Args:
        compiler: compiles constraints on its own threads.
        wake: called from any thread when a compiled constraint or a mask makes a request ready.
        rebuild: makes a new runner when this one fails at every step, given how often it did so in vain; on another thread, and with as
            many pages. The future fails if it cannot.
        public_prompts: tokens of prompts whose cached pages are shared by all namespaces.
        drafter: chooses drafts; default: as `config.speculation` says, and with the draft model.
        check_every_step: verify all accounting after each step (slow).
    Attributes:
        last_step: the step scheduled last; None before, and if there was nothing to compute.
        work: the record of what is worked on, and for which graph.
        retry_at: when to call `retry`, since waiting sessions may have their turn then; None if none waits.
        sessions: the sessions of its requests; None without `config.infer_sessions`.
    """

    def __init__(
        self,
        config: RuntimeConfig,
        model: LoadedModel,
        compiler: ConstraintCompiler,
        wake: Callable[[], None],
        *,
        check_every_step: bool = False,
        rebuild: Callable[[int], Future[Runner]] | None = None,
        public_prompts: Iterable[Sequence[int]] = (),
        drafter: Drafter | None = None,
    ) -> None:
        runner = model.runner
        self.work = CurrentWork()
        self.namespaces = Namespaces(public_prompts)
        tiers = CacheTiers.of(config, runner.page_memory, runner.state_memory)
        self.cache = PrefixCache(
            runner.num_pages,
            config.page_size,
            sharing=config.prefix_sharing,
            retention_share=config.retention_share,
            eviction=config.eviction,
            namespace_of=self.namespaces.name,
            root_digest=tiers.root_digest,
            tracks_new_pages=bool(tiers.tiers),
            num_states=runner.num_states,
        )
        self.step_cost = model.cost
        self.step_thread_s: float | None = None  # of the last step; None for a device, which works beside the thread
        self.drafter = drafter or drafter_for(config, runner, self.cache, self.step_cost, model.draft_model)
        if self.drafter is not None:
            self.drafter.work = self.work
        self.sessions = EngineSessions(self.cache) if config.infer_sessions else None
        self.scheduler = Scheduler(
            self.cache,
            planner_for(config, self.step_cost),
            policy_name=config.policy,
            max_rows=config.row_limit,
            max_running=config.running_limit,
            drafter=self.drafter,
            states=state_slots_for(runner, self.cache),
            sessions=self.sessions,
        )
        self._now = 0.0  # the time of the last call that was given one
        self.num_steps = self.num_generated_tokens = self.num_prompt_tokens = self.num_cached_tokens = 0
        self._runner, self._compiler, self._wake = runner, compiler, wake
        self._num_pages, self._next_id = runner.num_pages, 1
        self._page_size, self._injects_faults, self._check = config.page_size, config.fault_injection, check_every_step
        self._requests: dict[int, Request] = {}
        self._unreported: list[RequestOutput] = []  # last outputs of failed and aborted requests
        self._is_stalled = (
            False  # the last step was empty: constraints work outside the steps, or sessions wait for room
        )
        self.retry_at: float | None = None
        self._isolation = FaultIsolation(config.step_limit)
        compiler.is_busy = lambda: bool(self.scheduler.running)
        self._rebuild = rebuild
        self._rebuilding: Future[Runner] | None = None
        self._row_graph_ids: list[int] = []  # of the last step
        self.last_step: Step | None = None
        self._pipeline = self._make_pipeline()
        self.transfers: PageTransfers | None = None
        if tiers.tiers and runner.page_memory is not None:
            self.transfers = PageTransfers(
                self.cache,
                runner.page_memory,
                tiers,
                lambda request: self.scheduler.rank(request.program.arrival_time, request.spec.priority),
                wake,
                states=runner.state_memory,
                compute_s=partial(compute_seconds, self.step_cost, max_step_tokens=config.step_limit),
            )
        self.preparation = Preparation(
            compiler, wake, self._queue, self._fail, self.transfers, self.work, prepares_masks=not runner.is_pipelined
        )

    @property
    def tiers(self) -> Sequence[CacheTier]:
        """The tiers below the pool, from the fastest to the slowest."""
        return () if self.transfers is None else self.transfers.tiers

    @property
    def has_work(self) -> bool:
        """Whether `step` has work to do now. Requests that wait for their constraint, their mask or a new runner do not count."""
        if self._rebuilding is not None and not self._rebuilding.done():
            return bool(self._unreported)
        may_schedule = bool(self.scheduler.running or self.scheduler.num_waiting) and not self._is_stalled
        return may_schedule or self._pipeline.is_busy or self.preparation.has_reports or bool(self._unreported)

    @property
    def num_requests(self) -> int:
        """Number of requests that have not ended."""
        return len(self._requests)

    @property
    def requests(self) -> Iterable[Request]:
        """The requests that have not ended, in the order of their arrival."""
        return self._requests.values()

    def add(self, spec: RequestSpec, now: float) -> Request:
        """Accept a request. From now on its listener receives exactly one last output.

        Raises:
            RequestError, ParameterError: the request can never run.
            OverloadError: the principal has used up its compile seconds.
        """
        tokenizer, model = self._runner.tokenizer, self._runner.model_config
        params, num_prompt_tokens = spec.params, len(spec.prompt_ids)
        if not params.max_tokens:
            spec = replace(spec, score_only=True)
        if params.x_fault is not None and not self._injects_faults:
            raise ParameterError(
                "x_fault", params.x_fault, "expected None: the runtime was started without fault_injection"
            )
        check_request(self._runner, spec)
        compiled = spec.constraint if spec.constraint is not None or spec.score_only else limited_text(params)
        is_compiled = compiled is not None or params.stop_regex
        if is_compiled and spec.principal.limits.compile_seconds_per_minute is not None:
            self._compiler.quota.check(spec.principal)
        if spec.first_banned_ids:  # logits may be wider than the vocabulary
            unused = tuple(range(tokenizer.vocab_size, model.vocab_size))
            spec = replace(spec, first_banned_ids=spec.first_banned_ids + unused)
        num_given, resampled_ids = len(spec.given_ids), tuple[int, ...]()
        if params.mirostat and not spec.score_only:
            spec, resampled_ids = replace(spec, given_ids=()), tuple(spec.given_ids)
        if spec.given_ids and params.logprobs is not None and spec.score_from is None:
            spec = replace(spec, score_from=num_prompt_tokens)
        room = self._runner.max_model_len - num_prompt_tokens
        max_tokens = 0 if spec.score_only else max(min(params.max_tokens, room), num_given)
        num_pages = -(-(num_prompt_tokens + max_tokens) // self._page_size)
        if num_pages > self._num_pages:
            raise CapacityError(num_pages, self._num_pages)
        request = Request(
            self._next_id,
            spec,
            IncrementalDetokenizer(
                tokenizer,
                params,
                shows_special=spec.constraint is not None or params.shows_special,
                skipped=spec.begins_with,
            ),
            program=ProgramAccount(now) if spec.program is None else spec.program,
            arrival_time=now,
            scope=self.namespaces.scope(spec.principal.namespace, spec.prompt_ids),
            stop_ids=frozenset(params.stop_token_ids) | (frozenset() if params.ignore_eos else tokenizer.eos_token_ids),
            eos_ids=tokenizer.eos_token_ids,
            filters=None if spec.score_only else filters_of(params, spec.prompt_ids, tokenizer),
            resampled_ids=resampled_ids,
        )
        request.max_tokens = max_tokens
        self._now = now
        if self.sessions is not None and not spec.score_only and not spec.principal.is_background:
            request.turn = self.sessions.begin(
                spec.principal, spec.prompt_ids, request.scope, request.eos_ids, spec.session, now
            )
        self._next_id += 1
        self._is_stalled = False
        self._requests[request.request_id] = request
        client = owner_of(spec.principal)
        compiling: list[Compiling] = []
        if compiled is not None:
            compiled = sequence(spec.begins_with, compiled) if spec.begins_with else compiled
            compiling.append(self._compiler.session(compiled, max_tokens, client, request.program.account))
        if params.stop_regex and not spec.score_only:
            compiling.append(self._compiler.stop_patterns(params.stop_regex, client))
        self.preparation.begin(request, compiling)
        return request

    def abort(self, request: Request) -> None:
        """End a request now and free its pages. Its listener receives the last output with the next step."""
        if request.status is not RequestStatus.FINISHED:
            self._fail(request, AbortedError("the request was cancelled"))

    def grant(self, credit: Credit, num_tokens: int) -> None:
        """Add to the credit of a graph, and continue its parked requests."""
        was_spent = credit.is_spent  # else no request of the graph is parked
        credit.num_tokens += num_tokens
        if was_spent and not credit.is_spent:
            self._is_stalled = False
            self.scheduler.resume(credit)

    def step(self, now: float) -> list[RequestOutput]:
        """Compute one step; returns its outputs, including the last outputs of failed and aborted requests.

        Raises:
            RuntimeError: steps fail whatever is in them, and the runner cannot be rebuilt; the engine cannot continue.
        """
        self._now = now
        if self._rebuilding is not None:
            if not self._rebuilding.done():
                return self._take_unreported()
            self._use(self._rebuilding.result())
        outputs = self._continue_prepared() if self.preparation.has_reports else []
        step = self.last_step = self._schedule(now)
        self._note_rows(step)
        is_held_up = self.preparation.holds_up or self.scheduler.waits_for_room
        self._is_stalled = step is None and is_held_up and not self._pipeline.is_busy
        self.retry_at = now + ROOM_RETRY_S if self._is_stalled and self.scheduler.waits_for_room else None
        outputs += self._pipeline.run(step)
        if not self._pipeline.is_busy:
            self.work.end_step()
        if self.transfers is not None:
            self.transfers.offload()
        self.num_steps += step is not None
        if self._isolation.is_active:
            self._settle()
        outputs += self._take_unreported()
        if self._check:
            self.scheduler.check()
        return outputs

    def _note_rows(self, step: Step | None) -> None:
        """Record the graphs of the steps that are computed next: this one, and one in flight."""
        in_flight = self._row_graph_ids if self._pipeline.is_busy else []
        requests = () if step is None else self.scheduler.requests_of(step)
        self._row_graph_ids = [request.program.graph_id for request in requests]
        self.work.begin_step(self._row_graph_ids + in_flight)

    def _continue_prepared(self) -> list[RequestOutput]:
        """Take in what other threads have done between the steps."""
        outputs = self.preparation.poll()
        for output in outputs:
            if output.is_last:
                self._end(output.request)
        return outputs

    def _take_unreported(self) -> list[RequestOutput]:
        outputs, self._unreported = self._unreported, []
        return outputs

    def retry(self, now: float) -> None:
        """Let the next step look again for sessions that have their turn, if `retry_at` has come."""
        if self.retry_at is not None and now >= self.retry_at:
            self._is_stalled, self.retry_at = False, None

    def note_time(self, seconds: float) -> None:
        """Take in the time of the last step: what the next ones contain depends on it, and no text does.

        Args:
            seconds: time of the engine thread, which does its share of the forward pass; unlike the time that passed, it does not depend on
                other processes.
        """
        step = self.last_step
        self.step_thread_s = None if self._runner.is_pipelined else seconds
        if self.drafter is not None:
            seconds -= self.drafter.take_seconds()
        if step is None or self._pipeline.is_busy:
            return
        is_due = step.step_id % _OBSERVE_EVERY == 0 or not self.step_cost.is_settled
        if is_due or max([len(row.token_ids) for row in step.rows]) > 1:
            self.step_cost.observe(size_of(step), seconds)

    def _schedule(self, now: float) -> Step | None:
        while (group := self._isolation.group()) is not None:
            step = self.scheduler.schedule(now, group, self._isolation.max_step_tokens)
            if step is not None or self._pipeline.is_busy:
                return step
            self._isolation.skip_group()
        return self.scheduler.schedule(now, max_step_tokens=self._isolation.max_step_tokens)

    def _settle(self) -> None:
        """Fail the requests that make steps fail; rebuild the runner if everything fails."""
        if self._isolation.wants_rebuild:
            self._rebuild_runner()
        for request, error in self._isolation.settle():
            if is_memory_error(error):
                self._fail(request, OverloadError("there is not enough memory to compute this request", RETRY_AFTER_S))
            else:
                self._fail(request, internal_error(logger, f"request {request.request_id} fails its steps", error))

    def _rebuild_runner(self) -> None:
        """Ask for a new runner; until it is there nothing is computed, but requests can be added and aborted."""
        num_rebuilt = self._isolation.num_rebuilt
        if self._rebuild is None or num_rebuilt >= MAX_REBUILDS:
            raise RuntimeError(f"all steps fail, and the runner was rebuilt {num_rebuilt} times")
        logger.error("all steps fail: rebuilding the runner")
        self._forget_pages()
        self._rebuilding = self._rebuild(num_rebuilt)
        self._rebuilding.add_done_callback(lambda _: self._wake())

    def _use(self, runner: Runner) -> None:
        """Go on with a new runner."""
        if runner.num_pages < self._num_pages:
            raise RuntimeError(f"the new runner has {runner.num_pages} pages; the first one had {self._num_pages}")
        num_states = 0 if self.cache.states is None else self.cache.states.num_slots
        if runner.num_states < num_states:
            raise RuntimeError(f"the new runner has {runner.num_states} states; the first one had {num_states}")
        self._rebuilding, self._runner = None, runner
        if self.transfers is not None:
            self.transfers.forget_memory(runner.page_memory, runner.state_memory)
        self._pipeline = self._make_pipeline()
        self._isolation.note_rebuilt()

    def _forget_pages(self) -> None:
        """Put all requests back, because the content of the pages is lost or cannot be trusted."""
        if self.transfers is not None:
            self.transfers.forget_memory()
        self.scheduler.forget_pages()

    def _make_pipeline(self) -> StepPipeline:
        parts = self.scheduler, self._runner, self._compiler, self._apply, self._isolation, self.step_cost
        return StepPipeline(*parts, self._forget_pages, clock=self._clock)

    def _clock(self) -> float:
        """Seconds without the time of the draft model, whose steps run between steps of the model."""
        model = None if self.drafter is None else self.drafter.model
        return perf_counter() - (0.0 if model is None else model.seconds)

    def _apply(self, results: SampledRows) -> list[RequestOutput]:
        """Process the results of rows."""
        outputs: list[RequestOutput] = []
        work, begin = WorkLimit(MAX_WORK), self.work.begin
        for request, row, result in results:
            output: RequestOutput | None = None
            num_known = request.num_kv_tokens
            begin(request.program.graph_id)
            try:
                if row.mask_row is not None and request.session is not None:
                    request.session.raise_if_failed()
                for each in advance(request, row, result, work):
                    output = each if output is None else output.followed_by(each)
            except RtlangError as error:
                self._fail(request, error)
            except Exception as error:
                self._fail(request, internal_error(logger, f"request {request.request_id} failed", error))
            else:
                num_drafted = request.num_kv_tokens - num_known
                self.num_generated_tokens += bool(result.tokens) + num_drafted
                if num_drafted:
                    self.scheduler.note_drafted(request, num_drafted)
            if request.late is not None:
                self.preparation.accept_late(request)
            if output is None:
                continue
            outputs.append(output)
            if output.is_last:
                self._end(request)
            elif request.late is None and row.mask_row is not None and request.status is not RequestStatus.FINISHED:
                self.preparation.prepare_mask(request)
        return outputs

    def _end(self, request: Request) -> None:
        self._is_stalled = False
        if request.session is not None:
            request.session.close()
        self.num_prompt_tokens += request.num_prompt_tokens
        self.num_cached_tokens += request.stats.num_cached_tokens
        self.preparation.forget(request)
        self._pipeline.forget(request)
        self.scheduler.remove(request)
        if self.sessions is not None and request.turn is not None:
            self._end_turn(self.sessions, request, request.turn)
        request.program.account.add(request.account)
        self._requests.pop(request.request_id, None)

    def _end_turn(self, sessions: EngineSessions, request: Request, turn: Turn) -> None:
        stats = request.stats
        sessions.end(
            turn,
            request.token_ids,
            request.num_prompt_tokens,
            request.output_text.text,
            request.scope,
            request.spec.session,
            self._now,
            num_cached=None if stats.first_step_time is None else stats.num_cached_tokens,
            num_replayed=stats.num_replayed_tokens,
        )

    def _fail(self, request: Request, error: RtlangError) -> None:
        if request.states is not None and isinstance(error, NumericsError):
            request.states.is_sound = False
        self._end(request)
        reason = FinishReason.CANCELLED if isinstance(error, AbortedError) else FinishReason.ERROR
        self._unreported.append(RequestOutput(request, finish_reason=reason, error=error))

    def _queue(self, request: Request) -> None:
        if request.spec.score_only and not request.num_target_tokens:  # a prompt of one token: nothing is computed
            self._end(request)
            self._unreported.append(RequestOutput(request, finish_reason=end_of_scoring(request)))
            return
        request.enter(RequestStatus.WAITING)
        self.scheduler.add(request)

    def rest(self, *, is_long: bool) -> None:
        """Give memory back, because there is nothing to do: of free pages, and after a long time also of cached ones that nothing holds."""
        memory = self._runner.page_memory
        gives_back = memory is not None and memory.gives_back
        if is_long and gives_back:
            self.cache.clear_unheld()
        if self.drafter is not None:
            self.drafter.rest(is_long=is_long)
        if memory is not None and self._rebuilding is None:
            memory.release(self.cache.free_runs)
        self.trim_memory()

    @staticmethod
    def trim_memory() -> None:
        """Give freed memory of this process back to the system: milliseconds, on any thread."""
        trim_heap()

    def close(self) -> None:
        """Store what the tiers below the pool are to keep, and release them. Idempotent."""
        if self.transfers is not None:
            self.transfers.close()
