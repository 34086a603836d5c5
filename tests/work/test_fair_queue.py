"""Parties and their clients take turns by the time they have used, and nothing waits forever."""

from __future__ import annotations

import random
from concurrent.futures import Future
from typing import Any

import pytest

from rtlang.work.fair_queue import FairQueue, Job, Owner
from tests.support.long_tests import sized


def job() -> Job:
    return Future[Any](), lambda: None


def put(queue: FairQueue, client: str, size: int = 0, *, party: str = "all") -> Job:
    added = job()
    queue.put(added, (party, client), size)
    return added


def take(queue: FairQueue, seconds: float = 1.0) -> str:
    """Run the next job; the name of its client."""
    _, owner = queue.take()
    queue.charge(owner, seconds)
    return owner[1]


def test_jobs_of_one_owner_and_size_keep_their_order() -> None:
    queue = FairQueue()
    jobs = [put(queue, "a") for _ in range(9)]
    assert [queue.take()[0] for _ in jobs] == jobs


def test_an_owner_with_many_jobs_delays_another_by_one() -> None:
    queue = FairQueue()
    for _ in range(100):
        put(queue, "many")
    assert [take(queue) for _ in range(3)] == ["many"] * 3
    put(queue, "one", 10**6)
    assert take(queue) == "one"


def test_time_counts_and_not_the_number_of_jobs() -> None:
    queue = FairQueue()
    for _ in range(50):
        put(queue, "long")
        put(queue, "short")
    taken = []
    for _ in range(40):
        _, owner = queue.take()
        queue.charge(owner, 9.0 if owner[1] == "long" else 1.0)
        taken.append(owner[1])
    assert 3 <= taken.count("long") <= 6


def test_the_smallest_comes_first_but_the_oldest_comes_in_time() -> None:
    queue = FairQueue()
    big = put(queue, "a", 1000)
    taken = []
    for _ in range(8):
        put(queue, "a", 1)
        taken.append(queue.take()[0])
        queue.charge(("all", "a"), 0.0)
    assert taken[0] is not big
    assert any(each is big for each in taken)


def test_nobody_saves_up_time() -> None:
    queue = FairQueue()
    put(queue, "late")
    take(queue, 0.0)
    for _ in range(20):
        put(queue, "busy")
    for _ in range(10):
        take(queue)
    for _ in range(20):
        put(queue, "late")
    taken = [take(queue) for _ in range(10)]
    assert taken.count("busy") >= 4


def test_all_jobs_can_be_dropped() -> None:
    queue = FairQueue()
    for owner in "ab":
        put(queue, owner)
    assert len(queue) == 2
    assert len(queue.clear()) == 2
    assert len(queue) == 0
    put(queue, "a")
    assert take(queue) == "a"


def test_a_party_does_not_gain_from_many_clients() -> None:
    queue = FairQueue()
    for number in range(20):
        for _ in range(5):
            put(queue, f"client {number}", party="many")
            put(queue, "only", party="one")
    taken = [take(queue) for _ in range(100)]
    assert 45 <= taken.count("only") <= 55


class Threads:
    """Threads on a pretended clock, which take jobs that run for a slice at most."""

    def __init__(self, count: int, rng: random.Random) -> None:
        self.queue, self.count, self.rng = FairQueue(), count, rng
        self.now = 0.0
        self.running: list[tuple[float, float, Owner]] = []  # end, begin, owner
        self.begun: dict[int, float] = {}
        self.numbers: dict[int, int] = {}

    def put(self, owner: Owner, size: int, number: int) -> None:
        added = job()
        self.numbers[id(added[0])] = number
        self.queue.put(added, owner, size)
        self.fill()

    def fill(self) -> None:
        while len(self.running) < self.count and len(self.queue):
            (future, _), owner = self.queue.take()
            self.begun[self.numbers.pop(id(future))] = self.now
            self.running.append((self.now + self.rng.choice((1e-6, 0.5, 1.0)), self.now, owner))

    def run_until(self, moment: float) -> None:
        while self.running and (first := min(self.running))[0] <= moment:
            self.running.remove(first)
            self.now = first[0]
            self.queue.charge(first[2], first[0] - first[1])
            self.fill()
        self.now = moment


@pytest.mark.parametrize("seed", range(sized(30)))
def test_a_client_that_runs_nothing_begins_within_a_slice_of_each_other_one(seed: int) -> None:
    """Whatever others have queued: with one other client that is one slice, the bound of a job of these threads."""
    rng = random.Random(seed)
    threads = Threads(rng.choice((1, 2, 3)), rng)
    attackers = [(rng.choice("ab"), f"attacker {n}") for n in range(rng.choice((1, 1, 2, 5)))]
    number = 0
    for _ in range(20):
        for _ in range(rng.randrange(60)):
            number += 1
            threads.put(rng.choice(attackers), rng.choice((0, 5, 10**6)), number)
        threads.run_until(threads.now + rng.random() * 3)
        number += 1
        came = threads.now
        threads.put((rng.choice("abc"), "victim"), 10**6, number)
        threads.run_until(came + len(attackers) + 1e-9)
        assert number in threads.begun, f"job {number} waits for more than {len(attackers)} slices"
        threads.run_until(threads.now + 1.0)  # it ends, so that the victim runs nothing
