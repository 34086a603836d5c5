"""Requests run within a window, in turns between those who share it, until an answer that is not "try again"."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random

import pytest

from rtlang.serve.batch.batch_lines import BatchLine, LineResult
from rtlang.serve.batch.line_runner import MAX_REFUSALS, LineRunner, Window


def lines_of(count: int, size: int = 2) -> list[BatchLine]:
    return [BatchLine(i, str(i), "/x", b"x" * size) for i in range(count)]


async def ran(runner: LineRunner, lines: list[BatchLine], group: int = 7) -> None:
    left = list(lines)

    async def following() -> list[BatchLine]:
        found = left[:group]
        del left[:group]
        return found

    await runner.run(following)


def test_every_request_runs_once_and_no_more_run_at_once_than_the_window_has() -> None:
    rng = Random(1)
    running, most, results = Counter[str](), 0, Counter[str]()

    async def ask(line: BatchLine) -> LineResult:
        nonlocal most
        running["all"] += 1
        most = max(most, running["all"])
        for _ in range(rng.randrange(5)):
            await asyncio.sleep(0)
        running["all"] -= 1
        return LineResult(200, "", b"")

    async def take(line: BatchLine, result: LineResult) -> None:
        results[line.custom_id] += 1

    window = Window(8, 1000)
    asyncio.run(ran(LineRunner(ask, take, window), lines_of(200)))
    assert (len(results), set(results.values()), most, window.num_running) == (200, {1}, 8, 0)
    asyncio.run(ran(LineRunner(ask, take, Window(8, 1000)), lines_of(20, 500)))
    most = 0
    asyncio.run(ran(LineRunner(ask, take, Window(8, 1000)), lines_of(20, 2000)))
    assert most == 1  # one that is longer than the window runs alone


def test_two_files_that_share_a_window_take_turns() -> None:
    order: list[str] = []

    async def run() -> None:
        window = Window(2)

        async def take(line: BatchLine, result: LineResult) -> None:
            order.append(line.url)

        async def ask(line: BatchLine) -> LineResult:
            await asyncio.sleep(0)
            return LineResult(200, "", b"")

        many = [BatchLine(i, str(i), "many", b"") for i in range(100)]
        few = [BatchLine(i, str(i), "few", b"") for i in range(10)]
        await asyncio.gather(ran(LineRunner(ask, take, window), many), ran(LineRunner(ask, take, window), few))

    asyncio.run(run())
    assert max(i for i, each in enumerate(order) if each == "few") < 30


def test_a_refusal_is_tried_again_after_the_time_that_it_names() -> None:
    answers = [
        LineResult(429, "", b"", 7.0),
        LineResult(503, "", b""),
        LineResult(503, "", b""),
        LineResult(400, "", b"no"),
    ]
    slept: list[float] = []
    kept: list[LineResult] = []

    async def ask(line: BatchLine) -> LineResult:
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def take(line: BatchLine, result: LineResult) -> None:
        kept.append(result)

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    asyncio.run(ran(LineRunner(ask, take, Window(), sleep=sleep), lines_of(1)))
    assert ([each.status for each in kept], slept) == ([400], [7.0, 1.0, 2.0])
    answers[:] = [LineResult(429, "", b"never")]
    slept.clear()
    asyncio.run(ran(LineRunner(ask, take, Window(), sleep=sleep), lines_of(1)))
    assert (kept[-1].status, len(slept), max(slept)) == (429, MAX_REFUSALS - 1, 30.0)


def test_a_result_that_cannot_be_kept_ends_the_run_and_the_requests_that_run() -> None:
    cancelled = []

    async def ask(line: BatchLine) -> LineResult:
        if line.custom_id == "3":
            return LineResult(200, "", b"")
        try:
            return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]
        except asyncio.CancelledError:
            cancelled.append(line.custom_id)
            raise

    async def take(line: BatchLine, result: LineResult) -> None:
        raise OSError("full")

    window = Window(5)
    with pytest.raises(OSError, match="full"):
        asyncio.run(ran(LineRunner(ask, take, window), lines_of(50)))
    assert sorted(cancelled) == ["0", "1", "2", "4"]
    assert window.num_running == 0


def test_a_place_that_comes_with_a_cancellation_is_given_back() -> None:
    async def run() -> None:
        window = Window(1)
        await window.enter(1)
        waiting = [asyncio.create_task(window.enter(1)) for _ in range(3)]
        await asyncio.sleep(0)
        window.leave(1)
        waiting[0].cancel()
        waiting[1].cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert window.num_running == 1  # the third has the place
        window.leave(1)
        assert window.num_running == 0

    asyncio.run(run())
