"""Steps that raise: the request that makes them fail is found, the others have the text of naive generation."""

from __future__ import annotations

import random
from concurrent.futures import Future
from typing import Any

import pytest

from rtlang.contract.errors import CapacityError, InternalError, OverloadError, RtlangError
from rtlang.engine.fault_isolation import MAX_FAILED_ALONE
from rtlang.engine.requests.request import Request
from tests.engine.test_engine import Driver, prompts
from tests.support.engine.fake_runner import FakeRunner, naive_generate


def error_of(driver: Driver, request: Request) -> RtlangError | None:
    return driver.last[request].error


def assert_unharmed(driver: Driver, request: Request) -> None:
    assert error_of(driver, request) is None
    prompt = request.token_ids[: request.num_prompt_tokens]
    assert request.output_token_ids == naive_generate(prompt, request.spec.params.max_tokens)


@pytest.mark.parametrize("when", ["raising", "raising_late"])
@pytest.mark.parametrize("num_bad", [1, 2, 5])
@pytest.mark.parametrize("max_rows", [3, 16])
def test_only_the_requests_that_raise_fail(when: str, num_bad: int, max_rows: int) -> None:
    rng = random.Random(f"{when}{num_bad}{max_rows}")
    driver = Driver(120, max_rows=max_rows, rebuild=lambda num_failed: driver.runner)
    requests = [driver.add(tokens[:20], 10) for tokens in prompts(rng, 24)]
    bad = set(rng.sample(requests, num_bad))
    getattr(driver.runner, when).update(request.request_id for request in bad)
    driver.run()
    for request in requests:
        if request in bad:
            assert isinstance(error_of(driver, request), InternalError)
            assert "told to" not in driver.last[request].error.message  # type: ignore[union-attr]
        else:
            assert_unharmed(driver, request)
    driver.assert_idle()


def test_a_request_that_begins_to_raise_in_mid_text_leaves_bystanders_alone() -> None:
    driver = Driver(120, max_rows=9)
    requests = [driver.add([1, 100 + i, 50, 51], 20) for i in range(9)]
    for _ in range(7):
        driver.step()
    driver.runner.raising.add(requests[4].request_id)
    driver.run()
    for request in requests:
        if request is requests[4]:
            assert isinstance(error_of(driver, request), InternalError)
            assert 5 <= request.num_output_tokens <= 7
        else:
            assert_unharmed(driver, request)
    driver.assert_idle()


def test_a_lack_of_memory_makes_steps_smaller_until_they_grow_again() -> None:
    driver = Driver(400, max_rows=16, max_step_tokens=256, eos_every=10**9)
    driver.runner.memory = 20
    requests = [driver.add([1, *range(30, 90), 100 + i], 6) for i in range(16)]
    driver.run()
    for request in requests:
        prompt = request.token_ids[: request.num_prompt_tokens]
        assert request.output_token_ids == naive_generate(prompt, 6, eos_every=10**9)
    driver.runner.memory = 1 << 30
    late = driver.add([1, 2], 300)
    driver.run()
    assert late.output_token_ids == naive_generate([1, 2], 300, eos_every=10**9)
    assert driver.engine._isolation.max_step_tokens == 256


def test_a_request_that_never_fits_into_memory_is_told_to_come_again() -> None:
    driver = Driver(64)
    driver.runner.memory = 0
    request = driver.add([1, *range(100, 120)], 6)
    driver.run()
    assert isinstance(error_of(driver, request), OverloadError)
    driver.assert_idle()


def test_a_broken_runner_is_rebuilt_and_all_requests_go_on() -> None:
    attempts: list[int] = []

    def rebuild(num_failed: int) -> FakeRunner:
        attempts.append(num_failed)
        driver.runner = FakeRunner(driver.runner.num_pages, driver.runner.page_size)
        return driver.runner

    driver = Driver(120, rebuild=rebuild)
    requests = [driver.add([1, 100 + i, 50, 51], 20) for i in range(9)]
    for _ in range(5):
        driver.step()
    driver.runner.is_broken = True
    driver.run()
    assert attempts == [0]
    for request in requests:
        assert_unharmed(driver, request)
    driver.assert_idle()


def test_requests_that_fail_again_after_a_rebuild_fail_for_good() -> None:
    driver = Driver(120, rebuild=lambda num_failed: driver.runner)
    bad = [driver.add([1, 100 + i], 4) for i in range(MAX_FAILED_ALONE)]
    driver.runner.raising.update(request.request_id for request in bad)
    driver.run()
    assert all(isinstance(error_of(driver, request), InternalError) for request in bad)
    good = driver.add([1, 100], 4)
    driver.run()
    assert_unharmed(driver, good)


def test_an_engine_whose_runner_cannot_be_rebuilt_gives_up() -> None:
    settings: dict[str, Any] = {"fail_at": set(range(1000))}
    driver = Driver(64, rebuild=lambda num_failed: driver.runner, **settings)
    for i in range(5 * MAX_FAILED_ALONE + 2):
        driver.add([1, 100 + i], 4)
        driver.run()
    driver.add([1, 90], 4)
    with pytest.raises(RuntimeError, match="rebuilt 5 times"):
        driver.run()


def test_requests_come_and_go_while_the_runner_is_rebuilt() -> None:
    rebuilt: Future[FakeRunner] = Future()
    driver = Driver(120, rebuild=lambda num_failed: rebuilt, eos_every=10**9)
    requests = [driver.add([1, 100 + i, 50, 51], 20) for i in range(9)]
    for _ in range(5):
        driver.step()
    driver.runner.is_broken = True
    driver.run()  # ends, although nothing has
    assert not driver.last
    driver.engine.abort(requests.pop())
    assert driver.engine.has_work
    driver.run()
    assert len(driver.last) == 1
    requests.append(driver.add([1, 120], 5))
    with pytest.raises(CapacityError):
        driver.add([1, 120], 100_000 // 2)
    assert not driver.engine.has_work
    rebuilt.set_result(FakeRunner(driver.runner.num_pages, driver.runner.page_size, eos_every=10**9))
    driver.run()
    for request in requests:
        prompt, num_tokens = request.token_ids[: request.num_prompt_tokens], request.spec.params.max_tokens
        assert request.output_token_ids == naive_generate(prompt, num_tokens, eos_every=10**9)
    driver.assert_idle()


def test_a_new_runner_without_room_for_the_pages_in_use_is_refused() -> None:
    driver = Driver(120, rebuild=lambda num_failed: FakeRunner(119, 4))
    driver.runner.is_broken = True
    driver.add([1, 100], 4)
    for _ in range(MAX_FAILED_ALONE):
        driver.add([1, 101], 4)
    with pytest.raises(RuntimeError, match="119 pages; the first one had 120"):
        driver.run()


def test_steps_that_fail_again_and_again_write_one_traceback(caplog: pytest.LogCaptureFixture) -> None:
    driver = Driver(120)
    requests = [driver.add([1, 100 + i], 4) for i in range(8)]
    driver.runner.raising.add(requests[5].request_id)
    driver.run()
    assert isinstance(error_of(driver, requests[5]), InternalError)
    assert sum("in a step" in record.getMessage() for record in caplog.records if record.exc_info) == 1
