"""Snapshots for many clients: one sample serves all, each step is sent once, and nothing is sent without news."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from rtlang.contract.errors import EngineDeadError
from rtlang.contract.service.snapshot import StepRow, WatchedStep, read_snapshot
from rtlang.serve.http import snapshot_feed
from rtlang.serve.http.snapshot_feed import Sample, SnapshotFeed
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


@on_loop
async def test_changes_come_once_and_each_step_in_one_of_them(target: WatchedTarget) -> None:
    feed, seen = SnapshotFeed(target, on_a_thread), list[list[int]]()
    ticks = 0

    def is_ending() -> bool:
        """Changes the target before each sample, with the clock going on all the time."""
        nonlocal ticks
        assert target.present is not None
        target.present = replace(target.present, taken_s=target.present.taken_s + 1, process_bytes=ticks)
        match ticks:
            case 0:
                target.show(step(1), num_steps=1)
            case 3:
                target.show(step(2), step(3), num_steps=3)
            case 5:
                target.present = replace(target.present, num_waiting=9, steps=())
            case 7:
                target.show(step(1), num_steps=1)  # a new engine
        ticks += 1
        return ticks > 10

    async for data in feed.changes(0.0, is_ending):
        seen.append([each["number"] for each in json.loads(data)["steps"]])
    assert seen == [[1], [2, 3], [], [1]]


@on_loop
async def test_changes_end_with_the_engine(target: WatchedTarget) -> None:
    feed = SnapshotFeed(target, on_a_thread)
    found = 0
    async for _ in feed.changes(0.0, lambda: False):
        found += 1
        target.present = None
    assert found == 1
