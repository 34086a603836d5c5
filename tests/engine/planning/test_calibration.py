"""The steps that are measured before the first request, on a runner with a clock of its own."""

from __future__ import annotations

from time import perf_counter, thread_time
from typing import Any

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.engine.planning.calibration import BUDGET_S, calibrated, clock_of, measured_cost
from rtlang.engine.planning.step_cost import StepSize, size_of
from tests.support.engine.policy_simulation import TimedRunner, machine_s


class ScaledRunner(TimedRunner):
    """A machine `speed` times as fast; the first step of each size takes ten times as long."""

    speed = 1.0
    more_score_s = 0.0

    def collect(self, flight: Any) -> Any:
        before = self.now
        result = super().collect(flight)
        size = size_of(flight.step)
        is_first = size not in self.sizes
        self.sizes.append(size)
        self.now = before + self.seconds(size) * (10 if is_first else 1)
        return result

    def seconds(self, size: StepSize) -> float:
        return (machine_s(size) + self.more_score_s * size.num_scores) / self.speed

    @property
    def sizes(self) -> list[StepSize]:
        return self.__dict__.setdefault("seen", [])


@pytest.mark.parametrize(("speed", "num_pages"), [(1.0, 64), (100.0, 64), (100.0, 3)])
def test_the_cost_is_known_within_the_budget(speed: float, num_pages: int) -> None:
    runner: Any = ScaledRunner(num_pages, 16)
    runner.speed = speed
    cost = calibrated(runner, 16, clock=lambda: runner.now)
    slowest = max(machine_s(size) / speed for size in runner.sizes)
    assert runner.now <= BUDGET_S + 10 * slowest
    for size in {each for each in runner.sizes if runner.sizes.count(each) == 2}:
        assert cost.predict(size) == pytest.approx(machine_s(size) / speed, rel=0.25)
    assert cost.is_settled or speed == 1.0 or num_pages == 3


def test_the_time_of_scores_is_known_after_load() -> None:
    runner: Any = ScaledRunner(2000, 16)
    runner.slots[:] = 0  # the keys of earlier tokens need not have been computed
    runner.speed, runner.more_score_s = 100.0, 1e-6
    cost = calibrated(runner, 16, clock=lambda: runner.now)
    for num_before, error in ((0, 0.25), (1000, 0.25), (4000, 0.4)):
        size = StepSize(0).with_row(32, num_before)
        assert cost.predict(size) == pytest.approx(runner.seconds(size), rel=error)


def test_a_step_that_is_too_long_for_the_model_is_not_measured() -> None:
    runner: Any = ScaledRunner(2000, 16)
    runner.speed, runner.max_model_len = 100.0, 512
    calibrated(runner, 16, clock=lambda: runner.now)
    assert max(size.num_tokens for size in runner.sizes) == 128
    assert all(size.num_scores <= 128 * 129 // 2 for size in runner.sizes)


def test_the_steps_of_a_device_have_no_more_rows_than_it_takes() -> None:
    for device, max_rows, most in (("cuda", 2, 1), ("cuda", 8, 8), ("cpu", 2, 8)):
        runner: Any = ScaledRunner(2000, 16)
        runner.is_pipelined = device != "cpu"
        runner.slots[:] = 0
        assert clock_of(runner) is (thread_time if device == "cpu" else perf_counter)
        assert measured_cost(RuntimeConfig(device=device, max_rows=max_rows), runner).num_observed > 0
        assert max(size.num_samples for size in runner.sizes) == most
    assert measured_cost(RuntimeConfig(device="interpreter"), runner).num_observed == 0
