"""The sessions of an engine on a runner whose pages hold token ids: found through every way that a request can take."""

from __future__ import annotations

import random
from typing import Any

import pytest

from rtlang.cache.prefix_cache import PrefixCache
from rtlang.cache.scope import PUBLIC
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.runs.principal import Principal
from rtlang.contract.runs.session_options import SessionOptions
from rtlang.engine.engine import Engine
from rtlang.engine.requests.request import Request
from rtlang.engine.sessions.engine_sessions import EVICTED, EngineSessions, message_border
from rtlang.engine.sessions.residency import MAX_WAIT_S
from rtlang.engine.sessions.return_times import ReplyKind
from rtlang.engine.sessions.session_table import LEAD_S, Session, Turn, TurnKind
from tests.support.engine.agent_simulation import (
    AgentRunner,
    AgentSimulation,
    Sizes,
    make_tasks,
    percentile,
    pool_pages,
)
from tests.support.engine.engine_driver import ExpectingDriver
from tests.support.engine.fake_runner import FakeRunner
from tests.support.engine.state_driver import StateDriver
from tests.support.long_tests import is_long, sized


class Driver(ExpectingDriver):
    """An engine on a fake runner; settings of RuntimeConfig by name."""

    def __init__(self, num_pages: int = 64, page_size: int = 4, **settings: Any) -> None:
        config = RuntimeConfig(page_size=page_size, num_pages=num_pages, max_step_tokens=32, **settings)
        super().__init__(FakeRunner(num_pages, page_size), config)

    def sessions(self, owner: str = "") -> list[Session]:
        assert self.engine.sessions is not None
        return [each for each in self.engine.sessions.table if each.owner == owner or not owner]


def turn_of(request: Request) -> Any:
    assert request.turn is not None
    return request.turn


def test_a_border_is_behind_the_last_end_of_a_message() -> None:
    assert message_border([5, 0, 6, 0, 7, 8], {0}) == 4
    assert message_border([5, 6], {0}) == 2
    assert message_border([0, *[5] * 40], {0}) == 41
    assert message_border([], {0}) == 0


def test_turns_of_a_chat_are_one_session_with_its_cached_share() -> None:
    driver = Driver()
    tokens, num_returning = list(range(10, 40)), 0
    for number in range(4):
        num_returning += len(tokens) - 3 if number else 0
        request = driver.add(tokens, 5)
        driver.run()
        tokens = [*request.token_ids, 7, 8, 9]
    (session,) = driver.sessions()
    assert (session.num_turns, session.num_running, session.num_tokens) == (4, 0, len(tokens) - 3)
    assert session.num_returning_tokens == num_returning
    num_missing = session.num_returning_tokens - session.num_cached_tokens
    assert num_missing == sum(len(each.token_ids) == each.num_prompt_tokens + 5 for each in list(driver.last)[:3])
    assert session.last_miss is None


def test_a_session_whose_pages_were_evicted_says_so() -> None:
    driver = Driver(num_pages=24)
    first = driver.add(list(range(100, 140)), 4)
    driver.run()
    driver.engine.cache.clear()
    driver.add([*first.token_ids, 7], 4)
    driver.run()
    (session,) = driver.sessions()
    assert (session.last_miss, session.num_cached_tokens, session.num_returning_tokens) == (EVICTED, 0, 44)


def test_marks_of_calls_keys_and_principals_are_noted() -> None:
    driver = Driver()
    assert driver.engine.sessions is not None
    request = driver.add([50, 51], 6, session=SessionOptions(key="mine", keep_s=9.0))
    driver.run()
    text = driver.text[request]
    (session,) = driver.sessions()
    assert (session.reply, session.keep_s) == (ReplyKind.FINAL, 9.0)
    assert session.key_digest is not None
    assert session.key_digest != "mine"
    marks = SessionOptions(call_marks=("no such text", text[2:4]))
    again = driver.add([50, 51], 6, session=marks, principal=Principal("other", namespace="n"))
    driver.run()
    assert turn_of(again).kind is TurnKind.NEW
    (other,) = driver.sessions("other")
    assert (other.reply, other.namespace) == (ReplyKind.CALLS, "n")


def test_without_the_setting_nothing_is_looked_for() -> None:
    driver = Driver(infer_sessions=False)
    request = driver.add([50, 51], 6)
    driver.run()
    assert driver.engine.sessions is None
    assert request.turn is None


def test_a_resident_goes_before_all_that_wait_for_room() -> None:
    sessions, chat = EngineSessions(PrefixCache(10, 4)), SessionOptions(call_marks=("c",))

    def begin(prompt: list[int], now: float) -> Turn:
        return sessions.begin(Principal("a"), prompt, PUBLIC, {0}, chat, now)

    first = begin(list(range(1, 35)), 0.0)
    sessions.start(first)
    sessions.end(first, list(range(1, 36)), 34, "c", PUBLIC, chat, 1.0, num_cached=0)
    assert not sessions.may_start(begin([90, 91, 92], 2.0), 1.0, 0.0, 2.0, set())
    back = begin(list(range(1, 40)), 200.0)
    assert back.arrival_s == 200.0 - LEAD_S - MAX_WAIT_S
    assert sessions.may_start(back, 0.0, 0.0, 200.0, {("a", False)})
    assert begin([94, 95], 200.0).arrival_s == 200.0


@pytest.mark.parametrize("seed", range(sized(60, usual=6)))
def test_random_traces_give_the_same_texts_and_the_sessions_of_string_prefixes(seed: int) -> None:
    """With choices, preemption, aborts and models with states; every page is accounted for after each step."""
    generator = random.Random(seed)
    driver: Any = Driver(num_pages=generator.choice((14, 24, 80)), max_rows=4)
    if seed % 3 == 2:
        driver = StateDriver(generator.choice((5, 9)), 24, max_rows=4)
    expected = driver.outputs if isinstance(driver, Driver) else driver.expected
    known: dict[str, dict[str, None]] = {"a": {}, "b": {}}  # texts of prompts and of prompts with outputs
    asked: list[Request] = []
    ended: set[Request] = set()

    def note() -> None:
        for each in asked:
            if each in driver.last and each not in ended:
                ended.add(each)
                if each.num_output_tokens:
                    known[each.spec.principal.name]["".join(map(chr, each.token_ids))] = None

    for _ in range(25):
        owner = generator.choice("ab")
        base = generator.choice(asked).token_ids if asked and generator.random() < 0.8 else []
        prompt = [*base[: generator.randint(0, len(base))], *(generator.randint(100, 101) for _ in range(5))]
        prompt = [*base, 100, 101][:30] if generator.random() < 0.6 else prompt[:30]
        text = "".join(map(chr, prompt))
        longest = max((len(each) for each in known[owner] if text.startswith(each)), default=0)
        marks = SessionOptions(call_marks=("a", "b", "c", "d"), keep_s=generator.choice((None, 5.0)))
        for choice in range(generator.choice((1, 1, 3))):
            request = driver.add(
                prompt, generator.randint(1, 9), choice=choice, session=marks, principal=Principal(owner)
            )
            assert turn_of(request).num_returning_tokens == (longest if choice == 0 else len(prompt))
            known[owner][text] = None
            asked.append(request)
        for _ in range(generator.randint(0, 6)):
            driver.step()
            note()
        waiting = [each for each in asked if each not in driver.last]
        if waiting and generator.random() < 0.2:
            driver.engine.abort(generator.choice(waiting))
            driver.step()
            note()
    driver.run()
    driver.assert_idle()
    for request in asked:
        if driver.last[request].error is None:
            assert request.output_token_ids == expected[request]
    assert driver.engine.sessions is not None
    driver.engine.sessions.table.check()
    assert all(not each.num_running for each in driver.engine.sessions.table)


def test_agents_in_a_pool_that_is_too_small_find_what_they_come_back_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """In simulated time, with the accounting checked. The full trace: `python -m tests.support.engine.agent_simulation`."""
    if not is_long():  # prompts of a third of the length on a machine that is slower by as much
        monkeypatch.setattr(AgentRunner, "token_s", 1e-3)
    sizes = Sizes(sized(30, usual=8), sized(43, usual=14), num_output=8, scale=1 / 40 if is_long() else 1 / 120)
    tasks = make_tasks(sizes, 0)
    num_sessions = sized(20, usual=6)
    pages = pool_pages(tasks, num_sessions, sizes, 3)
    number = 0

    def check(engine: Engine) -> None:
        nonlocal number
        number += 1
        if number % 200 == 0:
            engine.scheduler.check()
            assert engine.sessions is not None
            engine.sessions.table.check()
            engine.sessions.residency.check()

    inferred = AgentSimulation(tasks, num_sessions, pages, sizes, see=check).run()
    plain = AgentSimulation(tasks, num_sessions, pages, sizes, infer_sessions=False, eviction="recent").run()
    assert len(inferred.later_s) == len(plain.later_s)
    assert inferred.cached_share > plain.cached_share + 0.2
    assert inferred.cached_share > 0.9
    assert percentile(inferred.later_s, 0.9) <= 0.6 * percentile(plain.later_s, 0.9)
    assert inferred.end_s < plain.end_s


def test_sessions_take_no_more_steps_where_the_pool_has_room_for_all() -> None:
    """Beside plain LRU, in simulated time: light load must not pay for what crowded pools need."""
    sizes = Sizes(4, 6, scale=1 / 120, num_output=4)
    tasks = make_tasks(sizes, 1)
    num_steps = []
    for settings in ({}, {"infer_sessions": False, "eviction": "recent"}):
        seen: list[Engine] = []
        figures = AgentSimulation(tasks, 3, pool_pages(tasks, 3, sizes, 0.5), sizes, see=seen.append, **settings).run()
        num_steps.append((len(seen), figures.num_computed, figures.end_s))
    assert num_steps[0] == num_steps[1]
