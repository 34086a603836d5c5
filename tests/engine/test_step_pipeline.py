"""Overlapping steps give what steps one after the other give, whatever ends, fails or is replaced in between."""

from __future__ import annotations

import random
from typing import Any

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import AbortedError, NumericsError
from rtlang.contract.params import FinishReason
from rtlang.engine.requests.request import Request
from tests.engine.test_engine import prompts
from tests.support.engine.engine_driver import EngineDriver
from tests.support.engine.fake_device import FakeDeviceRunner
from tests.support.engine.fake_runner import logprob, naive_generate
from tests.support.engine.open_constraint import OpenCompiler, OpenSession


class Driver(EngineDriver):
    """An engine on a fake device; settings of the runner and of RuntimeConfig by name."""

    runner: FakeDeviceRunner

    def __init__(self, num_pages: int = 64, page_size: int = 4, **settings: Any) -> None:
        settings.setdefault("max_step_tokens", 32)
        names = ("eos_every", "max_model_len", "fail_at", "fail_collect_at", "poison")
        of_runner = {name: settings.pop(name) for name in names if name in settings}
        config = RuntimeConfig(page_size=page_size, num_pages=num_pages, **settings)
        super().__init__(FakeDeviceRunner(num_pages, page_size, **of_runner), config)


@pytest.mark.parametrize("policy", ["program", "longest_prefix"])
@pytest.mark.parametrize("num_pages", [12, 24, 200])
@pytest.mark.parametrize("sharing", [True, False])
def test_random_batches_give_the_tokens_of_naive_generation(policy: str, num_pages: int, sharing: bool) -> None:
    rng = random.Random(f"{policy}{num_pages}{sharing}")
    driver = Driver(
        num_pages, policy=policy, prefix_sharing=sharing, max_rows=5, max_step_tokens=rng.choice([5, 16, 64])
    )
    expected: dict[Request, list[int]] = {}
    aborted = set()
    for tokens in prompts(rng, 60):
        tokens = tokens[:30]
        max_tokens, min_tokens = rng.randint(1, 16), rng.choice([0, 0, 3])
        min_tokens = min(min_tokens, max_tokens)
        request = driver.add(
            tokens, max_tokens, seed=rng.randint(0, 3), priority=rng.randint(0, 2), params={"min_tokens": min_tokens}
        )
        expected[request] = naive_generate(tokens, max_tokens, seed=request.spec.seed, min_tokens=min_tokens)
        for _ in range(rng.randint(0, 3)):
            driver.step()
        if rng.random() < 0.15:
            victim = rng.choice([r for r in expected if r not in driver.last] or [request])
            if victim not in driver.last:
                driver.engine.abort(victim)
                aborted.add(victim)
                driver.engine.scheduler.check()
    driver.run()
    assert len(driver.last) == 60
    for request, tokens in expected.items():
        if request in aborted:
            assert isinstance(driver.last[request].error, AbortedError)
        else:
            assert request.output_token_ids == tokens
            assert driver.text[request] == request.output_text.text == driver.runner.tokenizer.decode(tokens)
    driver.assert_idle()
    assert driver.runner.num_taken > 50
    if num_pages == 12 and not sharing:
        assert driver.engine.scheduler.num_preemptions > 0


def test_the_host_sees_a_token_one_step_late() -> None:
    driver = Driver()
    request = driver.add([1, 100, 101], 3)
    driver.step()
    assert request.output_token_ids == []
    driver.step()
    assert len(request.output_token_ids) == 1
    driver.run()
    assert request.output_token_ids == naive_generate([1, 100, 101], 3)
    assert driver.runner.num_computed == 3 + 2, "no row is computed after the last token that may come"


def test_scores_of_a_prompt_in_chunks_come_whole_and_once() -> None:
    driver = Driver(max_step_tokens=5)
    tokens = [1, *range(100, 123)]
    only = driver.add(tokens, 4, score_from=3, score_only=True)
    both = driver.add(tokens[:14], 4, score_from=2)
    driver.run()
    assert driver.last[only].error is None
    assert [score.logprob for score in only.results.scores] == [logprob(tokens[:i], tokens[i]) for i in range(3, 24)]
    assert [score.logprob for score in both.results.scores] == [logprob(tokens[:i], tokens[i]) for i in range(2, 14)]
    assert both.output_token_ids == naive_generate(tokens[:14], 4)
    driver.assert_idle()


def test_a_step_that_cannot_be_launched_is_repeated() -> None:
    driver = Driver(fail_at={3, 6}, max_rows=2)
    requests = [driver.add([1, 100 + i, 7], 6) for i in range(4)]
    driver.run()
    for request in requests:
        assert driver.last[request].error is None
        assert request.output_token_ids == naive_generate(request.token_ids[:3], 6)
    driver.assert_idle()


def test_lost_results_empty_the_cache_and_are_computed_again() -> None:
    driver = Driver(fail_collect_at={2, 7}, max_rows=2, eos_every=10**9)
    requests = [driver.add([1, 100 + i, 7, 8, 9, 10], 6) for i in range(3)]
    driver.run()
    for request in requests:
        assert driver.last[request].error is None
        assert request.output_token_ids == naive_generate(request.token_ids[:6], 6, eos_every=10**9)
    driver.assert_idle()


class Steered(OpenSession):
    """Replaces the last token that fits, and is complete with it."""

    matcher = object()

    def accept(self, token_id: int, remaining: int) -> int:
        self.is_complete = remaining == 2
        return 3 + ord("Z") if self.is_complete else token_id


@pytest.mark.parametrize("max_tokens", range(3, 12))
def test_what_was_computed_for_a_replaced_token_is_not_kept(max_tokens: int) -> None:
    """A replaced token ends the request while the row after the drawn one is in flight: its page holds another token than the text."""
    driver = Driver(eos_every=10**9)
    driver.engine._pipeline._compiler = OpenCompiler()  # type: ignore[assignment]
    request = driver.add([1, 100, 101], max_tokens)
    request.session = Steered()  # type: ignore[assignment]
    driver.run()
    assert request.output_token_ids == [*naive_generate([1, 100, 101], max_tokens - 2, eos_every=10**9), 3 + ord("Z")]
    after = driver.add(
        [*request.token_ids, 102, 103], 3
    )  # the fake runner looks at every token of the pages that it reads
    driver.run()
    assert after.stats.num_cached_tokens >= len(request.token_ids) - 1 - driver.engine.cache.page_size
    assert after.output_token_ids == naive_generate([*request.token_ids, 102, 103], 3, eos_every=10**9)
    driver.assert_idle()


def test_a_row_that_is_not_finite_fails_alone() -> None:
    driver = Driver(poison={2}, eos_every=10**9)
    requests = [driver.add([1, 100 + i], 4) for i in range(3)]
    driver.run()
    assert isinstance(driver.last[requests[1]].error, NumericsError)
    for request in (requests[0], requests[2]):
        assert driver.last[request].finish_reason is FinishReason.LENGTH
    driver.assert_idle()
