"""Results of a program over rows, as they come: the iterator of `Program.as_completed`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sized
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Generic, Self

from rtlang.contract.errors import ParameterError
from rtlang.lang.execution.result import RowResult
from rtlang.lang.execution.run import resolve_runtime
from rtlang.lang.lazy_values.static_types import R_co
from rtlang.lang.program_state.body import Body
from rtlang.lang.rows.batch import check_max_threads
from rtlang.lang.rows.progress import Report, reporter
from rtlang.lang.rows.row_runs import RowRuns
from rtlang.lang.rows.row_source import Rows, check_rows, is_asynchronous, read_async, start_reading
from rtlang.lang.sessions.program_options import ProgramOptions

MAX_IN_FLIGHT = 4096
"""Rows that are read and not handed over at most, if the caller says nothing."""


class CompletedRows(Generic[R_co]):
    """Results of a program over rows as they come. Iterate once, with `for` or `async for`; nothing is read or run before.

    Leaving the iteration by an exception or `break`, `close`, and the end of a `with` block cancel the rows that still run. An iterator
    that a variable still holds after a `break` goes on until it is closed.

    Attributes:
        num_completed: number of results so far.
    """

    def __init__(
        self,
        body: Body,
        rows: Rows,
        options: ProgramOptions,
        *,
        in_order: bool,
        max_in_flight: int,
        max_threads: int,
        progress: bool | Report,
    ) -> None:
        check_rows(rows)
        check_max_threads(max_threads)
        if isinstance(max_in_flight, bool) or not isinstance(max_in_flight, int) or max_in_flight < 1:
            raise ParameterError("max_in_flight", max_in_flight, "expected an integer of at least 1")
        target = resolve_runtime(options.runtime)
        self.num_completed = 0
        self._rows, self._total = rows, len(rows) if isinstance(rows, Sized) else None
        self._raises = options.on_error == "raise"
        self._runs = RowRuns(
            body, target, options, max_in_flight=max_in_flight, max_threads=max_threads, in_order=in_order
        )
        self._is_started = self._is_closed = False
        self._tasks: list[asyncio.Task[None]] = []
        self._exits = ExitStack()
        self._report: Report = lambda done, total: None
        self._progress, self._name = progress, body.name

    def __iter__(self) -> Iterator[RowResult[R_co]]:
        return self

    def __next__(self) -> RowResult[R_co]:
        if not self._is_started:
            self._start(self._start_threads)
        if self._is_closed:
            raise StopIteration
        try:
            return self._noted(self._runs.next(), StopIteration)
        except BaseException:
            self.close()
            raise

    def __aiter__(self) -> AsyncIterator[RowResult[R_co]]:
        return self

    async def __anext__(self) -> RowResult[R_co]:
        if not self._is_started:
            self._start(self._start_tasks)
        if self._is_closed:
            raise StopAsyncIteration
        try:
            return self._noted(await self._runs.next_async(), StopAsyncIteration)
        except BaseException:
            await self.aclose()
            raise

    def close(self) -> None:
        """Cancel the rows that still run. Does not wait for bodies and for the iterator of the rows. Idempotent."""
        self._is_started = self._is_closed = True
        self._runs.stop()
        self._exits.close()

    async def aclose(self) -> None:
        """`close` for coroutines. Waits for `async def` bodies that run in this event loop."""
        self.close()
        tasks, self._tasks = self._tasks, []
        if tasks:
            await asyncio.wait(tasks)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        with suppress(Exception):  # the interpreter may be ending, or `__init__` has raised
            self.close()

    def _start(self, run: Callable[[], None]) -> None:
        self._is_started = True
        self._report = self._exits.enter_context(reporter(self._progress, self._name))
        self._report(0, self._total)
        run()

    def _start_threads(self) -> None:
        start_reading(self._rows, self._runs)
        self._runs.start()

    def _start_tasks(self) -> None:
        if is_asynchronous(self._rows):
            self._tasks.append(asyncio.ensure_future(read_async(self._rows, self._runs)))
        else:
            start_reading(self._rows, self._runs)
        if self._runs.is_async:
            self._tasks.append(asyncio.ensure_future(self._runs.run_coroutines()))

    def _noted(self, result: RowResult[R_co] | None, end: type[Exception]) -> RowResult[R_co]:
        if result is None:
            raise end
        self.num_completed += 1
        total = self._runs.num_read if self._runs.has_all else self._total
        self._report(self.num_completed, total)
        if self._raises and result.error is not None:
            raise result.error
        return result
