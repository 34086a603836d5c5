"""Rules for single requests in the place of a router."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang.fleet.routing.router import ProgramWork, Router
from rtlang_bench.fleet.request_rules import IMBALANCED_THRESHOLD, Exchangeable, PowerOfTwo, PrefixAffinity


def work_of(*texts: int) -> ProgramWork:
    digests = tuple(hash(texts[: length + 1]) % 2**64 for length in range(len(texts)))
    return ProgramWork(digests, 64.0, 64.0 * len(texts) + 10)


def fleet(rule: Any, count: int) -> Any:
    for number in range(count):
        rule.add(f"r{number}")
    return rule


def test_power_of_two_keeps_the_numbers_of_requests_close() -> None:
    rule = fleet(PowerOfTwo(0), 10)
    chosen = [rule.choose(work_of()) for _ in range(200)]
    numbers = [chosen.count(f"r{number}") for number in range(10)]
    assert max(numbers) - min(numbers) <= 5
    work = work_of()
    for name in chosen:
        if name != "r3":
            rule.ended(name, work)
    assert "r3" not in [rule.choose(work) for _ in range(numbers[3])], (
        "the one with requests is never the better of two"
    )


def test_power_of_two_knows_no_prefix() -> None:
    rule = fleet(PowerOfTwo(0), 2)
    work = work_of(1, 2, 3)
    assert {rule.choose(work), rule.choose(work)} == {"r0", "r1"}


def test_affinity_follows_the_longest_part() -> None:
    rule = fleet(PrefixAffinity(0), 3)
    first = rule.choose(work_of(1, 2, 3))
    other = rule.choose(work_of(7, 8))
    assert other != first
    assert rule.choose(work_of(1, 2, 9)) == first
    assert rule.choose(work_of(*range(7, 30))) not in (first, other), "less than a tenth"


def test_affinity_of_an_unbalanced_fleet_is_power_of_two() -> None:
    rule = fleet(PrefixAffinity(0), 2)
    work = work_of(1, 2, 3)
    chosen = [rule.choose(work) for _ in range(IMBALANCED_THRESHOLD + 2)]
    assert chosen[:-1] == [chosen[0]] * (IMBALANCED_THRESHOLD + 1)
    assert chosen[-1] != chosen[0]


@pytest.mark.parametrize("rule", [PowerOfTwo(0), PrefixAffinity(0)])
def test_rules_choose_among_the_given(rule: Any) -> None:
    fleet(rule, 4)
    assert {rule.choose(work_of(1), {"r2", "unknown"}) for _ in range(5)} == {"r2"}
    rule.remove("r2")
    with pytest.raises(LookupError, match="no replica"):
        rule.choose(work_of(1), {"r2"})


def test_exchanged_rule_knows_the_replicas() -> None:
    router = fleet(Exchangeable(Router()), 2)
    work = work_of(1, 2, 3)
    first = router.choose(work)
    router.report(first, 0.0)
    assert router.choose(work) == first
    router.exchange(PowerOfTwo(0))
    assert {router.choose(work), router.choose(work)} == {"r0", "r1"}
    router.ended(first, work)
    assert router.choose(work) == first
    router.remove(first)
    assert router.choose(work) != first
