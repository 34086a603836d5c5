"""The engine thread: runs commands and timers between steps, and ends in an orderly way.

Commands are callables run between steps in order; every command accepted by `post` is run. When the loop ends, because it was stopped or
the engine failed, `on_end` is called last, once, on this thread.
"""

from __future__ import annotations

import heapq
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from rtlang.contract.errors import EngineDeadError
from rtlang.contract.process.current_work import CurrentWork
from rtlang.contract.process.thread_watch import ThreadWatch
from rtlang.runtime.process import process_settings
from rtlang.runtime.process.turn_work import TurnWork
from rtlang.runtime.process.work_monitor import Stall, WorkMonitor

if TYPE_CHECKING:  # they load torch, which a runtime without a model does not need
    from rtlang.engine.engine import Engine
    from rtlang.engine.requests.request import RequestOutput

logger = logging.getLogger(__name__)

MAX_WAIT_S = 3600.0
"""Maximum time of one wait, in seconds; condition variables cannot wait arbitrarily long."""

MAX_COMMANDS = 64
"""Commands of one turn at most: one client that sends many does not hold up the steps of the others. Clients take turns."""
COMMAND_US = 30.0
"""Price of a command, apart from the work that it counts itself."""

Command = Callable[[], None]
_T = TypeVar("_T")


class Timer:
    """A command scheduled for a time of the clock. Used on the engine thread only."""

    __slots__ = ("_loop", "command")

    def __init__(self, loop: EngineLoop, command: Command) -> None:
        self._loop = loop
        self.command: Command | None = command

    def cancel(self) -> None:
        """Cancel the timer and drop its command. Idempotent."""
        if self.command is not None:
            self.command = None
            self._loop._timer_cancelled()


class EngineLoop:
    """Owns the engine thread.

    Args:
        make_engine: builds the engine on the engine thread.
        on_break: called when the engine fails; queued commands run afterwards.
        on_end: called once when the loop ends, with the exception if the engine failed.
        clock: seconds, monotonic.
        on_step: called with the outputs, start and end time of each step.
        watch: times every command and step; for debugging.
        idle_actions: pairs of seconds, in ascending order, and what to do once when nothing was computed for so long.
        on_stall: called on another thread when work holds the engine thread for too long; see `WorkMonitor`.

    Attributes:
        turn: the work of requests in the present turn. A turn that is full runs no more commands; used on the engine thread only.
    """

    def __init__(
        self,
        make_engine: Callable[[Callable[[], None]], Engine],
        on_break: Callable[[], None],
        on_end: Callable[[BaseException | None], None],
        clock: Callable[[], float] = time.monotonic,
        on_step: Callable[[Engine, list[RequestOutput], float, float], None] | None = None,
        watch: ThreadWatch | None = None,
        idle_actions: Sequence[tuple[float, Callable[[Engine], None]]] = (),
        on_stall: Callable[[Stall], None] | None = None,
    ) -> None:
        self._idle_actions, self._num_idle_actions = tuple(idle_actions), len(idle_actions)  # the number of those done
        self._last_step_end = 0.0
        self.clock = clock
        self._watch = watch
        self._call: Callable[[Command], object] = _call if watch is None else watch.call
        self._make_engine, self._on_break, self._on_end = make_engine, on_break, on_end
        self._on_step, self._on_stall = on_step, on_stall
        self._commands: dict[Hashable, deque[Command]] = {}  # by client, the next one first; no empty queues
        self._later: dict[Hashable, deque[Command]] = {}  # likewise, put off; used on the engine thread only
        self.turn = TurnWork()
        self._timers: list[tuple[float, int, Timer]] = []
        self._num_timers = self._num_cancelled = 0
        self._condition = threading.Condition()
        self._is_stopping = self._is_ending = False
        self._cause: BaseException | None = None
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._main, name="rtlang-engine", daemon=True)
        self._engine: Engine | None = None
        self._is_woken = False

    @property
    def engine(self) -> Engine:
        """The engine; available once `start` has returned."""
        assert self._engine is not None
        return self._engine

    @property
    def work(self) -> CurrentWork:
        """The record of the thread's work; available once `start` has returned."""
        return self.engine.work

    @property
    def is_current_thread(self) -> bool:
        """Whether the caller runs on the engine thread."""
        return threading.current_thread() is self._thread

    def start(self) -> None:
        """Start the thread, unless it was started, and wait until the engine is ready.

        Raises:
            Any exception raised by `make_engine`.
        """
        if self._thread.ident is None:
            self._thread.start()
        self._started.wait()
        if self._engine is None and self._cause is not None:
            raise self._cause

    def post(self, command: Command, client: Hashable = "") -> None:
        """Queue a command for the engine thread. Commands of one client run in order; clients take turns.

        Raises:
            EngineDeadError: the loop has ended.
        """
        with self._condition:
            if self._cause is not None or self._is_stopping:
                raise EngineDeadError(f"the engine has stopped: {self._cause or 'it was closed'}")
            self._commands.setdefault(client, deque()).append(command)
            self._condition.notify()

    def _next_command(self) -> Command | None:
        """Take the next command, in turn from each client; None if there is none."""
        with self._condition:
            if not self._commands:
                return None
            client = next(iter(self._commands))
            queue = self._commands.pop(client)
            command = queue.popleft()
            if queue:
                self._commands[client] = queue
            return command

    def fail(self, error: EngineDeadError) -> None:
        """End the engine between two steps with this error, unless it has ended."""

        def act() -> None:
            if self._cause is None:
                raise error

        with suppress(EngineDeadError):
            self.post(act)

    def run(self, command: Callable[[], _T]) -> _T:
        """Run a command on the engine thread and return what it returns, or raise what it raises.

        Raises:
            EngineDeadError: the loop has ended.
        """
        if self.is_current_thread:
            return command()
        done = Future[_T]()

        def act() -> None:
            try:
                done.set_result(command())
            except BaseException as error:
                done.set_exception(error)

        self.post(act)
        return done.result()

    def call_at(self, when: float, command: Command) -> Timer:
        """Schedule a command for a time of the clock. Call on the engine thread only."""
        self._num_timers += 1
        timer = Timer(self, command)
        heapq.heappush(self._timers, (when, self._num_timers, timer))
        return timer

    @property
    def is_computing(self) -> bool:
        """Whether the thread works: it does not wait for commands. Callable from any thread."""
        return not self.work.sample().is_resting

    def call_later_turn(self, command: Command, client: Hashable = "") -> None:
        """Run a command in a later turn, after a step. Those of one client run in order; clients take turns. On the engine thread only."""
        self._later.setdefault(client, deque()).append(command)

    def wake(self) -> None:
        """Wake the engine thread to check for work. Callable from any thread."""
        with self._condition:
            self._is_woken = True
            self._condition.notify()

    def leave(self) -> None:
        """Ask the thread to end after the queued commands, without waiting. Idempotent."""
        with self._condition:
            self._is_stopping = True
            self._condition.notify()

    def resume(self) -> bool:
        """Take `leave` back, so that `start` waits again for an engine that is being made. Returns False once the thread has ended."""
        with self._condition:
            if self._thread.is_alive() and not self._is_ending and self._cause is None:
                self._is_stopping = False
                return True
        self.stop()
        return False

    def stop(self) -> None:
        """End the thread after the queued commands, and wait for it. Idempotent."""
        self.leave()
        if self._thread.ident is not None and not self.is_current_thread:
            self._thread.join()

    def forget_engine(self) -> bool:
        """Drop the engine and its model; returns False if the thread is still running (it may be the caller)."""
        if self._thread.is_alive():
            return False
        self._engine = None
        return True

    def _main(self) -> None:
        try:
            self._engine = self._make_engine(self.wake)
        except BaseException as error:
            self._cause = error
            self._started.set()
            return
        work = self._engine.work
        monitor = None if self._on_stall is None else WorkMonitor(work, self._on_stall)
        if monitor is not None:
            monitor.start()
        self._started.set()
        cause: BaseException | None = None
        try:
            while self._run_once():
                pass
        except BaseException as error:
            logger.critical("the engine stops: %s", error, exc_info=error)
            cause = error
            work.end_step()  # no graph is to blame
            work.rest()
            with self._condition:
                self._cause = error
            self._on_break()
        while (command := self._next_command()) is not None:  # no more can be added
            try:
                command()
            except Exception:
                logger.exception("a command failed after the engine stopped")
        self._on_end(cause)
        if monitor is not None:
            monitor.close()
        if self._watch is not None:
            self._watch.close()

    def _timer_cancelled(self) -> None:
        self._num_cancelled += 1
        if self._num_cancelled * 2 > len(self._timers):
            self._timers = [entry for entry in self._timers if entry[-1].command is not None]
            heapq.heapify(self._timers)
            self._num_cancelled = 0

    def _run_once(self) -> bool:
        engine = self._engine
        assert engine is not None
        work = engine.work
        with self._condition:
            while not (self._commands or self._later or self._is_stopping or self._is_woken or engine.has_work):
                timeout = min(self._timers[0][0] - self.clock(), MAX_WAIT_S) if self._timers else None
                if self._num_idle_actions < len(self._idle_actions):
                    left = self._last_step_end + self._idle_actions[self._num_idle_actions][0] - self.clock()
                    timeout = left if timeout is None else min(timeout, left)
                if engine.retry_at is not None:
                    left = engine.retry_at - self.clock()
                    timeout = left if timeout is None else min(timeout, left)
                if timeout is not None and timeout <= 0:
                    break
                process_settings.tidy()
                work.rest()
                self._condition.wait(timeout)
            self._is_woken = False
            is_stopping = self._is_ending = self._is_stopping
        work.begin_turn()
        self.turn.begin()
        self._run_put_off()
        num_commands = 0
        while is_stopping or not num_commands or (num_commands < MAX_COMMANDS and self.turn.has_room(COMMAND_US)):
            posted = self._next_command()
            if posted is None:
                break
            num_commands += 1
            self.turn.spend(COMMAND_US)
            work.begin(0)
            self._call(posted)
        now = self.clock()
        while self._timers and self._timers[0][0] <= now:
            timer = heapq.heappop(self._timers)[-1]
            command, timer.command = timer.command, None
            if command is not None:
                self._call(command)
        work.begin(0)
        engine.retry(now)
        if is_stopping:
            return False
        if not engine.has_work:
            self._act_if_idle(engine)
        elif self._watch is None:
            self._step(engine, now)
        else:
            self._call(partial(self._step, engine, now))
        return True

    def _run_put_off(self) -> None:
        """Run what earlier turns have put off, a command of each client in turn, until this turn is full."""
        waiting, self._later = self._later, {}
        while waiting and self.turn.has_room():
            client = next(iter(waiting))
            queue = waiting.pop(client)
            self._call(queue.popleft())
            if queue:
                waiting[client] = queue
        for client, queue in self._later.items():  # put off again
            waiting.setdefault(client, deque()).extend(queue)
        self._later = waiting

    def _act_if_idle(self, engine: Engine) -> None:
        done = self._num_idle_actions
        if done < len(self._idle_actions):
            seconds, action = self._idle_actions[done]
            if self.clock() >= self._last_step_end + seconds:
                self._num_idle_actions += 1
                action(engine)

    def _step(self, engine: Engine, now: float) -> None:
        started = time.thread_time()
        outputs = engine.step(now)
        engine.note_time(time.thread_time() - started)
        self._last_step_end, self._num_idle_actions = self.clock(), 0
        if self._on_step is not None:
            self._on_step(engine, outputs, now, self.clock())
        for output in outputs:
            output.request.spec.listener(output)


def _call(command: Command) -> None:
    command()
