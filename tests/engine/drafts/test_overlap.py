"""Drafts on a pipelined runner: rows wait for the tokens before their drafts, and only where that is worth the time."""

from __future__ import annotations

import random
from typing import Any

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import AbortedError
from rtlang.contract.step import StepOutput
from rtlang.engine.drafts.drafter import Drafter
from rtlang.engine.drafts.overlap import Overlap
from rtlang.engine.planning.step_cost import StepSize, size_of
from rtlang.engine.requests.credit import Credit
from rtlang.engine.requests.request import Request, RequestStatus
from tests.engine.test_engine import prompts
from tests.support.engine.draft_sources import FreeCost, Oracle
from tests.support.engine.engine_driver import EngineDriver, ExpectingDriver
from tests.support.engine.fake_device import FakeDeviceRunner
from tests.support.engine.fake_runner import EOS, FakeFlight, naive_generate
from tests.support.engine.open_constraint import OpenCompiler, OpenSession

NEVER = 10**9
WRONG = [3 + ord(letter) for letter in "abcxyz"]


class Driver(ExpectingDriver):
    """An engine on a fake device that drafts what an oracle says, or something else with probability `wrong`."""

    runner: FakeDeviceRunner

    def __init__(
        self,
        *,
        num_pages: int = 64,
        wrong: float = 0.0,
        limit: int = 7,
        rest_s: float = 0.0,
        **settings: Any,
    ) -> None:
        settings.setdefault("max_step_tokens", 64)
        of_runner = {name: settings.pop(name) for name in ("fail_at", "fail_collect_at") if name in settings}
        eos_every = settings.pop("eos_every", NEVER)
        self.silent: set[Request] = set()
        oracle = Oracle(
            lambda request: [] if request in self.silent else self.outputs.get(request, []),
            wrong=wrong,
            wrong_ids=[*WRONG, EOS],
        )
        overlap = Overlap(FreeCost(), lambda: rest_s)
        self.drafter = Drafter([oracle], FreeCost(), max_draft_tokens=limit, overlap=overlap)
        config = RuntimeConfig(page_size=4, num_pages=num_pages, **settings)
        runner = FakeDeviceRunner(num_pages, 4, eos_every=eos_every, **of_runner)
        super().__init__(runner, config, drafter=self.drafter)

    def check(self) -> None:
        for request, tokens in self.outputs.items():
            if self.last[request].error is None:
                assert request.output_token_ids == tokens
                assert self.text[request] == request.output_text.text == self.runner.tokenizer.decode(tokens)
        self.assert_idle()


@pytest.mark.parametrize("limit", [1, 3, 16])
def test_right_drafts_are_all_accepted(limit: int) -> None:
    driver = Driver(limit=limit)
    request = driver.add([1, 100, 101], 40)
    driver.run()
    driver.check()
    assert driver.engine.num_steps == -(-40 // (limit + 1))
    assert driver.drafter.num_accepted.total() == 40 - driver.engine.num_steps
    assert driver.runner.num_taken == 0
    assert request.pending.num_drafts == 0


@pytest.mark.parametrize("wrong", [0.2, 1.0])
@pytest.mark.parametrize("num_pages", [12, 24, 200])
@pytest.mark.parametrize("rest_s", [0.0, 0.6])
def test_random_batches_with_wrong_drafts_give_the_tokens_of_naive_generation(
    rest_s: float, num_pages: int, wrong: float
) -> None:
    rng = random.Random(f"{num_pages}{rest_s}{wrong}")
    driver = Driver(
        num_pages=num_pages,
        wrong=wrong,
        limit=rng.choice([2, 5, 16]),
        rest_s=rest_s,
        eos_every=40,
        max_rows=5,
        prefix_sharing=rng.random() < 0.5,
        max_step_tokens=rng.choice([5, 16, 64]),
    )
    for tokens in prompts(rng, 40):
        max_tokens = rng.randint(1, 16)
        params = {"min_tokens": min(rng.choice([0, 0, 3]), max_tokens)}
        driver.add(tokens[:30], max_tokens, seed=rng.randint(0, 3), priority=rng.randint(0, 2), params=params)
        for _ in range(rng.randint(0, 3)):
            driver.step()
        if rng.random() < 0.15 and (still_open := [each for each in driver.outputs if each not in driver.last]):
            driver.engine.abort(rng.choice(still_open))
            driver.engine.scheduler.check()
    driver.run()
    assert len(driver.last) == 40
    assert all(each.error is None or isinstance(each.error, AbortedError) for each in driver.last.values())
    driver.check()
    if wrong == 0.2:
        assert driver.drafter.num_accepted.total() > 0
    if wrong == 1.0 and num_pages == 200:
        assert driver.runner.num_taken > 20, "rows whose drafts are never right are launched ahead"


@pytest.mark.parametrize(("rest_s", "is_ahead"), [(0.0, False), (0.6, True)])
def test_rows_without_drafts_are_launched_ahead_if_the_runner_would_rest_too_long(
    rest_s: float, is_ahead: bool
) -> None:
    driver = Driver(num_pages=500, max_step_tokens=512, rest_s=rest_s)
    drafting = driver.add([1, 100, 101], 64)
    driver.silent = {driver.add([1, 50, 40 + index], 64) for index in range(8)}
    while drafting not in driver.last:
        driver.step()
    num_rows_ahead, num_steps = driver.runner.num_taken, driver.engine.num_steps
    driver.run()
    driver.check()
    assert driver.drafter.num_accepted.total() > 40
    assert (num_rows_ahead > 4 * num_steps) == is_ahead, f"{num_rows_ahead} in {num_steps} steps"


def test_failed_and_lost_steps_are_repeated_without_a_trace() -> None:
    driver = Driver(wrong=0.2, fail_at={2, 5}, fail_collect_at={8, 12})
    for index in range(4):
        driver.add([1, 100 + index, 7], 30)
    driver.run()
    assert all(each.error is None for each in driver.last.values())
    driver.check()


def test_credit_limits_drafts_in_flight_too() -> None:
    driver = Driver()
    credit = Credit(9)
    requests = [driver.add([1, 100 + index], 12, credit=credit) for index in range(3)]
    for _ in range(12):
        driver.step()
        credit.num_tokens = 9 - sum(request.num_output_tokens for request in requests)
        assert credit.num_tokens >= 0
    assert credit.num_tokens == 0
    assert {request.status for request in requests} == {RequestStatus.PARKED}
    driver.engine.grant(credit, 100)
    driver.run()
    driver.check()


class Alternating(OpenSession):
    """Refuses to draft after every third token, and replaces the last token that fits."""

    matcher = object()

    def __init__(self) -> None:
        self.num_accepted = 0

    @property
    def may_draft(self) -> bool:  # type: ignore[override]
        return self.num_accepted % 3 != 0

    def accept(self, token_id: int, remaining: int) -> int:
        self.num_accepted += 1
        self.is_complete = remaining == 2
        return 3 + ord("Z") if self.is_complete else token_id


@pytest.mark.parametrize("max_tokens", range(3, 12))
def test_a_replaced_token_ends_a_draft(max_tokens: int) -> None:
    driver = Driver()
    driver.engine._pipeline._compiler = OpenCompiler()  # type: ignore[assignment]
    request = driver.add([1, 100, 101], max_tokens)
    request.session = Alternating()  # type: ignore[assignment]
    other = driver.add([1, 100, 102], 20)
    driver.run()
    expected = naive_generate([1, 100, 101], max_tokens - 2, eos_every=NEVER)
    assert request.output_token_ids == [*expected, 3 + ord("Z")]
    assert other.output_token_ids == driver.outputs[other]
    driver.assert_idle()


class TimedDevice(FakeDeviceRunner):
    """A device whose clock moves while the host waits for results."""

    now = 0.0
    num_collected = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._free_at = 0.0  # when the device has computed everything
        self._ends: dict[int, float] = {}

    def launch(self, step: Any) -> FakeFlight:
        flight = super().launch(step)
        self._free_at = max(self._free_at, self.now) + machine_s(size_of(step))
        self._ends[step.step_id] = self._free_at
        return flight

    def collect(self, flight: FakeFlight) -> StepOutput:
        self.now = max(self.now, self._ends.pop(flight.step.step_id))
        self.num_collected += 1
        return super().collect(flight)


def machine_s(size: StepSize) -> float:
    """Weights are read in 5 ms, and a token takes 0.1 ms."""
    return 5e-3 + 1e-4 * size.num_tokens


def elapsed(host_s: float, num_rows: int, wrong: float, *, drafts: bool) -> tuple[float, int, int]:
    """Seconds of a run on a pretended device, its draft tokens, and those that were right."""
    runner = TimedDevice(1000, 4, eos_every=NEVER)
    outputs: dict[Request, list[int]] = {}
    driver = EngineDriver(runner, RuntimeConfig(page_size=4, num_pages=1000))
    engine = driver.engine
    engine._pipeline._clock = lambda: runner.now
    oracle = Oracle(outputs.__getitem__, wrong=wrong, wrong_ids=WRONG)
    overlap = Overlap(engine.step_cost, lambda: engine.step_cost.host_s)
    drafter = Drafter([oracle], engine.step_cost, overlap=overlap)
    if drafts:
        engine.scheduler._drafter = drafter
    for index in range(num_rows):
        request = driver.add([1, 100 + index, 7], 100)
        outputs[request] = naive_generate([1, 100 + index, 7], 100, eos_every=NEVER)
    while engine.has_work:
        num_collected = runner.num_collected
        driver.step()
        if runner.num_collected > num_collected:  # the host needs time for results
            runner.now += host_s
    for request, tokens in outputs.items():
        assert request.output_token_ids == tokens
    driver.assert_idle()
    return runner.now, drafter.num_drafted.total(), drafter.num_accepted.total()


@pytest.mark.parametrize("host_s", [2e-4, 2e-2])
@pytest.mark.parametrize("wrong", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("num_rows", [1, 8])
def test_drafts_count_the_time_for_which_the_device_rests(host_s: float, wrong: float, num_rows: int) -> None:
    """Drafts that are right save time; others cost next to none, also where the host is slower than the device."""
    plain, _, _ = elapsed(host_s, num_rows, wrong, drafts=False)
    found, num_drafted, num_accepted = elapsed(host_s, num_rows, wrong, drafts=True)
    assert found <= 1.05 * plain
    if wrong == 0.0 and num_rows == 1:
        assert found < 0.5 * plain
        assert num_accepted == num_drafted > 80
