"""Work of requests that an event loop serves: on the loop if it is tiny and the turn has room for it, else on a fair executor.

The loop gives at most `TURN_S` to such work between two of its turns, over all requests: many small requests at once go to the executor as
a large one does, where clients do not wait for each other. Work that costs the loop less than handing it over always stays.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.work.fair_executor import FairExecutor, WorkFuture
from rtlang.work.fair_queue import Owner
from rtlang.work.work_account import TakesWork, note_request_work

_T = TypeVar("_T")

INLINE_S = 0.001
"""Work above this price never runs on the loop."""
HANDOVER_S = 3e-5
"""Time that it costs the loop to have work done on a thread (24 us, and as much on other threads)."""
TURN_S = 0.004
"""Time of one turn of the loop for work of requests."""
_PERIOD_S = TURN_S / 2  # between two resets, of which a turn sees parts of two at most


class LoopTurns:
    """Counts the work of requests that an event loop has done in its present turn. Owned by the loop.

    Args:
        loop: calls `reset` in the turn after the first work.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._used_s = 0.0
        self._is_counting = False

    def has_room(self, price: float = 0.0) -> bool:
        """Whether work of this price may run in the present turn."""
        return self._used_s + price <= _PERIOD_S

    def note(self, seconds: float) -> None:
        """Count work that the loop has done."""
        self._used_s += seconds
        if not self._is_counting:
            self._is_counting = True
            self._loop.call_soon(self._reset)

    def _reset(self) -> None:
        self._used_s, self._is_counting = 0.0, False


class LoopWork:
    """Runs work of requests beside an event loop, or on it. Used on the loop.

    Args:
        executor: with limits, so that an owner is refused rather than queued without end.
        account: receives the time of work on the loop; of other work, the executor's account does.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, executor: FairExecutor, account: TakesWork) -> None:
        self._loop, self._executor, self._account = loop, executor, account
        self.turns = LoopTurns(loop)

    async def run(
        self,
        owner: Owner,
        price: float,
        fn: Callable[[], _T],
        *,
        kind: WorkKind,
        may_wait: bool = False,
        is_bounded: bool = True,
    ) -> _T:
        """The result of `fn`, which must be thread-safe. Cancelling the task cancels the work.

        Args:
            price: see `rtlang.work.prices`.
            may_wait: whether `fn` may wait for another process or thread, so that it never runs on the loop.
            is_bounded: see `FairExecutor.submit_for`.
        Raises:
            OverloadError: too much work of the owner waits.
        """
        if not may_wait and (price <= HANDOVER_S or (price <= INLINE_S and self.turns.has_room(price))):
            return self.run_here(owner, price, fn, kind=kind)
        return await self._executor.run(owner, price, fn, kind=kind, is_bounded=is_bounded)

    def run_here(self, owner: Owner, price: float, fn: Callable[[], _T], *, kind: WorkKind) -> _T:
        """Run `fn` on the loop now, and count its time."""
        started = time.perf_counter()
        try:
            return fn()
        finally:
            seconds = time.perf_counter() - started
            self.turns.note(max(seconds, price))
            self._account.add(owner.party, kind, seconds)
            note_request_work(kind, seconds)

    def start(self, owner: Owner, price: float, fn: Callable[[], _T], *, kind: WorkKind) -> asyncio.Future[_T]:
        """Run `fn` on a thread, for a caller without a task that has no more than one such job at a time; never refused."""
        started: WorkFuture[_T] = self._executor.submit_for(owner, price, fn, kind=kind)
        return asyncio.wrap_future(started, loop=self._loop)

    def close(self) -> None:
        """Drop what waits and stop the threads after their current jobs."""
        self._executor.shutdown(wait=False, cancel_futures=True)
