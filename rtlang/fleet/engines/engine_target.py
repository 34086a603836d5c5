"""A target over engines in other processes: places each graph on one of them, and on another one when that engine ends.

A graph continues after the output that it has given (run_ledger.py), so that listeners notice only a pause. `EnginePool` decides which
engine has which graph, and which graph fails because it crashes engines; this file carries its orders out. All of that happens under the
lock of the target; events are delivered without it, by one thread at a time for each graph.
"""

from __future__ import annotations

import itertools
import logging
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Self

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import AbortedError, EngineDeadError, InternalError, RtlangError
from rtlang.contract.events import GraphFailed, GraphFinished, TextDelta
from rtlang.contract.request_graph import RequestGraph
from rtlang.contract.runs.principal import LOCAL, Principal
from rtlang.contract.runs.run_options import ALL_ABILITIES, DEFAULT_OPTIONS, Ability, RunOptions
from rtlang.contract.service.cache_service import CacheService
from rtlang.contract.service.snapshot import EngineSnapshot, read_snapshot
from rtlang.contract.service.target import Listener, check_run
from rtlang.fleet.engines.crash_suspects import Death
from rtlang.fleet.engines.culprits import Culprits
from rtlang.fleet.engines.engine_end import EngineEnd
from rtlang.fleet.engines.engine_link import CALL_TIMEOUT_S, CLOSE_TIMEOUT_S, EngineLink, EngineState, ask_all, ask_any
from rtlang.fleet.engines.engine_pool import CancelGraph, EndReason, EnginePool, FailGraph, GraphMoved, OpenGraph, Order
from rtlang.fleet.engines.engine_run import EngineRun, deliver_all
from rtlang.fleet.engines.launcher import Launcher
from rtlang.fleet.engines.load_balancer import LoadBalancer
from rtlang.fleet.engines.mirrored_metrics import MirroredMetrics
from rtlang.fleet.messages.cache_calls import RemoteCacheService
from rtlang.fleet.messages.frames import Message
from rtlang.fleet.messages.text_calls import RemoteTextService
from rtlang.protocol.event_codec import event_from_wire
from rtlang.runtime.admission import Admission, Share
from rtlang.runtime.process import process_settings
from rtlang.runtime.result_size import check_result_sizes

logger = logging.getLogger(__name__)

BEAT_S = 1.0
"""Seconds between two pings to each engine."""
MAX_LOGGED_GRAPHS = 8
"""Graphs that a log line names."""
METRICS_TIMEOUT_S, SNAPSHOT_TIMEOUT_S = 2.0, 5.0
JOIN_TIMEOUT_S = CLOSE_TIMEOUT_S + 5.0
"""Seconds that all engines together may take to end; one that is just being looked for on a cluster takes longer."""


class EngineTarget:
    """Runs graphs on engines in other processes. Thread-safe; a context manager.

    Args:
        launchers: start the engines.
        config: settings of the runtime of each engine.
        stall_timeout_s: seconds without an answer of an engine thread after which its process is replaced.
        balancer: chooses the engine of each graph; it belongs to the target from now on. None for a plain `LoadBalancer`.
        labels_engines: whether metrics say from which engine they are.
        num_spares: engines that take no graphs while all others are ready.

    Attributes:
        metrics: of the engines, and of the server that shares them.
        end_reason: why it takes no graphs, once it is dead.
        was_stopped: whether it is dead because its operator wanted so.
    """

    def __init__(
        self,
        launchers: Iterable[Launcher],
        config: RuntimeConfig | None = None,
        *,
        stall_timeout_s: float = 120.0,
        balancer: LoadBalancer | None = None,
        labels_engines: bool = False,
        num_spares: int = 0,
    ) -> None:
        self.config = config or RuntimeConfig()
        self.metrics = MirroredMetrics()
        self.text_service = RemoteTextService(self._ask)
        self.cache_service: CacheService = RemoteCacheService(self._ask)
        self.stall_timeout_s = stall_timeout_s
        self._labels_engines = labels_engines
        self._admission = Admission(self.config.max_waiting)
        self._graph_ids = itertools.count(1)
        self._ready: Message = {}  # from the engine that was ready last
        self._lock = threading.RLock()  # guards everything below
        self._changed = threading.Condition(self._lock)  # the pool
        self._balancer = LoadBalancer() if balancer is None else balancer
        self._pool = EnginePool(self._balancer, num_spares)
        self._links: dict[str, EngineLink] = {}  # of the engines of the pool
        self._runs: dict[int, EngineRun] = {}  # the graphs of the pool
        self._state = EngineState.LOADING
        self._watchers: list[Callable[[EngineState], None]] = []
        self._first_error: RtlangError | None = None
        self.end_reason, self.was_stopped, self._was_ended = "the engine has stopped", False, False
        self._has_settings = False  # `process_settings` are set, for short pauses of this process's threads
        self._last_end = EngineEnd()
        self._culprits = Culprits()
        self._is_closing = threading.Event()
        self._is_started = threading.Event()
        with self._lock:
            for launcher in launchers:
                self._add_link(EngineLink(launcher, self.config, self))
        self._watchdog = threading.Thread(target=self._watch_engines, name="rtlang-watchdog", daemon=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> Self:
        """Start the engines and wait until one of them has loaded its model, unless already done.

        Raises:
            ModelLoadError, ConfigError: the model cannot be loaded with these settings.
            EngineDeadError: every engine has ended before that.
        """
        if self._watchdog.ident is None:
            self._watchdog.start()
            for link in list(self._links.values()):
                link.start()
        try:
            self._is_started.wait()
        except BaseException:
            self.close()
            raise
        if self._first_error is not None:
            self.close()
            raise self._first_error
        with self._lock:
            if not self._has_settings and not self._is_closing.is_set():
                self._has_settings = True
                process_settings.begin()
        return self

    @property
    def is_alive(self) -> bool:
        """See `Target.is_alive`. True while engines are replaced: graphs wait for the next one."""
        return self._state is not EngineState.DEAD and not self._is_closing.is_set()

    @property
    def abilities(self) -> frozenset[Ability]:
        """See `Target.abilities`."""
        return ALL_ABILITIES

    @property
    def tool_format(self) -> str | None:
        """See `Target.tool_format`. None until an engine is ready, as the vocabulary and the length of the model."""
        return self._ready.get("tool_format")

    @property
    def vocab_size(self) -> int | None:
        """The number of tokens of the vocabulary."""
        return self._ready.get("vocab_size")

    @property
    def max_model_len(self) -> int | None:
        """The maximum length of a sequence in tokens."""
        return self._ready.get("max_model_len")

    @property
    def model_identity(self) -> str:
        """See `Target.abilities`; empty until an engine is ready."""
        return str(self._ready.get("model_identity", ""))

    @property
    def state(self) -> EngineState:
        """READY if any engine is."""
        return self._state

    def watch(self, watcher: Callable[[EngineState], None]) -> None:
        """Call a function with each new state, on a thread of this target. It must return quickly."""
        with self._lock:
            self._watchers.append(watcher)

    def submit(self, graph: RequestGraph, listener: Listener, options: RunOptions = DEFAULT_OPTIONS) -> EngineRun:
        """See `Runtime.submit`. Returns before an engine has the graph; if the engine refuses it, it ends with GraphFailed."""
        checks, options = check_run(graph, options), options.salted()
        principal = options.principal
        if self.max_model_len is not None:
            check_result_sizes(graph.nodes, self.max_model_len)
        share = Share(self._admission, principal, options.inputs)
        share.admit(graph.nodes)
        seed = secrets.randbits(63) if options.seed is None else options.seed
        options = replace(options, seed=seed, principal=principal.in_engine())
        graph_id = next(self._graph_ids)
        run = EngineRun(self, graph_id, graph, checks, listener, share, options, max_model_len=self.max_model_len)
        self._balancer.accept(run, options.inputs)
        is_suspect = self._culprits.has(run, time.monotonic())
        with self._lock:
            if not self.is_alive:
                self._forget(run)
                raise EngineDeadError("it was closed" if self._is_closing.is_set() else self.end_reason)
            self._runs[run.graph_id] = run
            self._carry_out(self._pool.add(run.graph_id, time.monotonic(), run.options.deadline, is_suspect=is_suspect))
        return run

    def send(
        self, run: EngineRun, message: Message | Callable[[], Message], note: Callable[[], None] | None = None
    ) -> None:
        """Called by `EngineRun`."""
        with self._lock:
            if note is not None:
                note()
            graph = self._pool.graphs.get(run.graph_id)
            if graph is not None and graph.engine is not None:
                self._put(run, graph.engine.name, graph.stream_id, message)

    def cancel(self, run: EngineRun) -> None:
        """Called by `EngineRun.cancel`."""
        with self._lock:
            failed = self._carry_out(self._pool.cancel(run.graph_id, time.monotonic()))
        deliver_all(failed)

    def snapshot(self, *, after_step: int = 0, replica: str | None = None) -> EngineSnapshot | None:
        """See `Runtime.snapshot`; of the engine with the name, or the first that is ready. None while there is none."""
        links = [link for name, link in list(self._links.items()) if replica in (None, name)]
        plain = next((link.ask("snapshot", after_step, SNAPSHOT_TIMEOUT_S) for link in links if link.is_ready), None)
        return None if plain is None else read_snapshot(plain)

    def refresh_metrics(self) -> None:
        """Fetch the engines' metrics; keeps the last ones of an engine that does not answer. Blocks."""
        with self._lock:
            self.metrics.replicas(Counter(map(self._replica_state, self._links)))
            self.metrics.programs_unplaced.set(sum(graph.engine is None for graph in self._pool.graphs.values()))
        for name, rendered in self._ask_all("metrics", METRICS_TIMEOUT_S).items():
            with self._lock:
                if name in self._links:  # else it was removed meanwhile
                    self.metrics.mirror(rendered, name if self._labels_engines else None)

    def clear_cache(self) -> None:
        """See `Runtime.clear_cache`."""
        if not self._ask_all("clear_cache", CALL_TIMEOUT_S):
            raise EngineDeadError("the engine is not running; try again later")

    def stop(self, reason: str, *, is_wanted: bool = True) -> None:
        """End for good: all graphs fail with EngineDeadError, which tells the reason. Returns at once; `close` follows.

        Args:
            is_wanted: whether the operator wants so; False for a fault that no engine survives.
        """
        with self._lock:
            self.end_reason, self.was_stopped, self._was_ended = reason, is_wanted, True
            if not self._is_started.is_set():
                self._first_error = EngineDeadError(reason)
            links = list(self._links.values())
        self._stop(EngineDeadError(reason))
        for link in links:
            link.close()

    def close(self) -> None:
        """End all graphs with AbortedError, and all engines. Idempotent."""
        self._is_closing.set()
        with self._lock:
            links = list(self._links.values())
        for link in links:
            link.close()
        end = time.monotonic() + JOIN_TIMEOUT_S
        for link in links:
            link.join(max(0.0, end - time.monotonic()))
        self._stop(AbortedError("the runtime was closed"))
        with self._lock:
            had_settings, self._has_settings = self._has_settings, False
        if had_settings:
            process_settings.end()

    # -- the threads of the links

    def on_ready(self, link: EngineLink) -> None:
        """See `LinkOwner.on_ready`."""
        failed: list[EngineRun] = []
        with self._lock:
            self._ready = link.ready
            if link.name in self._links:
                self._balancer.note_ready(link.name, link.ready)
                failed = self._carry_out(self._pool.note_ready(link.name, time.monotonic()))
                failed += self._balance()
        deliver_all(failed)
        self._update_state()
        self._is_started.set()

    def on_message(self, link: EngineLink, message: Message) -> None:
        """See `LinkOwner.on_message`."""
        if message["t"] == "stalled":
            self._log_stall(link, message)
            return
        if message["t"] == "load":
            with self._lock:
                if link.name in self._links:
                    self._balancer.note_load(link.name, message)
            return
        graph = self._pool.streams.get(message.get("s", 0))
        if graph is None:
            return
        event = None if message["t"] == "part" else event_from_wire(message, graph.graph_id)
        with self._lock:
            if self._pool.streams.get(message["s"]) is not graph or graph.engine is None:  # moved meanwhile
                return
            run = self._runs[graph.graph_id]
            if event is None:
                run.joiner.take(message)
                return
            event = run.joiner.join(event)
            if event is None or not run.take(event, message.get("account")):
                return
            if isinstance(event, (GraphFinished, GraphFailed)):
                event = run.closed(event, message.get("account"))
            run.post(event)
            now = time.monotonic()
            if isinstance(event, (GraphFinished, GraphFailed)):
                self._forget(run)
                orders = self._pool.end(run.graph_id, now)
            else:
                orders = self._pool.note_output(run.graph_id, now)
                engine = graph.engine  # a suspect that is cleared may have left it
                if engine and self._balancer.note_output(run.graph_id, engine.name, event, self._pool.is_open):
                    orders += self._pool.move(run.graph_id, None, now)
            # Most tokens change nothing about the engines.
            goes_on = not orders and isinstance(event, TextDelta)
            failed = [] if goes_on else self._carry_out(orders, "its prompt is computed")
        run.deliver()
        deliver_all(failed)

    def on_lost(self, link: EngineLink) -> None:
        """See `LinkOwner.on_lost`."""
        with self._lock:
            if link.name in self._links:
                self._pool.note_lost(link.name)

    def on_death(self, link: EngineLink, *, was_ready: bool, end: EngineEnd) -> bool:
        """See `LinkOwner.on_death`."""
        with self._lock:
            if link.name not in self._links:
                return False
            self._balancer.forget_engine(link.name)
            now = time.monotonic()
            self._log_at_work(link, end)
            self._last_end = end
            orders = self._pool.note_death(link.name, link.last_beat, now, self._death_of(end))
            failed = self._carry_out(orders, f"{link.name} has ended")
            blames_graph = self._pool.blames_graph
            failed += self._balance()  # a spare may have come
            if was_ready and not self._is_closing.is_set():
                self.metrics.engine_restarts.inc()
            if not self._is_started.is_set() and all(each.num_failed for each in self._links.values()):
                self._first_error = link.error
        deliver_all(failed)
        self._update_state()
        if self._first_error is not None:  # `start` raises it: no other engine shall follow
            for each in list(self._links.values()):
                each.close()
            self._is_started.set()
        return blames_graph

    def on_end(self, link: EngineLink) -> None:
        """See `LinkOwner.on_end`."""
        self._update_state()
        is_expected = self._is_closing.is_set() or self._was_ended or self._first_error is not None
        if self._state is EngineState.DEAD and not is_expected:
            self.end_reason = f"the engine has stopped: {link.error}"
            logger.critical("no engine is left: %s", link.error)
            self._stop(EngineDeadError(self.end_reason))

    # -- under the lock

    def _add_link(self, link: EngineLink) -> None:
        """Add an engine, which is not started yet."""
        self._links[link.name] = link
        self._carry_out(self._pool.add_engine(link.name, time.monotonic()))

    def _replica_state(self, name: str) -> str:
        """The state of an engine, one of `REPLICA_STATES`."""
        state, engine = self._links[name].state, self._pool.engines[name]
        if engine.is_leaving and state is not EngineState.DEAD:
            return "draining"
        return "spare" if engine.is_spare and state is EngineState.READY else str(state)

    def _put(self, run: EngineRun, engine: str, stream_id: int, message: Message | Callable[[], Message]) -> None:
        """Send a message about a graph to its engine, when it is its client's turn."""
        numbered = partial(_numbered, message, stream_id)
        self._links[engine].put(numbered, channel=stream_id, client=run.client_id)

    def _carry_out(self, orders: Iterable[Order], reason: str = "") -> list[EngineRun]:
        """Carry out the orders of the pool after a change; returns the graphs that have failed, to be delivered without the lock.

        Args:
            reason: why graphs leave their engine, if they do.
        """
        failed = []
        for order in orders:
            match order:
                case OpenGraph(graph_id, engine, stream_id):
                    run = self._runs[graph_id]
                    self._put(run, engine, stream_id, run.opening())
                case CancelGraph(graph_id, engine, stream_id):
                    self._put(self._runs[graph_id], engine, stream_id, {"t": "cancel"})
                case GraphMoved(graph_id):
                    self.metrics.moved_programs.inc()
                    if (moved := self._runs.get(graph_id)) is not None:
                        moved.note_move(reason)
                case FailGraph(graph_id, end):
                    run = self._runs[graph_id]
                    run.post(run.closed(GraphFailed(graph_id, self._failure(run, end))))
                    self._forget(run)
                    failed.append(run)
        self._changed.notify_all()
        return failed

    def _balance(self) -> list[EngineRun]:
        """Move graphs to engines with less work; returns what `_carry_out` does."""
        failed, now = list[EngineRun](), time.monotonic()
        for graph_id, engine in self._balancer.moves(self._pool.is_open):
            failed += self._carry_out(self._pool.move(graph_id, engine, now), f"{engine} has less work")
        return failed

    def _failure(self, run: EngineRun, reason: EndReason) -> RtlangError:
        match reason:
            case EndReason.CANCELLED:
                return AbortedError("the graph was cancelled")
            case EndReason.DEADLINE:
                return run.options.deadline_error()
            case EndReason.CRASHES | EndReason.STALLS if self._is_closing.is_set():
                return AbortedError("the runtime was closed")
            case EndReason.STALLS:
                event = "the graph held a thread of its engine, and the engine was replaced"
            case EndReason.CRASHES:
                event = f"its engine's process {self._last_end.event}, again while it worked on this graph"
        self._culprits.note(run, time.monotonic())
        fault = InternalError.made(event)
        logger.error("internal error %s: graph %d: %s: %s", fault.id, run.graph_id, event, self._last_end)
        return fault

    def _death_of(self, end: EngineEnd) -> Death:
        """The end of an engine as the pool knows graphs."""
        graph_ids = {stream_id: graph.graph_id for stream_id, graph in self._pool.streams.items()}
        at_work = None
        if end.at_work is not None:
            at_work = frozenset(graph_ids[each] for each in end.at_work if each in graph_ids)
        held_by = None if end.held_by is None else graph_ids.get(end.held_by)
        return Death(end.has_crashed, at_work, held_by)

    def _log_at_work(self, link: EngineLink, end: EngineEnd) -> None:
        """Name the graphs that an engine worked on when it ended by its own fault."""
        if end.has_crashed and end.at_work is not None:
            graphs = [self._pool.streams[each].graph_id for each in end.at_work if each in self._pool.streams]
            named = ", ".join(map(self._named, sorted(graphs)[:MAX_LOGGED_GRAPHS])) or "no graph"
            logger.error("%s: its process %s, while it worked on %s", link.name, end, named)

    def _log_stall(self, link: EngineLink, message: Message) -> None:
        """An engine says which graph holds its thread."""
        graph = self._pool.streams.get(message["s"])
        if graph is not None:
            node = "" if message["n"] is None else f", node {message['n']}"
            place, seconds = f"{self._named(graph.graph_id)}{node}", message["seconds"]
            logger.error("%s: %s holds a thread for %g s, in %s", link.name, place, seconds, message["function"])

    def _named(self, graph_id: int) -> str:
        run = self._runs.get(graph_id)
        return f"graph {graph_id}" + (f" of principal {run.share.principal.name}" if run is not None else "")

    def _forget(self, run: EngineRun) -> None:
        """Take a graph that has ended out of everything but the pool."""
        self._runs.pop(run.graph_id, None)
        self._balancer.forget(run.graph_id)
        run.share.close()

    # -- any thread

    def _stop(self, error: RtlangError) -> None:
        """End everything, because no engine follows."""
        self._set_state(EngineState.DEAD)
        with self._lock:
            failed = list(self._runs.values())
            for run in failed:
                run.post(run.closed(GraphFailed(run.graph_id, error)))
                self._forget(run)
                self._carry_out(self._pool.end(run.graph_id, time.monotonic()))
        deliver_all(failed)
        self._is_started.set()

    def _update_state(self) -> None:
        """Set the target's state to the state of its best engine, and tell watchers if it is new."""
        states = {link.state for link in list(self._links.values())}
        if EngineState.READY in states:
            self._set_state(EngineState.READY)
        elif states == {EngineState.DEAD}:
            self._set_state(EngineState.DEAD)
        elif self._state is EngineState.READY:
            self._set_state(EngineState.RESTARTING)

    def _set_state(self, state: EngineState) -> None:
        with self._lock:
            if self._state is state or self._state is EngineState.DEAD:
                return
            self._state = state
            watchers = tuple(self._watchers)
        for watcher in watchers:
            watcher(state)

    def _ask(
        self, method: str, args: Any, /, *, principal: Principal = LOCAL, price: float = 0.0, near: bytes | None = None
    ) -> Any:
        """Call a method of any engine that is ready; such methods change nothing that a repetition would."""
        return ask_any(list(self._links.values()), method, args, principal=principal, price=price, near=near)

    def _ask_all(self, method: str, timeout_s: float) -> dict[str, Any]:
        """Call a method without arguments of every engine that is ready; the values of those that answer in time, by name."""
        return ask_all(list(self._links.values()), method, timeout_s)

    def _watch_engines(self) -> None:
        """Ping the engines, and end the graphs that no engine ends in time."""
        while not self._is_closing.wait(BEAT_S) and self._state is not EngineState.DEAD:
            for link in list(self._links.values()):
                link.beat(self.stall_timeout_s)
            with self._lock:
                beats = {name: link.last_beat for name, link in self._links.items()}
                failed = self._carry_out(self._pool.tick(beats, time.monotonic())) + self._balance()
            deliver_all(failed)
            if not self._runs:
                process_settings.tidy()


def _numbered(message: Message | Callable[[], Message], stream_id: int) -> Message:
    return (message() if callable(message) else message) | {"s": stream_id}
