"""The engine against naive generation, on a runner whose pages hold token ids (see fake_runner)."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import (
    AbortedError,
    CapacityError,
    ContextLengthError,
    NumericsError,
    ParameterError,
    RequestError,
)
from rtlang.contract.params import FinishReason
from rtlang.contract.step import Step
from rtlang.engine import engine as engine_module
from rtlang.engine.requests import output_processor
from rtlang.engine.requests.program_account import ProgramAccount
from rtlang.engine.requests.request import Request
from tests.support.engine.engine_driver import EngineDriver
from tests.support.engine.fake_runner import FakeRunner, logprob, naive_generate
from tests.support.engine.open_constraint import OpenCompiler, OpenSession


class Driver(EngineDriver):
    """An engine on a fake runner; settings of the runner and of RuntimeConfig by name."""

    runner: FakeRunner

    def __init__(self, num_pages: int = 64, page_size: int = 4, **settings: Any) -> None:
        settings.setdefault("max_step_tokens", 32)
        of_runner = {k: settings.pop(k) for k in ("eos_every", "max_model_len", "fail_at") if k in settings}
        rebuild = settings.pop("rebuild", None)
        config = RuntimeConfig(page_size=page_size, num_pages=num_pages, **settings)
        super().__init__(FakeRunner(num_pages, page_size, **of_runner), config, rebuild)


def prompts(rng: random.Random, count: int) -> list[list[int]]:
    """Prompts that share prefixes of all lengths."""
    made: list[list[int]] = [[1]]
    for _ in range(count):
        base = rng.choice(made)
        cut = rng.randint(1, len(base))
        made.append(base[:cut] + [rng.randint(100, 103) for _ in range(rng.randint(1, 20))])
    return made[1:]


@pytest.mark.parametrize("policy", ["program", "fcfs", "longest_prefix"])
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
        max_tokens = rng.randint(1, 16)
        request = driver.add(tokens, max_tokens, seed=rng.randint(0, 3), priority=rng.randint(0, 2))
        expected[request] = naive_generate(tokens, max_tokens, seed=request.spec.seed)
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
    if num_pages == 12 and not sharing:
        assert driver.engine.scheduler.num_preemptions > 0


def test_a_tiny_pool_preempts_and_resumes_exactly() -> None:
    driver = Driver(16, eos_every=10**9, max_rows=8)
    requests = [driver.add([1, 100 + i, 50, 51], 24) for i in range(6)]
    driver.run()
    assert driver.engine.scheduler.num_preemptions > 0
    for request in requests:
        assert request.output_token_ids == naive_generate(request.token_ids[:4], 24, eos_every=10**9)
        assert driver.last[request].finish_reason is FinishReason.LENGTH
    driver.assert_idle()


def test_a_prefix_that_is_not_cached_yet_is_computed_once_for_all_who_come_together() -> None:
    driver = Driver(200, max_step_tokens=16, eos_every=10**9)
    prefix = [1] + [100 + i % 7 for i in range(79)]
    requests = [driver.add([*prefix, 120 + i, 99, 98], 4) for i in range(8)]
    driver.run()
    for request in requests:
        assert request.output_token_ids == naive_generate(request.token_ids[:83], 4, eos_every=10**9)
    own = 8 * (3 + 3)  # three own prompt tokens, and all but the last output token
    assert driver.runner.num_computed == 80 + own
    assert sum(request.stats.num_cached_tokens for request in requests) == 7 * 80


def test_a_hit_inside_a_page_is_copied_not_computed() -> None:
    driver = Driver(64, eos_every=10**9)
    first = driver.add([1, 100, 101, 102, 103, 104, 105], 1)
    driver.run()
    before = driver.runner.num_computed
    second = driver.add([1, 100, 101, 102, 103, 104, 110, 111], 1)
    driver.run()
    assert second.stats.num_cached_tokens == 6
    assert driver.runner.num_computed - before == 2
    assert second.output_token_ids == naive_generate([1, 100, 101, 102, 103, 104, 110, 111], 1, eos_every=10**9)
    assert first in driver.last


def test_generated_tokens_are_found_again() -> None:
    driver = Driver(64, eos_every=10**9)
    first = driver.add([1, 100, 101], 20)
    driver.run()
    again = driver.add([*first.token_ids, 77], 1)
    driver.run()
    assert again.stats.num_cached_tokens == 22  # all but the last generated token, which was never computed
    driver.assert_idle()


def test_abort_frees_pages_at_once_and_keeps_what_was_computed() -> None:
    driver = Driver(64, eos_every=10**9)
    request = driver.add([1, *range(100, 120)], 50)
    for _ in range(6):
        driver.step()
    assert driver.engine.cache.num_in_use > 0
    driver.engine.abort(request)
    assert driver.engine.cache.num_in_use == 0
    driver.run()
    assert driver.last[request].finish_reason is FinishReason.CANCELLED
    again = driver.add([1, *range(100, 120)], 1)
    driver.run()
    assert again.stats.num_cached_tokens == 20


def test_logits_that_are_not_finite_fail_one_request() -> None:
    driver = Driver(64, eos_every=10**9)
    requests = [driver.add([1, 100 + i], 5) for i in range(4)]
    driver.runner.poison.add(requests[2].request_id)
    driver.run()
    assert isinstance(driver.last[requests[2]].error, NumericsError)
    for request in requests[:2] + requests[3:]:
        assert request.output_token_ids == naive_generate(request.token_ids[:2], 5, eos_every=10**9)
    driver.assert_idle()


@pytest.mark.parametrize("num_pages", [16, 64])
def test_scores_do_not_depend_on_chunks_hits_or_neighbours(num_pages: int) -> None:
    rng = random.Random(num_pages)
    driver = Driver(num_pages, max_step_tokens=7)
    wanted = []
    for tokens in prompts(rng, 25):
        tokens = tokens[:40]
        if len(tokens) < 2:
            continue
        start = rng.randint(1, len(tokens) - 1)
        generates = rng.random() < 0.5
        request = driver.add(tokens, 3, score_from=start, score_only=not generates)
        wanted.append((request, [logprob(tokens[:i], tokens[i]) for i in range(start, len(tokens))], generates, tokens))
        driver.step()
    driver.run()
    for request, scores, generates, tokens in wanted:
        assert [score.logprob for score in request.results.scores] == scores
        assert request.output_token_ids == (naive_generate(tokens, 3) if generates else [])
    driver.assert_idle()


def test_stops_and_limits() -> None:
    driver = Driver(64, eos_every=10**9)
    plain = naive_generate([1, 100], 12, eos_every=10**9)
    text = driver.runner.tokenizer.decode(plain)
    by_string = driver.add([1, 100], 12, params={"stop": (text[4:6],)})
    by_token = driver.add([1, 100], 12, params={"stop_token_ids": (plain[5],)})
    by_pattern = driver.add([1, 100], 12, params={"stop_regex": (text[3] + "." + text[5],)})
    driver.run()
    at = text.find(text[4:6])
    assert driver.text[by_string] == text[:at]
    assert by_string.output_text.token_ids == plain[:at]
    assert by_string.results.stop == text[4:6]
    assert by_token.output_token_ids == plain[: plain.index(plain[5])]
    assert by_token.results.stop == plain[5]
    assert driver.text[by_pattern] == by_pattern.output_text.text == text[:3]
    for request in (by_string, by_token, by_pattern):
        assert driver.last[request].finish_reason is FinishReason.STOP


def test_min_tokens_holds_ends_back() -> None:
    driver = Driver(64, eos_every=2)
    requests = [driver.add([1, 100 + i], 12, params={"min_tokens": 6}) for i in range(8)]
    ignoring = driver.add([1, 99], 12, params={"ignore_eos": True})
    driver.run()
    for request in requests:
        assert request.output_token_ids == naive_generate(request.token_ids[:2], 12, eos_every=2, min_tokens=6)
        assert request.num_output_tokens >= 6
    assert ignoring.num_output_tokens == 12


def test_requests_that_can_never_run_are_refused_with_the_numbers() -> None:
    driver = Driver(8, max_model_len=100)
    with pytest.raises(CapacityError) as capacity:
        driver.add([1] * 30, 8)
    assert (capacity.value.num_pages_needed, capacity.value.num_pages) == (10, 8)
    with pytest.raises(ContextLengthError) as length:
        driver.add([1] * 100, 8)
    assert length.value.num_prompt_tokens == 100
    with pytest.raises(RequestError):
        driver.add([], 8)
    with pytest.raises(ParameterError):
        driver.add([1], 8, params={"stop_token_ids": (9999,)})
    assert not driver.engine.has_work
    driver.assert_idle()


def test_max_tokens_is_cut_to_the_model_length() -> None:
    driver = Driver(64, max_model_len=20, eos_every=10**9)
    request = driver.add([1] * 15, 50)
    driver.run()
    assert request.num_output_tokens == 5
    assert driver.last[request].finish_reason is FinishReason.LENGTH


def test_a_token_that_the_model_does_not_have_fails_its_own_request_before_any_step() -> None:
    driver = Driver()
    driver.runner.model_config.vocab_size = 200  # the tokenizer has 259
    good = driver.add([5, 199])
    with pytest.raises(RequestError, match="contains token 230; the model's vocabulary has 200 tokens"):
        driver.add([5, 230, 7])
    driver.run()
    assert driver.last[good].error is None


class HeldSession(OpenSession):
    """Its masks are made when the test says so."""

    is_slow = True
    wake: Callable[[], None]

    def finish(self) -> None:
        self.is_preparing = False
        self.wake()

    def accept(self, token_id: int, remaining: int) -> int:
        assert not self.is_preparing
        return token_id


class HoldingCompiler(OpenCompiler):
    """Holds sessions that are slow."""

    def fill(self, sessions: list[Any], bitmask: NDArray[np.int32]) -> Future[None]:
        assert not any(session.is_preparing for session in sessions)
        return super().fill(sessions, bitmask)

    def prepare(self, session: HeldSession, wake: Callable[[], None], owner: object) -> None:
        session.is_preparing, session.wake = True, wake


def held_driver(num_pages: int = 64, **settings: Any) -> tuple[Driver, Request, HeldSession]:
    """An engine with one request whose second mask is being made."""
    driver = Driver(num_pages, eos_every=10**9, **settings)
    compiler: Any = HoldingCompiler()
    driver.engine._compiler = driver.engine._pipeline._compiler = driver.engine.preparation._compiler = compiler
    held, session = driver.add([1, 100, 101], 6, priority=1), HeldSession()
    held.session = session  # type: ignore[assignment]
    driver.step()
    assert held.is_awaiting_mask
    assert held.num_output_tokens == 1
    return driver, held, session


def test_a_mask_that_takes_long_holds_up_its_own_request_only() -> None:
    driver, held, session = held_driver()
    other = driver.add([1, 100, 102], 12)
    driver.run()  # ends, although one request has not: there is nothing to do until its mask is there
    assert other.output_token_ids == naive_generate([1, 100, 102], 12, eos_every=10**9)
    assert held.num_output_tokens == 1
    while held not in driver.last:
        assert not driver.engine.has_work
        session.finish()
        assert driver.engine.has_work
        driver.run()
    assert held.output_token_ids == naive_generate([1, 100, 101], 6, eos_every=10**9)
    driver.assert_idle()


def test_what_comes_while_a_mask_is_made_is_computed_and_what_is_held_can_be_aborted() -> None:
    driver, held, session = held_driver()
    driver.run()
    assert not driver.engine.has_work
    other = driver.add([1, 103], 3)
    assert driver.engine.has_work
    driver.run()
    assert other in driver.last
    driver.engine.abort(held)
    driver.run()
    assert isinstance(driver.last[held].error, AbortedError)
    session.finish()
    driver.assert_idle()


def test_a_held_request_that_is_preempted_waits_for_its_mask_too() -> None:
    driver, held, session = held_driver(num_pages=8, max_rows=8, policy="program")
    others = [driver.add([1, 100 + i, 50, 51], 16) for i in range(3)]
    for _ in range(200):
        if not driver.engine.has_work:
            break
        driver.step()
    assert all(other in driver.last for other in others)
    assert held.stats.num_preemptions > 0
    while held not in driver.last:
        session.finish()
        driver.run()
    assert held.output_token_ids == naive_generate([1, 100, 101], 6, eos_every=10**9)
    driver.assert_idle()


def test_a_mask_that_is_there_while_the_step_is_built_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    driver, held, session = held_driver()
    other = driver.add([1, 104], 3)
    other.session = HeldSession()  # type: ignore[assignment]
    driver.step()
    assert held.is_awaiting_mask
    assert other.is_awaiting_mask
    schedule = driver.engine.scheduler.schedule

    def is_ready_just_then(now: float, **rest: Any) -> Any:
        step = schedule(now, **rest)
        session.finish()
        return step

    monkeypatch.setattr(driver.engine.scheduler, "schedule", is_ready_just_then)
    driver.step()
    assert driver.engine.has_work
    driver.engine.abort(held)
    driver.engine.abort(other)
    driver.step()
    driver.assert_idle()


def test_the_record_of_work_names_the_graphs_of_a_step_and_each_graph_whose_results_are_processed() -> None:
    driver = Driver(120)
    graphs = {driver.add([1, 100 + i, 50], 4, program=ProgramAccount(0.0, graph_id=7 + i)): 7 + i for i in range(3)}
    seen: list[frozenset[int]] = []
    launch, advance = driver.runner.launch, output_processor.advance

    def watched_launch(step: Step) -> Any:
        seen.append(driver.engine.work.sample().at_work)
        return launch(step)

    def watched_advance(request: Request, *rest: Any) -> Any:
        assert driver.engine.work.sample().at_work == {graphs[request]}
        return advance(request, *rest)

    driver.runner.launch = watched_launch  # type: ignore[method-assign]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine_module, "advance", watched_advance)
        driver.engine.work.begin_turn()
        driver.run()
    assert seen
    assert set(seen) == {frozenset(graphs.values())}
    assert driver.engine.work.sample().at_work == frozenset()


def test_no_request_is_preempted_for_one_that_goes_after_it() -> None:
    """Under `fcfs` the older request would start again at once, and while it computes more than a step it would never get on."""
    driver = Driver(policy="fcfs", max_rows=1, eos_every=10**9, max_step_tokens=4)
    older = driver.add([1, *range(100, 120)], 8, priority=1)
    for _ in range(2):
        driver.step()
    newer = driver.add([1, 99, 98], 2, priority=0)
    driver.run()
    assert driver.engine.scheduler.num_preemptions == 0
    assert older in driver.last
    assert newer in driver.last


@pytest.mark.parametrize("gives_back", [True, False])
def test_cached_pages_leave_an_idle_pool_only_if_that_frees_memory(gives_back: bool) -> None:
    driver, prompt = Driver(), list(range(100, 120))
    driver.runner.gives_back = gives_back
    driver.add(prompt, 2)
    driver.run()
    driver.engine.rest(is_long=False)
    assert driver.engine.cache.peek(prompt) == 20
    driver.engine.rest(is_long=True)
    assert driver.engine.cache.peek(prompt) == (0 if gives_back else 20)
