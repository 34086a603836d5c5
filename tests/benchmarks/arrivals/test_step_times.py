"""The fit against a machine whose times are known."""

from __future__ import annotations

import math
import random

import pytest

from rtlang.engine.planning.step_cost import StepSize
from rtlang_bench.arrivals.step_times import StepTimes
from rtlang_bench.arrivals.timed_engine import StepRecord


def _machine_s(size: StepSize) -> float:
    return 0.01 + 0.001 * size.num_tokens + 2e-8 * size.num_scores + 4e-8 * size.num_keys


def test_times_are_those_of_the_machine_at_rest() -> None:
    rng = random.Random(1)
    steps = []
    for number in range(400):
        size = StepSize(0)
        for _ in range(rng.choice((1, 4, 8))):
            size = size.with_row(1, rng.randrange(2000), 1)
        size = size.with_row(rng.choice((1, 16, 64, 200)), rng.randrange(4000))
        slow = 3.0 if number % 10 == 0 else rng.gauss(1, 0.02)
        steps.append(StepRecord(0.0, _machine_s(size) * slow, 0.0, size.num_tokens, 1, 1, size))
    times = StepTimes(steps)
    for step in steps:
        assert times.seconds(step.size) == pytest.approx(_machine_s(step.size), rel=0.05)


def test_nothing_is_known_without_steps() -> None:
    assert math.isnan(StepTimes([]).seconds(StepSize(1)))
