"""Background work beside live work, counted in the steps and tokens of an engine whose pages hold token ids."""

from __future__ import annotations

import random
from typing import Any

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.runs.principal import Principal, PrincipalLimits
from rtlang.engine.requests.request import Request
from rtlang.engine.scheduling.scheduler import MAX_STEPS_WITHOUT_BACKGROUND
from tests.support.engine.engine_driver import EngineDriver
from tests.support.engine.fake_runner import FakeRunner, naive_generate
from tests.support.long_tests import sized

NEVER = 10**9
LIVE = Principal("a")
BATCH = Principal("a", client="batch", share=0.01)
OTHER_BATCH = Principal("b", client="batch", share=0.01, weight=1000.0)


class Driver(EngineDriver):
    """Keeps the tokens of each step by request."""

    def __init__(self, num_pages: int = 4000, **settings: Any) -> None:
        sizes = {"max_rows": 16, "max_running": 64, "max_step_tokens": 128, "max_shared_step_tokens": 32}
        config = RuntimeConfig(page_size=4, num_pages=num_pages, **(sizes | settings))
        super().__init__(FakeRunner(num_pages, 4, eos_every=NEVER), config)
        self.tokens: dict[Request, int] = {}

    def step(self) -> None:
        super().step()
        self.tokens = {request: num_tokens for request, num_tokens, _ in self.engine.scheduler.last_rows}

    @property
    def background(self) -> list[int]:
        """The tokens of the background rows of the last step."""
        return [count for request, count in self.tokens.items() if request.spec.principal.is_background]

    def add_batch(self, count: int, num_tokens: int = 6, max_tokens: int = 200, principal: Principal = BATCH) -> None:
        for number in range(count):
            self.add([1, 100 + number, *[90] * num_tokens], max_tokens, principal=principal)

    def steps_until(self, request: Request, *, limit: int = 500) -> int:
        for number in range(1, limit):
            self.step()
            if request in self.tokens:
                return number
        raise AssertionError("it never runs")


@pytest.mark.parametrize("batch", [BATCH, OTHER_BATCH], ids=lambda each: each.name)
def test_a_live_prompt_has_the_next_step_and_whole_chunks(batch: Principal) -> None:
    driver = Driver()
    driver.add_batch(64, principal=batch)
    for _ in range(12):
        driver.step()
    assert sum(driver.background) >= 16, "alone, background work fills the steps"
    live = driver.add([2, *[60] * 300], 8, principal=LIVE)
    chunks = []
    while live not in driver.last:
        driver.step()
        chunks.append(driver.tokens[live])
        assert sum(driver.background) <= 16
        assert len(driver.background) <= 2
    assert chunks == [128, 128, 45, *[1] * 7]
    driver.step()
    assert sum(driver.background) >= 16
    assert live.output_token_ids == naive_generate([2, *[60] * 300], 8, eos_every=NEVER)


def test_a_step_of_background_work_alone_is_as_short_as_a_shared_one() -> None:
    driver = Driver()
    driver.add_batch(2, num_tokens=300)
    driver.step()
    assert sum(driver.background) == 32


@pytest.mark.parametrize(
    ("num_pages", "settings", "limits"),
    [
        (4000, {"max_running": 16}, PrincipalLimits()),
        (4000, {}, PrincipalLimits(max_rows=8)),
        (4000, {}, PrincipalLimits(max_prompt_tokens=100)),
        (60, {}, PrincipalLimits()),
    ],
    ids=["rows", "rows of the principal", "prompts of the principal", "pages"],
)
@pytest.mark.parametrize("own", [True, False])
def test_live_work_takes_what_background_work_holds(
    num_pages: int, settings: dict[str, Any], limits: PrincipalLimits, own: bool
) -> None:
    driver = Driver(num_pages, **settings)
    batch = Principal("a" if own else "b", client="batch", share=0.01, weight=1 if own else 1000, limits=limits)
    driver.add_batch(40, principal=batch)
    for _ in range(30):
        driver.step()
    live = driver.add([1, *[60] * 50], 8, principal=Principal("a", limits=limits))
    assert driver.steps_until(live) == 1
    while live not in driver.last:
        driver.step()
    assert live.stats.num_preemptions == 0
    assert live.output_token_ids == naive_generate([1, *[60] * 50], 8, eos_every=NEVER)


def test_live_work_does_not_wait_for_a_prefix_that_background_work_computes() -> None:
    driver = Driver()
    prompt = [1, *[60] * 600]
    first = driver.add([*prompt, 7], 2, principal=BATCH)
    driver.step()
    assert first in driver.tokens
    live = driver.add([*prompt, 8], 2, principal=LIVE)
    assert driver.steps_until(live) == 1
    while live not in driver.last:
        driver.step()
    assert first not in driver.last
    driver.run()
    for request, last in ((first, 7), (live, 8)):
        assert request.output_token_ids == naive_generate([*prompt, last], 2, eos_every=NEVER)
    driver.assert_idle()


@pytest.mark.parametrize("kind", ["rows", "prompts"])
@pytest.mark.parametrize("seed", range(sized(1)))
def test_background_work_goes_on_beside_live_work_that_never_ends(kind: str, seed: int) -> None:
    rng = random.Random(f"{kind}{seed}")
    driver = Driver(max_running=rng.choice([16, 18]))
    driver.engine._check = False  # slow; whole runs are checked elsewhere
    batch = [
        driver.add(
            [1, 100 + number, *[90] * rng.randint(0, 40)],
            rng.randint(1, 3),
            principal=rng.choice([BATCH, OTHER_BATCH]),
        )
        for number in range(4)
    ]
    lives: list[Request] = []
    num_without = 0
    for _ in range(2000):
        for _ in range(24 - sum(each not in driver.last for each in lives)):
            length, tokens = (2, rng.randint(5, 30)) if kind == "rows" else (rng.randint(30, 90), rng.randint(1, 3))
            prompt = [1, *[50 + rng.randrange(40) for _ in range(length)]]
            lives.append(driver.add(prompt, tokens, principal=LIVE))
        driver.step()
        lives = [each for each in lives if each not in driver.last or each.stats.num_preemptions]
        assert sum(driver.background) <= 64
        assert sum(driver.tokens.values()) <= 128
        num_without = 0 if driver.background else num_without + 1
        assert num_without <= 2 * MAX_STEPS_WITHOUT_BACKGROUND, "the next free row is for background work then"
        if all(each in driver.last for each in batch):
            break
    assert all(each in driver.last for each in batch)
    assert all(not each.stats.num_preemptions for each in lives)
