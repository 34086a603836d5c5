"""Runs a program once per row while the rows come: starts runs, follows the room in the engine, and hands over what has ended.

Plain bodies run one after the other in a worker thread; each submits its graph without waiting for it. Another worker starts only when
a body is about to wait at a graph break, or is slow itself. Coroutine bodies run concurrently in one event loop. Each run has its own
session, so a failure of one does not affect the others.

Rows are started until the target's queue is full; then none starts before a run has ended. Rows that were read and not handed over are
bounded, so a slow reader of the results stops the reading of rows.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any

from rtlang.compiler.context import ShareOf
from rtlang.contract.errors import OverloadError
from rtlang.contract.service.target import Target
from rtlang.lang.execution.program_run import ProgramRun
from rtlang.lang.execution.result import RowResult
from rtlang.lang.execution.run import origin_of
from rtlang.lang.program_state.body import Body
from rtlang.lang.rows.row_bases import RowBases
from rtlang.lang.rows.shared_pieces import SharedPieces
from rtlang.lang.sessions.interruptible_condition import InterruptibleCondition
from rtlang.lang.sessions.program_options import ProgramOptions
from rtlang.lang.sessions.session import MAX_OVERLOAD_WAIT_S

MAX_THREADS = 64
MAX_RUNNING = 4096
"""Runs of plain bodies at once: enough for every engine, and their memory is bounded."""
MAX_COROUTINES = 10_000
MAX_IDLE_RETRIES = 3
STALL_S = 0.25  # start another worker if no body was started for this long
NUM_FIRST = 64
FIRST_S = 0.01
"""The first row starts once NUM_FIRST rows were read, or this many seconds later, so that it knows which text others share with it."""
ROOM_PART = 16
"""Reading goes on once this part of `max_in_flight` is free: a thread that wakes for every row costs more than the row."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row that was read; with `is_checked` its arguments are those of the function."""

    index: int
    arguments: Mapping[str, Any]
    body: Body
    share_of: ShareOf
    is_checked: bool


class RowRuns:
    """The runs of one program over rows. Thread-safe.

    One party adds rows, one takes results, and the threads or the event loop of this object run the bodies in between.

    Args:
        body: what every row adds its arguments to.
        max_in_flight: number of rows that may be read and not handed over; None for no limit.
        max_threads: number of plain bodies that may wait at graph breaks at the same time.
        in_order: whether results are handed over in the order of the rows instead of the order of their ends.
    Raises:
        ParameterError: a result that rows should take over cannot be taken over.

    Attributes:
        num_read, num_taken: number of rows that were added and handed over.
        has_all: whether no more rows will be added.
    """

    def __init__(
        self,
        body: Body,
        target: Target,
        options: ProgramOptions,
        *,
        max_in_flight: int | None = None,
        max_threads: int = MAX_THREADS,
        in_order: bool = False,
    ) -> None:
        self._body, self._target, self._options = body, target, options
        self._max_in_flight, self._max_threads, self._in_order = max_in_flight, max_threads, in_order
        self._shared, self._bases = SharedPieces(max_in_flight), RowBases(options, target)
        self._has_deadline = options.run.deadline_s is not None
        self.num_read = self.num_taken = 0
        self.has_all = False
        self._lock = threading.RLock()  # guards all state
        self._ends = InterruptibleCondition()  # results to take, or none will come
        self._room = InterruptibleCondition()  # room to read
        self._work = InterruptibleCondition()  # rows to start, or room in the target's queue
        self._stopped = InterruptibleCondition()
        self._rows: deque[Row] = deque()  # read and not started
        self._runs: dict[int, tuple[Row, ProgramRun]] = {}  # started; not ended
        self._is_half_ended: set[int] = set()  # of these, where the body or the graph has ended
        self._ended: OrderedDict[int, tuple[Row, ProgramRun]] = OrderedDict()
        self._num_begun = self._num_ended = self._num_threads = self._num_idle = self._num_refused = 0
        self._full_until = 0.0
        self._lacks_thread = False  # all workers may be waiting at breaks
        self._is_stopped = False
        self._error: BaseException | None = None

    # Rows

    @property
    def is_async(self) -> bool:
        """Whether the body is a coroutine function."""
        return self._body.is_async

    def add(self, arguments: Mapping[str, Any], body: Body | None = None, *, starts: bool = True) -> None:
        """Add the next row.

        Args:
            body: has its arguments, if they were checked.
            starts: whether the row may start now; otherwise `start` is called after the last row.
        """
        bound, is_checked = self._body, body is not None
        if body is None:
            body = Body(bound.function, bound.args, {**bound.kwargs, **arguments}, bound.receiver)
        share_of = self._shared.add((body.args, dict(body.kwargs)))
        with self._lock:
            if self._is_stopped:
                return
            self._rows.append(Row(self.num_read, arguments, body, share_of, is_checked))
            self.num_read += 1
            needs_thread = not self.is_async and self._num_idle == 0 and (self._lacks_thread or self._num_threads == 0)
        if not starts:
            return
        if needs_thread:
            self._add_thread()
        self._work.notify_all()

    def end_rows(self) -> None:
        """No more rows will be added."""
        with self._lock:
            self.has_all = True
        self._work.notify_all()
        self._ends.notify_all()

    def fail(self, error: BaseException) -> None:
        """The rows ended with an error: cancel the runs that have not ended, and raise it after the results of the others."""
        with self._lock:
            if self._is_stopped or self._error is not None:
                return
            self._error = error
            self.has_all = True
            self._rows.clear()
        self._cancel_runs()

    def has_room(self) -> bool:
        """Whether another row may be added, or reading should end."""
        most = self._max_in_flight
        return self._is_stopped or most is None or self.num_read - self.num_taken < most

    def wait_for_room(self) -> bool:
        """Block until a row may be added; returns whether it is wanted."""
        if not self.has_room():
            self._room.wait(self._has_much_room)
        return not self._is_stopped

    async def wait_for_room_async(self) -> bool:
        """`wait_for_room` for coroutines."""
        if not self.has_room():
            await self._room.wait_async(self._has_much_room)
        return not self._is_stopped

    def _has_much_room(self) -> bool:
        most = self._max_in_flight
        if self._is_stopped or most is None:
            return True
        return self.num_read - self.num_taken <= most - max(1, most // ROOM_PART)

    # Results

    def next(self) -> RowResult | None:
        """Wait for the next result; None after the last one. Raises the error of the rows."""
        try:
            while True:
                found = self._take()
                if found is not None or self._is_over():
                    return found
                begun, timeout_s = self._num_begun, self._timeout_s()
                self._ends.wait(self._has_news, timeout_s)
                self._look_after(begun)
        except BaseException:
            self.stop()
            raise

    async def next_async(self) -> RowResult | None:
        """`next` for coroutines."""
        try:
            while True:
                found = self._take()
                if found is not None or self._is_over():
                    return found
                begun, timeout_s = self._num_begun, self._timeout_s()
                await self._ends.wait_async(self._has_news, timeout_s)
                self._look_after(begun)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Cancel all runs, and start no more. Idempotent."""
        with self._lock:
            if self._is_stopped:
                return
            self._is_stopped = True
            self._rows.clear()
            self._ended.clear()
        self._cancel_runs()
        self._room.notify_all()
        self._stopped.notify_all()

    async def wait_stopped_async(self) -> None:
        """Wait until `stop` is called."""
        await self._stopped.wait_async(lambda: self._is_stopped)

    def _take(self) -> RowResult | None:
        with self._lock:
            if self._in_order:
                found = self._ended.pop(self.num_taken, None)
            else:
                found = self._ended.popitem(last=False)[1] if self._ended else None
            if found is None:
                return None
            self.num_taken += 1
        if self._max_in_flight is not None:
            self._room.notify_all()
        row, run = found
        return run.row_result(row.index, row.arguments)

    def _has_news(self) -> bool:
        return self._is_ready() or self._is_last()

    def _is_ready(self) -> bool:
        return self.num_taken in self._ended if self._in_order else bool(self._ended)

    def _is_last(self) -> bool:
        return self._is_stopped or self._error is not None or (self.has_all and self.num_taken == self.num_read)

    def _is_over(self) -> bool:
        """Whether no result is left. Raises the error of the rows."""
        with self._lock:
            if self._is_ready() or not self._is_last():
                return False
            if self._error is not None and not self._is_stopped:
                raise self._error
            return True

    def _timeout_s(self) -> float | None:
        """When to look after runs again: a deadline passes, or rows wait for a thread."""
        with self._lock:
            timeouts = [STALL_S] if self._rows and not self.is_async else []
            if self._has_deadline:  # the earliest one, as all have equally long
                running = (run.session for _, run in self._runs.values() if run.session.final is None)
                timeouts += [session.remaining_s() or 0.0 for session in running][:1]
        return min(timeouts, default=None)

    def _look_after(self, begun: int) -> None:
        if self._has_deadline:
            with self._lock:
                sessions = [run.session for _, run in self._runs.values()]
            for session in sessions:
                session.expire()
        if not self.is_async and self._rows and self._num_begun == begun and not self._is_ready():
            self._add_thread()

    def _cancel_runs(self) -> None:
        with self._lock:
            sessions = [run.session for _, run in self._runs.values()]
        for each in (self._work, self._ends):
            each.notify_all()
        for session in sessions:
            session.cancel()

    # Runs

    def start(self) -> None:
        """Run the bodies on threads."""
        if self.is_async:
            context = copy_context()
            work = partial(context.run, asyncio.run, self.run_coroutines())
            threading.Thread(target=work, name="rtlang-batch", daemon=True).start()
        elif self._rows:
            self._add_thread()

    async def run_coroutines(self) -> None:
        """Run coroutine bodies in the running event loop until all have ended or are cancelled."""
        tasks: set[asyncio.Task[None]] = set()

        def may_begin() -> bool:
            may = self._may_begin() and time.monotonic() >= self._full_until
            return self._is_stopped or may or (self.has_all and not self._rows)

        try:
            await self._work.wait_async(self._knows_others, FIRST_S)
            while True:
                await self._work.wait_async(may_begin, self._full_s())
                with self._lock:
                    if self._is_stopped or (self.has_all and not self._rows):
                        break
                    row, run = self._begin() if may_begin() else (None, None)
                if row is not None and run is not None:
                    task = asyncio.ensure_future(self._run_coroutine(row, run))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)
                    if self._num_begun % NUM_FIRST == 0:
                        await asyncio.sleep(0)  # let them begin
            await self._work.wait_async(lambda: self._is_stopped or not tasks)
        except Exception as error:  # the options of the runs do not suit the target
            self.fail(error)
        finally:
            left = list(tasks)
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    async def _run_coroutine(self, row: Row, run: ProgramRun) -> None:
        try:
            if row.is_checked or run.check():
                await run.execute_async()
        finally:
            self._half_end(row.index)

    def _full_s(self) -> float | None:
        """Seconds until the target may have room for more rows; None if it has."""
        left = self._full_until - time.monotonic()
        return left if left > 0 else None

    def _add_thread(self) -> None:
        """Start another worker for rows that wait, because the others are about to wait or are slow."""
        with self._lock:
            if not self._rows:
                self._lacks_thread = not self.has_all
                return
            is_enough = self._num_idle > 0 or self._num_refused > 0 or self._num_threads >= self._max_threads
            if self._is_stopped or is_enough:
                return
            self._num_threads += 1
            self._lacks_thread = False
        threading.Thread(target=self._run_bodies, name="rtlang-batch", daemon=True).start()

    def _run_bodies(self) -> None:
        try:
            self._work.wait(self._knows_others, FIRST_S)
            while True:
                row, run = self._next_run()
                if row is None or run is None:
                    return
                if row.is_checked or run.check():
                    run.execute()
                self._half_end(row.index)
        except Exception as error:  # the options of the runs do not suit the target
            self.fail(error)

    def _next_run(self) -> tuple[Row, ProgramRun] | tuple[None, None]:
        """Wait for a row and create its run. None, which ends the worker, if no more rows come or another worker waits for them."""
        is_idle = False
        while True:
            with self._lock:
                self._num_idle -= is_idle
                is_over = self._is_stopped or (self.has_all and not self._rows)
                if is_over or (self._num_idle and not self._may_begin()):
                    self._num_threads -= 1
                    return None, None
                if self._may_begin():
                    return self._begin()
                self._num_idle += 1
                is_idle = True
            self._work.wait(self._has_work)

    def _begin(self) -> tuple[Row, ProgramRun]:
        """Create the run of the next row. The lock is held, so that `stop` sees it."""
        row = self._rows.popleft()
        options = self._bases.options_of(row.index, row.body)
        run = ProgramRun(
            row.body,
            self._target,
            options,
            origin=origin_of(row.body, options),
            share_of=row.share_of,
            on_wait=None if self.is_async else self._add_thread,
            on_end=partial(self._graph_ended, row.index),
            on_overload=self._noted_overload if self.is_async else self._room_after(),
        )
        self._runs[row.index] = row, run
        self._num_begun += 1
        return row, run

    def _may_begin(self) -> bool:
        most = MAX_COROUTINES if self.is_async else MAX_RUNNING
        return bool(self._rows) and not self._num_refused and len(self._runs) < most

    def _has_work(self) -> bool:
        return self._is_stopped or self._may_begin() or (self.has_all and not self._rows)

    def _knows_others(self) -> bool:
        first = NUM_FIRST if self._max_in_flight is None else min(NUM_FIRST, self._max_in_flight)
        return self._is_stopped or self.has_all or self.num_read >= first

    def _graph_ended(self, index: int) -> None:
        with self._lock:
            self._num_ended += 1
            self._full_until = 0.0
        self._half_end(index)
        if self._num_refused:
            self._work.notify_all()

    def _half_end(self, index: int) -> None:
        """The body or the graph of a run has ended. The second of them ends the run."""
        with self._lock:
            if index not in self._is_half_ended:
                self._is_half_ended.add(index)
                return
            self._is_half_ended.remove(index)
            ended = self._runs.pop(index)
            if self._is_stopped or self._error is not None:
                return
            self._ended[index] = ended
        self._ends.notify_all()
        if self.is_async or (self._rows and self._num_idle):
            self._work.notify_all()

    # A full queue

    def _noted_overload(self, error: OverloadError) -> bool:
        self._full_until = time.monotonic() + min(error.retry_after_s, MAX_OVERLOAD_WAIT_S)
        return not self._is_stopped

    def _room_after(self) -> Callable[[OverloadError], bool]:
        """A function that waits while the queue is full, as long as runs of this batch end, or else a few times."""
        last_ended, num_idle = -1, 0

        def wait(error: OverloadError) -> bool:
            nonlocal last_ended, num_idle
            with self._lock:
                num_idle = num_idle + 1 if self._num_ended == last_ended else 0
                last_ended = seen = self._num_ended
                if num_idle > MAX_IDLE_RETRIES or self._is_stopped:
                    return False
                self._num_refused += 1
            try:
                self._work.wait(
                    lambda: self._is_stopped or self._num_ended > seen, min(error.retry_after_s, MAX_OVERLOAD_WAIT_S)
                )
            finally:
                with self._lock:
                    self._num_refused -= 1
                self._work.notify_all()
            return True

        return wait
