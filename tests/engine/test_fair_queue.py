"""Owners take turns by the time they have used, and nothing waits forever."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from rtlang.engine.fair_queue import FairQueue, Job


def job() -> Job:
    return Future[Any](), lambda: None


def take(queue: FairQueue, seconds: float = 1.0) -> str:
    _, owner = queue.take()
    queue.charge(owner, seconds)
    return owner


def test_jobs_of_one_owner_and_size_keep_their_order() -> None:
    queue = FairQueue()
    jobs = [job() for _ in range(9)]
    for each in jobs:
        queue.put(each, "a", 0)
    assert [queue.take()[0] for _ in jobs] == jobs


def test_an_owner_with_many_jobs_delays_another_by_one() -> None:
    queue = FairQueue()
    for _ in range(100):
        queue.put(job(), "many", 0)
    assert [take(queue) for _ in range(3)] == ["many"] * 3
    queue.put(job(), "one", 10**6)
    assert "one" in [take(queue) for _ in range(2)]


def test_time_counts_and_not_the_number_of_jobs() -> None:
    queue = FairQueue()
    for _ in range(50):
        queue.put(job(), "long", 0)
        queue.put(job(), "short", 0)
    taken = []
    for _ in range(40):
        _, owner = queue.take()
        queue.charge(owner, 9.0 if owner == "long" else 1.0)
        taken.append(owner)
    assert 3 <= taken.count("long") <= 6


def test_the_smallest_comes_first_but_the_oldest_comes_in_time() -> None:
    queue = FairQueue()
    big = job()
    queue.put(big, "a", 1000)
    taken = []
    for _ in range(8):
        queue.put(job(), "a", 1)
        taken.append(queue.take()[0])
        queue.charge("a", 0.0)
    assert taken[0] is not big
    assert any(each is big for each in taken)


def test_nobody_saves_up_time() -> None:
    queue = FairQueue()
    queue.put(job(), "late", 0)
    take(queue, 0.0)
    for _ in range(20):
        queue.put(job(), "busy", 0)
    for _ in range(10):
        take(queue)
    for _ in range(20):
        queue.put(job(), "late", 0)
    taken = [take(queue) for _ in range(10)]
    assert taken.count("busy") >= 4


def test_all_jobs_can_be_dropped() -> None:
    queue = FairQueue()
    for owner in "ab":
        queue.put(job(), owner, 0)
    assert len(queue) == 2
    assert len(queue.clear()) == 2
    assert len(queue) == 0
    queue.put(job(), "a", 0)
    assert queue.take()[1] == "a"
