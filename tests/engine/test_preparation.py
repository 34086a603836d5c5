"""Requests that other threads work on sit out the steps, and every text stays the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import AbortedError, ConstraintError
from rtlang.engine.requests.request import Request
from rtlang_grammars.spec.work_limit import WorkLimit
from tests.support.engine.engine_driver import EngineDriver
from tests.support.engine.fake_device import FakeDeviceRunner
from tests.support.engine.fake_runner import FakeRunner, naive_generate
from tests.support.engine.open_constraint import OpenCompiler, OpenSession

PROMPT = [1, 100, 101]
EXPECTED = naive_generate(PROMPT, 6, eos_every=10**9)


class LateSession(OpenSession):
    """Every second token is too much work; it is accepted when the test says so."""

    matcher = object()

    def __init__(self) -> None:
        self.num_accepted = 0
        self.result: Callable[[], int] | None = None

    def try_accept(self, token_id: int, remaining: int, work: WorkLimit) -> bool:
        assert not self.is_preparing
        return self.result is not None or self.num_accepted % 2 == 0

    def accept(self, token_id: int, remaining: int) -> int:
        assert not self.is_preparing
        self.num_accepted += 1
        result, self.result = self.result, None
        return token_id if result is None else result()


class LateCompiler(OpenCompiler):
    """Remembers the tokens to accept."""

    def __init__(self) -> None:
        self.jobs: list[tuple[LateSession, int, Callable[[], None]]] = []

    def accept_beside(
        self, session: LateSession, token_id: int, remaining: int, wake: Callable[[], None], owner: object
    ) -> None:
        session.is_preparing = True
        self.jobs.append((session, token_id, wake))

    def finish(self, replaced: int | None = None, error: Exception | None = None) -> None:
        """Accept all tokens that wait."""

        def result(token_id: int) -> int:
            if error is not None:
                raise error
            return token_id if replaced is None else replaced

        for session, token_id, wake in self.jobs:
            session.result = lambda token_id=token_id: result(token_id)  # type: ignore[misc]
            session.is_preparing = False
            wake()
        self.jobs.clear()


def driver_of(runner: type[FakeRunner], num_pages: int = 64, **settings: Any) -> tuple[EngineDriver, LateCompiler]:
    config = RuntimeConfig(page_size=4, num_pages=num_pages, max_step_tokens=32, **settings)
    driver = EngineDriver(runner(num_pages, 4, eos_every=10**9), config)
    compiler: Any = LateCompiler()
    driver.engine._compiler = driver.engine._pipeline._compiler = driver.engine.preparation._compiler = compiler
    return driver, compiler


def late_request(driver: EngineDriver, **rest: Any) -> Request:
    request = driver.add(PROMPT, 6, **rest)
    request.session = LateSession()  # type: ignore[assignment]
    return request


@pytest.mark.parametrize("runner", [FakeRunner, FakeDeviceRunner])
def test_others_go_on_and_the_text_is_the_same(runner: type[FakeRunner]) -> None:
    driver, compiler = driver_of(runner)
    late = late_request(driver)
    other = driver.add([1, 100, 102], 12)
    driver.run()  # ends, although one request has not
    assert other.output_token_ids == naive_generate([1, 100, 102], 12, eos_every=10**9)
    assert late.output_token_ids == EXPECTED[:1]
    num_waits = 0
    while late not in driver.last:
        assert not driver.engine.has_work
        num_waits += 1
        compiler.finish()
        assert driver.engine.has_work
        driver.run()
    assert late.output_token_ids == EXPECTED
    assert num_waits == 3
    driver.assert_idle()


@pytest.mark.parametrize("runner", [FakeRunner, FakeDeviceRunner])
def test_a_late_token_may_be_replaced(runner: type[FakeRunner]) -> None:
    driver, compiler = driver_of(runner)
    late, other = late_request(driver), driver.add([1, 100, 102], 12)
    driver.run()
    compiler.finish(replaced=150)
    driver.run()
    while late not in driver.last:
        compiler.finish()
        driver.run()
    expected = [EXPECTED[0], 150]
    assert late.output_token_ids == expected + naive_generate([*PROMPT, *expected], 4, eos_every=10**9)
    assert other in driver.last
    driver.assert_idle()


@pytest.mark.parametrize("runner", [FakeRunner, FakeDeviceRunner])
def test_an_error_of_a_late_token_fails_its_request(runner: type[FakeRunner]) -> None:
    driver, compiler = driver_of(runner)
    late, other = late_request(driver), driver.add([1, 100, 102], 12)
    driver.run()
    compiler.finish(error=ConstraintError("broken"))
    driver.run()
    assert isinstance(driver.last[late].error, ConstraintError)
    assert driver.last[other].error is None
    driver.assert_idle()


@pytest.mark.parametrize("runner", [FakeRunner, FakeDeviceRunner])
def test_a_request_with_a_late_token_can_be_aborted(runner: type[FakeRunner]) -> None:
    driver, compiler = driver_of(runner)
    late = late_request(driver)
    driver.run()
    driver.engine.abort(late)
    driver.run()
    assert isinstance(driver.last[late].error, AbortedError)
    driver.assert_idle()
    compiler.finish()
    driver.run()
    assert late.output_token_ids == EXPECTED[:1]


@pytest.mark.parametrize("runner", [FakeRunner, FakeDeviceRunner])
def test_a_preempted_request_waits_for_its_late_token(runner: type[FakeRunner]) -> None:
    driver, compiler = driver_of(runner, num_pages=8, max_rows=8, policy="program")
    late = late_request(driver, priority=1)
    driver.step()
    others = [driver.add([1, 100 + i, 50, 51], 16) for i in range(3)]
    driver.run()
    assert all(other in driver.last for other in others)
    assert late.stats.num_preemptions > 0
    assert late not in driver.last
    while late not in driver.last:
        compiler.finish()
        driver.run()
    assert late.output_token_ids == EXPECTED
    driver.assert_idle()


def test_given_tokens_are_replayed_beside_the_steps_too() -> None:
    driver, compiler = driver_of(FakeRunner)
    late = late_request(driver, given_ids=EXPECTED[:4])
    other = driver.add([1, 100, 102], 12)
    driver.run()
    assert other in driver.last
    assert late.output_token_ids == EXPECTED[:1]
    while late not in driver.last:
        assert not driver.engine.has_work
        compiler.finish()
        driver.run()
    assert late.output_token_ids == EXPECTED
    driver.assert_idle()
