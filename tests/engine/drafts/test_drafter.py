"""Drafts on a runner without a model: they change no text, and the right ones save steps. (With a model: test_drafter_exactness.)"""

from __future__ import annotations

import random
from typing import Any

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import AbortedError
from rtlang.engine.drafts.drafter import Candidate, Drafter
from rtlang.engine.drafts.proposal import Proposal
from rtlang.engine.planning.step_cost import StepSize
from rtlang.engine.requests.credit import Credit
from rtlang.engine.requests.request import Request, RequestStatus
from tests.engine.requests.test_request import request as make_request
from tests.engine.test_engine import prompts
from tests.support.engine.draft_sources import FreeCost, Oracle
from tests.support.engine.engine_driver import ExpectingDriver
from tests.support.engine.fake_runner import EOS, FakeRunner, naive_generate

NEVER = 10**9
WRONG = [3 + ord(letter) for letter in "abcxyz"]


class Driver(ExpectingDriver):
    """An engine on a fake runner that drafts what an oracle says, or something else with probability `wrong`."""

    runner: FakeRunner

    def __init__(
        self, *, num_pages: int = 64, page_size: int = 4, wrong: float = 0.0, limit: int = 16, **settings: Any
    ) -> None:
        settings.setdefault("max_step_tokens", 64)
        eos_every = settings.pop("eos_every", NEVER)
        oracle = Oracle(lambda request: self.outputs[request], wrong=wrong, wrong_ids=[*WRONG, EOS])
        self.drafter = Drafter([oracle], FreeCost(), max_draft_tokens=limit)
        config = RuntimeConfig(page_size=page_size, num_pages=num_pages, **settings)
        super().__init__(FakeRunner(num_pages, page_size, eos_every=eos_every), config, drafter=self.drafter)


@pytest.mark.parametrize("page_size", [1, 4, 16])
@pytest.mark.parametrize("limit", [1, 3, 7, 16])
def test_right_drafts_are_all_accepted(limit: int, page_size: int) -> None:
    driver = Driver(limit=limit, page_size=page_size, num_pages=256)
    request = driver.add([1, 100, 101], 40)
    driver.run()
    assert request.output_token_ids == naive_generate([1, 100, 101], 40, eos_every=NEVER)
    assert driver.engine.num_steps == -(-40 // (limit + 1))
    assert driver.drafter.num_accepted == driver.drafter.num_drafted
    assert driver.drafter.num_drafted.total() == 40 - driver.engine.num_steps
    assert driver.engine.num_generated_tokens == 40
    driver.assert_idle()


@pytest.mark.parametrize("wrong", [0.2, 1.0])
@pytest.mark.parametrize("num_pages", [12, 24, 200])
@pytest.mark.parametrize("sharing", [True, False])
def test_random_batches_with_wrong_drafts_give_the_tokens_of_naive_generation(
    sharing: bool, num_pages: int, wrong: float
) -> None:
    rng = random.Random(f"{num_pages}{sharing}{wrong}")
    driver = Driver(
        num_pages=num_pages,
        wrong=wrong,
        limit=rng.choice([2, 5, 16]),
        eos_every=40,
        prefix_sharing=sharing,
        max_rows=5,
        max_step_tokens=rng.choice([5, 16, 64]),
    )
    aborted = set()
    for tokens in prompts(rng, 40):
        tokens = tokens[:30]
        max_tokens = rng.randint(1, 16)
        params = {"min_tokens": min(rng.choice([0, 0, 3]), max_tokens)}
        driver.add(tokens, max_tokens, seed=rng.randint(0, 3), choice=rng.randint(0, 1), params=params)
        for _ in range(rng.randint(0, 3)):
            driver.step()
        if rng.random() < 0.15:
            open_requests = [each for each in driver.outputs if each not in driver.last]
            if open_requests:
                victim = rng.choice(open_requests)
                driver.engine.abort(victim)
                aborted.add(victim)
                driver.engine.scheduler.check()
    driver.run()
    assert len(driver.last) == 40
    for request, tokens in driver.outputs.items():
        if request in aborted:
            assert isinstance(driver.last[request].error, AbortedError)
        else:
            assert request.output_token_ids == tokens
            assert driver.text[request] == request.output_text.text == driver.runner.tokenizer.decode(tokens)
    driver.assert_idle()
    assert driver.drafter.num_drafted["oracle"] > 0
    if num_pages == 12 and not sharing:
        assert driver.engine.scheduler.num_preemptions > 0


@pytest.mark.parametrize("wrong", [0.0, 0.3])
def test_a_text_of_drafts_is_cached_like_one_of_single_tokens(wrong: float) -> None:
    """A later request finds the same number of its tokens, and the fake runner checks that they are the right ones."""
    cached = []
    for limit in (0, 7):
        driver = Driver(limit=limit, wrong=wrong)
        first = driver.add([1, 100, 101, 102, 103], 18)
        driver.run()
        second = driver.add([*first.token_ids, 99], 4)
        driver.run()
        cached.append((second.stats.num_cached_tokens, tuple(second.output_token_ids), driver.engine.cache.num_cached))
    assert cached[0] == cached[1]


def test_credit_limits_drafts_like_tokens() -> None:
    driver = Driver()
    credit = Credit(5)
    requests = [driver.add([1, 100 + index], 12, credit=credit) for index in range(2)]
    for _ in range(8):
        driver.step()
        credit.num_tokens = 5 - sum(request.num_output_tokens for request in requests)
    assert sum(request.num_output_tokens for request in requests) == 5
    assert {request.status for request in requests} == {RequestStatus.PARKED}
    driver.engine.grant(credit, 100)
    driver.run()
    for request in requests:
        assert request.output_token_ids == driver.outputs[request]


def test_a_step_that_fails_is_repeated_without_a_trace() -> None:
    driver = Driver(wrong=0.2)
    driver.runner.fail_at = {2, 3, 6}
    requests = [driver.add([1, 100 + index, 7], 30) for index in range(4)]
    driver.run()
    for request in requests:
        assert request.output_token_ids == driver.outputs[request]
    driver.assert_idle()


def test_drafts_take_free_pages_only() -> None:
    driver = Driver(num_pages=10, max_rows=2)
    old = driver.add([1, 50, 51, 52, 53, 54, 55, 56, 57], 1)
    driver.run()
    requests = [driver.add([1, 100 + index, 7], 9) for index in range(2)]
    driver.run()
    assert driver.engine.cache.peek(old.token_ids[:9]) >= 8, "its pages were never needed"
    assert driver.engine.cache.stats.num_evicted_pages == 0
    for request in requests:
        assert request.output_token_ids == driver.outputs[request]


class Fixed:
    """Always says the same with the same evidence."""

    name = "fixed"

    def __init__(self, *token_ids: int) -> None:
        self._token_ids = token_ids

    def propose(self, request: Request, limit: int) -> Proposal:
        return Proposal(self.name, self._token_ids[:limit], 1)

    def forget(self, request: Request) -> None:
        """Nothing to drop."""


class Linear:
    """A step costs a part for the weights and one for each token."""

    def __init__(self, fixed: float, per_token: float) -> None:
        self._fixed, self._per_token = fixed, per_token

    def predict(self, size: StepSize) -> float:
        return self._fixed + self._per_token * size.num_tokens


def chosen(cost: Any, num_rows: int, *, num_right: int = 0, room: int = 100, replays_drafts: bool = False) -> list[int]:
    """Lengths of the drafts of rows whose source was right so often, per row."""
    drafter = Drafter([Fixed(*range(60, 76))], cost, replays_drafts=replays_drafts)
    requests = [make_request([1, 5]) for _ in range(num_rows)]
    candidates = [Candidate(request, 16, len(request.token_ids)) for request in requests]
    size = StepSize(num_rows, num_rows, 0)
    for _ in range(num_right):
        drafts = drafter.choose(candidates, size, num_rows, 10**6)
        drafter.note(drafts)
        for request in requests:
            request.token_ids += range(60, 76)
    drafts = drafter.choose(candidates, size, num_rows, room)
    return [len(drafts.get(request, ())) for request in requests]


def test_many_rows_draft_less_than_one() -> None:
    cost = Linear(40.0, 5.0)
    alone, crowd = chosen(cost, 1), chosen(cost, 32)
    assert alone[0] > 1
    assert sum(crowd) == 0


def test_the_replay_of_right_drafts_is_part_of_their_price() -> None:
    per_token = [1.0, 4.0, 8.0, 16.0, 24.0]
    once = [chosen(Linear(40.0, each), 1, num_right=4)[0] for each in per_token]
    twice = [chosen(Linear(40.0, each), 1, num_right=4, replays_drafts=True)[0] for each in per_token]
    assert all(0 <= b <= a for a, b in zip(once, twice, strict=True))
    assert any(0 < b < a for a, b in zip(once, twice, strict=True))
    free = chosen(FreeCost(), 1, num_right=4, replays_drafts=True)
    assert free == chosen(FreeCost(), 1, num_right=4)


def test_drafts_that_were_right_grow() -> None:
    cost = Linear(4.0, 1.0)
    assert chosen(cost, 1, num_right=20)[0] > chosen(cost, 1)[0]


def test_tokens_that_cost_as_much_as_steps_are_never_drafted() -> None:
    assert chosen(Linear(0.0, 1.0), 1, num_right=20) == [0]


def test_nothing_is_drafted_before_a_step_was_measured() -> None:
    assert chosen(Linear(0.0, 0.0), 1) == [0]


def test_the_room_of_a_step_is_shared() -> None:
    assert sum(chosen(FreeCost(), 4, room=10)) == 10
    assert sum(chosen(FreeCost(), 4, room=0)) == 0


def test_a_source_that_is_not_worth_its_cost_is_asked_less_often() -> None:
    class Counting(Fixed):
        num_asked = 0

        def propose(self, request: Request, limit: int) -> Proposal:
            self.num_asked += 1
            return super().propose(request, limit)

    source = Counting(60, 61)
    drafter = Drafter([source], Linear(0.0, 1.0))
    target = make_request([1, 5])
    for _ in range(200):
        assert not drafter.choose([Candidate(target, 16, len(target.token_ids))], StepSize(1, 1, 9), 1, 64)
        target.token_ids.append(70)
    assert source.num_asked < 30


@pytest.mark.parametrize("wrong", [0.0, 0.5])
@pytest.mark.parametrize("cut", [1, 5, 11])
def test_a_continued_text_goes_on_with_drafts(cut: int, wrong: float) -> None:
    expected = naive_generate([1, 100, 101], 12, eos_every=NEVER)
    driver = Driver(wrong=wrong)
    request = driver.add([1, 100, 101], 12, given_ids=expected[:cut])
    driver.run()
    assert request.output_token_ids == expected
    assert driver.text[request] == driver.runner.tokenizer.decode(expected[cut:])
    driver.assert_idle()
