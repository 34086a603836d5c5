"""Fair shares: virtual times against a model that shares every token exactly, and the counts of clients."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from rtlang.contract.runs.principal import Principal
from rtlang.engine.requests.flow import Flow
from rtlang.engine.scheduling.fair_shares import FairShares
from tests.support.long_tests import sized


def names(*weights: float) -> list[Principal]:
    return [Principal(f"p{number}", weight) for number, weight in enumerate(weights)]


def fluid(weights: list[Fraction], wanted: list[int], num_tokens: int) -> list[Fraction]:
    """Max-min fair amounts of a divisible good: everybody gets the same for their weight, or what they want."""
    got = [Fraction(0)] * len(weights)
    left = Fraction(num_tokens)
    hungry = {index for index, each in enumerate(wanted) if each}
    while hungry and left:
        total = sum(weights[index] for index in hungry)
        portion = min(left / total, min((wanted[index] - got[index]) / weights[index] for index in hungry))
        for index in hungry:
            got[index] += portion * weights[index]
        left -= portion * total
        hungry = {index for index in hungry if got[index] < wanted[index]}
    return got


@pytest.mark.parametrize("seed", range(sized(40)))
def test_backlogged_flows_get_what_a_fluid_model_gives_them(seed: int) -> None:
    rng = random.Random(seed)
    count, most = rng.randint(2, 6), rng.choice([1, 8, 64])
    weights = [Fraction(rng.randint(1, 8), 2) for _ in range(count)]
    wanted = [rng.choice([0, rng.randint(1, 400), 5000]) for _ in range(count)]
    shares = FairShares()
    flows = [shares.enter(principal) for principal in names(*map(float, weights))]
    num_tokens, got = rng.randint(50, 3000), [0] * count
    left = num_tokens
    while left and any(a < b for a, b in zip(got, wanted, strict=True)):
        ready = [index for index in range(count) if got[index] < wanted[index]]
        index = min(ready, key=lambda each: (flows[each].virtual_time, each))
        amount = min(rng.randint(1, most), wanted[index] - got[index], left)
        shares.serve(flows[index], amount)
        got[index] += amount
        left -= amount
    expected = fluid(weights, wanted, num_tokens)
    # A flow is at most one service ahead or behind, in virtual time.
    slack = most * (1 + max(weights) / min(weights)) * count
    assert all(abs(a - b) <= slack for a, b in zip(got, expected, strict=True)), (got, expected)


def test_clients_of_a_principal_share_its_weight() -> None:
    shares = FairShares()
    one = shares.enter(Principal("a", client="1"))
    many = [shares.enter(Principal("b", client=str(number))) for number in range(10)]
    got = dict.fromkeys((one, *many), 0)
    for _ in range(2000):
        flow = min(got, key=lambda each: (each.virtual_time, each.number))
        shares.serve(flow, 1)
        got[flow] += 1
    assert got[one] == pytest.approx(1000, abs=10)
    assert all(got[flow] == pytest.approx(100, abs=2) for flow in many)


def test_a_client_with_a_small_share_takes_little_of_the_weight_while_others_have_work() -> None:
    shares = FairShares()
    batch = shares.enter(Principal("a", weight=4.0, client="batch", share=0.01))
    assert shares.weight(batch) == pytest.approx(4.0)  # alone it has everything
    live = [shares.enter(Principal("a", weight=4.0, client=str(i))) for i in range(2)]
    assert shares.weight(batch) == pytest.approx(0.04 / 2.01)
    assert [shares.weight(each) for each in live] == pytest.approx([4.0 / 2.01] * 2)
    assert sum(map(shares.weight, [batch, *live])) == pytest.approx(4.0)
    again = shares.enter(
        Principal("a", weight=4.0, client="batch", share=0.5)
    )  # a client keeps the share of its arrival
    assert shares.weight(again) == pytest.approx(0.04 / 2.01)
    for flow in (*live, batch, again):
        shares.leave(flow)
    assert shares.weight(shares.enter(Principal("a", client="batch", share=0.5))) == pytest.approx(1.0)


def test_an_idle_flow_neither_saves_up_nor_forgets() -> None:
    shares = FairShares()
    first, second = names(1.0, 1.0)
    busy, late = shares.enter(first), shares.enter(second)
    shares.leave(late)
    for _ in range(100):
        shares.serve(busy, 1)
    assert shares.enter(second) is late
    assert late.virtual_time == shares.now == 99.0, "it has saved nothing up"
    shares.serve(late, 500)
    shares.leave(late)
    assert shares.enter(second).virtual_time == 599.0, "it still has what it had beyond its share"


def test_idle_flows_are_forgotten_once_others_have_caught_up() -> None:
    shares = FairShares()
    busy = shares.enter(Principal("busy"))
    kept: Flow | None = None
    for number in range(3000):
        flow = shares.enter(Principal("many", client=str(number)))
        shares.serve(flow, 1)
        shares.leave(flow)
        kept = kept or flow
        shares.serve(busy, 2)
    assert shares.num_idle < 1100
    assert [flow.principal.name for flow in shares.active] == ["busy"]
