"""How many tokens a step may have, on a machine whose cost is known."""

from __future__ import annotations

import pytest

from rtlang.contract.runs.principal import LOCAL
from rtlang.engine.planning.step_cost import StepCost, StepSize
from rtlang.engine.requests.flow import Flow
from rtlang.engine.requests.request import Request
from rtlang.engine.scheduling.policy import fcfs
from rtlang.engine.scheduling.step_planner import (
    BACKGROUND_PART,
    BACKGROUND_TIME,
    GAP_IN_STEPS,
    MIN_CHUNK,
    StepPlanner,
)
from rtlang.engine.scheduling.turns import Turn, next_prompts
from tests.support.engine.policy_simulation import machine_s
from tests.support.requests import make_request


class ExactCost(StepCost):
    """Knows the machine."""

    def __init__(self) -> None:
        super().__init__()
        self.num_observed = 100

    def predict(self, size: StepSize) -> float:
        return machine_s(size)


def request(num_tokens: int, num_computed: int) -> Request:
    made = make_request(1, [1] * num_tokens)
    made.num_computed_tokens = num_computed
    return made


def turn(num_decodes: int, context: int = 500, *prefills: Request) -> Turn:
    return Turn(Flow(LOCAL, 1), [request(context + 1, context) for _ in range(num_decodes)], list(prefills))


def planner(cost: StepCost | None = None, target_gap_s: float | None = None) -> StepPlanner:
    return StepPlanner(
        cost or ExactCost(), max_step_tokens=1024, max_shared_step_tokens=128, max_rows=64, target_gap_s=target_gap_s
    )


def num_tokens(planner: StepPlanner, turns: list[Turn]) -> int:
    """With the prompts of the turns in the order in which they are given."""
    return planner.num_tokens(turns, next_prompts(turns, fcfs))


def largest(num_decodes: int, context: int, num_before: int, target: float) -> int:
    """By trying every number of tokens."""
    plain = StepSize(num_decodes, num_decodes, num_decodes * (context + 1), num_decodes * (context + 1))
    fitting = [size for size in range(1, 1025) if machine_s(plain.with_row(size, num_before)) <= target]
    return num_decodes + max(fitting, default=0)


def test_background_work_makes_a_step_a_tenth_longer_and_no_more() -> None:
    def tokens(live: int, background: Turn, cost: StepCost | None = None) -> int:
        running = {request(501, 500): 1 for _ in range(live)}
        return planner(cost).num_background_tokens(running, [background])

    for live in (0, 1, 16, 60):
        plain = StepSize(live, live, live * 501, live * 501)
        target = (1 + BACKGROUND_TIME) * machine_s(plain)
        fitting = [size for size in range(1, 129) if machine_s(plain.with_row(size, 0)) <= target]
        assert tokens(live, turn(0, 0, request(4000, 0))) == max(fitting, default=1)
        rows = StepSize(live + 8, live + 8, live * 501 + 8 * 501, live * 501 + 8 * 501)
        assert 1 <= tokens(live, turn(30)) <= 128
        assert (tokens(live, turn(30)) >= 8) == (machine_s(rows) <= target)
    assert tokens(4, turn(0, 0, request(4000, 0)), StepCost()) == 1024 // BACKGROUND_PART  # nothing is known yet
    assert planner().max_background_rows == 64 // BACKGROUND_PART


def test_a_prompt_alone_takes_the_whole_step() -> None:
    assert num_tokens(planner(), [turn(0, 0, request(8000, 1024))]) == 1024
    assert num_tokens(planner(), [turn(5)]) == 1024


@pytest.mark.parametrize("target_gap_s", [None, 0.08, 0.2])
@pytest.mark.parametrize("num_before", [0, 5000])
@pytest.mark.parametrize("num_decodes", [1, 8, 20])
def test_beside_decoding_rows_a_prompt_takes_what_fits_into_the_gap(
    num_decodes: int, num_before: int, target_gap_s: float | None
) -> None:
    turns = [turn(num_decodes, 500, request(9000, num_before))]
    plain = machine_s(StepSize(num_decodes, num_decodes, num_decodes * 501))
    expected = largest(num_decodes, 500, num_before, target_gap_s or GAP_IN_STEPS * plain)
    assert num_tokens(planner(target_gap_s=target_gap_s), turns) == max(expected, num_decodes + MIN_CHUNK)


def test_the_chunk_fits_behind_the_prompts_that_are_computed_next() -> None:
    long, short, fresh = request(9000, 5000), request(5020, 5000), request(9000, 0)
    behind = {
        each: num_tokens(planner(), [turn(8, 500, prompt)]) for each, prompt in (("long", long), ("fresh", fresh))
    }
    assert behind["long"] < behind["fresh"]
    assert num_tokens(planner(), [turn(8, 500, fresh, long)]) == behind["long"]  # the last goes first
    assert num_tokens(planner(), [turn(8, 500, long, fresh)]) == behind["fresh"]
    assert behind["long"] < num_tokens(planner(), [turn(8, 500, fresh, short)]) < behind["fresh"]


def test_waiting_prompts_behind_the_first_are_limited_as_well() -> None:
    flow = Flow(LOCAL, 1)
    for number in range(40):
        waiting = request(50, 0)
        flow.waiting.append((fcfs(waiting), number, waiting))
    turns = [Turn(flow, turn(8, 500).decodes)]
    expected = num_tokens(planner(), [turn(8, 500, request(9000, 0))])
    assert num_tokens(planner(), turns) == pytest.approx(expected, abs=2)
    assert planner().limit(turns) == 1024


def test_prompts_go_on_even_if_nothing_fits() -> None:
    assert num_tokens(planner(target_gap_s=1e-6), [turn(8, 500, request(9000, 0))]) == 8 + MIN_CHUNK


def test_several_clients_have_the_smaller_limit() -> None:
    assert num_tokens(planner(), [turn(0, 0, request(8000, 0)), turn(0, 0, request(100, 0))]) == 128
    assert num_tokens(planner(target_gap_s=9.0), [turn(2, 9, request(8000, 0)), turn(0, 0, request(100, 0))]) == 128


def test_nothing_is_limited_before_the_cost_is_known() -> None:
    unknown = planner(StepCost())
    assert num_tokens(unknown, [turn(8, 500, request(8000, 0))]) == 1024
    assert unknown.token_s == 0.0
