"""Runs one program over many inputs.

Plain bodies run one after the other in a worker thread; each submits its graph without waiting for it. Another worker starts only when
a body is about to wait at a graph break, or is slow itself. Coroutine bodies run concurrently in one event loop. Each run has its own
session, so a failure of one does not affect the others.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from rtlang.contract.errors import OverloadError, ParameterError
from rtlang.contract.process.coroutines import run_coroutine
from rtlang.contract.service.target import Target
from rtlang.lang.execution.program_run import ProgramRun
from rtlang.lang.execution.result import Result
from rtlang.lang.execution.run import resolve_runtime, run_async
from rtlang.lang.execution.shared_pieces import SharedPieces
from rtlang.lang.program_state.body import Body
from rtlang.lang.sessions.interruptible_condition import InterruptibleCondition
from rtlang.lang.sessions.program_options import ProgramOptions
from rtlang.lang.sessions.session import MAX_OVERLOAD_WAIT_S

MAX_THREADS = 64
MAX_COROUTINES = 10_000
MAX_IDLE_RETRIES = 3
STALL_S = 0.25  # start another worker if no body was started for this long

Report = Callable[[int, int], None]


def run_batch(
    body: Body,
    inputs: Iterable[Mapping[str, Any]],
    options: ProgramOptions,
    *,
    progress: bool | Report,
    max_threads: int,
) -> list[Result]:
    """Run once per input. See `Program.run_batch`."""
    if isinstance(max_threads, bool) or not isinstance(max_threads, int) or max_threads < 1:
        raise ParameterError("max_threads", max_threads, "expected an integer of at least 1")
    target = resolve_runtime(options.runtime)
    bodies = []
    for index, given in enumerate(inputs):
        if not isinstance(given, Mapping):
            raise ParameterError(f"inputs[{index}]", given, "expected a mapping of argument names to values")
        try:
            bodies.append(body.bound((), given))
            bodies[-1].check_complete()
        except TypeError as error:
            raise TypeError(f"inputs[{index}]: {error}") from None
    with _reporter(progress, body.name, len(bodies)) as report:
        shared = SharedPieces([(each.args, dict(each.kwargs)) for each in bodies])
        if body.is_async:
            return run_coroutine(lambda: _run_coroutines(bodies, target, options, shared, report))
        return _ThreadedBatch(bodies, target, options, shared, max_threads).run(report)


class _ThreadedBatch:
    """Runs plain bodies. The caller's thread collects results, workers record and submit; they share one condition variable."""

    def __init__(
        self, bodies: list[Body], target: Target, options: ProgramOptions, shared: SharedPieces, max_threads: int
    ) -> None:
        self._bodies, self._target, self._options, self._max_threads = bodies, target, options, max_threads
        self._shared = shared
        self._has_deadline = options.run.deadline_s is not None
        self._condition = InterruptibleCondition()
        self._runs: dict[int, ProgramRun] = {}  # started and not yet collected
        self._ended: deque[int] = deque()  # runs whose body and graph have ended, not yet collected
        self._is_half_ended: set[int] = set()
        self._next = self._num_threads = self._num_ended = 0
        self._is_stopped = False

    def run(self, report: Report) -> list[Result]:
        results: list[Result | None] = [None] * len(self._bodies)
        num_done = 0
        report(0, len(results))
        self._add_thread()
        try:
            while num_done < len(results):
                for index in self._wait_for_ended():
                    with self._condition.lock:
                        run = self._runs.pop(index)
                    result = results[index] = run.result()
                    num_done += 1
                    report(num_done, len(results))
                    if self._options.on_error == "raise" and result.error is not None:
                        raise result.error
        finally:
            self._stop()
        return [result for result in results if result is not None]

    def _wait_for_ended(self) -> list[int]:
        """Wait for at least one run whose body and graph have ended; returns the indices."""
        while True:
            with self._condition.lock:
                if self._ended:
                    ended = list(self._ended)
                    self._ended.clear()
                    return ended
                begun, has_more = self._next, self._next < len(self._bodies)
                running = (run.session for run in self._runs.values() if run.session.final is None)
                sessions = list(running) if self._has_deadline else []
                timeouts = [session.remaining_s() or 0.0 for session in sessions] + ([STALL_S] if has_more else [])
            self._condition.wait(lambda: bool(self._ended), min(timeouts, default=None))
            has_stalled = has_more and self._next == begun and not self._ended
            for session in sessions:
                session.expire()
            if has_stalled:
                self._add_thread()

    def _stop(self) -> None:
        with self._condition.lock:
            self._is_stopped = True
            sessions = [run.session for run in self._runs.values()]
            self._condition.notify_all()
        for session in sessions:
            session.cancel()

    def _add_thread(self) -> None:
        """Start another worker if bodies are left, because one is about to wait or is slow."""
        if self._next >= len(self._bodies):  # never falls, so it needs no lock
            return
        with self._condition.lock:
            if self._is_stopped or self._next >= len(self._bodies) or self._num_threads >= self._max_threads:
                return
            self._num_threads += 1
        threading.Thread(target=self._work, name="rtlang-batch", daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._condition.lock:
                if self._is_stopped or self._next >= len(self._bodies):
                    self._num_threads -= 1
                    return
                index = self._next
                self._next += 1
                run = self._runs[index] = ProgramRun(
                    self._bodies[index],
                    self._target,
                    self._options,
                    share_of=self._shared.of_run(index),
                    on_wait=self._add_thread,
                    on_end=partial(self._graph_ended, index),
                    on_overload=self._room_after(),
                )
            run.execute()
            with self._condition.lock:
                self._half_ended(index)

    def _graph_ended(self, index: int) -> None:
        with self._condition.lock:
            self._num_ended += 1
            self._half_ended(index)

    def _half_ended(self, index: int) -> None:
        if index in self._is_half_ended:
            self._is_half_ended.remove(index)
            self._ended.append(index)
        else:
            self._is_half_ended.add(index)
        self._condition.notify_all()

    def _room_after(self) -> Callable[[OverloadError], bool]:
        """A function that waits while the queue is full, as long as runs of this batch end, or else a few times."""
        last_ended, num_idle = -1, 0

        def wait(error: OverloadError) -> bool:
            nonlocal last_ended, num_idle
            with self._condition.lock:
                num_idle = num_idle + 1 if self._num_ended == last_ended else 0
                last_ended = self._num_ended
                if num_idle > MAX_IDLE_RETRIES or self._is_stopped:
                    return False
            seen = last_ended
            self._condition.wait(
                lambda: self._is_stopped or self._num_ended > seen, min(error.retry_after_s, MAX_OVERLOAD_WAIT_S)
            )
            return True

        return wait


async def _run_coroutines(
    bodies: list[Body],
    target: Target,
    options: ProgramOptions,
    shared: SharedPieces,
    report: Report,
) -> list[Result]:
    room = asyncio.Semaphore(MAX_COROUTINES)
    num_done = 0
    report(0, len(bodies))

    async def one(index: int, body: Body) -> Result:
        nonlocal num_done
        async with room:
            share_of = shared.of_run(index)
            result = await run_async(body, target, options, on_overload=lambda _: True, share_of=share_of)
        num_done += 1
        report(num_done, len(bodies))
        return result

    tasks = [asyncio.ensure_future(one(index, body)) for index, body in enumerate(bodies)]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def _reporter(progress: bool | Report, name: str, total: int) -> Iterator[Report]:
    if callable(progress):
        yield progress
        return
    if not progress:
        yield lambda done, total: None
        return
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        yield lambda done, total: None
        return
    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task(name, total=total)
        yield lambda done, total: bar.update(task, completed=done)
