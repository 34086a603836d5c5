"""Requests that go on behind output tokens of an earlier run: the same text, wherever it was cut."""

from __future__ import annotations

import random
from typing import Any

import pytest

from rtlang.contract.errors import ContextLengthError, ParameterError
from rtlang.contract.params import FinishReason
from tests.engine.test_engine import Driver
from tests.support.engine.fake_runner import logprob, naive_generate


def finished(driver: Driver, tokens: list[int], max_tokens: int, **rest: Any) -> tuple[list[int], str, Any]:
    """The tokens, the text that was given out and the last output of a request."""
    request = driver.add(tokens, max_tokens, **rest)
    driver.run()
    last = driver.last[request]
    assert last.error is None, last.error
    return request.output_token_ids, driver.text[request], last


@pytest.mark.parametrize("stops", [(), ("a", "de"), ("x",)])
def test_a_text_is_the_same_wherever_it_is_cut(stops: tuple[str, ...]) -> None:
    rng = random.Random(str(stops))
    driver = Driver(num_pages=200, max_step_tokens=16)
    for _ in range(6):
        prompt = [rng.randint(100, 110) for _ in range(rng.randint(1, 9))]
        options: dict[str, Any] = {"seed": rng.randint(0, 9), "params": {"stop": stops}}
        tokens, text, last = finished(driver, prompt, 14, **options)
        whole = last.request.output_text.text
        for cut in range(len(tokens) + 1):
            decoder = driver.runner.tokenizer.decoder()
            again, rest, end = finished(driver, prompt, 14, given_ids=tokens[:cut], **options)
            assert again == tokens
            assert end.request.output_text.text == whole
            assert end.finish_reason is last.finish_reason
            assert end.request.results.stop == last.request.results.stop
            assert text.endswith(rest)
            assert len(text) - len(rest) <= len(decoder.push(tokens[:cut]))
    driver.assert_idle()


def test_given_tokens_are_computed_in_one_pass_and_end_a_text_without_a_step() -> None:
    driver = Driver(num_pages=200, max_step_tokens=64)
    prompt = [100, 101, 102]
    expected = naive_generate(prompt, 20)
    num_steps = driver.engine.num_steps
    tokens, _, last = finished(driver, prompt, len(expected), given_ids=expected)
    assert (tokens, last.finish_reason) == (expected, FinishReason.LENGTH)
    assert driver.engine.num_steps == num_steps
    tokens, _, _ = finished(driver, prompt, len(expected), given_ids=expected[:-1])
    assert tokens == expected
    assert driver.engine.num_steps == num_steps + 1


def test_log_probabilities_of_given_tokens_are_computed_anew() -> None:
    driver = Driver(num_pages=200, max_step_tokens=8)
    prompt = [100, 101, 102, 103, 104]
    expected = naive_generate(prompt, 12)
    for cut, options in ((9, {"logprobs": 1}), (12, {"logprobs": 1}), (9, {"logprobs": 1, "prompt_logprobs": 0})):
        score_from = 1 if "prompt_logprobs" in options else None
        request = driver.add(prompt, 12, params=options, given_ids=expected[:cut], score_from=score_from)
        driver.run()
        sequence = prompt + expected
        wanted = [logprob(sequence[:index], sequence[index]) for index in range(len(prompt), len(prompt) + cut)]
        assert [each.logprob for each in request.results.logprobs[:cut]] == wanted
        assert request.output_token_ids == expected
        if score_from is not None:
            assert [each.token_id for each in request.prompt_scores] == prompt[1:]
    driver.assert_idle()


def test_tokens_that_no_run_could_have_given_are_refused() -> None:
    driver = Driver(num_pages=200, max_model_len=8)
    with pytest.raises(ParameterError, match="continue_from = 259"):
        driver.add([100], 4, given_ids=[259])
    with pytest.raises(ContextLengthError):
        driver.add([100], 4, given_ids=[100] * 8)


def test_an_abort_during_the_replay_ends_the_request() -> None:
    driver = Driver(num_pages=600)
    given = [103] * 1000
    request = driver.add([100], 2000, given_ids=given)
    driver.step()
    driver.engine.abort(request)
    driver.run()
    assert driver.last[request].finish_reason is FinishReason.CANCELLED
    driver.assert_idle()
