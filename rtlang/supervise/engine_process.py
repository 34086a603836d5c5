"""A target whose engine runs in a process of its own, which is watched and started again when it dies.

    with EngineProcess(RuntimeConfig(model=...)) as target:
        ...

A crash of the engine does not stop the process that serves clients. A thread reads the events of the engine. When the engine's process
ends, by itself or because its engine thread has not answered for `stall_timeout_s`, another one is started after a pause that doubles,
and every graph continues behind the output that it has given (run_ledger.py). Listeners notice only the pause; `watch` reports each new
state at once.

If processes end again and again, one graph may be the reason: from the second death in a row on, graphs are opened one after the other, and
one whose opening ends the process fails with InternalError.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from enum import StrEnum
from types import TracebackType
from typing import Any, Self

from rtlang.contract.budget import Budget
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import (
    AbortedError,
    EngineDeadError,
    InternalError,
    RtlangError,
    rebuild,
)
from rtlang.contract.events import GraphFailed, GraphFinished
from rtlang.contract.graph import Node, RequestGraph
from rtlang.contract.graph_checks import check_inputs
from rtlang.contract.known import ContinueFrom, Known, check_continue_from
from rtlang.contract.logs import LogFormat, writes_json
from rtlang.contract.params import check_credit, check_run_options, seconds_left
from rtlang.contract.principal import LOCAL, Principal
from rtlang.contract.snapshot import EngineSnapshot, read_snapshot
from rtlang.contract.target import Listener
from rtlang.protocol.event_codec import event_from_wire
from rtlang.runtime import process_settings
from rtlang.runtime.admission import Admission, Share
from rtlang.runtime.result_size import check_result_sizes
from rtlang.supervise.cache_calls import RemoteCacheService
from rtlang.supervise.engine_run import EngineRun
from rtlang.supervise.frames import FrameWriter, Message, read_messages
from rtlang.supervise.mirrored_metrics import MirroredMetrics
from rtlang.supervise.text_calls import RemoteTextService

logger = logging.getLogger(__name__)

MAX_FAILED_STARTS = 5
"""Failed starts in a row, before the model is loaded, after which the target is dead."""
FIRST_PAUSE_S, MAX_PAUSE_S = 0.1, 30.0
STABLE_S = 60.0
"""Seconds that a process must run for the count of deaths in a row to begin again."""
BEAT_S = 1.0
"""Seconds between two pings to the engine."""
PROBE_S = 5.0
"""Seconds after which a graph that was opened alone counts as harmless, if the process still runs."""
CALL_TIMEOUT_S = 30.0
METRICS_TIMEOUT_S = 2.0
CLOSE_TIMEOUT_S = 10.0


class EngineState(StrEnum):
    """The state of an engine in a process of its own."""

    LOADING = "loading"
    READY = "ready"
    RESTARTING = "restarting"
    DEAD = "dead"


@dataclass(slots=True)
class _Link:
    """One process and the socket to it."""

    process: subprocess.Popen[bytes]
    connection: socket.socket
    writer: FrameWriter
    started: float
    is_ready: bool = False
    last_pong: float = 0.0


class EngineProcess:
    """Runs graphs in a process of its own. Thread-safe; a context manager.

    Args:
        config: settings of the runtime in that process.
        stall_timeout_s: seconds without an answer of the engine thread after which its process is replaced.

    Attributes:
        metrics: those of the engine, and of the server that shares them.
        model_identity: see `ResumableTarget`; empty until the first process is ready.
    """

    def __init__(self, config: RuntimeConfig | None = None, *, stall_timeout_s: float = 120.0) -> None:
        self.config = config or RuntimeConfig()
        self.metrics = MirroredMetrics()
        self.tool_format: str | None = None
        self.vocab_size: int | None = None
        self.max_model_len: int | None = None
        self.model_identity = ""
        self.text_service = RemoteTextService(self._ask)
        self.cache_service = RemoteCacheService(self._ask)
        self._stall_timeout_s = stall_timeout_s
        self._admission = Admission(self.config.max_waiting)
        self._graph_ids, self._call_ids = itertools.count(1), itertools.count(1)
        self._lock = threading.RLock()  # guards everything below
        self._runs: dict[int, EngineRun] = {}
        self._calls: dict[int, Future[Any]] = {}
        self._unopened: deque[EngineRun] = deque()  # graphs that are opened one after the other
        self._probed: EngineRun | None = None
        self._probed_at = 0.0
        self._link: _Link | None = None
        self._state = EngineState.LOADING
        self._watchers: list[Callable[[EngineState], None]] = []
        self._num_deaths = 0
        self._first_error: RtlangError | None = None
        self._has_settings = False  # those of this process are set, for short pauses of its threads
        self._is_closing = threading.Event()
        self._is_started = threading.Event()
        self._thread = threading.Thread(target=self._main, name="rtlang-supervisor", daemon=True)
        self._watchdog = threading.Thread(target=self._watch_engine, name="rtlang-watchdog", daemon=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> Self:
        """Start the process and wait until its model is loaded, unless already done.

        Raises:
            ModelLoadError, ConfigError: the model cannot be loaded with these settings.
            EngineDeadError: the process has ended before that.
        """
        if self._thread.ident is None:
            self._thread.start()
            self._watchdog.start()
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
        """See `Target.is_alive`. True while a process is replaced: graphs wait for the next one."""
        return self._state is not EngineState.DEAD and not self._is_closing.is_set()

    @property
    def state(self) -> EngineState:
        """The state of the engine."""
        return self._state

    @property
    def pid(self) -> int | None:
        """The id of the present process; None if there is none."""
        link = self._link
        return None if link is None else link.process.pid

    def watch(self, watcher: Callable[[EngineState], None]) -> None:
        """Call a function with each new state, on a thread of this target. It must return quickly."""
        with self._lock:
            self._watchers.append(watcher)

    def submit(
        self,
        graph: RequestGraph,
        listener: Listener,
        *,
        inputs: Mapping[str, str] | None = None,
        is_open: bool = False,
        priority: int = 0,
        deadline_s: float | None = None,
        seed: int | None = None,
        known: Known | None = None,
        budget: Budget | None = None,
        principal: Principal | None = None,
        continue_from: ContinueFrom | None = None,
        credit: int | None = None,
        reports_progress: bool = False,
    ) -> EngineRun:
        """See `Runtime.submit`. Returns before the engine has the graph; if the engine refuses it, it ends with GraphFailed."""
        checks = graph.validate()
        given = dict(inputs or {})
        check_inputs(graph.inputs, given)
        check_run_options(priority, deadline_s, seed)
        check_continue_from(continue_from or {}, graph.nodes)
        if credit is not None:
            check_credit(credit)
        if self.max_model_len is not None:
            check_result_sizes(graph.nodes, self.max_model_len)
        options = {
            "inputs": given,
            "priority": priority,
            "seed": secrets.randbits(63) if seed is None else seed,
            "budget": None if budget is None else budget.to_plain(),
            "principal": None if principal is None else principal.in_engine().to_plain(),
            "progress": reports_progress,
        }
        with self._lock:
            if not self.is_alive:
                raise EngineDeadError("the engine has stopped" if not self._is_closing.is_set() else "it was closed")
            share = Share(self._admission, principal or LOCAL, given)
            share.admit(graph.nodes)
            run = EngineRun(
                self,
                next(self._graph_ids),
                graph,
                checks,
                listener,
                share,
                options,
                is_open=is_open,
                deadline_s=None if deadline_s is None else seconds_left(deadline_s),
                credit=credit,
                known=known or {},
                continue_from=continue_from or {},
                max_model_len=self.max_model_len,
            )
            self._runs[run.graph_id] = run
            if self._unopened or self._probed is not None:
                self._unopened.append(run)
            else:
                self._open(run)
        return run

    def send(self, run: EngineRun, message: Message | Callable[[], Message], nodes: Sequence[Node] = ()) -> None:
        """Called by `EngineRun`."""
        with self._lock:
            run.nodes.update((node.node_id, node) for node in nodes)
            if run.is_sent and self._link is not None:
                self._put(self._link, run, message if callable(message) else message | {"s": run.graph_id})

    def cancel(self, run: EngineRun) -> None:
        """Called by `EngineRun.cancel`."""
        with self._lock:
            if run.is_sent and self._link is not None:
                self._put(self._link, run, {"t": "cancel", "s": run.graph_id})
                return
        self._finish(run, AbortedError("the graph was cancelled"))

    def snapshot(self, *, after_step: int = 0) -> EngineSnapshot | None:
        """See `Runtime.snapshot`. None while there is no engine."""
        if self._state is not EngineState.READY:
            return None
        plain = self._ask("snapshot", after_step)
        return None if plain is None else read_snapshot(plain)

    def refresh_metrics(self) -> None:
        """Fetch the engine's metrics; keeps those of before while there is no engine. Blocks."""
        with contextlib.suppress(EngineDeadError):
            self.metrics.mirror(self._ask("metrics", None, METRICS_TIMEOUT_S))

    def clear_cache(self) -> None:
        """See `Runtime.clear_cache`."""
        self._ask("clear_cache", None)

    def close(self) -> None:
        """End all graphs with AbortedError, and the process. Idempotent."""
        self._is_closing.set()
        with self._lock:
            link = self._link
        if link is not None:
            link.writer.close()
            _shut(link)
        if self._thread.ident is not None and threading.current_thread() is not self._thread:
            self._thread.join(CLOSE_TIMEOUT_S + 5.0)
        with self._lock:
            had_settings, self._has_settings = self._has_settings, False
        if had_settings:
            process_settings.end()

    # -- the supervisor's thread

    def _main(self) -> None:
        num_failed = 0
        while not self._is_closing.is_set():
            link = self._spawn()
            self._serve(link)
            code = self._bury(link)
            if self._is_closing.is_set():
                break
            num_failed = 0 if link.is_ready else num_failed + 1
            if not self._is_started.is_set():
                self._first_error = self._first_error or EngineDeadError(f"its process ended with code {code}")
                self._is_started.set()
                break
            if num_failed >= MAX_FAILED_STARTS:
                logger.critical("the engine did not start %d times in a row; giving up", num_failed)
                break
            pause_s = min(FIRST_PAUSE_S * 2 ** max(0, self._num_deaths - 1), MAX_PAUSE_S)
            logger.error("the engine's process ended with code %s; starting another in %g s", code, pause_s)
            self._is_closing.wait(pause_s)
        error: RtlangError = EngineDeadError("the engine has stopped")
        if self._is_closing.is_set():
            error = AbortedError("the runtime was closed")
        self._set_state(EngineState.DEAD)
        for run in list(self._runs.values()):
            self._finish(run, error)
        self._is_started.set()

    def _spawn(self) -> _Link:
        ours, theirs = socket.socketpair()
        level = logging.getLevelName(logging.getLogger().getEffectiveLevel())
        form = LogFormat.JSON if writes_json() else LogFormat.TEXT
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", "rtlang.supervise.worker", str(theirs.fileno()), level, form],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        link = _Link(process, ours, FrameWriter(ours, _made), time.monotonic())
        is_first = not self._is_started.is_set()  # later ones have streams to continue
        link.writer.put({"t": "config", "settings": asdict(self.config), "preloads": is_first})
        with self._lock:
            self._link = link
        if self._is_closing.is_set():
            _shut(link)
        return link

    def _serve(self, link: _Link) -> None:
        """Take the messages of a process until its end."""
        for message in read_messages(link.connection):
            try:
                self._take(link, message)
            except Exception:  # one graph must not end the others
                logger.exception("a message of the engine failed: %s", message.get("t"))

    def _take(self, link: _Link, message: Message) -> None:
        match message["t"]:
            case "ready":
                self._begin(link, message)
            case "failed":
                self._first_error = _error_of(message)
            case "pong":
                if message["age"] < self._stall_timeout_s:
                    link.last_pong = time.monotonic()
            case "reply":
                self._settle(message)
            case _:
                self._take_event(message)

    def _begin(self, link: _Link, message: Message) -> None:
        self.tool_format, self.vocab_size = message["tool_format"], message["vocab_size"]
        self.max_model_len, self.model_identity = message["max_model_len"], message["model_identity"]
        with self._lock:
            link.is_ready, link.last_pong = True, time.monotonic()
            self._unopened.clear()
            if self._num_deaths > 1:
                self._unopened.extend(self._runs.values())
                self._open_next()
            else:
                for run in list(self._runs.values()):
                    self._open(run)
        self._set_state(EngineState.READY)
        self._is_started.set()

    def _take_event(self, message: Message) -> None:
        with self._lock:
            run = self._runs.get(message["s"])
        if run is None:
            return
        if message["t"] == "part":
            run.joiner.take(message)
            return
        event = run.joiner.join(event_from_wire(message, run.graph_id))
        if isinstance(event, (GraphFinished, GraphFailed)):
            with self._lock:
                self._runs.pop(run.graph_id, None)
                run.has_ended = True
                run.share.close()
        if run is self._probed:
            self._open_next()
        if event is not None and run.take(event):
            self._notify(run, event)

    def _bury(self, link: _Link) -> int:
        """Handle the end of a process; returns its exit code."""
        with self._lock:
            self._link = None
            is_stable = time.monotonic() - link.started > STABLE_S
            self._num_deaths = 1 if is_stable else self._num_deaths + 1
            culprit, self._probed = self._probed, None
            calls, self._calls = self._calls, {}
            for run in self._runs.values():
                run.is_sent = False
        if not self._is_closing.is_set() and link.is_ready:
            self._set_state(EngineState.RESTARTING)
            self.metrics.engine_restarts.inc()
        link.writer.close()
        link.connection.close()
        try:
            code = link.process.wait(CLOSE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            link.process.kill()
            code = link.process.wait()
        for call in calls.values():
            call.set_exception(EngineDeadError("the engine's process has ended"))
        if culprit is not None and not self._is_closing.is_set():
            fault = InternalError(secrets.token_hex(6))
            logger.error("internal error %s: graph %d ends the engine's process", fault.id, culprit.graph_id)
            self._finish(culprit, fault)
        return code

    # -- any thread

    def _open(self, run: EngineRun) -> None:
        """Send a graph to the engine. Under the lock."""
        if self._link is not None and self._link.is_ready and not run.has_ended:
            run.is_sent = True
            self._put(self._link, run, run.opening())

    def _put(self, link: _Link, run: EngineRun, message: Message | Callable[[], Message]) -> None:
        """Send a message about a graph, when it is its client's turn."""
        link.writer.put(message, channel=run.graph_id, client=run.client_id)

    def _open_next(self) -> None:
        """Open the next graph of those that are opened one after the other."""
        with self._lock:
            self._probed = None
            while self._unopened and self._probed is None:
                run = self._unopened.popleft()
                if not run.has_ended:
                    self._probed, self._probed_at = run, time.monotonic()
                    self._open(run)

    def _finish(self, run: EngineRun, error: RtlangError) -> None:
        """End a run that the engine process does not know."""
        with self._lock:
            if run.has_ended:
                return
            run.has_ended = True
            self._runs.pop(run.graph_id, None)
            run.share.close()
        self._notify(run, GraphFailed(run.graph_id, error))

    def _notify(self, run: EngineRun, event: Any) -> None:
        try:
            run.listener(event)
        except Exception:
            logger.exception("the listener of graph %d raised an exception; the graph is cancelled", run.graph_id)
            run.cancel()

    def _set_state(self, state: EngineState) -> None:
        with self._lock:
            if self._state is state or self._state is EngineState.DEAD:
                return
            self._state = state
            watchers = tuple(self._watchers)
        for watcher in watchers:
            watcher(state)

    def _ask(self, method: str, args: Any, timeout_s: float = CALL_TIMEOUT_S) -> Any:
        """Call a method in the other process, and wait for its value."""
        call: Future[Any] = Future()
        with self._lock:
            link = self._link
            if link is None or not link.is_ready:
                raise EngineDeadError("the engine is not running; try again later")
            number = next(self._call_ids)
            self._calls[number] = call
            link.writer.put({"t": "call", "q": number, "m": method, "a": args})
        try:
            return call.result(timeout_s)
        except TimeoutError:
            raise EngineDeadError(f"the engine did not answer within {timeout_s:g} s") from None
        finally:
            with self._lock:
                self._calls.pop(number, None)

    def _settle(self, message: Message) -> None:
        with self._lock:
            call = self._calls.pop(message["q"], None)
        if call is None:
            return
        if "code" in message:
            call.set_exception(_error_of(message))
        else:
            call.set_result(message["value"])

    def _watch_engine(self) -> None:
        """Ping the engine, kill a process that does not answer, and open the next graph of those that are opened one after the other."""
        while not self._is_closing.wait(BEAT_S) and self._state is not EngineState.DEAD:
            with self._lock:
                link, now = self._link, time.monotonic()
                is_probed = self._probed is not None and now - self._probed_at > PROBE_S
            if link is None or not link.is_ready:
                continue
            if now - link.last_pong > self._stall_timeout_s:
                logger.critical(
                    "the engine gives no sign of life for %g s; its process is killed", self._stall_timeout_s
                )
                link.process.kill()
                continue
            if is_probed:
                self._open_next()
            if not self._runs:
                process_settings.tidy()
            link.writer.put({"t": "ping"})


def _made(item: Message | Callable[[], Message]) -> Message:
    return item() if callable(item) else item


def _error_of(message: Message) -> RtlangError:
    return rebuild(message["code"], message["message"], message["facts"])


def _shut(link: _Link) -> None:
    """End the socket, after which the process ends in an orderly way."""
    with contextlib.suppress(OSError):  # it has ended by itself
        link.connection.shutdown(socket.SHUT_RDWR)
