"""The steps that are measured before the first request, on a runner with a clock of its own."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang.engine.planning.calibration import BUDGET_S, calibrated
from rtlang.engine.planning.step_cost import StepSize, size_of
from tests.support.policy_simulation import TimedRunner, machine_s


class ScaledRunner(TimedRunner):
    """A machine `speed` times as fast; the first step of each size takes ten times as long."""

    speed = 1.0

    def collect(self, flight: Any) -> Any:
        before = self.now
        result = super().collect(flight)
        size = size_of(flight.step)
        is_first = size not in self.sizes
        self.sizes.append(size)
        self.now = before + machine_s(size) / self.speed * (10 if is_first else 1)
        return result

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
