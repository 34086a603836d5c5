"""Residency: the sums are right under random traces, nobody waits for good, and principals have their parts of the room."""

from __future__ import annotations

import random

import pytest

from rtlang.engine.sessions.residency import (
    CROWD,
    GRACE_S,
    MAX_WAIT_S,
    PATIENCE,
    RETURN_SHARE,
    ROOM_SHARE,
    Leaving,
    Residency,
)
from rtlang.engine.sessions.return_times import ReplyKind
from rtlang.engine.sessions.session_table import Session
from tests.support.long_tests import sized

POOL = 1000


def session(number: int, owner: str = "a", arrival: float = 0.0, num_tokens: int = 100) -> Session:
    made = Session(number, owner, "", number, None, arrival, arrival, num_turns=1)
    made.num_prompt_tokens = made.num_tokens = num_tokens
    return made


def may_start(
    residency: Residency, each: Session, num_own: int, now: float, *, is_new: bool = False, is_behind: bool = False
) -> bool:
    return residency.may_start(each, num_own, now, is_new=is_new, is_behind=is_behind)


def run(
    residency: Residency, each: Session, until: float | None, now: float, reply: ReplyKind = ReplyKind.CALLS
) -> None:
    residency.start(each)
    each.reply = reply
    residency.end(each, until, now)


def test_sessions_return_when_there_is_room_to_grow_and_new_ones_start_while_they_fit() -> None:
    residency = Residency(POOL)
    most, room = int(POOL * RETURN_SHARE), int(POOL * ROOM_SHARE)
    first, second = session(1, num_tokens=most), session(2, num_tokens=200)
    assert may_start(residency, first, most, 0.0)
    run(residency, first, 50.0, 0.0)
    for is_new in (False, True):
        assert may_start(residency, second, room - most, 1.0, is_new=is_new)
        assert not may_start(residency, second, room - most + 1, 1.0, is_new=is_new)
        assert not may_start(residency, second, 1, 1.0, is_new=is_new, is_behind=True)
    first.num_prompt_tokens = first.num_tokens = most + 1
    run(residency, first, 50.0, 1.0)
    assert may_start(residency, second, 1, 2.0, is_new=True)
    assert not may_start(residency, second, 1, 2.0)
    assert may_start(residency, first, 900, 2.0, is_behind=True)
    assert may_start(residency, second, 200, 50.0, is_behind=True), "the first one is overdue"


def test_where_many_wait_sessions_take_turns_within_the_time_of_their_prompts() -> None:
    left: list[int] = []
    residency = Residency(POOL, lambda family, leaving: left.append(family.root_id))
    for number, arrival in ((1, 2.0), (2, 1.0)):
        run(residency, session(number, arrival=arrival, num_tokens=400), 100.0, 3.0)
    most = int(CROWD * ROOM_SHARE * POOL)
    for num_waiting, token_s in ((most, 0.01), (most + 1, 0.0)):
        assert residency.longest_wait_s("a", num_waiting, token_s) == MAX_WAIT_S
        assert not residency.takes_turns("a")
    assert residency.longest_wait_s("a", most + 1, 0.01) == pytest.approx(PATIENCE * (most + 1) * 0.01)
    assert residency.longest_wait_s("a", most + 1, 9.0) == MAX_WAIT_S
    assert residency.takes_turns("a")
    run(residency, session(3, arrival=0.0, num_tokens=200), 100.0, 4.0)
    assert left == [1], "it is resident for longest"
    assert residency.longest_wait_s("a", 1, 0.01) == MAX_WAIT_S
    run(residency, session(4, arrival=3.0, num_tokens=400), 100.0, 5.0)
    assert left == [1, 4], "the youngest"
    residency.check()


def test_the_youngest_that_waits_for_its_client_leaves_when_the_residents_outgrow_the_room() -> None:
    left: list[tuple[int, Leaving]] = []
    residency = Residency(POOL, lambda family, leaving: left.append((family.root_id, leaving)))
    sessions = [session(number, arrival=float(number), num_tokens=200) for number in range(1, 4)]
    for each in sessions:
        run(residency, each, 100.0, 5.0)
    sessions[2].num_prompt_tokens = 400
    residency.start(sessions[2])
    sessions[0].num_prompt_tokens = sessions[0].num_tokens = 500
    run(residency, sessions[0], 100.0, 6.0)
    assert left == [(2, Leaving.SUSPENDED)], "the third is younger, but runs"
    residency.check()


def test_an_answer_leaves_and_may_go_on_for_a_while() -> None:
    left: list[Leaving] = []
    residency = Residency(POOL, lambda family, leaving: left.append(leaving))
    agent = session(1, num_tokens=600)
    run(residency, session(9, num_tokens=500), 100.0, 0.0)
    run(residency, agent, None, 1.0, ReplyKind.FINAL)
    assert residency.num_tokens == 500
    assert may_start(residency, agent, 600, 1.0 + GRACE_S / 2, is_behind=True)
    assert left == []
    assert not may_start(residency, agent, 600, 1.0 + GRACE_S)
    assert left == [Leaving.ANSWERED]


def test_a_principal_without_residents_never_waits_and_two_have_equal_parts() -> None:
    residency = Residency(POOL)
    run(residency, session(1, "a", num_tokens=800), 100.0, 0.0)
    other = session(2, "b", num_tokens=300)
    assert may_start(residency, other, 300, 0.0)
    run(residency, other, 100.0, 0.0)
    assert [each.owner for each in residency] == ["b"], "the owner with the most tokens gives them up"


@pytest.mark.parametrize("seed", range(sized(40, usual=4)))
def test_sums_are_right_under_random_traces(seed: int) -> None:
    generator, now, residency = random.Random(seed), 0.0, Residency(POOL)
    sessions: list[Session] = []
    running: list[Session] = []
    for number in range(1, 200):
        now += generator.expovariate(2)
        kind = generator.random()
        if kind < 0.3 or not sessions:
            made = session(number, generator.choice("ab"), now, generator.randrange(300))
            if sessions and generator.random() < 0.4:
                parent = generator.choice(sessions)
                made.root_id, made.parent_id, made.owner = parent.root_id, parent.session_id, parent.owner
                made.num_shared_tokens = generator.randrange(made.num_tokens + 1)
            sessions.append(made)
        elif kind < 0.6:
            each = generator.choice(sessions)
            each.num_prompt_tokens += generator.randrange(50)
            each.num_tokens = max(each.num_tokens, each.num_prompt_tokens)
            may_start(residency, each, each.num_prompt_tokens, now)
            residency.longest_wait_s(each.owner, generator.randrange(4 * POOL), 0.1)
            each.num_running += 1
            residency.start(each)
            running.append(each)
        elif running:
            each = running.pop(generator.randrange(len(running)))
            each.num_running -= 1
            each.num_tokens += generator.randrange(20)
            each.reply = generator.choice(tuple(ReplyKind))
            residency.end(each, now + 3 if each.reply is ReplyKind.CALLS else None, now)
        if generator.random() < 0.05:
            each = generator.choice(sessions)
            if not each.num_running:
                residency.drop(each)
        residency.check()
