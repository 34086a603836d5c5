"""Snapshots for many clients: one sample serves all, each step is sent once, and nothing is sent without news."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from typing import Any, cast

import pytest

from rtlang.contract.errors import EngineDeadError
from rtlang.contract.service.snapshot import StepRow, WatchedStep, read_snapshot
from rtlang.serve.http.events import snapshot_feed
from rtlang.serve.http.events.direct_events import DirectWriter
from rtlang.serve.http.events.snapshot_feed import Sample, SnapshotFeed
from rtlang.serve.network.body_writer import BODY_WRITER, BodyWriter
from tests.support.programs.scripted_target import ScriptedTarget
from tests.support.programs.snapshots import WatchedTarget


def on_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test as a function that runs it on an event loop of its own."""

    @functools.wraps(test)
    def run(**fixtures: Any) -> None:
        asyncio.run(test(**fixtures))

    return run


def step(number: int) -> WatchedStep:
    return WatchedStep(number, float(number), 0.5, (StepRow(1, 1, number, 0, False, False),))


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> WatchedTarget:
    """A target; every sample of a feed is a new one."""
    monkeypatch.setattr(snapshot_feed, "MIN_INTERVAL_S", 0.0)
    return WatchedTarget()


def on_a_thread(take: Callable[[], Sample | None]) -> asyncio.Future[Sample | None]:
    return asyncio.get_running_loop().run_in_executor(None, take)


async def sampled(feed: SnapshotFeed, after_step: int = 0) -> dict[str, Any]:
    sample = await feed.sample()
    assert sample is not None
    plain = json.loads(sample.json_after(after_step))
    assert isinstance(plain, dict)
    return plain


@on_loop
async def test_a_sample_is_the_snapshot(target: WatchedTarget) -> None:
    target.show(step(11), step(12), num_steps=12)
    feed = SnapshotFeed(target, on_a_thread)
    assert read_snapshot(await sampled(feed)) == target.present
    assert [each["number"] for each in (await sampled(feed, 11))["steps"]] == [12]


@on_loop
async def test_steps_of_earlier_samples_are_kept_and_asked_for_once(target: WatchedTarget) -> None:
    feed = SnapshotFeed(target, on_a_thread)
    target.show(step(1), step(2), num_steps=2)
    await sampled(feed)
    target.show(step(3), num_steps=3)
    assert [each["number"] for each in (await sampled(feed))["steps"]] == [1, 2, 3]
    assert target.asked == [0, 2]
    for number in range(4, 100):
        target.show(step(number), num_steps=number)
        await sampled(feed)
    assert [each["number"] for each in (await sampled(feed))["steps"]] == list(range(36, 100))


@on_loop
async def test_a_new_engine_counts_from_the_start(target: WatchedTarget) -> None:
    feed = SnapshotFeed(target, on_a_thread)
    target.show(step(50), num_steps=50)
    await sampled(feed)
    target.show(step(1), num_steps=1)
    assert [each["number"] for each in (await sampled(feed))["steps"]] == [1]


@on_loop
async def test_many_who_ask_at_once_share_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    target = WatchedTarget()
    feed = SnapshotFeed(target, on_a_thread)
    await asyncio.gather(*(feed.sample() for _ in range(50)))
    await feed.sample()
    assert len(target.asked) == 1


@on_loop
async def test_one_who_leaves_does_not_disturb_the_others(target: WatchedTarget) -> None:
    feed = SnapshotFeed(target, on_a_thread)
    leaving, staying = (asyncio.ensure_future(feed.sample()) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()
    assert await staying is not None


@on_loop
async def test_errors_reach_everybody_and_are_not_kept(target: WatchedTarget) -> None:
    feed = SnapshotFeed(target, on_a_thread)
    target.error = EngineDeadError("gone")
    results = await asyncio.gather(feed.sample(), feed.sample(), return_exceptions=True)
    assert [type(each) for each in results] == [EngineDeadError] * 2
    target.error = None
    assert await feed.sample() is not None


@on_loop
async def test_a_target_without_an_engine_has_no_snapshot() -> None:
    assert await SnapshotFeed(ScriptedTarget(), on_a_thread).sample() is None
    target = WatchedTarget()
    target.present = None
    assert await SnapshotFeed(target, on_a_thread).sample() is None


class Watcher:
    """One stream of a feed, and what its client has received."""

    def __init__(self, feed: SnapshotFeed, interval_s: float = 0.1, *, is_direct: bool = True) -> None:
        self.received: list[bytes] = []
        self.is_ready, self.direct = True, DirectWriter()
        self._feed, self._interval_s, self._is_direct = feed, interval_s, is_direct
        self.may_write = asyncio.Event()
        self.may_write.set()
        self.task = asyncio.ensure_future(self._respond())

    def write(self, data: bytes) -> None:
        self.received.append(data)

    async def _respond(self) -> None:
        async with contextlib.aclosing(self._feed.changes(self._interval_s, self.direct)) as groups:
            async for group in groups:
                await self.may_write.wait()
                self.received += group
                if self._is_direct:
                    self.direct.open({"state": {BODY_WRITER: lambda: cast(BodyWriter, self)}})

    @property
    def steps(self) -> list[list[int]]:
        """The numbers of the steps of each snapshot."""
        found = [json.loads(data.partition(b"data: ")[2]) for data in self.received]
        return [[each["number"] for each in snapshot["steps"]] for snapshot in found]


@contextlib.contextmanager
def counted_encodings(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The step after which each encoded snapshot begins."""
    found, encode = list[int](), snapshot_feed._snapshot_json

    def counting(sample: Sample, step: int) -> bytes:
        found.append(step)
        return encode(sample, step)

    monkeypatch.setattr(snapshot_feed, "_snapshot_json", counting)
    yield found


class Ticks:
    """A feed that is served when the test says so, on a clock of its own."""

    def __init__(self, target: WatchedTarget) -> None:
        self.feed, self._now = SnapshotFeed(target, on_a_thread), 1.0
        self.feed._publishing = asyncio.ensure_future(asyncio.sleep(0))  # nothing is published by itself

    async def tick(self) -> None:
        """An interval passes, and all tasks do what they can."""
        self._now += 0.1
        sample = await self.feed.sample()
        assert sample is not None
        await self.feed._serve(sample, self._now)
        for _ in range(20):
            await asyncio.sleep(0)


@on_loop
async def test_two_hundred_readers_cost_one_encoding_a_snapshot(
    target: WatchedTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = Ticks(target)
    with counted_encodings(monkeypatch) as encoded:
        watchers = [Watcher(ticks.feed, is_direct=number % 2 == 0) for number in range(200)]
        await asyncio.sleep(0)
        for number in range(1, 6):
            target.show(step(number), num_steps=number)
            await ticks.tick()
    assert encoded == [0, 1, 2, 3, 4]
    for each in watchers:
        assert each.steps == [[1], [2], [3], [4], [5]]
        assert each.received == watchers[0].received
        each.task.cancel()


@on_loop
async def test_a_slow_reader_gets_the_newest_with_all_steps(target: WatchedTarget) -> None:
    ticks = Ticks(target)
    slow, fast = Watcher(ticks.feed), Watcher(ticks.feed)
    await asyncio.sleep(0)
    target.show(step(1), num_steps=1)
    await ticks.tick()
    slow.is_ready = False  # its connection takes nothing
    slow.may_write.clear()
    for number in range(2, 6):
        target.show(step(number), num_steps=number)
        await ticks.tick()
    slow.is_ready = True
    slow.may_write.set()
    await ticks.tick()
    assert fast.steps == [[1], [2], [3], [4], [5]]
    assert slow.steps == [[1], [2], [3, 4, 5]]
    for each in (slow, fast):
        each.task.cancel()


@on_loop
async def test_readers_take_turns_at_being_first(target: WatchedTarget) -> None:
    ticks = Ticks(target)
    watchers = [Watcher(ticks.feed) for _ in range(3)]
    await asyncio.sleep(0)
    firsts = []
    for number in range(1, 5):
        target.show(step(number), num_steps=number)
        firsts.append(next(iter(ticks.feed._readers)))
        await ticks.tick()
    assert len(set(firsts[:3])) == 3
    assert firsts[3] is firsts[0]
    for each in watchers:
        each.task.cancel()


@on_loop
async def test_changes_come_once_and_each_step_in_one_of_them(target: WatchedTarget) -> None:
    ticks = Ticks(target)
    watcher = Watcher(ticks.feed)
    await asyncio.sleep(0)
    for number in range(11):
        assert target.present is not None
        target.present = replace(target.present, taken_s=target.present.taken_s + 1, process_bytes=number)
        match number:
            case 0:
                target.show(step(1), num_steps=1)
            case 3:
                target.show(step(2), step(3), num_steps=3)
            case 5:
                target.present = replace(target.present, num_waiting=9, steps=())
            case 7:
                target.show(step(1), num_steps=1)  # a new engine
        await ticks.tick()
    assert watcher.steps == [[1], [2, 3], [], [1]]
    watcher.task.cancel()


@on_loop
async def test_readers_of_any_interval_are_served_and_end_with_the_engine(target: WatchedTarget) -> None:
    feed = SnapshotFeed(target, on_a_thread)
    slow = Watcher(feed, 3600.0)
    await wait_for(lambda: len(slow.received) == 1)
    quick = Watcher(feed, 0.001)  # does not wait for the other one
    await wait_for(lambda: len(quick.received) == 1)
    present, target.present = target.present, None
    await asyncio.gather(slow.task, quick.task)
    target.present = present
    target.show(step(1), num_steps=1)
    again = Watcher(feed, 0.001)
    await wait_for(lambda: again.steps == [[1]])
    again.task.cancel()
    await wait_for(lambda: feed._publishing is None)


async def wait_for(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.001)
