"""Requests that are added and aborted while a step is computed on the host get what they get between two steps."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import AbortedError
from rtlang.engine.request import Request
from tests.engine.test_engine import prompts
from tests.support.engine_driver import EngineDriver
from tests.support.fake_runner import FakeRunner, naive_generate


class Meanwhile:
    """An overlap that acts in the test's thread, after the runner has computed and before the engine knows."""

    def __init__(self) -> None:
        self.acts: list[Callable[[], None]] = []

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        acts, self.acts = self.acts, []
        for act in acts:
            act()


class Driver(EngineDriver):
    """An engine on a fake runner, with an overlap."""

    runner: FakeRunner

    def __init__(self, num_pages: int = 64, page_size: int = 4, **settings: Any) -> None:
        settings.setdefault("max_step_tokens", 32)
        self.overlap = Meanwhile()
        runner = FakeRunner(num_pages, page_size, fail_at=settings.pop("fail_at", set()))
        config = RuntimeConfig(page_size=page_size, num_pages=num_pages, **settings)
        super().__init__(runner, config, overlap=self.overlap)

    def meanwhile(self, act: Callable[[], object]) -> None:
        """Act while the next step is computed."""
        self.overlap.acts.append(lambda: (act(), None)[1])


@pytest.mark.parametrize("num_pages", [12, 24, 200])
@pytest.mark.parametrize("fails", [False, True])
def test_random_acts_beside_steps_change_no_text(num_pages: int, fails: bool) -> None:
    rng = random.Random(f"{num_pages}{fails}")
    fail_at = set(range(5, 2000, 13)) if fails else set()  # apart, so that no request fails twice
    driver = Driver(num_pages, max_rows=5, max_step_tokens=rng.choice([5, 16, 64]), fail_at=fail_at)
    engine, cache = driver.engine, driver.engine.cache
    expected: dict[Request, list[int]] = {}
    holds: list[Any] = []
    aborted: set[Request] = set()

    def add(tokens: list[int], max_tokens: int, seed: int) -> None:
        request = driver.add(tokens, max_tokens, seed=seed, priority=rng.randint(0, 2))
        expected[request] = naive_generate(tokens, max_tokens, seed=seed)

    def abort() -> None:
        live = [each for each in expected if each not in driver.last and each not in aborted]
        running = [each for each in live if each in engine.scheduler.running]
        if victims := running or live:
            victim = rng.choice(victims)
            engine.abort(victim)
            aborted.add(victim)

    def hold() -> None:
        live = [each for each in expected if each not in driver.last]
        if live and (granted := cache.hold(rng.choice(live).token_ids, rank=rng.random())) is not None:
            holds.append(granted)
        elif holds:
            cache.release(holds.pop(rng.randrange(len(holds))))
        if live:
            cache.demote(rng.choice(live).token_ids, rng.randint(0, 8))

    for tokens in prompts(rng, 60):
        driver.meanwhile(lambda tokens=tokens: add(tokens[:30], rng.randint(1, 16), rng.randint(0, 3)))  # type: ignore[misc]
        if not engine.has_work:  # nothing is computed beside which it could be added
            driver.overlap.__exit__()
        for _ in range(rng.randint(0, 3)):
            if rng.random() < 0.15:
                driver.meanwhile(abort)
            if rng.random() < 0.3:
                driver.meanwhile(hold)
            if rng.random() < 0.05:
                driver.meanwhile(cache.clear)
            driver.step()
    driver.run()
    driver.overlap.__exit__()
    driver.run()
    assert len(driver.last) == len(expected) == 60
    assert len(aborted) > 1
    for request, tokens in expected.items():
        output = driver.last[request]
        if request in aborted:
            assert isinstance(output.error, AbortedError)
            assert tokens[: request.num_output_tokens] == request.output_token_ids
        else:
            assert output.error is None
            assert request.output_token_ids == tokens
            assert driver.text[request] == driver.runner.tokenizer.decode(tokens)
    driver.assert_idle()


def test_a_request_added_beside_a_step_is_in_the_next_one() -> None:
    driver = Driver()
    driver.add([1, 100], 4)
    added: list[Request] = []
    driver.meanwhile(lambda: added.append(driver.add([1, 101], 4)))
    driver.step()
    assert added[0].num_output_tokens == 0
    driver.step()
    assert added[0].num_output_tokens == 1


def test_a_request_aborted_beside_its_step_gets_nothing_of_it() -> None:
    driver = Driver()
    request, other = driver.add([1, 100, 101], 4), driver.add([1, 102], 4)
    driver.step()
    text = driver.text[request]
    driver.meanwhile(lambda: driver.engine.abort(request))
    driver.step()
    assert isinstance(driver.last[request].error, AbortedError)
    assert driver.text[request] == text
    driver.run()
    assert other.output_token_ids == naive_generate([1, 102], 4)
    driver.assert_idle()


def test_an_error_of_sampling_is_raised_after_the_step_was_accounted_for() -> None:
    driver = Driver()
    request = driver.add([1, 100, 101], 4)
    sample, driver.runner.sample = driver.runner.sample, _fail  # type: ignore[method-assign]
    driver.step()
    assert request.num_preemptions == 1
    driver.runner.sample = sample  # type: ignore[method-assign]
    driver.run()
    assert request.output_token_ids == naive_generate([1, 100, 101], 4)


def _fail(*_: object) -> None:
    raise RuntimeError("sampling was told to fail")
