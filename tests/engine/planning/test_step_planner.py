"""How many tokens a step may have, on a machine whose cost is known."""

from __future__ import annotations

import pytest

from rtlang.contract.params import SamplingParams
from rtlang.contract.principal import LOCAL
from rtlang.engine.detokenizer import IncrementalDetokenizer
from rtlang.engine.planning.step_cost import StepCost, StepSize
from rtlang.engine.planning.step_planner import GAP_IN_STEPS, MIN_CHUNK, StepPlanner
from rtlang.engine.request import Request
from rtlang.engine.shares.flow import Flow
from rtlang.engine.shares.turns import Turn
from tests.support.fake_runner import FakeTokenizer
from tests.support.policy_simulation import machine_s


class ExactCost(StepCost):
    """Knows the machine."""

    def __init__(self) -> None:
        super().__init__()
        self.num_observed = 100

    def predict(self, size: StepSize) -> float:
        return machine_s(size)


def request(num_tokens: int, num_computed: int) -> Request:
    params = SamplingParams()
    text = IncrementalDetokenizer(FakeTokenizer(), params)  # type: ignore[arg-type]
    made = Request(1, [1] * num_tokens, params, lambda output: None, text)
    made.num_computed_tokens = num_computed
    return made


def turn(num_decodes: int, context: int = 500, *prefills: Request) -> Turn:
    return Turn(Flow(LOCAL, 1), [request(context + 1, context) for _ in range(num_decodes)], list(prefills))


def planner(cost: StepCost | None = None, target_gap_s: float | None = None) -> StepPlanner:
    return StepPlanner(
        cost or ExactCost(), max_step_tokens=1024, max_shared_step_tokens=128, max_rows=64, target_gap_s=target_gap_s
    )


def largest(num_decodes: int, context: int, num_before: int, target: float) -> int:
    """By trying every number of tokens."""
    plain = StepSize(num_decodes, num_decodes, num_decodes * (context + 1))
    fitting = [size for size in range(1, 1025) if machine_s(plain.with_row(size, num_before)) <= target]
    return num_decodes + max(fitting, default=0)


def test_a_prompt_alone_takes_the_whole_step() -> None:
    assert planner().num_tokens([turn(0, 0, request(8000, 1024))]) == 1024
    assert planner().num_tokens([turn(5)]) == 1024


@pytest.mark.parametrize("target_gap_s", [None, 0.08, 0.2])
@pytest.mark.parametrize("num_before", [0, 5000])
@pytest.mark.parametrize("num_decodes", [1, 8, 20])
def test_beside_decoding_rows_a_prompt_takes_what_fits_into_the_gap(
    num_decodes: int, num_before: int, target_gap_s: float | None
) -> None:
    turns = [turn(num_decodes, 500, request(9000, num_before))]
    plain = machine_s(StepSize(num_decodes, num_decodes, num_decodes * 501))
    expected = largest(num_decodes, 500, num_before, target_gap_s or GAP_IN_STEPS * plain)
    assert planner(target_gap_s=target_gap_s).num_tokens(turns) == max(expected, num_decodes + MIN_CHUNK)


def test_the_chunk_fits_behind_the_longest_of_several_prompts() -> None:
    prompts = [request(9000, 0), request(9000, 5000), request(9000, 100)]
    expected = planner().num_tokens([turn(8, 500, prompts[1])])
    assert planner().num_tokens([turn(8, 500, *prompts)]) == expected
    assert expected < planner().num_tokens([turn(8, 500, prompts[0])])


def test_prompts_go_on_even_if_nothing_fits() -> None:
    assert planner(target_gap_s=1e-6).num_tokens([turn(8, 500, request(9000, 0))]) == 8 + MIN_CHUNK


def test_several_clients_have_the_smaller_limit() -> None:
    assert planner().num_tokens([turn(0, 0, request(8000, 0)), turn(0, 0, request(100, 0))]) == 128
    assert planner(target_gap_s=9.0).num_tokens([turn(2, 9, request(8000, 0)), turn(0, 0, request(100, 0))]) == 128


def test_nothing_is_limited_before_the_cost_is_known() -> None:
    unknown = planner(StepCost())
    assert unknown.num_tokens([turn(8, 500, request(8000, 0))]) == 1024
    assert unknown.token_s == 0.0
