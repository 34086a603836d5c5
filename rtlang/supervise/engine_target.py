"""A target over engines in other processes: places each graph on one of them, and on another one when that engine ends.

A graph continues behind the output that it has given (run_ledger.py), so that listeners notice only a pause. Every opening of a graph has a
stream id of its own: events of an engine that no longer has the graph are dropped. Each event is noted under the lock of the target and
delivered without it, by one thread at a time for each graph.

If engines end again and again, one graph may be the reason. A graph whose engines crashed twice in a row before it gave anything is
suspected: suspects are opened one after the other, on an engine that takes no others meanwhile, and one that ends yet another engine there
fails with InternalError. An engine that was killed from outside, as by an operator or for lack of memory, counts half as much.
"""

from __future__ import annotations

import itertools
import logging
import secrets
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import TracebackType
from typing import Any, Self

from rtlang.contract.cache_service import CacheService
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import AbortedError, EngineDeadError, InternalError, RtlangError
from rtlang.contract.events import Event, GraphFailed, GraphFinished
from rtlang.contract.graph import RequestGraph
from rtlang.contract.run_options import ALL_ABILITIES, DEFAULT_OPTIONS, Ability, RunOptions
from rtlang.contract.snapshot import EngineSnapshot, read_snapshot
from rtlang.contract.target import Listener, check_run
from rtlang.protocol.event_codec import event_from_wire
from rtlang.runtime import process_settings
from rtlang.runtime.admission import Admission, Share
from rtlang.runtime.result_size import check_result_sizes
from rtlang.supervise.cache_calls import RemoteCacheService
from rtlang.supervise.engine_link import CALL_TIMEOUT_S, EngineLink, EngineState, ask_all, ask_any
from rtlang.supervise.engine_run import EngineRun
from rtlang.supervise.frames import Message
from rtlang.supervise.launcher import Launcher
from rtlang.supervise.mirrored_metrics import MirroredMetrics
from rtlang.supervise.text_calls import RemoteTextService

logger = logging.getLogger(__name__)

BEAT_S = 1.0
"""Seconds between two pings to each engine."""
PROBE_S, HARMLESS_S = 5.0, 60.0
"""Seconds after which a graph counts as harmless if its engine's thread still works: one that was opened alone, and any other."""
CRASH, KILL = 2, 1
"""Strikes against a graph that has given nothing since it was opened, when its engine crashes or is killed from outside."""
SUSPECT_STRIKES, FATAL_STRIKES = 4, 6
"""Strikes in a row for which a graph is opened alone, and for which it fails if it is."""
METRICS_TIMEOUT_S, SNAPSHOT_TIMEOUT_S = 2.0, 5.0
GRACE_S = 2.0
"""Seconds that an engine may take to end a graph that was cancelled, or whose deadline has passed."""


@dataclass(eq=False, slots=True)
class PlacedEngine:
    """One engine of a target, and the graphs that it has.

    Attributes:
        is_open: whether it takes new graphs.
        is_leaving: whether it was asked to give up its graphs.
        num_moved: graphs that went from it to other engines.
    """

    link: EngineLink
    runs: dict[int, EngineRun] = field(default_factory=dict)
    is_open: bool = False
    is_leaving: bool = False
    num_moved: int = 0

    @property
    def name(self) -> str:
        """The name of the engine."""
        return self.link.name

    @property
    def state(self) -> str:
        """One of `REPLICA_STATES`."""
        return "draining" if self.is_leaving and self.link.state is not EngineState.DEAD else str(self.link.state)


@dataclass(slots=True)
class _Probing:
    """The graphs that are opened one after the other, and the engine where that happens."""

    waiting: deque[EngineRun] = field(default_factory=deque)
    engine: PlacedEngine | None = None
    run: EngineRun | None = None


class EngineTarget:
    """Runs graphs on engines in other processes. Thread-safe; a context manager.

    Args:
        launchers: start the engines.
        config: settings of the runtime of each engine.
        stall_timeout_s: seconds without an answer of an engine's thread after which its process is replaced.

    Attributes:
        metrics: those of the engines, and of the server that shares them.
        model_identity: see `Target.abilities`; empty until the first engine is ready.
    """

    _labels_engines = False  # whether metrics say from which engine they are

    def __init__(
        self, launchers: Iterable[Launcher], config: RuntimeConfig | None = None, *, stall_timeout_s: float = 120.0
    ) -> None:
        self.config = config or RuntimeConfig()
        self.metrics = MirroredMetrics()
        self.tool_format: str | None = None
        self.vocab_size: int | None = None
        self.max_model_len: int | None = None
        self.model_identity = ""
        self.text_service = RemoteTextService(self._ask)
        self.cache_service: CacheService = RemoteCacheService(self._ask)
        self.stall_timeout_s = stall_timeout_s
        self._admission = Admission(self.config.max_waiting)
        self._graph_ids, self._stream_ids = itertools.count(1), itertools.count(1)
        self._lock = threading.RLock()  # guards everything below
        self._runs: dict[int, EngineRun] = {}
        self._streams: dict[int, EngineRun] = {}
        self._unplaced: dict[int, EngineRun] = {}  # graphs that no engine has, besides those that are probed
        self._probing = _Probing()
        self._state = EngineState.LOADING
        self._watchers: list[Callable[[EngineState], None]] = []
        self._first_error: RtlangError | None = None
        self._end_reason = "the engine has stopped"
        self._has_settings = False  # those of this process are set, for short pauses of its threads
        self._is_closing = threading.Event()
        self._is_started = threading.Event()
        self._engines: dict[str, PlacedEngine] = {}
        for launcher in launchers:
            self._engines[launcher.name] = PlacedEngine(EngineLink(launcher, self.config, self))
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
            for engine in list(self._engines.values()):
                engine.link.start()
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
    def state(self) -> EngineState:
        """READY if any engine is."""
        return self._state

    def watch(self, watcher: Callable[[EngineState], None]) -> None:
        """Call a function with each new state, on a thread of this target. It must return quickly."""
        with self._lock:
            self._watchers.append(watcher)

    def submit(self, graph: RequestGraph, listener: Listener, options: RunOptions = DEFAULT_OPTIONS) -> EngineRun:
        """See `Runtime.submit`. Returns before an engine has the graph; if the engine refuses it, it ends with GraphFailed."""
        checks, principal = check_run(graph, options), options.principal
        if self.max_model_len is not None:
            check_result_sizes(graph.nodes, self.max_model_len)
        share = Share(self._admission, principal, options.inputs)
        share.admit(graph.nodes)
        seed = secrets.randbits(63) if options.seed is None else options.seed
        options = replace(options, seed=seed, principal=principal.in_engine())
        run = EngineRun(
            self,
            next(self._graph_ids),
            graph,
            checks,
            listener,
            share,
            options,
            max_model_len=self.max_model_len,
        )
        self._prepare(run, graph, options.inputs)
        with self._lock:
            if not self.is_alive:
                self._forget(run)
                raise EngineDeadError("it was closed" if self._is_closing.is_set() else self._end_reason)
            self._runs[run.graph_id] = run
            self._place(run)
        return run

    def send(
        self, run: EngineRun, message: Message | Callable[[], Message], note: Callable[[], None] | None = None
    ) -> None:
        """Called by `EngineRun`."""
        with self._lock:
            if note is not None:
                note()
            if run.engine is not None:
                self._put(run, message)

    def cancel(self, run: EngineRun) -> None:
        """Called by `EngineRun.cancel`."""
        with self._lock:
            run.cancelled_at = time.monotonic() if run.cancelled_at is None else run.cancelled_at
            if run.engine is not None:
                self._put(run, {"t": "cancel"})
                return
        self._finish(run, AbortedError("the graph was cancelled"))

    def snapshot(self, *, after_step: int = 0, replica: str | None = None) -> EngineSnapshot | None:
        """See `Runtime.snapshot`; of the engine with the name, or the first that is ready. None while there is none."""
        links = [each.link for name, each in list(self._engines.items()) if replica in (None, name)]
        plain = next((link.ask("snapshot", after_step, SNAPSHOT_TIMEOUT_S) for link in links if link.is_ready), None)
        return None if plain is None else read_snapshot(plain)

    def refresh_metrics(self) -> None:
        """Fetch the engines' metrics; keeps those of before of an engine that does not answer. Blocks."""
        with self._lock:
            self.metrics.replicas(Counter(engine.state for engine in self._engines.values()))
            self.metrics.programs_unplaced.set(sum(run.engine is None for run in self._runs.values()))
        for name, rendered in self._ask_all("metrics", METRICS_TIMEOUT_S).items():
            with self._lock:
                if name in self._engines:  # else it was removed meanwhile
                    self.metrics.mirror(rendered, name if self._labels_engines else None)

    def clear_cache(self) -> None:
        """See `Runtime.clear_cache`."""
        if not self._ask_all("clear_cache", CALL_TIMEOUT_S):
            raise EngineDeadError("the engine is not running; try again later")

    def close(self) -> None:
        """End all graphs with AbortedError, and all engines. Idempotent."""
        self._is_closing.set()
        with self._lock:
            links = [engine.link for engine in self._engines.values()]
        for link in links:
            link.close()
        for link in links:
            link.join()
        self._stop(AbortedError("the runtime was closed"))
        with self._lock:
            had_settings, self._has_settings = self._has_settings, False
        if had_settings:
            process_settings.end()

    # -- for subclasses; all under the lock but _prepare

    def _prepare(self, run: EngineRun, graph: RequestGraph, inputs: Mapping[str, str]) -> None:
        """A graph was accepted, and will be placed next."""

    def _choose(self, run: EngineRun, engines: Mapping[str, PlacedEngine]) -> PlacedEngine:
        """Choose the engine for a graph among those that take graphs."""
        return next(iter(engines.values()))

    def _note_left(self, run: EngineRun, engine: PlacedEngine) -> None:
        """An engine does not have a graph any more, because either has ended or the graph moves."""

    def _note_output(self, run: EngineRun, event: Event) -> None:
        """An engine gave output of a graph, which will be delivered. The graph may have ended with it."""

    def _note_load(self, engine: PlacedEngine, message: Message) -> None:
        """An engine reported its load."""

    # -- the threads of the links

    def on_ready(self, link: EngineLink) -> None:
        """See `LinkOwner.on_ready`."""
        with self._lock:
            self.tool_format, self.vocab_size = link.ready["tool_format"], link.ready["vocab_size"]
            self.max_model_len, self.model_identity = link.ready["max_model_len"], link.ready["model_identity"]
            engine = self._engines.get(link.name)
            if engine is not None:
                engine.is_open = not engine.is_leaving
        self._place_all()
        self._update_state()
        self._is_started.set()

    def on_message(self, link: EngineLink, message: Message) -> None:
        """See `LinkOwner.on_message`."""
        kind, run = message["t"], self._streams.get(message.get("s", 0))
        if kind == "load":
            with self._lock:
                if link.name in self._engines:
                    self._note_load(self._engines[link.name], message)
            return
        if run is None:
            return
        event = None if kind == "part" else event_from_wire(message, run.graph_id)
        with self._lock:
            if self._streams.get(message["s"]) is not run:  # moved meanwhile
                return
            if event is None:
                run.joiner.take(message)
                return
            event = run.joiner.join(event)
            if isinstance(event, (GraphFinished, GraphFailed)):
                self._forget(run)
            if event is None or not run.take(event):
                return
            run.is_proven, run.num_strikes = True, 0
            run.outbox.append(event)
            self._note_output(run, event)
        self._probe_next(run)
        self._deliver(run)

    def on_death(self, link: EngineLink, *, was_ready: bool, has_crashed: bool) -> None:
        """See `LinkOwner.on_death`."""
        culprit = None
        with self._lock:
            engine = self._engines.get(link.name)
            if engine is None:
                return
            engine.is_open = False
            probing = self._probing
            for run in engine.runs.values():
                if link.last_beat > run.opened_at + HARMLESS_S:  # it waits for a call, for credit, or for more nodes
                    run.is_proven, run.num_strikes = True, 0
            unproven = [run for run in engine.runs.values() if not run.is_proven]
            for run in unproven:
                run.num_strikes += CRASH if has_crashed else KILL
            if probing.engine is engine:
                (alone,) = unproven if len(unproven) == 1 else (None,)
                if alone is not None and alone is probing.run and alone.num_strikes >= FATAL_STRIKES:
                    culprit = alone
                probing.run = probing.engine = None
            cancelled = [run for run in engine.runs.values() if run.cancelled_at is not None]
            for run in list(engine.runs.values()):
                self._take_off(run)
                if run.cancelled_at is None:
                    self._unplaced[run.graph_id] = run
                    engine.num_moved += 1
                    self.metrics.moved_programs.inc()
            if was_ready and not self._is_closing.is_set():
                self.metrics.engine_restarts.inc()
            if not self._is_started.is_set() and all(each.link.num_failed for each in self._engines.values()):
                self._first_error = link.error
        if culprit is not None and not self._is_closing.is_set():
            fault = InternalError(secrets.token_hex(6))
            logger.error("internal error %s: graph %d ends the engine's process", fault.id, culprit.graph_id)
            self._finish(culprit, fault)
        for run in cancelled:
            self._finish(run, AbortedError("the graph was cancelled"))
        self._update_state()
        self._place_all()
        if self._first_error is not None:
            self._is_started.set()

    def on_end(self, link: EngineLink) -> None:
        """See `LinkOwner.on_end`."""
        self._update_state()
        if self._state is EngineState.DEAD and not self._is_closing.is_set():
            logger.critical("no engine is left: %s", link.error)
            self._end_reason = f"the engine has stopped: {link.error}"
            self._stop(EngineDeadError(self._end_reason))

    # -- any thread

    def _place(self, run: EngineRun) -> None:
        """Open a graph on an engine; it waits if none takes graphs. Under the lock."""
        engines = self._open_engines()
        if engines:
            self._open(run, self._choose(run, engines))
        else:
            self._unplaced[run.graph_id] = run

    def _open_engines(self) -> dict[str, PlacedEngine]:
        """The engines that take graphs; not one whose connection has ended, of which `on_death` is yet to tell. Under the lock."""
        return {name: each for name, each in self._engines.items() if each.is_open and each.link.is_ready}

    def _open(self, run: EngineRun, engine: PlacedEngine) -> None:
        """Open a graph that no engine has. Under the lock."""
        self._unplaced.pop(run.graph_id, None)
        run.engine, run.stream_id, run.is_proven = engine, next(self._stream_ids), False
        run.opened_at = time.monotonic()
        engine.runs[run.graph_id] = self._streams[run.stream_id] = run
        engine.link.put(run.opening(), channel=run.stream_id, client=run.client_id)

    def _put(self, run: EngineRun, message: Message | Callable[[], Message]) -> None:
        """Send a message about a graph that an engine has, when it is its client's turn. Under the lock."""
        numbered = partial(_numbered, message, run.stream_id)
        run.engine.link.put(numbered, channel=run.stream_id, client=run.client_id)

    def _take_off(self, run: EngineRun) -> None:
        """Take a graph off its engine; events that follow from there are dropped. Under the lock."""
        engine, run.engine = run.engine, None
        if engine is not None:
            del engine.runs[run.graph_id], self._streams[run.stream_id]
            self._note_left(run, engine)

    def _forget(self, run: EngineRun) -> None:
        """Take a graph that has ended out of everything. Under the lock."""
        self._take_off(run)
        run.has_ended = True
        self._runs.pop(run.graph_id, None)
        self._unplaced.pop(run.graph_id, None)
        run.share.close()

    def _place_all(self) -> None:
        """Open the graphs that wait, and suspects one after the other."""
        with self._lock:
            waiting = list(self._unplaced.values())
            suspects = [run for run in waiting if run.num_strikes >= SUSPECT_STRIKES]
            self._probing.waiting.extend(self._unplaced.pop(run.graph_id) for run in suspects)
        self._probe_next(None)
        for run in waiting:
            with self._lock:
                if run.graph_id in self._unplaced:
                    self._place(run)

    def _probe_next(self, last: EngineRun | None) -> None:
        """Open the next suspect behind the last one, unless that was done; None if there is no last one."""
        with self._lock:
            probing = self._probing
            if probing.run is not last:
                return
            probing.run = None
            if probing.engine is not None and probing.engine.is_leaving:
                probing.engine = None
            while probing.waiting and probing.run is None:
                run = probing.waiting[0]
                if run.has_ended:
                    probing.waiting.popleft()
                    continue
                if probing.engine is None:
                    engines = self._open_engines()
                    if not engines:
                        return
                    probing.engine = self._choose(run, engines)
                    probing.engine.is_open = False  # what is opened there meanwhile could be the reason
                probing.run = probing.waiting.popleft()
                self._open(run, probing.engine)
            if probing.run is not None or probing.engine is None:
                return
            probing.engine.is_open = probing.engine.link.is_ready and not probing.engine.is_leaving
            probing.engine = None
        self._place_all()

    def _probe_again(self, run: EngineRun) -> None:
        """Take the suspect that is opened alone off its engine, to be opened alone again. Under the lock."""
        self._take_off(run)
        self._probing.waiting.appendleft(run)
        self._probe_next(run)

    def _finish(self, run: EngineRun, error: RtlangError) -> None:
        """End a graph without its engine, which is told to cancel it if it has one."""
        with self._lock:
            if run.has_ended:
                return
            if run.engine is not None:
                self._put(run, {"t": "cancel"})
            self._forget(run)
            run.outbox.append(GraphFailed(run.graph_id, error))
        self._deliver(run)

    def _deliver(self, run: EngineRun) -> None:
        """Give the noted events to the listener, in order, unless another thread does."""
        with self._lock:
            if run.is_delivering:
                return
            run.is_delivering = True
        while True:
            with self._lock:
                if not run.outbox:
                    run.is_delivering = False
                    return
                event = run.outbox.popleft()
            try:
                run.listener(event)
            except Exception:
                logger.exception("the listener of graph %d raised an exception; the graph is cancelled", run.graph_id)
                run.cancel()

    def _stop(self, error: RtlangError) -> None:
        """End everything, because no engine follows."""
        self._set_state(EngineState.DEAD)
        for run in list(self._runs.values()):
            with self._lock:
                self._take_off(run)
            self._finish(run, error)
        self._is_started.set()

    def _update_state(self) -> None:
        """Take the state of the best engine for that of the target, and tell watchers if it is new."""
        states = {engine.link.state for engine in list(self._engines.values())}
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

    def _ask(self, method: str, args: Any, timeout_s: float = CALL_TIMEOUT_S) -> Any:
        """Call a method of any engine that is ready; such methods change nothing that a repetition would."""
        return ask_any([engine.link for engine in list(self._engines.values())], method, args, timeout_s)

    def _ask_all(self, method: str, timeout_s: float) -> dict[str, Any]:
        """Call a method without arguments of every engine that is ready; the values of those that answer in time, by name."""
        return ask_all([engine.link for engine in list(self._engines.values())], method, timeout_s)

    def _watch_engines(self) -> None:
        """Ping the engines, and open the next graph of those that are opened one after the other."""
        while not self._is_closing.wait(BEAT_S) and self._state is not EngineState.DEAD:
            for each in list(self._engines.values()):
                each.link.beat(self.stall_timeout_s)
            with self._lock:
                probed = self._probing.run
                engine = self._probing.engine
                if probed and engine and engine.link.last_beat > probed.opened_at + PROBE_S:
                    probed.is_proven, probed.num_strikes = True, 0
            if probed is not None and probed.is_proven:
                self._probe_next(probed)
            self._end_overdue(time.monotonic())
            if not self._runs:
                process_settings.tidy()

    def _end_overdue(self, now: float) -> None:
        """End the graphs that no engine ends in time: there is none, or it is silent."""
        for run in list(self._runs.values()):
            error = run.overdue(now, GRACE_S)
            if error is not None:
                self._finish(run, error)
                self._probe_next(run)


def _numbered(message: Message | Callable[[], Message], stream_id: int) -> Message:
    return (message() if callable(message) else message) | {"s": stream_id}
