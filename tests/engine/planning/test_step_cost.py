"""The cost model against machines whose true cost is known."""

from __future__ import annotations

import random

import pytest

from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, Step
from rtlang.engine.planning.step_cost import StepCost, StepSize, num_row_scores, size_of
from tests.support.long_tests import sized


def machine_cost(size: StepSize, *, weights_s: float, token_s: float, score_s: float) -> float:
    """A machine that reads all weights once or computes all tokens, whichever takes longer, and then attends."""
    return max(weights_s, token_s * size.num_tokens) + score_s * size.num_scores


MACHINES = {
    "small": {"weights_s": 1e-3, "token_s": 6e-5, "score_s": 2e-8},
    "large": {"weights_s": 25e-3, "token_s": 1.6e-3, "score_s": 4e-8},
    "device": {"weights_s": 2e-3, "token_s": 4e-6, "score_s": 1e-10},
}


def random_size(rng: random.Random) -> StepSize:
    size = StepSize(0)
    for _ in range(rng.choice((0, 1, 2, 8, 24))):
        size = size.with_row(1, rng.randrange(1, 2000), 1)
    if not size.num_tokens or rng.random() < 0.3:
        size = size.with_row(rng.choice((16, 60, 128, 500, 1000)), rng.randrange(0, 3000))
    return size


@pytest.mark.parametrize("name", MACHINES)
def test_predictions_of_random_steps_are_within_ten_percent(name: str) -> None:
    rng = random.Random(5)
    model = StepCost()
    for _ in range(400):
        size = random_size(rng)
        model.observe(size, machine_cost(size, **MACHINES[name]) * rng.gauss(1, 0.05))
    errors = []
    for _ in range(200):
        size = random_size(rng)
        true = machine_cost(size, **MACHINES[name])
        errors.append(abs(model.predict(size) - true) / true)
    assert sum(errors) / len(errors) < 0.10
    assert model.error < 0.15


def test_knots_that_were_not_observed_follow_their_neighbors() -> None:
    model = StepCost()
    for _ in range(20):
        model.observe(StepSize(8, 8, 800), 0.040)
        model.observe(StepSize(1, 1, 100), 0.025)
    assert 0.025 <= model.predict(StepSize(4, 4, 400)) <= 0.040
    assert 0.040 <= model.predict(StepSize(16, 16, 1600)) <= 0.120


def test_a_machine_that_becomes_slower_is_followed() -> None:
    model = StepCost()
    size = StepSize(8, 8, 800)
    for _ in range(200):
        model.observe(size, 0.010)
    assert model.predict(size) == pytest.approx(0.010, rel=0.02)
    for _ in range(60):
        model.observe(size, 0.020)
    assert model.predict(size) == pytest.approx(0.020, rel=0.1)


def test_a_single_stall_changes_little() -> None:
    model = StepCost()
    size = StepSize(8, 8, 800)
    for _ in range(50):
        model.observe(size, 0.010)
    model.observe(size, 1.0)
    assert model.predict(size) < 0.013


@pytest.mark.parametrize("seed", range(sized(60)))
def test_a_step_takes_time_however_much_the_times_of_others_vary(seed: int) -> None:
    """Drafts are chosen by tokens per second; a time of zero ended the engine on a machine with much else to do."""
    rng = random.Random(seed)
    model = StepCost()
    for _ in range(12):
        num_tokens = rng.choice((1, 2, 4, 8, 16, 17, 33, 100, 300, 1000))
        seconds = 0.005 * (1 + num_tokens / 16) * rng.choice((1, 1, 1, 10, 30))
        model.observe(StepSize(num_tokens, min(num_tokens, 16), num_tokens * 100, num_tokens * 50), seconds)
        for size in (1, 2, 3, 8, 16, 32, 50, 64, 250, 1024, 20_000):
            assert model.predict(StepSize(size, 1, size * 100, size * 50)) > 0


def test_the_weight_of_an_output_token_is_that_of_the_machine() -> None:
    model = StepCost()
    assert model.output_weight() is None
    for _ in range(40):
        for rows in (1, 8, 16):
            model.observe(StepSize(rows, rows, rows * 513, rows * 513), 0.004 + rows * 0.0005)
        for tokens in (128, 512):
            model.observe(StepSize(tokens, 1, num_row_scores(tokens, 0), tokens), 0.002 + tokens * 0.0001)
    weight = model.output_weight()
    assert weight == pytest.approx((0.012 / 16) / (0.0532 / 512), rel=0.1)


def test_nothing_is_predicted_before_the_first_observation() -> None:
    model = StepCost()
    assert model.predict(StepSize(100, 1, 5000)) == 0.0
    assert not model.is_settled
    model.observe(StepSize(0), 1.0)
    model.observe(StepSize(5), 0.0)
    assert model.num_observed == 0


def test_scores_count_the_keys_that_each_token_sees() -> None:
    assert num_row_scores(3, 10) == 11 + 12 + 13
    rows = (
        Row(1, (5, 6, 7), 10, (0,), 0, True, SamplingParams()),
        Row(2, (9,), 4, (1,), 0, False, SamplingParams(), score_token_ids=(1, 2)),
    )
    assert size_of(Step(1, rows)) == StepSize(4, 3, 36 + 5, 13 + 5)
    assert StepSize(1, 1, 5, 5).with_row(3, 10, 2) == StepSize(4, 3, 41, 18)
