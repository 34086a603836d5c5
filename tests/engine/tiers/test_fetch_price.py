"""Pages are loaded as far as that takes less time than computing them: against every choice, and over many requests."""

from __future__ import annotations

import random

import pytest

from rtlang.engine.planning.step_cost import StepCost, StepSize
from rtlang.engine.tiers.fetch_price import FetchPrices, FetchRun, compute_seconds
from tests.support.long_tests import sized


def test_the_plan_is_the_best_of_all_choices() -> None:
    for seed in range(sized(200)):
        rng = random.Random(seed)
        prices = FetchPrices()
        cost = {"host": rng.choice([0.1, 1.0, 3.0]), "disk": rng.choice([0.5, 2.0, 10.0])}
        for tier, seconds in cost.items():
            prices.observe(tier, 5, 5 * seconds)
        runs = [FetchRun(rng.choice(["host", "disk", None]), rng.randint(1, 5)) for _ in range(rng.randint(1, 5))]
        wait_s, growth = rng.choice([0.0, 4.0, 30.0]), rng.choice([0.0, 0.1])
        pages = [run.tier for run in runs for _ in range(run.num_pages)]

        def compute_s(num_pages: int, growth: float = growth) -> float:
            return num_pages + growth * num_pages**2

        def seconds(num_loaded: int) -> float:
            """The whole time if the first pages are loaded and the others computed."""
            loading = sum(cost[tier] for tier in pages[:num_loaded] if tier is not None)  # noqa: B023
            computing = compute_s(len(pages)) - compute_s(num_loaded)  # noqa: B023
            return loading + computing + (wait_s if num_loaded else 0)  # noqa: B023

        ends = [sum(run.num_pages for run in runs[:number]) for number in range(len(runs) + 1)]
        plan = prices.plan(runs, wait_s, compute_s)
        assert plan.num_pages in ends
        assert seconds(plan.num_pages) == pytest.approx(min(map(seconds, ends)))
        behind = pages[plan.num_pages :]
        assert plan.passed == {tier: behind.count(tier) for tier in {*behind} - {None}}
        if plan.num_pages:
            assert plan.limit_s == pytest.approx(compute_s(plan.num_pages))
            assert plan.expected_s == pytest.approx(seconds(plan.num_pages) - seconds(0) + plan.limit_s - wait_s)


def test_pages_are_loaded_while_a_price_is_unknown() -> None:
    prices = FetchPrices()
    runs = [FetchRun("host", 2), FetchRun("disk", 3)]
    assert prices.plan(runs, 0.0, lambda num_pages: 0.001 * num_pages).num_pages == 5
    for tier in ("host", "disk"):
        prices.observe(tier, 1, 100.0)
    plan = prices.plan(runs, 1000.0, lambda num_pages: None)
    assert (plan.num_pages, plan.limit_s, plan.passed) == (5, None, {})
    assert plan.expected_s == 500
    assert prices.plan([], 0.0, lambda num_pages: None).num_pages == 0


def test_a_tier_that_was_slow_once_is_tried_again() -> None:
    prices = FetchPrices()
    prices.observe("disk", 4, 40.0)
    num_passed = 0
    while prices.plan([FetchRun("disk", 4)], 0.0, lambda num_pages: float(num_pages)).num_pages == 0:
        num_passed += 1
        assert num_passed < 100
    assert num_passed > 20
    prices.observe("disk", 4, 40.0)
    before = prices.price("disk")
    assert before is not None
    for _ in range(40):
        prices.observe("disk", 64, 0.64)
    after = prices.price("disk")
    assert after is not None
    assert after == pytest.approx(0.01, abs=1e-6)
    assert before > 1
    assert prices.price("host") is None


class Exact(StepCost):
    """A cost that is known."""

    is_settled = True

    def predict(self, size: StepSize) -> float:
        return 1.0 + 2.0 * size.num_tokens + 0.5 * size.num_scores


def test_computing_a_prompt_costs_its_steps() -> None:
    assert compute_seconds(StepCost(), 0, 100, 50) is None
    scores = 120 * 30 + 120 * 121 / 2
    assert compute_seconds(Exact(), 30, 120, 50) == 3 + 2 * 120 + 0.5 * scores
    assert compute_seconds(Exact(), 30, 120, 1000) == 1 + 2 * 120 + 0.5 * scores


def test_the_chosen_load_is_the_best_of_all_or_none() -> None:
    for seed in range(sized(200)):
        rng = random.Random(seed)
        prices, cost = FetchPrices(), {"host": rng.choice([0.1, 3.0]), "disk": rng.choice([0.5, 10.0]), None: 0.0}
        for tier in ("host", "disk"):
            prices.observe(tier, 5, 5 * cost[tier])
        options = [
            (
                [FetchRun(rng.choice(["host", "disk", None]), rng.randint(1, 5)) for _ in range(rng.randint(1, 3))],
                rng.choice([1.0, 10.0, 40.0]),
            )
            for _ in range(rng.randint(1, 4))
        ]
        wait_s = rng.choice([0.0, 4.0])
        gains = [seconds - wait_s - sum(cost[run.tier] * run.num_pages for run in runs) for runs, seconds in options]
        chosen, plan = prices.choose(options, wait_s)
        if max(gains) <= 0:
            assert chosen is None
            assert plan.num_pages == 0
            tiers = [run.tier for run in options[0][0] for _ in range(run.num_pages)]
            assert plan.passed == {tier: tiers.count(tier) for tier in {*tiers} - {None}}
            for tier in ("host", "disk"):
                price = prices.price(tier)
                assert price is not None
                assert price == pytest.approx(cost[tier] * (0.95 if tier in plan.passed else 1.0))
        else:
            assert chosen is not None
            assert gains[chosen] == pytest.approx(max(gains))
            assert plan.limit_s == options[chosen][1]
            assert plan.expected_s == pytest.approx(options[chosen][1] - wait_s - gains[chosen])


def test_of_loads_whose_computation_is_unknown_the_first_one_is_chosen() -> None:
    chosen, plan = FetchPrices().choose([([FetchRun("host", 3)], None), ([FetchRun("host", 1)], None)], 9.0)
    assert (chosen, plan.num_pages, plan.limit_s) == (0, 3, None)
    assert FetchPrices().choose([], 0.0)[0] is None
