"""The connection to one engine: starts it, watches it, and starts it again when it has ended.

A thread reads the messages of the engine. When its connection ends, or its engine thread has not answered for too long, another engine is
launched: at once if a graph was the cause of its end, else after a pause that doubles with each such end in a row. A link knows no graphs:
its owner hears of every start, message and end, and says which ones graphs are to blame for.

An engine whose thread works for one graph for HELD_BEATS pings is killed for that graph, as its own monitor says (work_monitor.py) or, if a
thread holds the interpreter's lock so that no monitor runs, as its record of work shows. If several graphs are at work on its threads then,
its end counts as a crash of one of these.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import logging
import socket
import threading
import time
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import asdict, replace
from enum import StrEnum
from typing import Any, Protocol

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import AbortedError, EngineDeadError, RtlangError, rebuild
from rtlang.contract.runs.principal import LOCAL, Principal
from rtlang.fleet.engines.engine_end import EngineEnd, count_oom_kills, end_of, is_suspended
from rtlang.fleet.engines.launcher import EngineHandle, Launcher
from rtlang.fleet.engines.work_record import StallWatch, ThreadClock
from rtlang.fleet.messages.frames import CONTROL, FrameWriter, Message, call_channel, read_messages
from rtlang.fleet.messages.graph_ids import stream_id_of
from rtlang.work.fair_executor import is_unwanted, note_work_elsewhere

logger = logging.getLogger(__name__)

MAX_FAILED_STARTS = 5
"""Failed starts in a row, before the model is loaded, after which the link gives up."""
FIRST_PAUSE_S, MAX_PAUSE_S = 0.1, 30.0
STABLE_S = 10.0
"""Seconds that an engine must be ready for the count of ends in a row to begin again."""
CALL_TIMEOUT_S = 30.0
PATIENCE_S = 1.0
"""Seconds after which a call that any engine can answer goes to another one as well."""
_SLACK = 10
"""A call may take so many times its price longer than these times."""
_POLL_S = 0.1
CLOSE_TIMEOUT_S = 10.0
CODE_TIMEOUT_S = 0.5
"""Seconds that a process may take from the end of its connection to its exit code."""
ASK_BEATS, HELD_BEATS = 8, 10
"""Pings, one a second, for which the thread of an engine does the same work for one graph, until its stack is asked for and until the
engine is killed. A process that is suspended writes no stack, and is not killed for that; when it goes on, it writes the stack at once, and
has the pings in between to go on with its work."""


class EngineState(StrEnum):
    """The state of an engine in another process."""

    LOADING = "loading"
    READY = "ready"
    RESTARTING = "restarting"
    DEAD = "dead"


class LinkOwner(Protocol):
    """Hears of an engine, on the thread of its link."""

    def on_ready(self, link: EngineLink) -> None:
        """A new engine is ready; it knows no graph."""

    def on_message(self, link: EngineLink, message: Message) -> None:
        """The engine sent an event of a graph, or a report of its load."""

    def on_lost(self, link: EngineLink) -> None:
        """The connection to an engine that was ready has ended: nothing sent arrives any more. `on_death` follows."""

    def on_death(self, link: EngineLink, *, was_ready: bool, end: EngineEnd) -> bool:
        """The connection to the engine has ended, or it could not be started.

        Returns:
            Whether a graph was the cause, so that the next engine is started at once.
        """

    def on_end(self, link: EngineLink) -> None:
        """The link has given up, or was closed: no engine follows."""


class _Session:
    """One engine, the connection to it, and the calls that it has not answered."""

    def __init__(self, handle: EngineHandle) -> None:
        self.handle = handle
        self.writer = FrameWriter(handle.connection, _made)
        self.is_ready = self.is_silent = self.was_suspended = False
        self.stall_watch, self.thread_clock = StallWatch(), ThreadClock()
        self.held_by: int | None = None
        self.has_answered = False  # since the last ping
        self.num_stack_bytes = 0  # before its stack was asked for
        self.num_with_stack = 0  # readings since it came
        self.num_oom_kills = count_oom_kills()
        self.ready_since = 0.0
        self.calls: dict[int, Future[Any]] = {}

    def shut(self) -> None:
        """End the connection, after which the engine ends in an orderly way."""
        self.writer.close()
        with contextlib.suppress(OSError):  # it has ended by itself
            self.handle.connection.shutdown(socket.SHUT_RDWR)


class EngineLink:
    """Keeps one engine running. Thread-safe.

    Args:
        name: of the engine, for logs and metrics; None for the launcher's name.

    Attributes:
        error: the reason of the last failed start.
        num_failed: starts in a row that failed.
        num_restarts: engines that have ended since the start, though they were not asked to.
        ready: the message with which the present or the last engine said that it was ready; empty before.
        last_beat: the time (`time.monotonic`) by which its engine thread had done all that was asked.
    """

    def __init__(self, launcher: Launcher, config: RuntimeConfig, owner: LinkOwner, *, name: str | None = None) -> None:
        self.launcher, self.config, self._owner = launcher, config, owner
        self.name = name or launcher.name
        self.error: RtlangError | None = None
        self.num_failed = self.num_restarts = 0
        self.ready: Message = {}
        self.last_beat = 0.0
        self.state = EngineState.LOADING
        self._call_ids = itertools.count(1)
        self._lock = threading.Lock()  # guards the session and its calls
        self._session: _Session | None = None
        self._num_deaths = 0  # in a row
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._main, name=f"rtlang-link-{self.name}", daemon=True)

    def start(self) -> None:
        """Start the first engine. Returns at once."""
        self._thread.start()

    @property
    def is_ready(self) -> bool:
        """Whether there is an engine that takes graphs."""
        return self.state is EngineState.READY

    @property
    def pid(self) -> int | None:
        """The id of the engine's process; None if there is none on this machine."""
        session = self._session
        return None if session is None else session.handle.pid

    def put(
        self, message: Message | Callable[[], Message], *, channel: int = CONTROL, client: Hashable = CONTROL
    ) -> None:
        """Send a message when it is its client's turn; dropped if there is no engine. A function makes it on the writer's thread."""
        session = self._session
        if session is not None:
            session.writer.put(message, channel=channel, client=client)

    def call(self, method: str, args: Any, *, principal: Principal = LOCAL, price: float = 0.0) -> Future[Any]:
        """Call a method of the engine; the future fails with EngineDeadError if the engine ends. Cancel it if nobody waits any more.

        Args:
            principal: whose work it is; the engine takes turns between principals and their clients.
            price: an estimate of the seconds that it takes.
        Raises:
            EngineDeadError: it is not running.
        """
        call = _Call()
        with self._lock:
            session = self._session
            if session is None or not session.is_ready:
                raise EngineDeadError("the engine is not running; try again later")
            number = next(self._call_ids)
            session.calls[number] = call
        message = {"t": "call", "q": number, "m": method, "a": args, "price": price}
        if principal is not LOCAL:
            message["principal"] = principal.in_engine().to_plain()
        channel, client = call_channel(number), principal.client_id
        session.writer.put(message, channel=channel, client=client)

        def end(done: Future[Any]) -> None:
            session.calls.pop(number, None)
            if done.cancelled():
                session.writer.put({"t": "drop", "q": number}, channel=channel, client=client)

        call.add_done_callback(end)
        return call

    def ask(
        self,
        method: str,
        args: Any,
        timeout_s: float = CALL_TIMEOUT_S,
        *,
        principal: Principal = LOCAL,
        price: float = 0.0,
    ) -> Any:
        """Call a method of the engine and wait for its value.

        Raises:
            EngineDeadError: it is not running, or does not answer.
        """
        call = self.call(method, args, principal=principal, price=price)
        timeout_s += _SLACK * price
        try:
            done, _ = _wait({call}, timeout_s)
            if not done:
                raise EngineDeadError(f"the engine did not answer within {timeout_s:g} s")
            return call.result()
        finally:
            call.cancel()

    def beat(self, stall_timeout_s: float) -> None:
        """Ping the engine. Kill it if it has not answered for so long, or a graph holds its thread. To be called about once a second."""
        session = self._session
        if session is None or not session.is_ready:
            return
        self._look_for_stall(session)
        if time.monotonic() - self.last_beat > stall_timeout_s:
            logger.critical("%s gives no sign of life for %g s and is killed", self.name, stall_timeout_s)
            session.is_silent, session.was_suspended = True, is_suspended(session.handle.pid)
            session.handle.kill()
            return
        session.writer.put({"t": "ping"})

    def _look_for_stall(self, session: _Session) -> None:
        """Kill an engine of which a thread works for one graph for too long, as its record shows."""
        with self._lock:
            if session is not self._session or session.handle.record is None:
                return
            record, watch = session.handle.record, session.stall_watch
            sample = record.sample()
            is_idle = session.thread_clock.is_idle(session.handle.pid, sample.native_thread)
            watch.note(sample, has_answered=session.has_answered, is_idle=is_idle)
            session.has_answered = False
            num_beats = max(watch.num_same, watch.num_frozen)
            has_stack = num_beats > ASK_BEATS and record.num_stack_bytes > session.num_stack_bytes
            if num_beats == ASK_BEATS:
                session.num_stack_bytes = record.num_stack_bytes
        if num_beats == ASK_BEATS:
            session.handle.ask_for_stack()
        session.num_with_stack = session.num_with_stack + 1 if has_stack else 0
        if num_beats < HELD_BEATS or session.num_with_stack < HELD_BEATS - ASK_BEATS:
            return
        held_by = sample.at_work if watch.num_frozen >= HELD_BEATS else {sample.graph_id or 0}
        stream_ids = [stream_id_of(graph_id) for graph_id in held_by]
        if watch.num_frozen < HELD_BEATS and watch.is_held_up:
            logger.critical("%s: a thread that works for no graph holds the interpreter; it is killed", self.name)
            session.is_silent = True
            session.handle.kill()
        elif len(stream_ids) > 1:
            logger.critical(
                "%s: a thread holds the interpreter, and %d graphs are at work; it is killed", self.name, len(held_by)
            )
            session.is_silent = True
            session.handle.kill()
        elif stream_ids[0] is not None:
            self._kill_held(session, stream_ids[0])

    def _kill_held(self, session: _Session, stream_id: int) -> None:
        """Kill an engine whose thread does not come back from its work for a graph."""
        if session.held_by is None:
            logger.critical("%s: work for one graph holds a thread and does not stop; it is killed", self.name)
            session.held_by = stream_id
            session.handle.kill()

    def close(self) -> None:
        """End the engine. Returns at once; see `join`."""
        self._is_closing.set()
        with self._lock:
            session = self._session
        if session is not None:
            session.shut()

    def join(self, timeout_s: float = CLOSE_TIMEOUT_S + 5.0) -> None:
        """Wait until the engine has ended, after `close`."""
        if self._thread.ident is not None and threading.current_thread() is not self._thread:
            self._thread.join(timeout_s)

    # -- the thread of the link

    def _main(self) -> None:
        while not self._is_closing.is_set():
            end, blames_graph = self._run_engine()
            if self._is_closing.is_set():
                break
            if self.num_failed >= MAX_FAILED_STARTS:
                logger.critical("%s did not start %d times in a row; giving up", self.name, self.num_failed)
                break
            if blames_graph:
                logger.error("%s: its process %s; starting another", self.name, end)
                continue
            self._num_deaths += 1
            pause_s = min(FIRST_PAUSE_S * 2 ** (self._num_deaths - 1), MAX_PAUSE_S)
            reason = f"its process {end}" if self.error is None else f"it did not start: {self.error}"
            logger.error("%s: %s; starting another in %g s", self.name, reason, pause_s)
            self._is_closing.wait(pause_s)
        self.state = EngineState.DEAD
        self._owner.on_end(self)

    def _run_engine(self) -> tuple[EngineEnd, bool]:
        """Run one engine until its end; returns how it ended, and whether a graph was the cause."""
        self.error = None
        try:
            session = _Session(self.launcher.launch())
        except Exception as error:  # of any launcher; the next try may succeed
            if not isinstance(error, (RtlangError, OSError)):
                logger.exception("%s: the launcher failed", self.name)
            self.error = error if isinstance(error, RtlangError) else EngineDeadError(f"{self.name}: {error}")
            self.num_failed += 1
            end = EngineEnd()
            self._owner.on_death(self, was_ready=False, end=end)
            return end, False
        is_first = not self.ready  # later engines have streams to continue
        session.writer.put({"t": "config", "settings": asdict(self.config), "preloads": is_first})
        with self._lock:
            self._session = session
        if self._is_closing.is_set():
            session.shut()
        for message in read_messages(session.handle.connection):
            try:
                self._take(session, message)
            except Exception:  # one graph must not end the others
                logger.exception("a message of %s failed: %s", self.name, message.get("t"))
        return self._bury(session)

    def _take(self, session: _Session, message: Message) -> None:
        match message["t"]:
            case "ready":
                self.ready = message
                session.ready_since = self.last_beat = time.monotonic()
                with self._lock:
                    session.is_ready = True
                self.num_failed, self.state = 0, EngineState.READY
                self._owner.on_ready(self)
            case "failed":
                self.error = _error_of(message)
            case "pong":
                session.has_answered = True
                self.last_beat = max(self.last_beat, time.monotonic() - message["age"])
            case "reply":
                _settle(session, message)
            case "stalled":
                self._owner.on_message(self, message)
                if message["is_held"]:
                    self._kill_held(session, message["s"])
            case _:
                self._owner.on_message(self, message)

    def _bury(self, session: _Session) -> tuple[EngineEnd, bool]:
        """Handle the end of an engine; see `_run_engine`."""
        with self._lock:
            self._session = None
            calls = list(session.calls.values())
        if session.is_ready and time.monotonic() - session.ready_since > STABLE_S:
            self._num_deaths = 0
        if session.is_ready:
            self._owner.on_lost(self)
            self.state = EngineState.RESTARTING
            if not self._is_closing.is_set():
                self.num_restarts += 1
        session.writer.close()
        session.handle.connection.close()
        for call in calls:
            if call.set_running_or_notify_cancel():
                call.set_exception(EngineDeadError("the engine's process has ended"))
        if session.is_ready:
            end = _end_of(session, _exit_code(session.handle, CODE_TIMEOUT_S))
            # Its graphs go on elsewhere while the process ends.
            blames_graph = self._owner.on_death(self, was_ready=True, end=end)
            _reap(session.handle)
        else:
            end, blames_graph = _end_of(session, _reap(session.handle)), False
            self.num_failed += 1
            self.error = self.error or EngineDeadError(f"its process {end}")
            self._owner.on_death(self, was_ready=False, end=end)
        if session.handle.record is not None:
            session.handle.record.close()
        return end, blames_graph


def ask_any(
    links: Iterable[EngineLink],
    method: str,
    args: Any,
    timeout_s: float = CALL_TIMEOUT_S,
    *,
    principal: Principal = LOCAL,
    price: float = 0.0,
    near: bytes | None = None,
) -> Any:
    """Call a method of a ready engine, first of the one that gave a sign of life last. If it ends, or does not answer within PATIENCE_S,
    another one is called as well, and the first answer counts.

    Args:
        near: calls with the same one begin with the same engine while it is ready.
    Raises:
        EngineDeadError: no engine is running, or none answers.
    """
    waiting = sorted((link for link in links if link.is_ready), key=lambda link: link.last_beat)
    if near is not None:  # rendezvous hashing: an engine that comes or goes moves few of them
        waiting.sort(key=lambda link: hashlib.blake2b(near + link.name.encode(), digest_size=8).digest())
    timeout_s += _SLACK * price
    patience_s = PATIENCE_S + _SLACK * price
    end, calls = time.monotonic() + timeout_s, set[Future[Any]]()
    error = EngineDeadError("the engine is not running; try again later")
    try:
        while waiting or calls:
            if waiting:
                try:
                    calls.add(waiting.pop().call(method, args, principal=principal, price=price))
                except EngineDeadError as raised:
                    error = raised
            left_s = max(0.0, end - time.monotonic())
            done, calls = _wait(calls, min(patience_s, left_s) if waiting else left_s)
            for call in done:
                try:
                    return call.result()
                except EngineDeadError as raised:
                    error = raised
            if not done and time.monotonic() >= end:
                raise EngineDeadError(f"the engine did not answer within {timeout_s:g} s")
    finally:
        for call in calls:
            call.cancel()
    raise error


def _wait(calls: set[Future[Any]], timeout_s: float) -> tuple[set[Future[Any]], set[Future[Any]]]:
    """Wait for one of some calls: those that are done, and the others.

    Raises:
        AbortedError: nobody waits any more for the job that this thread runs.
    """
    end = time.monotonic() + timeout_s
    while True:
        left_s = end - time.monotonic()
        done, others = wait(calls, max(0.0, min(left_s, _POLL_S)), FIRST_COMPLETED)
        if done or left_s <= _POLL_S or not calls:
            for call in done:
                if isinstance(call, _Call) and call.work is not None:
                    note_work_elsewhere(*call.work)
            return done, others
        if is_unwanted():
            raise AbortedError("the request was cancelled")


def ask_all(links: Iterable[EngineLink], method: str, timeout_s: float) -> dict[str, Any]:
    """Call a method without arguments of every ready engine; the values of those that answer in time, by name."""
    calls = {}
    for link in links:
        with contextlib.suppress(EngineDeadError):
            calls[link.name] = link.call(method, None)
    end, values = time.monotonic() + timeout_s, dict[str, Any]()
    for name, call in calls.items():
        with contextlib.suppress(EngineDeadError, TimeoutError):
            values[name] = call.result(max(0.0, end - time.monotonic()))
    return values


def _end_of(session: _Session, code: int | None) -> EngineEnd:
    num_oom_kills = count_oom_kills() - session.num_oom_kills
    record, held_by = session.handle.record, session.held_by
    end = end_of(
        code,
        record,
        is_silent=session.is_silent or held_by is not None,
        num_oom_kills=num_oom_kills,
        was_suspended=session.was_suspended,
    )
    if held_by is None:
        return end
    return replace(end, event="was killed, because work for one graph held its thread", held_by=held_by)


def _reap(handle: EngineHandle) -> int | None:
    """Wait for the end of an engine, and kill it if that takes too long; returns its exit code, None if it has none even then."""
    code = _exit_code(handle, CLOSE_TIMEOUT_S)
    if code is None:
        handle.kill()
        code = _exit_code(handle, CLOSE_TIMEOUT_S)
    return code


def _exit_code(handle: EngineHandle, timeout_s: float) -> int | None:
    try:
        return handle.wait(timeout_s)
    except TimeoutError:
        return None


class _Call(Future[Any]):
    """A call of an engine. `work`: what it took there, once it has answered."""

    work: tuple[WorkKind, float, float] | None = None


def _settle(session: _Session, message: Message) -> None:
    call = session.calls.pop(message["q"], None)
    if call is None or not call.set_running_or_notify_cancel():
        return
    if isinstance(call, _Call) and "work" in message:
        kind, seconds, waited_s = message["work"]
        call.work = WorkKind(kind), seconds, waited_s
    if "code" in message:
        call.set_exception(_error_of(message))
    else:
        call.set_result(message["value"])


def _made(item: Message | Callable[[], Message]) -> Message:
    return item() if callable(item) else item


def _error_of(message: Message) -> RtlangError:
    return rebuild(message["code"], message["message"], message["facts"])
