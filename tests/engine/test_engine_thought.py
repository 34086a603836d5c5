"""A free text whose thought is limited: it has a constraint until the thought ends, on the host and in steps ahead of it."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rtlang.contract.config import RuntimeConfig
from rtlang.engine.constraints.session import ConstraintSession
from rtlang.engine.requests.request import Request
from tests.support.engine.engine_driver import EngineDriver
from tests.support.engine.fake_device import FakeDeviceRunner
from tests.support.engine.fake_runner import FakeRunner, naive_generate
from tests.support.engine.open_constraint import OpenCompiler, OpenSession

PROMPT = [1, 100, 101]
EXPECTED = naive_generate(PROMPT, 9, eos_every=10**9)
LIMIT = {"thought_marks": ("", "</t>"), "max_thought_tokens": 3}


class ThoughtSession(OpenSession, ConstraintSession):
    """A thought of some tokens; its last one may be forced."""

    matcher = object()  # type: ignore[assignment]

    def __init__(self, num_tokens: int, forced: int | None) -> None:
        self.num_left, self.forced, self.is_closed = num_tokens, forced, False

    @property
    def is_in_thought(self) -> bool:
        return self.num_left > 0

    def accept(self, token_id: int, remaining: int) -> int:
        assert not self.is_closed
        self.num_left -= 1
        return token_id if self.num_left or self.forced is None else self.forced

    def close(self) -> None:
        self.is_closed = True


class ThoughtCompiler(OpenCompiler):
    """Gives every request the session."""

    def __init__(self, session: ThoughtSession) -> None:
        self.made = session

    def fill(self, sessions: list[Any], bitmask: NDArray[np.int32], drafts: object = ()) -> Future[None]:
        assert len(sessions) == len(bitmask)  # a row without a session has no mask
        return super().fill(sessions, bitmask, drafts)

    def session(self, *_: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(self.made)
        return done


def run(runner: type[FakeRunner], session: ThoughtSession, **params: Any) -> tuple[EngineDriver, Request]:
    driver = EngineDriver(runner(64, 4, eos_every=10**9), RuntimeConfig(page_size=4, num_pages=64, max_step_tokens=32))
    compiler: Any = ThoughtCompiler(session)
    driver.engine._compiler = driver.engine._pipeline._compiler = driver.engine.preparation._compiler = compiler
    request = driver.add(PROMPT, 9, params=LIMIT | params)
    others = [driver.add([1, 50 + i], 9) for i in range(3)]
    for _ in range(60):
        driver.step()
    assert {request, *others} <= driver.last.keys()
    return driver, request


@pytest.mark.parametrize("runner", [FakeRunner, FakeDeviceRunner])
@pytest.mark.parametrize("num_tokens", [1, 3, 8, 20])
def test_text_behind_a_limited_thought_is_free(runner: type[FakeRunner], num_tokens: int) -> None:
    session = ThoughtSession(num_tokens, None)
    _, request = run(runner, session)
    assert request.output_token_ids == EXPECTED
    assert session.is_closed
    assert (request.session is None) is (num_tokens <= 9)


@pytest.mark.parametrize("runner", [FakeRunner, FakeDeviceRunner])
def test_a_forced_end_of_the_thought_takes_the_place_of_a_token(runner: type[FakeRunner]) -> None:
    _, request = run(runner, ThoughtSession(3, 77))
    assert request.output_token_ids[:3] == [*EXPECTED[:2], 77]
    assert request.output_token_ids[3:] == naive_generate([*PROMPT, *EXPECTED[:2], 77], 6, eos_every=10**9)


@pytest.mark.parametrize("runner", [FakeRunner, FakeDeviceRunner])
def test_stops_count_behind_the_thought_only(runner: type[FakeRunner]) -> None:
    driver, request = run(runner, ThoughtSession(4, None), stop_token_ids=(EXPECTED[1], EXPECTED[6]))
    assert request.output_token_ids == EXPECTED[:6]
    assert driver.last[request].finish_reason == "stop"
