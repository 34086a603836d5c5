"""The runtime: a model, its engine thread, and the graphs that run on it.

    with Runtime(model="path/to/checkpoint") as runtime:
        ...

A runtime is a `Target`: programs submit graphs to it. Graphs are validated in the caller's thread, so that errors are raised where they
occur; everything else happens on the engine thread. The model is loaded on first use or by `start`.
"""

from __future__ import annotations

import atexit
import itertools
import logging
import os
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Unpack
from weakref import WeakSet

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import AbortedError, EngineDeadError, RtlangError, internal_error
from rtlang.contract.events import GraphFailed
from rtlang.contract.params import Constraint, SamplingParams, as_constraint
from rtlang.contract.process.current_work import Words
from rtlang.contract.process.thread_watch import exclude_computation, watch_of
from rtlang.contract.request_graph import RequestGraph
from rtlang.contract.runs.run_options import ALL_ABILITIES, DEFAULT_OPTIONS, Ability, RunOptions
from rtlang.contract.runtime_settings import RuntimeSettings, StrPath, runtime_config, with_settings
from rtlang.contract.service.generation import Generation, Prompt, generation_graph
from rtlang.contract.service.metrics import Metrics
from rtlang.contract.service.snapshot import EngineSnapshot
from rtlang.contract.service.target import Listener, check_run
from rtlang.engine.constraints.compiler import ConstraintCompiler
from rtlang.engine.drafts.defaults import draft_runner_for, load_draft_model
from rtlang.engine.engine import Engine, LoadedModel
from rtlang.engine.planning.calibration import measured_cost
from rtlang.engine.program_pages import ProgramPages
from rtlang.engine.requests.request import RequestOutput
from rtlang.engine.requests.value_check import ValueChecker
from rtlang.engine.snapshots import SnapshotTaker
from rtlang.model.identity import model_identity
from rtlang.model.loader import model_directory
from rtlang.model.new_runner import new_runner
from rtlang.model.runner import Runner
from rtlang.model.runner_rebuild import RunnerRebuild
from rtlang.model.text.tokenizer import Tokenizer
from rtlang.runtime.admission import Admission, Share
from rtlang.runtime.cache_view import CacheView
from rtlang.runtime.executors.seeds import new_run_seed
from rtlang.runtime.graph_run import GraphRun, LocalGraphRun, RuntimeServices, notify
from rtlang.runtime.principal_cache import PrincipalCache
from rtlang.runtime.process import precompile
from rtlang.runtime.process.fork_guard import ForkGuard
from rtlang.runtime.process.idle import idle_actions
from rtlang.runtime.process.interpreter_share import InterpreterShare, outcome_of
from rtlang.runtime.process.loop import EngineLoop
from rtlang.runtime.process.process_settings import loading
from rtlang.runtime.process.work_monitor import Stall
from rtlang.runtime.reports.spans import runtime_spans
from rtlang.runtime.reports.summary import summary_table
from rtlang.runtime.reports.telemetry import Telemetry, counters, counters_of_graphs
from rtlang.runtime.reports.trace import Trace, traced
from rtlang.runtime.result_size import check_result_sizes
from rtlang.runtime.texts.public_prompts import read_public_prompts
from rtlang.runtime.texts.text_service import TokenizerTextService
from rtlang.work.fair_executor import FairExecutor, shared_limits
from rtlang.work.fair_queue import Owner, owner_of
from rtlang_grammars import Report

logger = logging.getLogger(__name__)

_CLOSED = "the runtime was closed"
FIRST_GIVEN_ID = 1 << 40
"""The least id of a graph that may be given to `Runtime.submit`; a runtime makes lower ones."""
_MANY_TOKENS = 1 << 20
_NUM_WORKERS = 3

_started: WeakSet[Runtime] = WeakSet()


@atexit.register
def _close_all() -> None:
    """Close the runtimes that are left when the process exits: a thread that is ended within a step aborts the process."""
    for runtime in list(_started):
        runtime.close()


class Runtime:
    """Runs request graphs on a model in this process. Thread-safe; a context manager.

    While a runtime is running, Python switches threads more often and delays full garbage collections to idle moments
    (`rtlang.runtime.process.process_settings`).

    Args:
        model: checkpoint directory, hub name, or "rtlang:tiny"; default: as in `config`.
        config: all settings; default: RuntimeConfig().
        settings: fields of RuntimeConfig that override `config`.
    Attributes:
        stall_listeners: called on another thread when work holds the engine thread for too long; see `WorkMonitor`.
    Raises:
        ConfigError: a setting is unknown or invalid.
    """

    @with_settings
    def __init__(
        self, model: StrPath | None = None, *, config: RuntimeConfig | None = None, **settings: Unpack[RuntimeSettings]
    ) -> None:
        self.config = runtime_config(config, model, settings)
        self.metrics = Metrics()
        self._settled = self.config  # with the limits of steps that the first runner decided
        self._runner: Runner | None = None
        self._draft_runner: Runner | None = None
        self._rebuild = RunnerRebuild(self._replaced_runner)
        self._compiler: ConstraintCompiler | None = None
        self._watch = watch_of("engine thread")
        self._checker: ValueChecker | None = None
        self._work: FairExecutor | None = None
        self._share = InterpreterShare(lambda: self._loop is not None and self._loop.is_computing)
        self._loop: EngineLoop | None = None
        self._interrupted: EngineLoop | None = (
            None  # whose start was interrupted; it ends once its engine is made, see `_end`
        )
        self._engine: Engine | None = None  # for the engine thread
        self._lock = threading.Lock()
        self._is_closed = self._is_broken = False
        self._fork_guard = ForkGuard()
        self._graph_ids = itertools.count(1)
        self._graphs: dict[int, GraphRun] = {}  # engine thread only
        self._identity: str | None = None
        self._text_service: TokenizerTextService | None = None
        self._admission, self._telemetry = Admission(self.config.max_waiting), Telemetry(self.metrics)
        self._spans = runtime_spans(self.config.model)
        self.stall_listeners: list[Callable[[Stall], None]] = []
        self._snapshots = SnapshotTaker(self.config.model_name, self._decode)
        self._traces: tuple[Trace, ...] = ()
        self.cache_service = PrincipalCache(  # for the clients of a server
            self._running_loop, lambda: self.text_service, self._decode, lambda: self._is_broken
        )

    def __enter__(self) -> Runtime:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> Runtime:
        """Load the model and start the engine, unless already done.

        Raises:
            ModelLoadError, ConfigError: the model cannot be loaded with these settings.
            EngineDeadError: the runtime was closed, or belongs to the parent of this forked process.
            KeyboardInterrupt: the caller was interrupted. The next start goes on waiting for the model, if it is still being loaded.
        """
        self._fork_guard.check()
        with self._lock:
            if self._is_closed:
                raise EngineDeadError(_CLOSED)
            if self._loop is None:
                precompile.start_background_compile(self.config)
                loop = self._interrupted
                if loop is None or not loop.resume():
                    loop = self._new_loop()
                try:
                    with loading():
                        loop.start()
                    self._fork_guard.begin()
                except BaseException as error:
                    self._interrupted = None if isinstance(error, Exception) else loop
                    loop.leave()
                    raise
                self._loop, self._interrupted = loop, None
                _started.add(self)
        return self

    @property
    def is_alive(self) -> bool:
        """See `Target.is_alive`; also True before the model is loaded."""
        return not (self._is_closed or self._is_broken or self._fork_guard.is_forked)

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer; loads the model if needed."""
        self.start()
        assert self._runner is not None
        return self._runner.tokenizer

    @property
    def tool_format(self) -> str | None:
        """See `Target.tool_format`."""
        return self.tokenizer.tool_format

    @property
    def abilities(self) -> frozenset[Ability]:
        """See `Target.abilities`."""
        return ALL_ABILITIES

    @property
    def text_service(self) -> TokenizerTextService:
        """The model's tokenizer as plain functions, for clients that handle tokens; loads the model if needed."""
        if self._text_service is None:
            self.start()
            assert self._runner is not None
            self._text_service = TokenizerTextService(self._runner.tokenizer, self._runner.max_model_len)
        return self._text_service

    @property
    def work(self) -> FairExecutor:
        """Runs work of graphs and of clients beside the engine thread; prices are seconds. Loads the model if needed."""
        self._running_loop()
        assert self._work is not None
        return self._work

    @property
    def model_directory(self) -> Path:
        """The directory of the checkpoint. Downloads a model of a hub if needed."""
        return model_directory(self.config.model)

    @property
    def model_identity(self) -> str:
        """See `Target.abilities`."""
        if self._identity is None:
            self._identity = model_identity(self.config)
        return self._identity

    def submit(
        self,
        graph: RequestGraph,
        listener: Listener,
        options: RunOptions = DEFAULT_OPTIONS,
        *,
        graph_id: int | None = None,
    ) -> LocalGraphRun:
        """See `Target.submit`.

        Args:
            graph_id: unique, and at least FIRST_GIVEN_ID; None for a new one.
        """
        checks, options = check_run(graph, options), options.salted()
        principal = options.principal
        options = replace(
            options,
            priority=principal.priority_of(options.priority),
            seed=new_run_seed() if options.seed is None else options.seed,
        )
        loop = self._running_loop()
        runner = self._runner
        max_model_len = None if runner is None else runner.max_model_len
        if max_model_len is not None:
            check_result_sizes(graph.nodes, max_model_len)
        share = Share(self._admission, principal, options.inputs)
        share.admit(graph.nodes, options.known)
        act = partial(self._act, principal.client_id)
        run = LocalGraphRun(next(self._graph_ids) if graph_id is None else graph_id, checks, share, act, max_model_len)

        if self._traces:
            listener = traced(listener, lambda: self._traces, self._graphs)
        if self._spans is not None:
            listener = self._spans.listener(listener, graph.nodes, options, self._graphs)

        try:
            loop.post(partial(self._begin, loop, run.graph_id, graph, listener, share, options), principal.client_id)
        except EngineDeadError:
            share.close()
            raise
        return run

    def generate(
        self,
        prompt: Prompt | None = None,
        *,
        token_ids: Iterable[int] | None = None,
        params: SamplingParams | None = None,
        constraint: Constraint | None = None,
        listener: Listener | None = None,
        priority: int = 0,
        deadline_s: float | None = None,
        seed: int | None = None,
    ) -> Generation:
        """Continue a prompt, tokens, or chat messages in one call.

        Args:
            prompt: text, or chat messages with role and content.
            token_ids: the prompt as tokens, instead; no start token is put before them.
            listener: called with every event.
            priority, deadline_s, seed: as for `submit`.
        Returns:
            A future of the finished node that is also an iterable of its pieces; see `Generation`.
        Raises:
            ParameterError: not exactly one of prompt and token_ids is given, or an id is no integer in range. An id that the model does
                not have fails the generation with a ParameterError.
            OverloadError, EngineDeadError: as `submit`.
        """
        graph = generation_graph(prompt, params or SamplingParams(), constraint, token_ids=token_ids)
        return Generation.start(self, graph, listener, RunOptions(priority=priority, deadline_s=deadline_s, seed=seed))

    def report(self, constraint: Constraint | Mapping[str, Any]) -> Report | None:
        """Report, for every keyword of a schema, whether it is enforced, checked on the finished value, or only an annotation.

        Returns:
            The report, with JSON pointers; None for other constraints, and if the grammar backend does not produce one.
        Raises:
            ParameterError: neither a constraint nor a JSON schema as a map. ConstraintError: it cannot be compiled; names the location.
        """
        self._running_loop()
        assert self._compiler is not None
        return self._compiler.session(as_constraint(constraint), _MANY_TOKENS).result().report

    def stats(self) -> dict[str, int]:
        """Counters and gauges of the engine. Read without a lock: values may come from different steps."""
        engine = self._running_loop().engine
        assert self._runner is not None
        ahead = [run.work_ahead for run in list(self._graphs.values())]
        return counters(engine, self._runner) | counters_of_graphs(ahead)

    def snapshot(self, *, after_step: int = 0) -> EngineSnapshot | None:
        """The state of the engine, after its current step; None before the model is loaded. Callable from any thread.

        Args:
            after_step: leave out the steps up to this number.
        Raises:
            EngineDeadError: the runtime is closed, or its engine has stopped.
        """
        self._fork_guard.check()
        loop = self._loop
        if loop is None:
            return None
        return self._snapshots.finish(loop.run(lambda: self._snapshots.take(loop.engine, loop.clock(), after_step)))

    def _decode(self, token_ids: Iterable[int]) -> str:
        runner = self._runner
        if runner is None:  # closed meanwhile
            return ""
        decoder = runner.tokenizer.decoder(shows_special=True)
        return decoder.push(token_ids) + decoder.flush()

    def __repr__(self) -> str:
        return f"<Runtime {self.config.model} on {self.config.device}, {self._state}>"

    def _repr_html_(self) -> str:
        """The model, the device and the load of the runtime for a notebook. Loads nothing."""
        is_running = self._loop is not None and self.is_alive
        return summary_table(self.config.model, self.config.device, self._state, self.stats() if is_running else None)

    @property
    def _state(self) -> str:
        if not self.is_alive:
            return "closed" if self._is_closed else "dead"
        return "not loaded yet" if self._loop is None else "running"

    @property
    def cache(self) -> CacheView:
        """The prefix cache: explains what it has of a prompt, pins prompts, and shows its tree."""
        return CacheView(
            self._running_loop, lambda: self.text_service, self._decode, self.generate, lambda: self._is_broken
        )

    def trace(self, path: str | os.PathLike[str]) -> Trace:
        """Record the timeline of the runtime until `close`, or for a `with` block, and write it to `path` as a Chrome trace.

        Contains every engine step, and the nodes of graphs submitted while it is open. Loads the model if needed.

        Raises:
            ConfigError: the folder of `path` does not exist.
        """
        trace = Trace(path, self._running_loop().clock, self._forget_trace)
        with self._lock:
            self._traces = (*self._traces, trace)
        return trace

    def clear_cache(self) -> None:
        """Drop every cached page that no running request uses, and begin to count `most_pages_in_use` anew."""
        self.cache.clear()

    def close(self) -> None:
        """End all graphs with AbortedError, stop the engine and free all memory. Idempotent.

        May be called by a listener on the engine thread; the model is then freed by the next call from another thread. Does nothing in a
        forked process.
        """
        if self._fork_guard.is_forked:
            return
        with self._lock:
            self._is_closed = True
            loop = self._loop
        if loop is not None:
            try:
                loop.stop()
            finally:
                self._fork_guard.end()
            if loop.forget_engine():
                self._free()

    def _free(self) -> None:
        """Release everything the engine was built from."""
        self._rebuild.close()
        if self._work is not None:
            self._work.shutdown(wait=False, cancel_futures=True)
        compiler, self._compiler = self._compiler, None  # it refers to the engine
        if compiler is not None:
            compiler.close()
        runners = [each for each in (self._draft_runner, self._runner) if each is not None]
        self._draft_runner = self._runner = None
        try:
            for runner in runners:
                runner.close()
        except RuntimeError:  # a failed device raises on every call
            logger.exception("freeing the device memory failed")

    def _new_loop(self) -> EngineLoop:
        idle = idle_actions(self.config)
        events: dict[str, Any] = {"on_step": self._after_step, "on_stall": self._on_stall}
        return EngineLoop(self._make_engine, self._break, self._end, watch=self._watch, idle_actions=idle, **events)

    # -- engine thread

    def _begin(
        self,
        loop: EngineLoop,
        graph_id: int,
        graph: RequestGraph,
        listener: Listener,
        share: Share,
        options: RunOptions,
    ) -> None:
        """Start a submitted graph."""
        if self._is_broken or self._is_closed:
            share.close()
            error = EngineDeadError("the engine has stopped") if self._is_broken else AbortedError(_CLOSED)
            notify(listener, GraphFailed(graph_id, error))
            return
        services = self._services(loop)
        run = self._graphs[graph_id] = GraphRun(graph_id, listener, share, options, services, outputs=graph.outputs)
        run.add_nodes(graph.nodes)

    def _services(self, loop: EngineLoop) -> RuntimeServices:
        assert self._runner is not None
        assert self._checker is not None
        engine = loop.engine
        return RuntimeServices(
            loop,
            self._runner,
            self._checker,
            is_broken=lambda: self._is_broken,
            on_end=self._forget,
            pages_of=lambda arrival, options: ProgramPages(
                engine.cache,
                engine.scheduler.rank(arrival, options.priority),
                lambda: self._is_broken,
                partial(engine.namespaces.scope, options.principal.namespace),
            ),
            offload_of=lambda principal: partial(self._beside, owner_of(principal)),
            count_work=self.metrics.principals.engine_work.add,
        )

    def _make_engine(self, wake: Callable[[], None]) -> Engine:
        self._runner = runner = self._new_runner()
        try:
            self._draft_runner = draft_runner_for(self.config, runner)
            runner.load()
            self._settled = config = runner.with_limits(self.config)
            exclude_computation(self._watch, runner)
            limits, account = shared_limits(_NUM_WORKERS), self.metrics.principals.engine_work
            self._work = FairExecutor(_NUM_WORKERS, "rtlang-work", limits, account, trim_memory=Engine.trim_memory)
            self._checker = ValueChecker(self.post, self._work)
            spans = self._spans
            self._compiler = ConstraintCompiler(
                config,
                runner.tokenizer,
                runner.model_config.vocab_size,
                self.metrics,
                on_compiled=None if spans is None else spans.compiled,
            )
            if self._is_closed:
                raise EngineDeadError(_CLOSED)
            cost = measured_cost(config, runner)
            draft_model = load_draft_model(config, runner, self._draft_runner, self._watch)
            self._engine = Engine(
                config,
                LoadedModel(runner, cost, draft_model),
                self._compiler,
                wake,
                check_every_step=os.environ.get("RTLANG_DEBUG") == "1",
                rebuild=self._rebuild.start,
                public_prompts=read_public_prompts(config.public_prompts, runner.tokenizer, runner.max_model_len),
            )
            return self._engine
        except BaseException:
            self._free()  # the traceback would keep it all alive
            raise

    def _new_runner(self) -> Runner:
        return new_runner(self._settled, self._stop, None if self._engine is None else self._engine.cache.num_pages)

    def _stop(self, error: EngineDeadError) -> None:
        if self._loop is not None:
            self._loop.fail(error)

    def _replaced_runner(self) -> Runner:
        """A new runner in the place of one that fails at every step."""
        if self._runner is not None:
            self._runner.close()
        self._runner = runner = self._new_runner()
        runner.load()
        exclude_computation(self._watch, runner)
        return runner

    def _after_step(self, engine: Engine, outputs: list[RequestOutput], started: float, ended: float) -> None:
        self._telemetry.after_step(engine, outputs, started, ended)
        self._snapshots.after_step(engine, started, ended)
        for trace in self._traces:
            trace.after_step(engine, outputs, started, ended)
        if self._spans is not None:
            self._spans.step(started, ended, time.monotonic(), rows=len(engine.scheduler.running), outputs=len(outputs))

    def _forget_trace(self, trace: Trace) -> None:
        with self._lock:
            self._traces = tuple(each for each in self._traces if each is not trace)

    def _forget(self, graph_id: int) -> None:
        self._graphs.pop(graph_id, None)

    def _break(self) -> None:
        self._is_broken = True

    def _end(self, cause: BaseException | None) -> None:
        error: RtlangError = AbortedError(_CLOSED)
        if cause is not None:
            error = dead = EngineDeadError(f"the engine has stopped: {cause}")
            dead.fault_id = internal_error(logger, "the engine stops", cause).id
        for run in list(self._graphs.values()):
            run.fail(error)
        if self._engine is not None:
            self._engine.close()
            self._engine = None
        if self._loop is None:
            self._free()  # interrupted while starting: nothing else frees it

    # -- any thread

    def _on_stall(self, stall: Stall) -> None:
        """The monitor of the engine thread found work that stalls it."""
        run = None if stall.graph_id is None else self._graphs.get(stall.graph_id)
        logger.error("%s", stall.described(None if run is None else run.principal.name))
        for listener in self.stall_listeners:
            listener(stall)

    def share_work(self, words: Words) -> None:
        """Record the work of the engine thread in this memory from now on; see `CurrentWork.share`. Before the first graph."""
        self._running_loop().work.share(words)

    def _act(self, client: tuple[str, str], graph_id: int, act: Callable[[GraphRun], None]) -> None:
        """Act for a graph of a client on the engine thread, unless it has ended."""

        def command() -> None:
            run = self._graphs.get(graph_id)
            if run is not None:
                act(run)

        self._running_loop().post(command, client)

    def _beside(
        self, owner: Owner, kind: WorkKind, price_us: int, work: Callable[[], Any], then: Callable[[Any], None]
    ) -> Future[None]:
        """Do work of a graph on a thread; see `rtlang.runtime.graph_run.Beside`."""

        def job() -> None:
            with self._share.turn() if kind is WorkKind.VALUE else nullcontext():
                result = outcome_of(work)
                with suppress(EngineDeadError):  # its graph has ended
                    self.post(lambda: then(result), (owner.party, owner.client))

        return self.work.submit_for(owner, price_us * 1e-6, job, kind=kind)

    def post(self, command: Callable[[], None], client: Hashable = "") -> None:
        """Run a function on the engine thread between two steps, behind what its client has asked for.

        Raises:
            EngineDeadError: the engine has stopped.
        """
        assert self._loop is not None
        self._loop.post(command, client)

    def _running_loop(self) -> EngineLoop:
        self._fork_guard.check()
        if self._loop is None or self._is_closed:
            self.start()
        assert self._loop is not None
        return self._loop
