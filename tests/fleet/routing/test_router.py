"""The router against the evaluation of all replicas, with the index as lists of prefixes."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import pytest

from rtlang.fleet.routing.router import MAX_HOLDERS, MISS_WEIGHT, NUM_OTHERS, ProgramWork, Router

TOKENS_PER_BLOCK = 64.0


def work_of(prefix: tuple[int, ...], own: float = 100.0) -> ProgramWork:
    digests = tuple(hash(prefix[:length]) % 2**64 for length in range(1, len(prefix) + 1))
    return ProgramWork(digests, TOKENS_PER_BLOCK, len(prefix) * TOKENS_PER_BLOCK + own)


class Oracle:
    """Every replica with the prefixes that it was sent (none is ever evicted), and its waiting work."""

    def __init__(self) -> None:
        self.prefixes: dict[str, list[tuple[int, ...]]] = {}
        self.waiting: dict[str, float] = {}

    def cost(self, name: str, prefix: tuple[int, ...], work: ProgramWork) -> float:
        held = 0
        for sent in self.prefixes[name]:
            common = 0
            while common < min(len(sent), len(prefix)) and sent[common] == prefix[common]:
                common += 1
            held = max(held, common)
        own = work.compute - len(prefix) * TOKENS_PER_BLOCK
        return self.waiting[name] + own + 2 * (len(prefix) - held) * TOKENS_PER_BLOCK

    def remaining(self, name: str, prefix: tuple[int, ...], work: ProgramWork) -> float:
        missing = (
            self.cost(name, prefix, work) - self.waiting[name] - work.compute + len(prefix) * TOKENS_PER_BLOCK
        ) / 2
        return work.compute - len(prefix) * TOKENS_PER_BLOCK + missing


@pytest.mark.parametrize("seed", range(6))
def test_choice_is_the_least_cost_of_all_if_all_are_considered(seed: int) -> None:
    random = Random(seed)
    router, oracle = Router(seed=seed, num_others=1000, capacity_tokens=10**9), Oracle()
    for step in range(200):
        names = list(oracle.waiting)
        event = random.random()
        if not names or event < 0.05:
            name = f"r{step}"
            router.add(name)
            oracle.prefixes[name], oracle.waiting[name] = [], 0.0
        elif event < 0.08:
            name = random.choice(names)
            router.remove(name)
            del oracle.prefixes[name], oracle.waiting[name]
        elif event < 0.2:
            name = random.choice(names)
            oracle.waiting[name] = float(random.randint(0, 2000))
            router.report(name, oracle.waiting[name])
        else:
            prefix = tuple(random.randint(0, 1) for _ in range(random.randint(0, 8)))
            work = work_of(prefix, random.randint(0, 400))
            among = None if random.random() < 0.5 else set(random.sample(names, random.randint(1, len(names))))
            allowed = {name: oracle.cost(name, prefix, work) for name in names if among is None or name in among}
            assert {name: router.cost(name, work) for name in allowed} == allowed
            chosen = router.choose(work, among)
            assert allowed[chosen] == min(allowed.values())
            oracle.waiting[chosen] += oracle.remaining(chosen, prefix, work)
            oracle.prefixes[chosen].append(prefix)
        assert {name: router.waiting(name) for name in router.names} == oracle.waiting


def busy_fleet(num_replicas: int, seed: int = 0, **options: int) -> Router:
    router = Router(seed=seed, **options)
    for number in range(num_replicas):
        router.add(f"r{number}")
    return router


def test_holder_is_found_among_many_replicas() -> None:
    router = busy_fleet(1000)
    work = work_of(tuple(range(50)))
    first = router.choose(work)
    router.report(first, 0.0)
    for _ in range(20):
        assert router.choose(work) == first
        router.report(first, 0.0)
    router.report(first, MISS_WEIGHT * 50 * TOKENS_PER_BLOCK - 1)
    assert router.choose(work) == first
    router.report(first, MISS_WEIGHT * 50 * TOKENS_PER_BLOCK + 1)
    assert router.choose(work) != first, "waiting there costs more than computing the prefix elsewhere"


def test_holder_of_a_longer_part_comes_before_holders_of_a_shorter_one() -> None:
    router = busy_fleet(200, max_holders=3)
    template, document = tuple(range(10)), tuple(range(10, 20))
    holder = router.choose(work_of(template + document))
    for number in range(200):
        if f"r{number}" != holder:
            assert router.choose(work_of(template), {f"r{number}"}) == f"r{number}"
        router.report(f"r{number}", 0.0)
    assert router.choose(work_of(template + document)) == holder


@pytest.mark.parametrize("seed", [0, 1])
def test_same_calls_and_seed_give_the_same_choices(seed: int) -> None:
    def choices() -> list[str]:
        router, random = busy_fleet(40, seed), Random(5)
        ready = {f"r{number}" for number in range(0, 40, 3)}
        return [
            router.choose(work_of((random.randint(0, 3), random.randint(0, 3))), ready if step % 3 else None)
            for step in range(200)
        ]

    assert choices() == choices()


def test_among_limits_the_choice() -> None:
    router = busy_fleet(100)
    work = work_of((1, 2, 3))
    for number in range(100):
        assert router.choose(work, [f"r{number}", "unknown"]) == f"r{number}"
    with pytest.raises(LookupError, match="no replica to choose from"):
        router.choose(work, ["unknown"])


def test_ended_program_no_longer_waits() -> None:
    router = busy_fleet(1)
    first, second = work_of((), 100.0), work_of((), 30.0)
    for work in (first, second, first):
        router.choose(work)
    assert router.waiting("r0") == 230.0
    router.ended("r0", first)
    assert router.waiting("r0") == 130.0
    router.report("r0", 70.0)
    router.ended("r0", second)
    assert router.waiting("r0") == 70.0, "the report has counted it"
    router.choose(second)
    router.ended("r0", second)
    router.ended("r0", second)
    assert router.waiting("r0") == 70.0
    router.ended("gone", second)


def test_report_keeps_the_estimates_of_what_is_on_its_way() -> None:
    router = busy_fleet(1)
    counted, underway = work_of((), 100.0), work_of((), 30.0)
    for work in (counted, underway):
        router.choose(work)
    router.report("r0", 70.0, [underway, work_of((), 5.0)])
    assert router.waiting("r0") == 100.0
    router.ended("r0", counted)
    assert router.waiting("r0") == 100.0
    router.ended("r0", underway)
    assert router.waiting("r0") == 70.0


@pytest.mark.parametrize("absurd", [math.nan, math.inf, -math.inf, -5.0])
def test_absurd_report_attracts_and_repels_no_program(absurd: float) -> None:
    router = busy_fleet(2)
    router.report("r0", 10.0)
    router.report("r1", 70.0)
    for name in ("r0", "r1"):
        before = router.waiting(name)
        router.report(name, absurd)
        assert router.waiting(name) == before
    work = work_of((), 100.0)
    assert [router.choose(work) for _ in range(4)] == ["r0", "r1", "r0", "r1"]
    for name in ("r0", "r1"):
        router.ended(name, work)
        router.ended(name, work)
    assert (router.waiting("r0"), router.waiting("r1")) == (10.0, 70.0)


def test_replica_that_starts_again_holds_nothing() -> None:
    router = busy_fleet(2)
    work = work_of((1, 2, 3))
    chosen = router.choose(work)
    router.remove(chosen)
    router.add(chosen)
    assert router.cost(chosen, work) == work.compute + (MISS_WEIGHT - 1) * work.prefix_tokens
    with pytest.raises(ValueError, match=chosen):
        router.add(chosen)
    with pytest.raises(LookupError, match="nobody"):
        router.remove("nobody")


def test_decision_among_a_thousand_replicas_takes_bounded_work() -> None:
    """Counts the replicas that a decision looks at; a clock would measure the machine."""
    router = busy_fleet(1000)
    template = tuple(range(8))
    for number in range(1000):
        router.choose(work_of((*template, number)), [f"r{number}"])
    looked_at: list[str] = []

    class Watched(dict[str, Any]):
        def __getitem__(self, name: str) -> Any:
            looked_at.append(name)
            return super().__getitem__(name)

    router._replicas = Watched(router._replicas)
    work = work_of((*template, 5))
    assert [len(match.segment.holds) for match in router._index.match(work.digests)] == [1000, 1]
    router.choose(work)
    assert "r5" in looked_at
    assert len(looked_at) <= MAX_HOLDERS + NUM_OTHERS + 1


def test_replicas_come_and_go_under_load() -> None:
    random, router = Random(3), Router(seed=3, capacity_tokens=40 * 64)
    for step in range(600):
        if len(router.names) < 3 or (random.random() < 0.1 and len(router.names) < 30):
            router.add(f"r{step}")
        elif random.random() < 0.1:
            router.remove(random.choice(list(router.names)))
        name = router.choose(work_of(tuple(random.randint(0, 1) for _ in range(6))))
        assert name in router.names
        router._index.check()


def test_a_replica_is_taken_to_have_the_blocks_that_it_was_sent() -> None:
    router = Router()
    router.add("a")
    router.add("b")
    router.choose(ProgramWork((1, 2, 3), 64.0, 500.0), {"a"})
    assert router.num_held_tokens("a", ProgramWork((1, 2, 9), 64.0, 500.0)) == 128.0
    assert router.num_held_tokens("b", ProgramWork((1, 2, 9), 64.0, 500.0)) == 0.0
