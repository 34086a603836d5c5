"""Tiny work runs on the loop as long as a turn has room for it; everything else runs on threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.errors import OverloadError
from rtlang.work.fair_executor import FairExecutor
from rtlang.work.fair_queue import Owner, QueueLimits
from rtlang.work.loop_work import HANDOVER_S, INLINE_S, TURN_S, LoopTurns, LoopWork
from rtlang.work.work_account import RequestWork, request_work
from tests.support.summed_work import SummedWork

ANA, BEN = Owner("ana"), Owner("ben")


def with_work(test: Callable[[LoopWork, SummedWork], Coroutine[Any, Any, None]], **limits: Any) -> SummedWork:
    account = SummedWork()

    async def run() -> None:
        executor = FairExecutor(1, "test", QueueLimits(**limits), account)
        work = LoopWork(asyncio.get_running_loop(), executor, account)
        try:
            await test(work, account)
        finally:
            work.close()

    asyncio.run(run())
    return account


def thread() -> str:
    return threading.current_thread().name


def test_price_and_waiting_decide_where_work_runs() -> None:
    async def test(work: LoopWork, account: SummedWork) -> None:
        here = thread()
        assert await work.run(ANA, INLINE_S, thread, kind=WorkKind.PARSE) == here
        await asyncio.sleep(0)
        assert await work.run(ANA, 2 * INLINE_S, thread, kind=WorkKind.PARSE) != here
        assert await work.run(ANA, 0.0, thread, kind=WorkKind.PARSE, may_wait=True) != here
        assert await work.start(ANA, 0.0, thread, kind=WorkKind.PARSE) != here

    with_work(test)


def test_many_small_requests_of_one_turn_go_to_threads() -> None:
    async def test(work: LoopWork, account: SummedWork) -> None:
        here, price = thread(), INLINE_S / 4
        jobs = [work.run(ANA, price, thread, kind=WorkKind.PARSE) for _ in range(100)]
        places = await asyncio.gather(*jobs)
        num_here = places.count(here)
        assert 1 <= num_here <= TURN_S / price
        assert len(set(places)) == 2
        await asyncio.sleep(0)
        assert await work.run(ANA, price, thread, kind=WorkKind.PARSE) == here, "a later turn has room again"

    with_work(test)


def test_work_that_is_cheaper_than_a_thread_stays_on_the_loop() -> None:
    async def test(work: LoopWork, account: SummedWork) -> None:
        prices = [*[HANDOVER_S] * 1000, 2 * HANDOVER_S]
        jobs = [work.run(ANA, price, thread, kind=WorkKind.PARSE) for price in prices]
        *cheap, other = await asyncio.gather(*jobs)
        assert set(cheap) == {thread()}
        assert other != thread(), "the turn is full"

    with_work(test, max_waiting=1)


@pytest.mark.parametrize("num_requests", [1, 7, 500])
def test_no_turn_of_the_loop_has_more_than_its_time(num_requests: int) -> None:
    """With a pretended duration of each job: counted between two turns of a callback that runs in every one."""

    async def main() -> list[float]:
        loop, price, found = asyncio.get_running_loop(), INLINE_S / 3, [0.0]
        turns, waiting = LoopTurns(loop), num_requests

        def turn() -> None:
            found.append(0.0)
            if waiting:
                loop.call_soon(turn)

        def take() -> None:
            nonlocal waiting
            if not turns.has_room(price):
                loop.call_soon(take)
                return
            turns.note(price)
            found[-1] += price
            waiting -= 1

        loop.call_soon(turn)
        for _ in range(num_requests):
            loop.call_soon(take)
        while waiting:
            await asyncio.sleep(0)
        return found

    spent = asyncio.run(main())
    assert max(spent) <= TURN_S
    assert sum(spent) == pytest.approx(num_requests * INLINE_S / 3)


def test_work_counts_for_its_principal_and_its_request_wherever_it_runs() -> None:
    counted: list[RequestWork] = []

    async def test(work: LoopWork, account: SummedWork) -> None:
        request_work.set(RequestWork())
        await work.run(ANA, 0.0, lambda: sum(range(10_000)), kind=WorkKind.PARSE)
        await work.run(BEN, 1.0, lambda: sum(range(10_000)), kind=WorkKind.TOKENIZE)
        found = request_work.get()
        assert found is not None
        counted.append(found)

    account = with_work(test)
    assert {name: set(kinds) for name, kinds in account.snapshot().items()} == {
        "ana": {WorkKind.PARSE},
        "ben": {WorkKind.TOKENIZE},
    }
    assert all(seconds > 0 for seconds in counted[0].seconds.values())
    assert set(counted[0].seconds) == {WorkKind.PARSE, WorkKind.TOKENIZE}


def test_errors_come_back_and_only_new_work_is_refused() -> None:
    async def test(work: LoopWork, account: SummedWork) -> None:
        for price in (0.0, 1.0):
            with pytest.raises(ZeroDivisionError):
                await work.run(ANA, price, lambda: 1 / 0, kind=WorkKind.READ)
        begun, may_end = threading.Event(), threading.Event()

        def hold() -> bool:
            begun.set()
            return may_end.wait(60)

        running = asyncio.ensure_future(work.run(ANA, 1.0, hold, kind=WorkKind.READ))
        await asyncio.sleep(0)
        assert begun.wait(60)
        waiting = asyncio.ensure_future(work.run(ANA, 1.0, thread, kind=WorkKind.READ))
        await asyncio.sleep(0)
        with pytest.raises(OverloadError):
            await work.run(ANA, 1.0, thread, kind=WorkKind.READ)
        accepted = asyncio.ensure_future(work.run(ANA, 1.0, thread, kind=WorkKind.REPLY, is_bounded=False))
        other = asyncio.ensure_future(work.run(BEN, 1.0, thread, kind=WorkKind.READ))
        await asyncio.sleep(0)
        may_end.set()
        assert await running
        assert {await waiting, await accepted, await other} == {"test-0"}

    with_work(test, max_waiting=1)
