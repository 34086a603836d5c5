"""The draft model runs where it saves time, and takes little where it does not. A step of the model takes a second here."""

from __future__ import annotations

import pytest

from rtlang.engine.drafts.model_policy import TRIAL_SHARE
from tests.engine.drafts.test_draft_model import Driver


@pytest.mark.parametrize("is_pipelined", [False, True])
@pytest.mark.parametrize("is_slow", [True, False])
def test_a_draft_model_that_does_not_pay_takes_a_small_share_of_the_time(is_slow: bool, is_pipelined: bool) -> None:
    """A step of the model takes 1 s: drafts that take as long as that never pay, nor do cheap ones that are never right."""
    step_s = 1.0 if is_slow else 0.1
    driver = Driver(
        num_draft_pages=128, wrong=0.0 if is_slow else 1.0, per_step=step_s, per_token=0.0, is_pipelined=is_pipelined
    )
    driver.policy._credit_s = saved = 4.0  # of earlier steps
    requests = [driver.add([1, 100 + index, 101], 240) for index in range(2)]
    driver.run()
    for request in requests:
        assert request.output_token_ids == driver.outputs[request]
    assert driver.model.num_steps > 0, "it is tried"
    until_known = 0.0 if is_slow else 1.0
    assert driver.model.seconds <= saved + until_known + TRIAL_SHARE * driver.engine.num_steps
    assert driver.engine.num_steps >= 230


@pytest.mark.parametrize("is_pipelined", [False, True])
def test_a_draft_model_that_becomes_right_is_used_again(is_pipelined: bool) -> None:
    driver = Driver(
        num_pages=128, num_draft_pages=128, wrong=1.0, per_step=0.1, per_token=0.0, is_pipelined=is_pipelined
    )
    request = driver.add([1, 100, 101], 460)
    while request.num_output_tokens < 100:
        driver.step()
    num_steps = driver.engine.num_steps
    driver.small.wrong = 0.0
    driver.run()
    assert request.output_token_ids == driver.outputs[request]
    assert driver.engine.num_steps - num_steps < 200


def test_a_long_prompt_is_not_caught_up_for_a_short_text() -> None:
    prompt = [1, *[60 + place % 90 for place in range(400)]]
    for max_tokens, is_drafted in ((4, False), (150, True)):
        driver = Driver(num_pages=256, num_draft_pages=256, per_step=0.1, per_token=0.02, max_step_tokens=512)
        request = driver.add(prompt, max_tokens)
        driver.run()
        assert request.output_token_ids == driver.outputs[request]
        assert bool(driver.drafter.num_drafted["draft_model"]) is is_drafted


def test_no_single_pause_is_longer_than_a_step_when_a_prompt_is_caught_up() -> None:
    driver = Driver(num_pages=256, num_draft_pages=256, per_step=0.1, per_token=0.005, max_step_tokens=512)
    driver.add([1, *[60 + place % 90 for place in range(600)]], 200)
    while driver.engine.has_work:
        before = driver.model.seconds
        driver.step()
        assert driver.model.seconds - before < 2.5
    assert driver.drafter.num_drafted["draft_model"] > 0
