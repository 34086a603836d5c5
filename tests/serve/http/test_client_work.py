"""Work for HTTP clients: on the loop or a thread, and dropped when the client leaves."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.runs.principal import LOCAL
from rtlang.serve.http.client_work import run_for
from rtlang.work.fair_executor import FairExecutor, is_unwanted
from rtlang.work.fair_queue import owner_of
from rtlang.work.loop_work import INLINE_S, LoopWork
from tests.support.summed_work import SummedWork

LONG_S = 2 * INLINE_S


class World:
    """A request whose client stays until `leave`, and a service with one thread. Made within a running loop."""

    def __init__(self) -> None:
        self.leave = asyncio.Event()
        self.executor = FairExecutor(1, "test")
        work = LoopWork(asyncio.get_running_loop(), self.executor, SummedWork())
        self.service: Any = SimpleNamespace(
            run=lambda principal, *args, **how: work.run(owner_of(principal), *args, **how)
        )
        self.request = Request({"type": "http", "headers": [], "state": {"principal": LOCAL}}, self._receive)

    async def _receive(self) -> Message:
        await self.leave.wait()
        return {"type": "http.disconnect"}

    async def run(self, price: float, fn: Callable[[], Any]) -> Any:
        try:
            return await run_for(self.request, self.service, price, fn, kind=WorkKind.OTHER)
        finally:
            self.executor.shutdown(wait=False)


@pytest.mark.parametrize(("price", "is_here"), [(0.0, True), (LONG_S, False)])
def test_small_work_runs_on_the_loop_and_other_work_on_a_thread(price: float, is_here: bool) -> None:
    async def main() -> int:
        return await World().run(price, threading.get_ident)

    assert (asyncio.run(main()) == threading.get_ident()) == is_here


@pytest.mark.parametrize("price", [0.0, LONG_S])
def test_an_error_of_the_work_is_raised(price: float) -> None:
    async def main() -> None:
        await World().run(price, lambda: {}["missing"])

    with pytest.raises(KeyError, match="missing"):
        asyncio.run(main())


def test_work_that_waits_is_dropped_with_its_client() -> None:
    begun: list[str] = []

    async def main() -> None:
        world, begins, free = World(), threading.Event(), threading.Event()
        busy = world.executor.submit(lambda: (begins.set(), free.wait()))
        begins.wait()
        waiting = asyncio.ensure_future(world.run(LONG_S, lambda: begun.append("work")))
        while not world.executor.num_waiting:
            await asyncio.sleep(0)
        world.leave.set()
        with pytest.raises(ClientDisconnect):
            await waiting
        assert world.executor.num_waiting == 0
        free.set()
        await asyncio.wrap_future(busy)

    asyncio.run(main())
    assert not begun


def test_work_that_runs_is_told_that_its_client_has_left() -> None:
    told = threading.Event()

    def work() -> None:
        running.set()
        while not is_unwanted():
            told.wait(0.001)
        told.set()

    running = threading.Event()

    async def main() -> None:
        world = World()
        waiting = asyncio.ensure_future(world.run(LONG_S, work))
        while not running.is_set():
            await asyncio.sleep(0)
        world.leave.set()
        with pytest.raises(ClientDisconnect):
            await waiting

    asyncio.run(main())
    assert told.wait(60)
