"""The session table against string prefixes, and its bounds under hostile sessions, in counts of work."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from rtlang.engine.sessions.return_times import ReplyKind
from rtlang.engine.sessions.session_table import (
    MAX_SESSION_POINTS,
    MAX_TRIES,
    Session,
    SessionTable,
    Turn,
    TurnKind,
)
from rtlang.engine.sessions.token_chain import BLOCK_TOKENS
from tests.support.long_tests import sized


@dataclass
class _Asked:
    """A request as the oracle remembers it: its texts as strings of one character a token."""

    turn: Turn
    prompt: str
    border: str
    output: str = ""
    is_running: bool = True


def _text(tokens: list[int]) -> str:
    return "".join(map(chr, tokens))


class _Oracle:
    """Remembers all requests of one principal and namespace, and compares beginnings of strings."""

    def __init__(self) -> None:
        self.points: dict[str, tuple[Session, int]] = {}  # the session that had each text last, and its turn

    def expected(self, prompt: str) -> tuple[int, Session | None, int]:
        best = max((text for text in self.points if prompt.startswith(text)), key=len, default=None)
        return (0, None, 0) if best is None else (len(best), *self.points[best])


@pytest.mark.parametrize("seed", range(sized(24, usual=3)))
def test_sessions_are_those_of_string_prefixes(seed: int) -> None:
    generator, table, now = random.Random(seed), SessionTable(), 0.0
    oracles: dict[tuple[str, str], _Oracle] = {}
    asked: list[_Asked] = []
    running: list[_Asked] = []
    for _ in range(250):
        now += generator.expovariate(1)
        if running and generator.random() < 0.5:
            each = running.pop(generator.randrange(len(running)))
            output = [generator.randrange(2) for _ in range(generator.choice((0, 1, 5, 80)))]
            table.end(each.turn, output, generator.choice(tuple(ReplyKind)), now)
            each.output, each.is_running = _text(output), False
            ended = each.turn.session
            if output:
                points = oracles[ended.owner, ended.namespace].points
                points[each.prompt + each.output] = ended, ended.num_turns
            continue
        owner, namespace = generator.choice("ab"), generator.choice(("", "n"))
        oracle = oracles.setdefault((owner, namespace), _Oracle())
        start = ""
        if asked and generator.random() < 0.8:  # of any principal: equal texts of others must not be found
            before = generator.choice(asked)
            start = generator.choice((before.prompt, before.border, before.prompt + before.output))
        prompt = [ord(each) for each in start]
        prompt += [generator.randrange(2) for _ in range(generator.choice((0, 1, 3, BLOCK_TOKENS, 3 * BLOCK_TOKENS)))]
        num_border = max(0, len(prompt) - generator.choice((0, 0, 2)))
        length, session, turn_number = oracle.expected(_text(prompt))
        num_running, num_turns, num_prompt = (
            (0, 0, 0) if session is None else (session.num_running, session.num_turns, session.num_prompt_tokens)
        )
        turn = table.begin(owner, namespace, prompt, num_border, now)
        assert turn.num_returning_tokens == length
        if session is None:
            assert turn.kind is TurnKind.NEW
        elif turn_number == num_turns and num_running and num_prompt == len(prompt):
            assert (turn.kind, turn.session) == (TurnKind.SIBLING, session)
        elif turn_number == num_turns and not num_running:
            assert (turn.kind, turn.session) == (TurnKind.CONTINUED, session)
        else:
            assert (turn.kind, turn.session.parent_id) == (TurnKind.FORK, session.session_id)
        if num_border:
            oracle.points[_text(prompt[:num_border])] = turn.session, turn.session.num_turns
        each = _Asked(turn, _text(prompt), _text(prompt[:num_border]))
        asked.append(each)
        running.append(each)
        table.check()


def _ask(table: SessionTable, prompt: list[int], output: list[int], now: float = 0.0, owner: str = "a") -> Turn:
    turn = table.begin(owner, "", prompt, len(prompt), now)
    table.end(turn, output, ReplyKind.CALLS, now)
    return turn


def test_a_chain_of_many_turns_costs_each_turn_the_same_and_keeps_few_points() -> None:
    table, tokens, most = SessionTable(), list(range(BLOCK_TOKENS)), 0
    for number in range(sized(10_000, usual=600)):
        before = table.num_tries
        turn = _ask(table, tokens, [number], float(number))
        most = max(most, table.num_tries - before)
        assert turn.kind is (TurnKind.CONTINUED if number else TurnKind.NEW)
        tokens = [*tokens, number, 7]
    assert most <= BLOCK_TOKENS
    assert max(len(each.points) for each in table) <= MAX_SESSION_POINTS


def test_many_tiny_chains_are_bounded_and_leave_others_theirs() -> None:
    table = SessionTable(max_points=600, max_owner_points=400)
    own = list(range(1000, 1000 + 2 * BLOCK_TOKENS))
    _ask(table, own, [1], owner="victim")
    for number in range(sized(100_000, usual=3000)):
        before = table.num_tries
        _ask(table, [number], [number + 1, number + 2], owner=f"hostile {number % 2}")
        assert table.num_tries - before <= BLOCK_TOKENS
    assert table.begin("victim", "", [*own, 1, 5], len(own) + 2, 1.0).kind is TurnKind.CONTINUED
    table.check()


def test_sequences_that_share_their_blocks_cost_a_bounded_number_of_look_ups() -> None:
    table, zeros = SessionTable(), [0] * (6 * BLOCK_TOKENS)
    for length in range(1, len(zeros)):
        _ask(table, [*zeros[:length], 1], [2])
    before = table.num_tries
    table.begin("a", "", [*zeros[:-1], 3, 4], len(zeros) + 1, 0.0)
    assert table.num_tries - before <= MAX_TRIES
    table.check()


def test_choices_of_one_prompt_are_one_turn_and_any_of_them_is_continued() -> None:
    table, prompt = SessionTable(), [5] * 70
    turns = [table.begin("a", "", prompt, 68, 0.0) for _ in range(3)]
    assert [each.kind for each in turns] == [TurnKind.NEW, TurnKind.SIBLING, TurnKind.SIBLING]
    for number, turn in enumerate(turns):
        table.end(turn, [number], ReplyKind.FINAL, 1.0)
        table.end(turn, [9], ReplyKind.CALLS, 2.0)  # ended before: ignored
    session = turns[0].session
    assert (session.num_turns, session.num_running) == (1, 0)
    after = table.begin("a", "", [*prompt, 1, 8], 72, 3.0)
    assert (after.kind, after.session, after.num_returning_tokens, after.idle_s) == (
        TurnKind.CONTINUED,
        session,
        71,
        2.0,
    )
    assert not after.is_rewritten
    fork = table.begin("a", "", [*prompt, 2, 8], 72, 3.0)
    assert (fork.kind, fork.session.parent_id, session.num_forks) == (TurnKind.FORK, session.session_id, 1)


def test_a_reply_that_the_client_wrote_anew_continues_at_the_end_of_the_last_message() -> None:
    table, prompt = SessionTable(), [5] * 70
    table.end(table.begin("a", "", prompt, 66, 0.0), [1, 2, 3], ReplyKind.CALLS, 0.0)
    turn = table.begin("a", "", [*prompt[:66], 9, 9, 9, 9, 9, 9], 72, 1.0)
    assert (turn.kind, turn.num_returning_tokens, turn.is_rewritten) == (TurnKind.CONTINUED, 66, True)


def test_a_dropped_session_is_reported_once() -> None:
    dropped: list[Session] = []
    table = SessionTable(dropped.append, max_owner_points=4)
    for number in range(10):
        _ask(table, [number], [0])
    assert [each.session_id for each in dropped] == list(range(1, 9))
    assert [each.session_id for each in table] == [9, 10]
