"""What the scheduler keeps of states: whose they are, where others go on, and what is computed again."""

from __future__ import annotations

import logging
import random
from dataclasses import replace

import pytest

from rtlang.cache.prefix_cache import PrefixCache
from rtlang.contract.errors import ConfigError, NumericsError
from rtlang.engine.checkpoints import StateSizes
from rtlang.engine.requests.credit import Credit
from rtlang.engine.requests.held_states import HeldStates
from rtlang.engine.scheduling.state_slots import StateSlots
from tests.support.engine.state_driver import StateDriver
from tests.support.engine.state_traces import TRACES, replay
from tests.support.requests import make_request

NEVER = 10**9


def text(length: int, seed: int = 0) -> list[int]:
    rng = random.Random(seed)
    return [1, *(rng.randint(100, 140) for _ in range(length - 1))]


def test_a_shared_prefix_of_100_tokens_hits() -> None:
    driver = StateDriver(page_size=16, eos_every=NEVER, max_step_tokens=512)
    prefix = text(100)
    driver.add([*prefix, *text(20, 1)], 2)
    driver.run()
    second = driver.add([*prefix, *text(20, 2)], 2)  # pays for the junction
    driver.run()
    third = driver.add([*prefix, *text(20, 3)], 2)
    driver.run()
    assert (second.stats.num_cached_tokens, second.stats.num_replayed_tokens) == (0, 96)
    assert (third.stats.num_cached_tokens, third.stats.num_replayed_tokens) == (96, 0)
    driver.assert_texts()


def test_a_known_branch_point_hits_at_once() -> None:
    driver = StateDriver(page_size=16, eos_every=NEVER, max_step_tokens=512)
    prefix = text(100)
    driver.add([*prefix, *text(20, 1)], 2, branch_points=(100,))
    driver.run()
    second = driver.add([*prefix, *text(20, 2)], 2)
    driver.run()
    assert second.stats.num_cached_tokens == 100
    driver.assert_texts()


@pytest.mark.parametrize("is_pipelined", [False, True])
def test_siblings_of_one_prompt_compute_it_once(is_pipelined: bool) -> None:
    driver = StateDriver(32, 400, is_pipelined=is_pipelined, eos_every=NEVER, max_rows=8)
    prompt = text(203)
    siblings = [driver.add(prompt, 4, choice=choice) for choice in range(8)]
    driver.run()
    num_prompt = driver.runner.num_computed - 8 * 3  # all but the last output token of each
    assert num_prompt == 203 + 7 * 3  # the tokens after the last whole page
    assert [each.stats.num_cached_tokens for each in siblings[1:]] == [200] * 7
    driver.assert_texts()


def test_questions_about_one_document_wait_for_the_state_where_they_part() -> None:
    driver = StateDriver(32, 400, eos_every=NEVER, max_rows=8, max_step_tokens=64)
    document = text(200)
    for index in range(8):
        driver.add([*document, 50 + index, *text(10, index)], 2)
    driver.run()
    assert driver.runner.num_computed == 200 + 8 * (11 + 1)
    driver.assert_texts()


@pytest.mark.parametrize(("num_computed", "is_awaited"), [(0, False), (36, False), (40, True), (72, True), (80, False)])
def test_a_request_waits_for_one_that_is_at_its_state_or_further(num_computed: int, is_awaited: bool) -> None:
    """One that is behind would be slower than the visitor, and one that has passed the junction keeps nothing there any more."""
    cache = PrefixCache(100, 4, num_states=8)
    slots = StateSlots(cache, StateSizes(1000), is_pipelined=False)
    prefix = text(82)
    other = make_request(1, [*prefix, *text(40, 1)])
    other.states, other.num_computed_tokens = HeldStates((0,), 0, num_computed), num_computed
    waiting = make_request(2, [*prefix, *text(9, 2)])
    match = replace(cache.match(waiting.token_ids, waiting.match_limit), num_state_tokens=40)
    assert slots.awaited(waiting, match, [other]) == ((other, 80) if is_awaited else None)
    assert other.states.wishes == ({80} if is_awaited else set())


def test_a_chat_goes_on_from_the_end_of_its_last_turn() -> None:
    driver = StateDriver(16, 4000, page_size=16, eos_every=NEVER, max_step_tokens=512)
    tokens, num_prompt = text(300), 0
    for turn in range(20):
        before = driver.runner.num_computed
        request = driver.add(tokens, 40)
        driver.run()
        num_prompt += driver.runner.num_computed - before - 39
        if turn:
            assert request.stats.num_replayed_tokens == 0
        tokens = [*request.token_ids, *text(60, turn + 1)]
    # The last token of an answer is sampled, not computed.
    assert num_prompt == 300 + 19 * (60 + 1)
    driver.assert_texts()


def test_accepted_drafts_are_replayed_once() -> None:
    driver = StateDriver(8, 200, eos_every=NEVER, wrong=0.0, max_draft_tokens=4)
    request = driver.add(text(10), 41)
    driver.run()
    assert driver.engine.drafter is not None
    num_accepted = driver.engine.drafter.num_accepted.total()
    assert num_accepted == 32
    assert driver.engine.num_steps == 9
    assert driver.runner.num_replayed_tokens <= num_accepted
    assert request.num_output_tokens == 41
    driver.assert_texts()


def test_a_parked_request_goes_on_from_its_own_state() -> None:
    driver = StateDriver(8, 200, eos_every=NEVER)
    credit = Credit(3)
    request = driver.add(text(10), 12, credit=credit)
    driver.run()
    before = driver.runner.num_computed
    while request not in driver.last:
        driver.engine.grant(credit, 3)
        driver.run()
    assert driver.runner.num_computed - before == 12 - 3
    driver.assert_texts()


def test_a_parked_request_gives_its_slots_to_others() -> None:
    driver = StateDriver(2, 200, eos_every=NEVER)
    credit = Credit(0)
    parked = driver.add(text(10), 4, credit=credit)
    driver.run()
    other = driver.add(text(20, 1), 4)
    driver.run()
    assert other in driver.last
    while parked not in driver.last:
        driver.engine.grant(credit, 4)
        driver.run()
    driver.assert_texts()


def test_requests_leave_slots_to_checkpoints() -> None:
    driver = StateDriver(8, 400, eos_every=NEVER, max_rows=16, max_step_tokens=256)
    for index in range(12):
        driver.add([1, 60 + index, *text(10, index)], 8)
    driver.step()
    assert len(driver.engine.scheduler.running) == 6
    driver.run()
    driver.assert_texts()


def test_a_state_that_is_not_sound_is_not_kept() -> None:
    driver = StateDriver(8, 200, eos_every=NEVER)
    request = driver.add(text(4), 8)
    driver.runner.poison.add(request.request_id)
    driver.run()
    assert isinstance(driver.last[request].error, NumericsError)
    assert driver.engine.cache.states is not None
    assert driver.engine.cache.states.num_kept == 0


def test_a_request_that_scores_keeps_no_state_at_its_end() -> None:
    driver = StateDriver(8, 200, eos_every=NEVER)
    driver.add(text(40), 4, score_from=30, score_only=True)
    driver.run()
    assert driver.engine.cache.states is not None
    assert driver.engine.cache.states.num_kept == 0


def test_a_pool_without_room_for_checkpoints_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    driver = StateDriver(2, 200, eos_every=NEVER)
    prompt = text(30)
    with caplog.at_level(logging.WARNING):
        for index in range(4):
            driver.add([*prompt, 50 + index, *text(9, index)], 2)
            driver.run()
    found = [each.getMessage() for each in caplog.records if "no room for a checkpoint" in each.getMessage()]
    assert len(found) == 1
    assert "cache_bytes" in found[0]
    driver.assert_texts()


def test_too_few_slots_for_one_request_are_refused() -> None:
    cache = PrefixCache(8, 4, num_states=1)
    with pytest.raises(ConfigError, match=r"at least 2 states of 1,000 bytes, not 1"):
        StateSlots(cache, StateSizes(1000), is_pipelined=True)


def test_the_only_checkpoint_goes_to_the_junction() -> None:
    """A state at the end of the prompt would evict the one where others go on."""
    driver = StateDriver(2, 200, eos_every=NEVER)
    prefix = text(30)
    requests = []
    for index in range(3):
        requests.append(driver.add([*prefix, 50 + index, *text(9, index)], 1))
        driver.run()
    assert [each.stats.num_cached_tokens for each in requests] == [0, 0, 28]


@pytest.mark.parametrize("num_steps", [2, 3, 4, 8, 11, 12])
def test_a_request_that_ends_beside_its_row_in_flight_leaves_the_state_before_it(num_steps: int) -> None:
    driver = StateDriver(8, 200, is_pipelined=True, eos_every=NEVER, max_step_tokens=6)
    first = driver.add(text(50), 20)
    for _ in range(num_steps):
        driver.step()
    assert first.pending.num_computed_tokens > 0
    num_known = first.num_computed_tokens - first.pending.num_computed_tokens
    driver.engine.abort(first)
    driver.aborted.add(first)
    known = first.token_ids[: num_known + 1]
    again = driver.add([*known, 7, 8, 9], 4)
    driver.run()
    assert again.stats.num_cached_tokens == num_known
    driver.assert_texts()


MOST = {"tree, branches known": 1.05, "chat of 43 turns": 1.02, "questions at once": 1.07, "questions in turn": 1.9}
QUICK = "questions at once"


@pytest.mark.parametrize(
    "name", [QUICK, *(pytest.param(name, marks=pytest.mark.long) for name in MOST if name != QUICK)]
)
def test_prefixes_are_shared_nearly_as_without_states(name: str) -> None:
    make, num_states = TRACES[name]
    dense, hybrid = replay(make(), 0), replay(make(), num_states)
    assert dense.num_computed <= hybrid.num_computed <= MOST[name] * dense.num_computed
    assert hybrid.num_computed * 2 < hybrid.num_prompt_tokens
