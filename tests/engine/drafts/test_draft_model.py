"""A draft model without a model: its runner checks that its pages hold the tokens of each request, and no text changes."""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.runs.principal import Principal
from rtlang.contract.step import Row, SampledRow, SampledToken, StepOutput
from rtlang.engine.drafts import draft_model
from rtlang.engine.drafts.draft_model import DraftModel
from rtlang.engine.drafts.drafter import Drafter
from rtlang.engine.drafts.model_policy import ModelPolicy
from rtlang.engine.drafts.overlap import Overlap
from rtlang.engine.planning.step_cost import StepSize
from tests.engine.test_engine import prompts
from tests.support.engine.engine_driver import ExpectingDriver
from tests.support.engine.fake_device import FakeDeviceRunner
from tests.support.engine.fake_runner import FakeFlight, FakeRunner

NEVER = 10**9


class Clock:
    """Seconds of a draft model, of which each step takes `per_step` and each token `per_token`."""

    def __init__(self, per_step: float, per_token: float) -> None:
        self.now, self.per_step, self.per_token = 0.0, per_step, per_token

    def __call__(self) -> float:
        return self.now


class SmallRunner(FakeRunner):
    """The runner of a draft model that is wrong with probability `wrong`."""

    clock: Clock
    wrong = 0.0
    rng = random.Random(1)

    def launch(self, step: Any) -> FakeFlight:
        self.clock.now += self.clock.per_step + self.clock.per_token * sum(len(row.token_ids) for row in step.rows)
        return super().launch(step)

    def sample(
        self, flight: FakeFlight, rows: Sequence[Row], bitmask: NDArray[np.int32] | None, walks: object = None
    ) -> None:
        super().sample(flight, rows, bitmask, walks)
        assert flight.result is not None
        found = [
            SampledRow((SampledToken(3 + ord("!")),)) if row.tokens and self.rng.random() < self.wrong else row
            for row in flight.result.rows
        ]
        flight.result = StepOutput(flight.result.step_id, tuple(found))


class ConstantCost:
    """Every step of the model takes a second."""

    def predict(self, size: StepSize) -> float:
        return 1.0


class Driver(ExpectingDriver):
    """An engine on a fake runner, or on one that pipelines steps as a device, with a draft model on another one."""

    runner: FakeRunner

    def __init__(
        self,
        *,
        num_pages: int = 64,
        num_draft_pages: int = 64,
        page_size: int = 4,
        wrong: float = 0.0,
        per_step: float = 0.01,
        per_token: float = 0.001,
        eos_every: int = NEVER,
        is_pipelined: bool = False,
        **settings: Any,
    ) -> None:
        settings.setdefault("max_step_tokens", 64)
        self.small = SmallRunner(num_draft_pages, page_size, eos_every=eos_every)
        self.small.clock, self.small.wrong, self.small.rng = Clock(per_step, per_token), wrong, random.Random(2)
        config = RuntimeConfig(page_size=page_size, num_pages=num_pages, **settings)
        runner: Any = self.small
        self.model = DraftModel(config, runner, 259, clock=self.small.clock)
        self.model.cost.observe(StepSize(1, 1, 10), per_step + per_token)
        cost = ConstantCost()
        overlap = Overlap(cost, lambda: 0.1) if is_pipelined else None
        self.policy = ModelPolicy(self.model, cost, overlap)
        self.drafter = Drafter([], cost, model=self.policy, overlap=overlap)
        kind = FakeDeviceRunner if is_pipelined else FakeRunner
        super().__init__(kind(num_pages, page_size, eos_every=eos_every), config, drafter=self.drafter)

    def step(self) -> None:
        super().step()
        self.model.pages.check()

    def check_end(self) -> None:
        self.assert_idle()
        assert self.model.pages.cache.num_in_use == 0
        assert not self.model.pages._sequences


@pytest.mark.parametrize("num_requests", [1, 3])
def test_rows_of_a_pipeline_wait_for_a_draft_model_that_is_right(num_requests: int) -> None:
    driver = Driver(is_pipelined=True, num_pages=128, num_draft_pages=128)
    requests = [driver.add([1, 100 + index, 101, 102, 103], 60) for index in range(num_requests)]
    driver.run()
    for request in requests:
        assert request.output_token_ids == driver.outputs[request]
    assert driver.drafter.num_accepted == driver.drafter.num_drafted
    assert driver.drafter.num_drafted["draft_model"] > 0.8 * 60 * num_requests
    assert driver.runner.max_rows_seen == num_requests
    driver.check_end()


def test_the_same_model_is_always_right() -> None:
    driver = Driver()
    request = driver.add([1, 100, 101, 102, 103], 60)
    driver.run()
    assert request.output_token_ids == driver.outputs[request]
    assert driver.drafter.num_accepted == driver.drafter.num_drafted
    assert driver.drafter.num_drafted["draft_model"] == 60 - driver.engine.num_steps
    assert driver.engine.num_steps < 15
    assert request.stats.drafts == {"draft_model": (60 - driver.engine.num_steps,) * 2}
    driver.check_end()


@pytest.mark.parametrize("wrong", [0.1, 0.6])
@pytest.mark.parametrize(("num_pages", "num_draft_pages"), [(12, 64), (64, 10), (200, 200)])
@pytest.mark.parametrize(("sharing", "is_pipelined"), [(True, False), (False, False), (True, True)])
def test_random_batches_give_the_tokens_of_naive_generation(
    sharing: bool, is_pipelined: bool, num_pages: int, num_draft_pages: int, wrong: float
) -> None:
    rng = random.Random(f"{num_pages}{num_draft_pages}{sharing}{wrong}")
    driver = Driver(
        num_pages=num_pages,
        num_draft_pages=num_draft_pages,
        wrong=wrong,
        eos_every=40,
        prefix_sharing=sharing,
        max_rows=5,
        max_step_tokens=rng.choice([5, 16, 64]),
        is_pipelined=is_pipelined,
    )
    aborted = set()
    for tokens in prompts(rng, 40):
        tokens = tokens[:30]
        max_tokens = rng.randint(1, 16)
        driver.add(
            tokens,
            max_tokens,
            seed=rng.randint(0, 3),
            choice=rng.randint(0, 1),
            params={"min_tokens": min(rng.choice([0, 0, 3]), max_tokens)},
            principal=rng.choice([Principal(), Principal(namespace="other")]),
        )
        for _ in range(rng.randint(0, 3)):
            driver.step()
        if rng.random() < 0.15:
            open_requests = [each for each in driver.outputs if each not in driver.last]
            if open_requests:
                victim = rng.choice(open_requests)
                driver.engine.abort(victim)
                aborted.add(victim)
    driver.run()
    for request, tokens in driver.outputs.items():
        if request not in aborted:
            assert request.output_token_ids == tokens
    assert driver.drafter.num_accepted["draft_model"] > 0
    driver.check_end()


def test_choices_of_one_prompt_compute_it_once() -> None:
    driver = Driver(num_pages=256, num_draft_pages=256)
    prompt = [1, *range(60, 160)]
    requests = [driver.add(prompt, 40, choice=choice) for choice in range(4)]
    driver.run()
    for request in requests:
        assert request.output_token_ids == driver.outputs[request]
    assert driver.small.num_computed < len(prompt) + 4 * (4 + 2 * 40)
    driver.check_end()


def test_namespaces_share_no_pages() -> None:
    prompt = [1, *range(60, 124)]
    num_computed = []
    for namespace in ("one", "two"):
        driver = Driver(num_pages=256, num_draft_pages=256)
        for each in ("one", namespace):
            driver.add(prompt, 20, principal=Principal(namespace=each))
            driver.run()
        num_computed.append(driver.small.num_computed)
    assert num_computed[1] >= num_computed[0] + 60


def test_a_draft_model_that_fails_rests_and_fails_no_request(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draft_model, "FIRST_REST", 16)
    driver = Driver(num_pages=256, num_draft_pages=256)
    driver.small.is_broken = True
    with caplog.at_level(logging.WARNING):
        requests = [driver.add([1, 100 + index], 40) for index in range(2)]
        driver.run()
    assert [request.output_token_ids for request in requests] == [driver.outputs[request] for request in requests]
    assert len(caplog.records) == 1
    assert driver.model.num_failures == 2
    driver.check_end()


def test_a_failure_leaves_no_wrong_page_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draft_model, "FIRST_REST", 16)
    driver = Driver(num_pages=128, num_draft_pages=128)
    driver.small.fail_at = {2, 7}
    request = driver.add([1, 100, 101], 200)
    driver.run()
    assert request.output_token_ids == driver.outputs[request]
    assert driver.model.num_failures == 2
    assert driver.drafter.num_accepted["draft_model"] > 20
    driver.check_end()


def test_logits_that_are_not_finite_end_a_draft() -> None:
    driver = Driver()
    requests = [driver.add([1, 100 + index, 7], 20) for index in range(2)]
    driver.small.poison = {requests[0].request_id}
    driver.run()
    for request in requests:
        assert request.output_token_ids == driver.outputs[request]
    assert not requests[0].stats.drafts
    assert requests[1].stats.drafts


class QueuedRunner(SmallRunner):
    """The runner of a draft model on the device of the model, which may still compute a step of it for `queued_s`."""

    queued_s, device_s = 0.0, 0.01

    def collect(self, flight: FakeFlight) -> StepOutput:
        self.clock.now += self.queued_s + self.device_s
        return replace(super().collect(flight), device_s=self.device_s)


def test_the_time_of_the_step_in_flight_is_not_that_of_the_draft_model() -> None:
    runner: Any = QueuedRunner(64, 4)
    runner.clock = Clock(0.002, 0.0)
    model = DraftModel(RuntimeConfig(page_size=4), runner, 259, clock=runner.clock)
    driver = Driver()
    request = driver.add([1, 100, 101], 60)
    driver.step()
    for runner.queued_s in (0.0, 5.0):
        seconds, num_steps = model.seconds, model.num_steps
        model.draft({request: 6})
        assert model.num_steps > num_steps + 3
        assert model.seconds - seconds == pytest.approx((model.num_steps - num_steps) * (0.002 + runner.device_s))
    assert model.cost.predict(StepSize(1, 1, 5)) < 0.02
