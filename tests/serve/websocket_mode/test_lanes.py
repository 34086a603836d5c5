"""A lane runs its responses one by one, lanes run side by side, and what may wait is bounded."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from rtlang.contract.errors import OverloadError
from rtlang.serve.http.errors import HttpError
from rtlang.serve.responses.store import StoredResponse
from rtlang.serve.websocket_mode.frames import Create
from rtlang.serve.websocket_mode.lanes import MAX_LANES, MAX_QUEUED, MAX_RUNNING, Lanes


class Runs:
    """Responses that end when they are told to; notes what runs beside what."""

    def __init__(self) -> None:
        self.running: dict[str | None, asyncio.Future[StoredResponse | None]] = {}
        self.order: list[Any] = []
        self.kept: list[str] = []

    async def __call__(self, asked: Create) -> StoredResponse | None:
        assert asked.lane not in self.running, "two responses of one lane at once"
        assert len(self.running) < MAX_RUNNING
        future = self.running[asked.lane] = asyncio.get_running_loop().create_future()
        self.order.append(asked.body["n"])
        try:
            return await future
        finally:
            del self.running[asked.lane]

    def keep(self, done: StoredResponse) -> bool:
        self.kept.append(done.response["id"])
        return True

    def forget(self, response_id: str) -> None:
        self.kept.remove(response_id)


def create(lane: str | None, number: int, num_bytes: int = 1) -> Create:
    return Create(lane, {"n": number}, True, num_bytes)


def done(number: int) -> StoredResponse:
    return StoredResponse({"id": f"r{number}"}, (), 0, 1)


async def settle() -> None:
    for _ in range(6):
        await asyncio.sleep(0)


def test_lanes_keep_their_order_under_random_ends() -> None:
    async def check() -> None:
        rng, runs, idle = random.Random(3), Runs(), []
        lanes = Lanes(runs, 10_000, lambda: idle.append(True), lambda: pytest.fail("a fault"))  # type: ignore[arg-type]
        asked: dict[str | None, list[int]] = {}
        for number in range(400):
            lane = rng.choice([None, *(f"lane{i}" for i in range(24))])
            try:
                lanes.add(create(lane, number))
                asked.setdefault(lane, []).append(number)
            except OverloadError:
                pass
            await settle()
            assert len(runs.running) <= MAX_RUNNING
            if runs.running and rng.random() < 0.8:
                rng.choice(list(runs.running.values())).set_result(done(number) if rng.random() < 0.8 else None)
                await settle()
            assert len(runs.kept) == len(set(runs.kept)) <= 25
        while runs.running:
            next(iter(runs.running.values())).set_result(None)
            await settle()
        assert lanes.num_running == 0
        assert idle
        assert runs.kept == [] or len(runs.kept) <= 25
        for numbers in asked.values():
            assert [number for number in runs.order if number in set(numbers)] == numbers
        lanes.end()
        assert runs.kept == []

    asyncio.run(check())


def test_what_waits_and_the_names_of_lanes_are_bounded() -> None:
    async def check() -> None:
        runs = Runs()
        lanes = Lanes(runs, 1000, lambda: None, lambda: None)  # type: ignore[arg-type]
        lanes.add(create(None, 0, 1000))
        await settle()
        for number in range(MAX_QUEUED):
            lanes.add(create(None, number + 1))
        with pytest.raises(OverloadError):
            lanes.add(create(None, 99))
        for number in range(MAX_LANES):
            lanes.add(create(f"l{number}", number, 0))
        with pytest.raises(HttpError) as caught:
            lanes.add(create("one more", 0))
        assert caught.value.code == "websocket_stream_limit_reached"
        await settle()
        assert len(runs.running) == MAX_RUNNING
        lanes.end()
        await settle()
        assert (lanes.num_running, runs.running) == (0, {})
        large = Lanes(runs, 1000, lambda: None, lambda: None)  # type: ignore[arg-type]
        large.add(create(None, 1, 1000))
        await settle()
        large.add(create(None, 2, 600))
        with pytest.raises(OverloadError):
            large.add(create(None, 3, 600))
        large.end()
        await settle()

    asyncio.run(check())
