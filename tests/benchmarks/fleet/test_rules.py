"""Choices of the rules in fleets arranged so that the published rule has one answer."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from rtlang_bench.fleet.rules import (
    BoundedHashing,
    CacheAware,
    CostPerCall,
    CostPerProgram,
    PowerOfTwo,
    PrefixAffinity,
    Routed,
)
from rtlang_bench.fleet.simulated_fleet import SimulatedFleet
from rtlang_bench.fleet.simulated_load import LoadShape, make_load

SHAPE = LoadShape(num_replicas=4, num_programs=50, num_templates=1, num_documents=1, cache_tokens=10**9)


def fleet_with_a_holder(*, waiting: float = 0.0) -> SimulatedFleet:
    """Replica 2 has computed the document of all programs, and has so much work; program 1 arrives."""
    fleet = SimulatedFleet(make_load(SHAPE, 0))
    fleet.serve(2, 0, 0, 0)
    fleet.num_calls[2] -= 1
    fleet.now = fleet.busy_until[2] - waiting
    fleet.visited[1] = []
    return fleet


@pytest.mark.parametrize("rule", [CacheAware, PrefixAffinity, CostPerCall, CostPerProgram])
def test_rules_that_know_prefixes_choose_the_holder(rule: Any) -> None:
    assert rule(SHAPE, Random(0)).choose(fleet_with_a_holder(), 1, 0) == 2


@pytest.mark.parametrize("rule", [CostPerCall, CostPerProgram])
def test_cost_leaves_the_holder_when_it_would_wait_longer_than_compute(rule: Any) -> None:
    prefix = fleet_with_a_holder().num_cached(2, 1)
    assert rule(SHAPE, Random(0)).choose(fleet_with_a_holder(waiting=prefix - 1), 1, 0) == 2
    assert rule(SHAPE, Random(0)).choose(fleet_with_a_holder(waiting=prefix + 1), 1, 0) != 2


def test_cost_of_programs_counts_their_later_calls() -> None:
    fleet = fleet_with_a_holder()
    fleet.later[2] = fleet.num_cached(2, 1) + 1.0
    assert CostPerCall(SHAPE, Random(0)).choose(fleet, 1, 0) == 2
    assert CostPerProgram(SHAPE, Random(0)).choose(fleet, 1, 0) != 2


def test_power_of_two_avoids_the_replica_with_the_most_calls() -> None:
    fleet = fleet_with_a_holder()
    fleet.num_calls[:] = [9, 0, 0, 0]
    rule = PowerOfTwo(SHAPE, Random(0))
    assert [rule.choose(fleet, 1, 0) for _ in range(400)].count(0) == pytest.approx(400 / 16, abs=15)


def test_cache_aware_balances_the_whole_fleet_when_one_replica_is_full() -> None:
    fleet = fleet_with_a_holder()
    fleet.num_calls[:] = [64, 1, 1, 0]
    assert CacheAware(SHAPE, Random(0)).choose(fleet, 1, 0) == 2, "a difference of 64 is allowed"
    fleet.num_calls[:] = [65, 1, 1, 0]
    assert CacheAware(SHAPE, Random(0)).choose(fleet, 1, 0) == 3


def test_rules_without_a_match_fill_the_emptiest_replica() -> None:
    fleet = fleet_with_a_holder()
    fleet.holders.clear()
    fleet.inserted[:] = [5, 3, 9, 4]
    assert CacheAware(SHAPE, Random(0)).choose(fleet, 1, 0) == 1
    assert PrefixAffinity(SHAPE, Random(0)).choose(fleet, 1, 0) == 1


def test_affinity_is_off_while_the_fleet_is_unbalanced() -> None:
    fleet = fleet_with_a_holder()
    fleet.num_calls[:] = [0, 0, 11, 0]
    rule = PrefixAffinity(SHAPE, Random(0))
    assert [rule.choose(fleet, 1, 0) for _ in range(400)].count(2) == pytest.approx(400 / 16, abs=15)


def test_hashing_keeps_a_document_at_its_replica_until_that_is_full() -> None:
    fleet = fleet_with_a_holder()
    rule = BoundedHashing(SHAPE, Random(0))
    home = rule.choose(fleet, 1, 0)
    assert {rule.choose(fleet, program, 0) for program in range(50)} == {home}
    fleet.num_programs[home] = 2
    assert rule.choose(fleet, 1, 0) != home


def test_router_learns_the_holder_from_what_it_sent() -> None:
    fleet = SimulatedFleet(make_load(SHAPE, 0))
    rule = Routed(SHAPE, Random(0))
    first = rule.choose(fleet, 0, 0)
    fleet.now += 1e9  # the next report: all replicas are idle
    assert rule.choose(fleet, 1, 0) == first
