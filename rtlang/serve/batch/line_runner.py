"""Runs the requests of a file, a bounded number at once, each until it has an answer that is not "try again".

The same code runs batches of a server (batches.py) and `rtlang batch`, which differ in who answers a request and where results go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from rtlang.serve.batch.batch_lines import BatchLine, LineResult

MAX_RUNNING = 64
"""Requests that run at once: enough to fill the rows of an engine, and no more than a queue of a few steps."""
MAX_RUNNING_BYTES = 32 << 20
"""Bytes of the bodies of the requests that run at once; a longer one runs alone."""
MAX_REFUSALS = 100
"""Tries of a request that is refused for overload (429), about an hour; what never fits a limit ends then."""
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 30.0

Ask = Callable[[BatchLine], Awaitable[LineResult]]
Take = Callable[[BatchLine, LineResult], Awaitable[None]]


class Window:
    """Bounds the requests that run at once, in order of arrival: batches that share a window take turns. Used on one event loop.

    Args:
        max_running: requests.
        max_bytes: of their bodies.
    """

    def __init__(self, max_running: int = MAX_RUNNING, max_bytes: int = MAX_RUNNING_BYTES) -> None:
        self._max_running, self._max_bytes = max_running, max_bytes
        self.num_running = self._num_bytes = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    async def enter(self, num_bytes: int) -> None:
        """Wait for a place for a request."""
        if self._waiting or not self._fits(num_bytes):
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((num_bytes, future))
            try:
                await future
            except asyncio.CancelledError:
                if future.done() and not future.cancelled():
                    self.leave(num_bytes)  # the place came with the cancellation
                elif (num_bytes, future) in self._waiting:
                    self._waiting.remove((num_bytes, future))
                    self._serve()
                raise
        else:
            self._take(num_bytes)

    def leave(self, num_bytes: int) -> None:
        """Give a place back."""
        self.num_running -= 1
        self._num_bytes -= num_bytes
        self._serve()

    def _serve(self) -> None:
        while self._waiting and self._fits(self._waiting[0][0]):
            num_bytes, future = self._waiting.pop(0)
            if not future.done():
                self._take(num_bytes)
                future.set_result(None)

    def _fits(self, num_bytes: int) -> bool:
        return not self.num_running or (
            self.num_running < self._max_running and self._num_bytes + num_bytes <= self._max_bytes
        )

    def _take(self, num_bytes: int) -> None:
        self.num_running += 1
        self._num_bytes += num_bytes


class LineRunner:
    """Runs requests. Cancelling `run` cancels the requests that run; they have no result then.

    Args:
        ask: answers a request.
        take: keeps a result.
        sleep: waits between two tries.
    """

    def __init__(
        self, ask: Ask, take: Take, window: Window, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._ask, self._take, self._window, self._sleep = ask, take, window, sleep
        self._tasks: set[asyncio.Task[None]] = set()
        self._failures: list[BaseException] = []

    async def run(self, next_lines: Callable[[], Awaitable[list[BatchLine]]]) -> None:
        """Run the requests of a file.

        Args:
            next_lines: gives the next requests; none at the end.
        Raises:
            Exception: a result cannot be kept, or a request has no answer; the others are cancelled.
        """
        try:
            while lines := await next_lines():
                for line in lines:
                    await self._window.enter(len(line.body))
                    if self._failures:
                        self._window.leave(len(line.body))
                        raise self._failures[0]
                    task = asyncio.create_task(self._run(line))
                    self._tasks.add(task)
                    task.add_done_callback(partial(self._ended, line))
            while self._tasks:
                await asyncio.wait(self._tasks)
            if self._failures:
                raise self._failures[0]
        finally:
            for task in tuple(self._tasks):
                task.cancel()
            for task in tuple(self._tasks):
                with suppress(asyncio.CancelledError, Exception):
                    await task

    def _ended(self, line: BatchLine, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._window.leave(len(line.body))  # not in the task, which may be cancelled before it begins
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failures.append(error)
            for each in self._tasks:  # `run` may wait for a place that one of them has
                each.cancel()

    async def _run(self, line: BatchLine) -> None:
        await self._take(line, await self._answer(line))

    async def _answer(self, line: BatchLine) -> LineResult:
        wait_s, num_refusals = _FIRST_WAIT_S, 0
        while True:
            result = await self._ask(line)
            if result.status not in (429, 503):
                return result
            num_refusals += result.status == 429
            if num_refusals >= MAX_REFUSALS:
                return result
            await self._sleep(min(_LONGEST_WAIT_S, max(wait_s, result.retry_after_s or 0.0)))
            wait_s = min(_LONGEST_WAIT_S, 2 * wait_s)
