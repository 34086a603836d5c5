"""Parties and their clients take turns by the time they have used, nothing waits forever, and nobody fills the queue of another."""

from __future__ import annotations

import random
from concurrent.futures import Future
from typing import Any

import pytest

from rtlang.contract.errors import OverloadError
from rtlang.work.fair_queue import FairQueue, Job, Owner, QueueLimits, Ticket
from tests.support.long_tests import sized


def job() -> Job:
    return Future[Any](), lambda: None


def put(queue: FairQueue, client: str, size: int = 0, *, party: str = "all") -> Job:
    added = job()
    queue.put(added, Owner(party, client), size)
    return added


def take(queue: FairQueue, seconds: float = 1.0) -> str:
    """Run the next job; the name of its client."""
    _, ticket = queue.take()
    queue.charge(ticket, seconds)
    return ticket.owner.client


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
        _, ticket = queue.take()
        client = ticket.owner.client
        queue.charge(ticket, 9.0 if client == "long" else 1.0)
        taken.append(client)
    assert 3 <= taken.count("long") <= 6


def test_the_smallest_comes_first_but_the_oldest_comes_in_time() -> None:
    queue = FairQueue()
    big = put(queue, "a", 1000)
    taken = []
    for _ in range(8):
        put(queue, "a", 1)
        found, ticket = queue.take()
        taken.append(found)
        queue.charge(ticket, 0.0)
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
        self.running: list[tuple[float, float, Ticket]] = []  # end, begin, job
        self.begun: dict[int, float] = {}
        self.numbers: dict[int, int] = {}

    def put(self, owner: Owner, size: int, number: int) -> None:
        added = job()
        self.numbers[id(added[0])] = number
        self.queue.put(added, owner, size)
        self.fill()

    def fill(self) -> None:
        while len(self.running) < self.count and len(self.queue):
            (future, _), ticket = self.queue.take()
            self.begun[self.numbers.pop(id(future))] = self.now
            self.running.append((self.now + self.rng.choice((1e-6, 0.5, 1.0)), self.now, ticket))

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
    attackers = [Owner(rng.choice("ab"), f"attacker {n}") for n in range(rng.choice((1, 1, 2, 5)))]
    number = 0
    for _ in range(20):
        for _ in range(rng.randrange(60)):
            number += 1
            threads.put(rng.choice(attackers), rng.choice((0, 5, 10**6)), number)
        threads.run_until(threads.now + rng.random() * 3)
        number += 1
        came = threads.now
        threads.put(Owner(rng.choice("abc"), "victim"), 10**6, number)
        threads.run_until(came + len(attackers) + 1e-9)
        assert number in threads.begun, f"job {number} waits for more than {len(attackers)} slices"
        threads.run_until(threads.now + 1.0)  # it ends, so that the victim runs nothing


@pytest.mark.parametrize(("weights", "share"), [((1.0, 1.0), 0.5), ((3.0, 1.0), 0.75), ((1.0, 4.0), 0.2)], ids=str)
def test_parties_get_time_by_their_weights(weights: tuple[float, float], share: float) -> None:
    queue = FairQueue()
    owners = [Owner(party, "", weight) for party, weight in zip("ab", weights, strict=True)]
    used = {"a": 0.0, "b": 0.0}
    rng = random.Random(1)
    for _ in range(400):
        for owner in owners:
            queue.put(job(), owner, 0)
        _, ticket = queue.take()
        seconds = rng.random()
        used[ticket.owner.party] += seconds
        queue.charge(ticket, seconds)
    assert used["a"] / sum(used.values()) == pytest.approx(share, abs=0.03)


def test_expensive_jobs_leave_a_thread_to_cheap_ones_and_one_to_another_party() -> None:
    queue = FairQueue(QueueLimits(cheap_price=1.0, max_expensive=2, max_expensive_each=1))
    for _ in range(5):
        put(queue, "x", 9, party="a")
    running = [queue.take()[1]]
    assert not queue.has_next, "one of the party runs, so the others wait"
    put(queue, "x", 9, party="b")
    running.append(queue.take()[1])
    assert running[-1].owner.party == "b"
    put(queue, "x", 9, party="c")
    assert not queue.has_next, "two run, so no third one begins"
    put(queue, "x", 1, party="a")
    _, cheap = queue.take()
    assert (cheap.owner.party, cheap.price) == ("a", 1)
    queue.charge(running[0], 1.0)
    _, after = queue.take()
    assert after.owner.party == "c", "it has used nothing"


def test_cancelled_jobs_leave_the_queue_and_make_room() -> None:
    queue = FairQueue(QueueLimits(max_waiting=2))
    owner = Owner("a", "x")
    first = queue.put(job(), owner, 5, is_bounded=True)
    second = queue.put(job(), owner, 1, is_bounded=True)
    with pytest.raises(OverloadError):
        queue.put(job(), owner, 1, is_bounded=True)
    assert queue.remove(second)
    assert not queue.remove(second)
    third = queue.put(job(), owner, 7, is_bounded=True)
    assert [queue.take()[1].number for _ in range(2)] == [first.number, third.number]
    assert not queue.remove(first), "it runs"
    assert not queue.has_next


@pytest.mark.parametrize("limits", [QueueLimits(max_waiting=3), QueueLimits(max_waiting_price=10.0)], ids=str)
def test_an_owner_is_refused_for_its_own_jobs_only(limits: QueueLimits) -> None:
    queue = FairQueue(limits)
    full = Owner("a", "x")
    for _ in range(3):
        queue.put(job(), full, 3.0, is_bounded=True)
    with pytest.raises(OverloadError, match="jobs of a are already waiting") as refused:
        queue.put(job(), full, 3.0, is_bounded=True)
    assert refused.value.retry_after_s >= 1.0
    for other in (Owner("a", "y"), Owner("b", "x")):
        queue.put(job(), other, 100.0, is_bounded=True)  # the first one, at any price
    queue.put(job(), full, 3.0)  # of a request that was accepted


def test_clients_that_are_gone_are_forgotten() -> None:
    queue = FairQueue()
    for number in range(5000):
        put(queue, f"client {number}")
        take(queue)
    assert len(queue._parties["all"].clients) <= 1024


@pytest.mark.parametrize("seed", range(sized(30)))
def test_the_queue_agrees_with_a_list_of_its_jobs(seed: int) -> None:
    """Under random jobs, ends and cancellations: each job is taken once or removed, within the limits, and a cheap one never waits for
    an expensive one to end."""
    rng = random.Random(seed)
    limits = QueueLimits(6, 40.0, max_each=2, cheap_price=2, max_expensive=2, max_expensive_each=1)
    queue, waiting, running = FairQueue(limits), dict[int, Ticket](), list[Ticket]()
    owners = [Owner(party, client, rng.choice((1.0, 2.0, 0.5))) for party in "abc" for client in "xy"]
    for _ in range(400):
        match rng.randrange(4):
            case 0 | 1:
                owner, price = rng.choice(owners), rng.choice((1, 2, 3, 30))
                own = [each for each in waiting.values() if each.owner[:2] == owner[:2]]
                total = sum(each.price for each in own)
                has_room = len(own) < 6 and (not own or total + price <= 40.0)
                try:
                    ticket = queue.put(job(), owner, price, is_bounded=True)
                except OverloadError:
                    assert not has_room
                else:
                    assert has_room
                    waiting[ticket.number] = ticket
            case 2 if waiting:
                number = rng.choice(list(waiting))
                assert queue.remove(waiting.pop(number))
            case 3 if running:
                queue.charge(running.pop(rng.randrange(len(running))), rng.random())
        assert len(queue) == len(waiting)
        dear = [each.owner.party for each in running if each.price > 2]
        parties = [each.owner.party for each in running]
        startable = [
            each
            for each in waiting.values()
            if parties.count(each.owner.party) < 2
            and (each.price <= 2 or (len(dear) < 2 and each.owner.party not in dear))
        ]
        assert queue.has_next == bool(startable)
        if startable and len(running) < 4:
            _, ticket = queue.take()
            assert ticket.number in {each.number for each in startable}
            del waiting[ticket.number]
            running.append(ticket)
    assert len(queue.clear()) == len(waiting)
