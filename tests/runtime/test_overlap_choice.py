"""The choice between work beside steps and work before them, on made-up times."""

from __future__ import annotations

import random
from collections.abc import Callable

from rtlang.runtime.overlap_choice import TRY_EVERY, Median, OverlapChoice


def run(choice: OverlapChoice, work_s: float, idle_s: Callable[[bool], float], num_steps: int = 1000) -> float:
    """Let the choice see steps; returns the share of those with work beside them, of the last half."""
    num_beside = 0
    for number in range(num_steps):
        choice.note(work_s, idle_s(choice.is_beside))
        num_beside += choice.choose() and number >= num_steps // 2
    return num_beside / (num_steps // 2)


def test_work_is_done_beside_steps_if_that_costs_less_than_it_saves() -> None:
    share = run(OverlapChoice(), 300e-6, lambda is_beside: 40e-6 if is_beside else 5e-6)
    assert abs(share - (1 - 1 / TRY_EVERY)) < 0.01


def test_work_is_done_before_steps_if_it_would_stall_them() -> None:
    share = run(OverlapChoice(), 20e-6, lambda is_beside: 60e-6 if is_beside else 5e-6)
    assert abs(share - 1 / TRY_EVERY) < 0.01


def test_it_follows_a_change_of_the_machine() -> None:
    choice = OverlapChoice()
    assert run(choice, 300e-6, lambda is_beside: 40e-6 if is_beside else 5e-6) > 0.9
    assert run(choice, 300e-6, lambda is_beside: 900e-6 if is_beside else 5e-6, 4000) < 0.1
    assert run(choice, 300e-6, lambda is_beside: 40e-6 if is_beside else 5e-6, 4000) > 0.9


def test_single_long_steps_change_nothing() -> None:
    rng = random.Random(0)

    def idle_s(is_beside: bool) -> float:
        return 20e-3 * (rng.random() < 0.1) + (40e-6 if is_beside else 5e-6)

    assert run(OverlapChoice(), 300e-6, idle_s) > 0.9


def test_steps_without_outputs_teach_nothing() -> None:
    choice = OverlapChoice()
    assert run(choice, 0.0, lambda is_beside: 0.0) < 0.1
    assert not choice.is_worthwhile


def test_it_can_be_forced() -> None:
    assert run(OverlapChoice(is_forced=True), 1e-6, lambda is_beside: 1.0) == 1.0


def test_a_median_is_close_to_that_of_the_measurements() -> None:
    rng = random.Random(1)
    median = Median()
    for _ in range(3000):
        median.note(rng.lognormvariate(0.0, 1.0))
    assert median.seconds is not None
    assert 0.75 < median.seconds < 1.33
