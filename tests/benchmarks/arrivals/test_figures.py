"""Figures against numbers worked out by hand."""

from __future__ import annotations

import math

import pytest

from rtlang.bench.workloads.load import Call, ProgramLoad
from rtlang.contract.config import RuntimeConfig
from rtlang.engine.planning.step_cost import StepSize
from rtlang_bench.arrivals.figures import PlainSteps, figures_of, gaps_of, steady_gaps_of
from rtlang_bench.arrivals.timed_engine import Gap, ProgramRecord, StepRecord
from tests.support.engine.timed_engine import pretended_engine


def _plain(num_rows: int, seconds: float) -> StepRecord:
    return StepRecord(0.0, seconds, seconds, num_rows, num_rows, num_rows)


def test_the_target_is_four_plain_steps_of_as_many_rows() -> None:
    prompt = StepRecord(0.0, 9.0, 9.0, 100, 1, 2)
    plain = PlainSteps([_plain(1, 0.1), _plain(1, 0.3), _plain(1, 0.2), _plain(8, 0.9), prompt])
    assert plain.seconds(1) == pytest.approx(0.2)
    assert plain.target_s(8) == pytest.approx(3.6)
    assert plain.seconds(4) == pytest.approx(0.2 + 0.7 * 3 / 7)
    assert plain.seconds(100) == pytest.approx(0.9)
    assert PlainSteps([_plain(1, 0.1)], 0.07).target_s(5) == 0.07
    assert math.isnan(PlainSteps([]).target_s(1))


def test_gaps_are_compared_with_the_target_of_their_step() -> None:
    run = pretended_engine(RuntimeConfig())
    run.steps = [_plain(1, 0.1), _plain(8, 0.5)]
    plain = PlainSteps(run.steps)
    gaps = [Gap(0.4, 0, 0.8), Gap(0.4, 1, 1.0)]
    assert gaps_of(run, plain, gaps) == pytest.approx([1.0, 0.2])
    assert gaps_of(run, plain, gaps, wall=True) == pytest.approx([2.0, 0.5])


def test_steady_gaps_leave_out_the_time_at_which_the_machine_was_slow() -> None:
    run = pretended_engine(RuntimeConfig())
    one, two = StepSize(1, 1), StepSize(17, 1)
    for number in range(30):
        slow = 3.0 if number == 5 else 1.0
        run.steps.append(StepRecord(0.0, 0.1 * slow, 0.1, 1, 1, 1, one, one))
        run.steps.append(StepRecord(0.0, 0.4 * slow, 0.4, 17, 1, 2, two, one))
    plain = PlainSteps(run.steps)
    gaps = [Gap(0.3, 10), Gap(1.2, 11), Gap(1.5, 11, num_steps=2), Gap(0.4, 21)]
    assert steady_gaps_of(run, plain, gaps) == pytest.approx([0.25, 1.0, 1.25, 1.0], rel=0.02)


def test_noise_is_the_spread_of_the_same_work() -> None:
    plain = PlainSteps([*(_plain(8, 0.1) for _ in range(98)), _plain(8, 0.17), _plain(9, 0.15), _plain(1, 9.0)])
    assert plain.noise(8) == pytest.approx(1.5)
    assert math.isnan(plain.noise(100))


def test_figures_of_a_run() -> None:
    run = pretended_engine(RuntimeConfig())
    one = StepSize(1, 1)
    run.steps = [
        StepRecord(10.5, 0.5, 0.4, 20, 0, 1, StepSize(20)),
        *(StepRecord(10.6 + i / 10, 0.1, 0.12, 1, 1, 1, one, one) for i in range(5)),
    ]
    load = ProgramLoad(10.0, [Call(20, 6)])
    run.records = [ProgramRecord(load, 0, [0.5], 0, [Gap(0.1, 1 + i, 0.2) for i in range(5)], 11.0, 6)]
    run.now, run.busy_s = 14.0, 1.0
    found = figures_of("w", "s", [run], PlainSteps(run.steps))
    assert found.first_token_s == (0.5, 0.5)
    assert found.gap == pytest.approx((0.25, 0.25, 0.25))
    assert found.latency_s == pytest.approx((1.0, 1.0))
    assert found.output_tokens_per_s == pytest.approx(1.5)
    assert found.busy_share == pytest.approx(0.25)
    assert found.cost_error == pytest.approx((0.2, 0.2))
    assert found.wall_gap == pytest.approx(0.5)
    assert found.steady_gap == pytest.approx(0.25)
    assert (
        str(found)
        == "| w | s | 500 ms / 500 ms | 0.25 / 0.25 / 0.25 | 0.50 | 0.25 | 2 | 25% | 1.00 s / 1.00 s | 20% / 20% |"
    )
