"""Fairness between principals and between streams, in engine steps, on a runner whose pages hold token ids."""

from __future__ import annotations

import random
from typing import Any

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import AbortedError, RequestError
from rtlang.contract.runs.principal import Principal, PrincipalLimits
from rtlang.engine.requests.request import Request
from tests.support.engine.engine_driver import EngineDriver
from tests.support.engine.fake_runner import FakeRunner, naive_generate
from tests.support.long_tests import sized

NEVER = 10**9


class Driver(EngineDriver):
    """An engine on a fake runner; counts the computed tokens of each request."""

    def __init__(self, num_pages: int, *, checks: bool = True, **settings: Any) -> None:
        eos_every = settings.pop("eos_every", NEVER)
        config = RuntimeConfig(page_size=4, num_pages=num_pages, **settings)
        super().__init__(FakeRunner(num_pages, 4, eos_every=eos_every), config)
        if not checks:
            self.engine._check = False  # slow with thousands of requests
        self.computed: dict[Request, int] = {}

    def step(self) -> None:
        super().step()
        for request, num_tokens, _ in self.engine.scheduler.last_rows:
            self.computed[request] = self.computed.get(request, 0) + num_tokens

    def steps_until_end(self, request: Request, limit: int = 2000) -> int:
        for number in range(1, limit):
            self.step()
            if request in self.last:
                return number
        raise AssertionError("it has not ended")


def fairness(amounts: list[int]) -> float:
    """Jain's index: 1 if all are equal, 1/n if one has everything."""
    return sum(amounts) ** 2 / (len(amounts) * sum(each * each for each in amounts))


A, B, C = Principal("a"), Principal("b"), Principal("c")


@pytest.mark.parametrize("b", [B, Principal("a", client="other")])
def test_twenty_thousand_places_beside_another_clients_eight_tokens(b: Principal) -> None:
    driver = Driver(4000, checks=False)
    for number in range(20_000):
        driver.add([1, 100 + number % 100, 100 + number // 100], 1000, principal=A)
    for _ in range(12):
        driver.step()
    assert len(driver.engine.scheduler.running) > 200
    request = driver.add([1, 50, 51], 8, principal=b)
    assert driver.steps_until_end(request) <= 9
    assert request.output_token_ids == naive_generate([1, 50, 51], 8, eos_every=NEVER)
    assert driver.runner.max_rows_seen <= 256


def test_long_prompts_of_one_client_do_not_delay_another() -> None:
    driver = Driver(2000, checks=False)
    for number in range(100):
        driver.add([1, 100 + number, *[90] * 70 * (1 + number % 3)], 100, principal=A)
    for _ in range(3):
        driver.step()
    request = driver.add([1, *[60] * 100], 8, principal=B)
    assert driver.steps_until_end(request) <= 10


def test_a_client_whose_requests_hold_all_pages_gives_some_up() -> None:
    driver = Driver(64, max_rows=16)
    for number in range(16):
        driver.add([1, 100 + number], 200, principal=A)
    while driver.engine.cache.num_available:
        driver.step()
    request = driver.add([1, *[60] * 30], 8, principal=B)
    assert driver.steps_until_end(request) <= 12
    assert request.stats.num_preemptions == 0


def test_a_client_whose_requests_hold_all_rows_gives_some_up() -> None:
    driver = Driver(400, max_rows=8)
    for number in range(20):
        driver.add([1, 100 + number], 60, principal=A)
    for _ in range(5):
        driver.step()
    others = [driver.add([1, 50 + number], 60, principal=B) for number in range(20)]
    for _ in range(10):
        driver.step()
    assert sum(each.spec.principal is B for each in driver.engine.scheduler.running) == 4
    before = dict(driver.computed)
    for _ in range(20):
        driver.step()
    got = [
        sum(count - before.get(each, 0) for each, count in driver.computed.items() if each.spec.principal is principal)
        for principal in (A, B)
    ]
    assert fairness(got) > 0.99
    assert driver.engine.scheduler.num_preemptions <= 4, "rows do not go back and forth"
    driver.run()
    assert all(len(each.output_token_ids) == 60 for each in others)
    driver.assert_idle()


@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_prompts_are_computed_by_weight(weight: float) -> None:
    driver = Driver(4000, checks=False)
    heavy = Principal("h", weight=weight)
    for number in range(40):
        driver.add([1, 100, number, *[90] * 400], 1, principal=heavy)
        driver.add([1, 101, number, *[90] * 400], 1, principal=B)
    for _ in range(30):
        driver.step()
    sums = [sum(count for each, count in driver.computed.items() if each.spec.principal is p) for p in (heavy, B)]
    assert sums[0] / sums[1] == pytest.approx(weight, rel=0.05)


@pytest.mark.parametrize("num_clients", [1, 4, 1000])
def test_a_thousand_equal_streams_get_equally_many_tokens(num_clients: int) -> None:
    driver = Driver(32_000, checks=False)
    requests = [
        driver.add([1, 100 + n % 100, 100 + n // 100], 500, principal=Principal("a", client=str(n % num_clients)))
        for n in range(1000)
    ]
    for _ in range(60):
        driver.step()
    assert len(driver.engine.scheduler.running) == 1000
    before = [request.num_output_tokens for request in requests]
    for _ in range(40):
        driver.step()
    got = [request.num_output_tokens - start for request, start in zip(requests, before, strict=True)]
    assert fairness(got) >= 0.99
    assert sum(got) >= 40 * (250 if num_clients == 1 else 126), "the rows are used"


def test_rows_and_prompts_of_a_principal_are_limited() -> None:
    driver = Driver(400)
    limited = Principal("l", limits=PrincipalLimits(max_rows=3, max_prompt_tokens=100))
    requests = [driver.add([1, 100 + number], 20, principal=limited) for number in range(10)]
    others = [driver.add([1, 50 + number], 20, principal=B) for number in range(10)]
    for _ in range(6):
        driver.step()
        running = driver.engine.scheduler.running
        assert sum(each.spec.principal is limited for each in running) == 3
        assert sum(each.spec.principal is B for each in running) == 10
    driver.run()
    long = [driver.add([1, 100 + number, *[70] * 58], 5, principal=limited) for number in range(3)]
    driver.step()
    assert sum(each.spec.principal is limited for each in driver.engine.scheduler.running) == 1
    driver.run()
    assert all(each in driver.last for each in (*requests, *others, *long))
    with pytest.raises(RequestError, match="max_prompt_tokens = 100 of l"):
        driver.add([1] * 101, 5, principal=limited)
    driver.assert_idle()


def test_a_large_request_that_finds_no_pages_neither_stops_others_nor_starves() -> None:
    driver = Driver(40, max_rows=6)
    for number in range(4):
        driver.add([1, 100 + number, *[80] * 22], 12, principal=A)
    driver.step()
    large = driver.add([1, *[60] * 130], 4, principal=C)
    small = [driver.add([1, 30 + number], 4, principal=B) for number in range(4)]
    for _ in range(10):
        driver.step()
    assert all(each in driver.last for each in small)
    for number in range(600):
        driver.add([1, 50 + number % 50, 100 + number // 50], 4, principal=B)
    driver.steps_until_end(large)
    assert large.output_token_ids == naive_generate([1, *[60] * 130], 4, eos_every=NEVER)


@pytest.mark.parametrize("seed", range(sized(12)))
def test_random_principals_and_interleavings_give_the_tokens_of_naive_generation(seed: int) -> None:
    rng = random.Random(seed)
    driver = Driver(
        rng.choice([14, 30, 200]),
        max_rows=rng.choice([2, 5, 16]),
        max_running=rng.choice([2, 8, 40]),
        max_step_tokens=rng.choice([5, 64, 200]),
        max_shared_step_tokens=rng.choice([3, 20, 64]),
        policy=rng.choice(["program", "longest_prefix", "fcfs"]),
        eos_every=40,
    )
    principals = [
        Principal(
            f"p{n % 3}",
            weight=rng.choice([0.5, 1, 4]),
            client=str(n),
            limits=PrincipalLimits(max_rows=rng.choice([None, 2]), max_prompt_tokens=rng.choice([None, 40])),
        )
        for n in range(5)
    ]
    expected: dict[Request, list[int]] = {}
    aborted = set()
    for number in range(60):
        tokens = [1, *[rng.randint(100, 101) for _ in range(rng.randint(1, 29))]]
        max_tokens = rng.randint(1, 16)
        request = driver.add(tokens, max_tokens, seed=number % 4, principal=rng.choice(principals))
        expected[request] = naive_generate(tokens, max_tokens, seed=request.spec.seed, eos_every=40)
        for _ in range(rng.randint(0, 3)):
            driver.step()
        if rng.random() < 0.1:
            victim = rng.choice(list(expected))
            if victim not in driver.last:
                driver.engine.abort(victim)
                aborted.add(victim)
    driver.run()
    assert len(driver.last) == 60
    for request, tokens in expected.items():
        if request in aborted:
            assert isinstance(driver.last[request].error, AbortedError)
        else:
            assert request.output_token_ids == tokens
    assert driver.runner.max_rows_seen <= driver.engine.scheduler.max_rows
    driver.assert_idle()
