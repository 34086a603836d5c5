"""The runtime: a model, its engine thread, and the graphs that run on it.

    with Runtime(model="path/to/checkpoint") as runtime:
        ...

A runtime is a `Target`: programs are submitted to it as graphs. Validation happens in the caller's thread, so that mistakes raise
where they are made; everything else happens on the engine thread. The model is loaded on first use or by `start`.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from types import TracebackType
from typing import Any

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import AbortedError, ConfigError, DeadlineError, EngineDeadError, GraphError
from rtlang.contract.events import Event, GraphFailed, GraphFinished, NodeFailed, NodeFinished
from rtlang.contract.graph import Node, RequestGraph
from rtlang.contract.metrics import Metrics
from rtlang.contract.params import Constraint, SamplingParams, check_run_options, seconds_left
from rtlang.contract.target import Listener
from rtlang.engine.constraints.compiler import ConstraintCompiler
from rtlang.engine.constraints.value_check import ValueChecker
from rtlang.engine.engine import Engine
from rtlang.engine.request import Request, RequestOutput
from rtlang.model.gpu.device_runner import DeviceRunner
from rtlang.model.host_runner import HostRunner
from rtlang.model.text.tokenizer import Tokenizer
from rtlang.runtime import precompile
from rtlang.runtime.admission import Admission, Share
from rtlang.runtime.containment import contained, tell
from rtlang.runtime.fork_guard import ForkGuard
from rtlang.runtime.graph_state import GraphExecution
from rtlang.runtime.loop import EngineLoop, Timer
from rtlang.runtime.telemetry import Telemetry, counters
from rtlang_grammars.process import loading
from rtlang_grammars.schema.report import Report

logger = logging.getLogger(__name__)

_CLOSED = "the runtime was closed"
_MANY_TOKENS = 1 << 20


class Runtime:
    """Runs request graphs on a model in this process. Thread-safe; a context manager. While it runs, Python's threads change places sooner
    and its full collections of garbage wait for idle moments (`rtlang_grammars.process`).

    Args:
        model: directory of a checkpoint, or "rtlang:tiny"; default: as in `config`.
        config: all settings; default: RuntimeConfig().
        settings: fields of RuntimeConfig, overriding `config`.
    Raises:
        ConfigError: a setting is unknown or wrong.
    """

    def __init__(self, model: str | None = None, *, config: RuntimeConfig | None = None, **settings: Any) -> None:
        known = {item.name for item in fields(RuntimeConfig)}
        for name, value in settings.items():
            if name not in known:
                raise ConfigError(name, value, f"unknown setting; known are {', '.join(sorted(known))}")
        if model is not None:
            settings["model"] = os.fspath(model)
        self.config = replace(config or RuntimeConfig(), **settings)
        self.metrics = Metrics()
        self._runner: HostRunner | DeviceRunner | None = None
        self._compiler: ConstraintCompiler | None = None
        self._checker: ValueChecker | None = None
        self._loop: EngineLoop | None = None
        self._lock = threading.Lock()
        self._is_closed = False
        self._tenancy = ForkGuard()
        self._graph_ids = itertools.count(1)
        self._graphs: dict[int, GraphExecution] = {}  # engine thread only
        self._is_broken = False
        self._admission = Admission(self.config.max_waiting)

    def __enter__(self) -> Runtime:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> Runtime:
        """Load the model and start the engine, unless that is done.

        Raises:
            ModelLoadError, ConfigError: the model cannot be loaded with these settings.
            EngineDeadError: the runtime was closed, interrupted while it started, or runs in a process of which this is a fork.
        """
        self._tenancy.check()
        with self._lock:
            if self._is_closed:
                raise EngineDeadError(_CLOSED)
            if self._loop is None:
                precompile.begin(self.config)
                loop = EngineLoop(self._make_engine, self._break, self._end, on_step=Telemetry(self.metrics).after_step)
                try:
                    with loading():
                        loop.start()
                    self._tenancy.begin()
                except BaseException as error:
                    self._is_closed = not isinstance(error, Exception)  # interrupted: see `_end`
                    loop.leave()
                    raise
                self._loop = loop
        return self

    @property
    def is_alive(self) -> bool:
        """See `Target.is_alive`; True also before the model is loaded."""
        return not (self._is_closed or self._is_broken or self._tenancy.is_elsewhere)

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer; loads the model if that is not done."""
        self.start()
        assert self._runner is not None
        return self._runner.tokenizer

    def submit(
        self,
        graph: RequestGraph,
        listener: Listener,
        *,
        inputs: Mapping[str, str] | None = None,
        is_open: bool = False,
        priority: int = 0,
        deadline_s: float | None = None,
    ) -> LocalGraphRun:
        """See `Target.submit`."""
        graph.validate()
        given = dict(inputs or {})
        for name in graph.inputs:
            if not isinstance(given.get(name), str):
                raise GraphError(None, "inputs", f"the input {name!r} needs a text")
        for name in given:
            if name not in graph.inputs:
                raise GraphError(None, "inputs", f"the graph has no input {name!r}")
        check_run_options(priority, deadline_s)
        loop = self._running_loop()
        share = Share(self._admission)
        share.add(graph.nodes)
        run = LocalGraphRun(self, next(self._graph_ids), graph.nodes, share)

        def begin() -> None:
            if self._is_broken or self._is_closed:
                share.close()
                error = EngineDeadError("the engine has stopped") if self._is_broken else AbortedError(_CLOSED)
                tell(listener, GraphFailed(run.graph_id, error))
                return
            state = self._make_state(run.graph_id, given, listener, share, is_open, priority, deadline_s)
            self._graphs[run.graph_id] = state
            contained(state, lambda: state.add_nodes(graph.nodes))

        try:
            loop.post(begin)
        except EngineDeadError:
            share.close()
            raise
        return run

    def report(self, constraint: Constraint) -> Report | None:
        """What becomes of every keyword of a schema: enforced, checked on the finished value, or asserting nothing.

        Returns:
            The report, with JSON pointers; None for constraints other than schemas, and where the backend makes none.
        Raises:
            ConstraintError: the constraint cannot be compiled; says why and where.
        """
        self._running_loop()
        assert self._compiler is not None
        return self._compiler.session(constraint, _MANY_TOKENS).result().report

    def stats(self) -> dict[str, int]:
        """Counters and gauges of the engine, as plain numbers (read without a lock: each is right, together they may be a step apart)."""
        return counters(self._running_loop().engine, self._runner) | {"num_graphs": len(self._graphs)}

    def clear_cache(self) -> None:
        """Drop every cached page that no running request uses."""
        done = threading.Event()
        loop = self._running_loop()

        def clear() -> None:
            try:
                loop.engine.cache.clear()
            finally:
                done.set()

        if loop.is_current_thread:
            clear()
        else:
            loop.post(clear)
            done.wait()

    def close(self) -> None:
        """End all graphs with AbortedError, stop the engine, free everything. Idempotent.

        A listener may call it too, from the engine's thread; the model is then freed by the next call from another thread. In a fork of
        the process it does nothing.
        """
        if self._tenancy.is_elsewhere:
            return
        with self._lock:
            self._is_closed = True
            loop = self._loop
        if loop is not None:
            try:
                loop.stop()
            finally:
                self._tenancy.end()
            if loop.forget_engine():
                self._free()

    def _free(self) -> None:
        """Let go of what the engine was made of."""
        if self._checker is not None:
            self._checker.close()
        if self._compiler is not None:
            self._compiler.close()
        runner, self._runner = self._runner, None
        if isinstance(runner, DeviceRunner):
            try:
                runner.close()
            except RuntimeError:  # a device that has failed says so at every call
                logger.exception("the device's memory could not be given back")

    # -- engine thread

    def _make_engine(self, wake: Callable[[], None]) -> Engine:
        runner = HostRunner(self.config) if self.config.device == "cpu" else DeviceRunner(self.config)
        self._runner = runner
        try:
            runner.load()
            self._checker = ValueChecker(self._post)
            vocab_size = runner.model_config.vocab_size
            self._compiler = ConstraintCompiler(self.config, runner.tokenizer, vocab_size, self.metrics)
            if self._is_closed:
                raise EngineDeadError(_CLOSED)
            check = os.environ.get("RTLANG_DEBUG") == "1"
            return Engine(self.config, runner, self._compiler, wake, check_every_step=check)
        except BaseException:
            self._free()  # the error's traceback holds on to it all
            raise

    def _make_state(
        self,
        graph_id: int,
        inputs: Mapping[str, str],
        listener: Listener,
        share: Share,
        is_open: bool,
        priority: int,
        deadline_s: float | None,
    ) -> GraphExecution:
        loop = self._loop
        assert loop is not None
        engine = loop.engine
        arrival = loop.clock()
        timer: Timer | None = None

        def tell_events(event: Event) -> None:
            if isinstance(event, (NodeFinished, NodeFailed)):
                share.end_node(event.node_id)
            elif isinstance(event, (GraphFinished, GraphFailed)):
                share.close()
            if not tell(listener, event):
                loop.call_at(arrival, lambda: self._cancel(graph_id))

        def submit(
            token_ids: Sequence[int], params: SamplingParams, listener: Callable[[RequestOutput], None], **rest: Any
        ) -> Request:
            def listen(output: RequestOutput) -> None:
                contained(state, lambda: listener(output))

            def start(params: SamplingParams, seed: int, listener: Callable[[RequestOutput], None]) -> Request:
                rest["seed"] = seed
                now = loop.clock()
                return engine.add(token_ids, params, listener, now=now, priority=priority, program_time=arrival, **rest)

            seed = rest.get("seed", 0)
            if rest.get("constraint") is None:
                return start(params, seed, listen)
            assert self._checker is not None
            return self._checker.start(start, params, seed, listen, abort, lambda: not state.is_ended)

        def forget() -> None:
            self._graphs.pop(graph_id, None)
            if timer is not None:
                timer.cancel()

        def abort(request: Request) -> None:
            if not self._is_broken:
                engine.abort(request)

        assert self._runner is not None
        state = GraphExecution(
            graph_id,
            inputs,
            tell_events,
            tokenizer=self._runner.tokenizer,
            max_model_len=self._runner.max_model_len,
            submit=submit,
            abort=abort,
            clock=loop.clock,
            on_end=forget,
            is_open=is_open,
        )
        if deadline_s is not None:
            seconds = seconds_left(deadline_s)
            message = f"the deadline of {seconds:g} s has passed"
            timer = loop.call_at(arrival + seconds, lambda: state.fail(DeadlineError(message)))
        return state

    def _cancel(self, graph_id: int) -> None:
        state = self._graphs.get(graph_id)
        if state is not None:
            state.fail(AbortedError("the graph was cancelled"))

    def _break(self) -> None:
        self._is_broken = True

    def _end(self, cause: BaseException | None) -> None:
        error = AbortedError(_CLOSED) if cause is None else EngineDeadError(f"the engine has stopped: {cause}")
        for state in list(self._graphs.values()):
            state.fail(error)
        if self._is_closed and self._loop is None:  # interrupted while it started: nobody else lets go of it
            self._free()

    # -- any thread

    def _post(self, command: Callable[[], None]) -> None:
        assert self._loop is not None
        self._loop.post(command)

    def _running_loop(self) -> EngineLoop:
        self._tenancy.check()
        if self._loop is None or self._is_closed:
            self.start()
        assert self._loop is not None
        return self._loop


class LocalGraphRun:
    """A graph running on a `Runtime`; see `target.GraphRun`. Used from one thread at a time."""

    def __init__(self, runtime: Runtime, graph_id: int, nodes: Sequence[Node], share: Share) -> None:
        self._runtime, self._graph_id, self._share = runtime, graph_id, share
        self._nodes = {node.node_id: node for node in nodes}
        self._is_closed = False

    @property
    def graph_id(self) -> int:
        return self._graph_id

    def extend(self, nodes: Sequence[Node]) -> None:
        if self._is_closed:
            raise GraphError(None, "nodes", "the graph is closed")
        RequestGraph(tuple(nodes)).validate(self._nodes)
        self._share.add(nodes)
        self._nodes.update((node.node_id, node) for node in nodes)
        self._post(lambda state: state.add_nodes(nodes))

    def close(self) -> None:
        self._is_closed = True
        with contextlib.suppress(EngineDeadError):  # the final event was sent when it died
            self._post(lambda state: state.close())

    def cancel(self) -> None:
        self._is_closed = True
        with contextlib.suppress(EngineDeadError):  # as above
            self._post(lambda state: state.fail(AbortedError("the graph was cancelled")))

    def _post(self, act: Callable[[GraphExecution], None]) -> None:
        def command() -> None:
            state = self._runtime._graphs.get(self._graph_id)
            if state is not None and not state.is_ended:
                contained(state, lambda: act(state))

        self._runtime._running_loop().post(command)
