"""A decision comes as early as it is certain, and is the same in whatever order the operands come."""

from __future__ import annotations

import itertools
from collections import Counter
from random import Random
from typing import Any

import pytest

from rtlang.contract.request_graph import Const, Decide
from rtlang.runtime.executors.decision_state import DecisionState


def vote(count: int, need: int | None = None) -> Decide:
    return Decide(0, "vote", (Const(None),) * count, need)


def plurality(values: list[str]) -> str:
    """The most frequent value, the earliest at a tie."""
    votes = Counter(values)
    return max(votes, key=lambda value: (votes[value], -values.index(value)))


def test_a_vote_is_decided_exactly_when_no_completion_of_it_changes_the_value() -> None:
    random = Random(1)
    num_early = 0
    for _ in range(300):
        count = random.randint(1, 6)
        values = [random.choice("abc") for _ in range(count)]
        order = random.sample(range(count), count)
        state = DecisionState(vote(count))
        known: dict[int, str] = {}
        for index in order:
            state.know(index, values[index])
            known[index] = values[index]
            missing = [other for other in range(count) if other not in known]
            outcomes = set()
            for rest in itertools.product("abcz", repeat=len(missing)):
                whole = {**known, **dict(zip(missing, rest, strict=True))}
                outcomes.add(plurality([whole[each] for each in range(count)]))
            winner = state.winner()
            assert (winner is not None) == (len(outcomes) == 1), (values, order, known)
            if winner is not None:
                assert {values[winner]} == outcomes
                num_early += bool(missing)
                break
    assert num_early > 50


def test_needed_votes_decide_at_once() -> None:
    state = DecisionState(vote(9, need=2))
    state.know(8, "x")
    assert state.winner() is None
    state.know(3, "x")
    assert state.winner() == 3


def test_equal_numbers_of_other_types_are_other_values() -> None:
    state = DecisionState(vote(3))
    for index, value in enumerate((1, True, True)):
        state.know(index, value)
    assert state.value(state.winner() or 0) is True


def test_failed_operands_do_not_vote() -> None:
    state = DecisionState(vote(3))
    state.know(0, "a")
    state.lose(1)
    state.lose(2)
    assert state.winner() == 0
    state.lose(0)
    assert state.is_lost


def test_the_first_known_operand_wins() -> None:
    state = DecisionState(Decide(0, "first", (Const(0), Const(1))))
    assert state.winner() is None
    state.know(1, "later in the list")
    state.know(0, "too late")
    assert state.winner() == 1


def test_the_best_needs_all_numbers_and_its_own_value() -> None:
    operands: Any = (Const(0), Const(1), Const(2))
    state = DecisionState(Decide(0, "best", operands, None, operands))
    for index, number in enumerate((1, 5, 5)):
        assert state.winner() is None
        state.rate(index, number)
    state.know(2, "c")
    assert state.winner() is None
    state.know(1, "b")
    assert state.winner() == 1


def test_a_better_operand_that_failed_is_out() -> None:
    operands: Any = (Const(0), Const(1))
    state = DecisionState(Decide(0, "best", operands, None, operands))
    state.rate(0, 1)
    state.rate(1, 2)
    state.know(0, "a")
    state.lose(1)
    assert state.winner() == 0


def test_each_value_of_a_vote_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []

    def key(value: Any) -> str:
        read.append(value)
        return str(value)

    monkeypatch.setattr("rtlang.runtime.executors.decision_state.vote_key", key)
    state = DecisionState(vote(100))
    for index in range(60):
        state.know(index, index % 7)
        state.winner()
        state.num_needed(range(60, 100))
    state.lose(3)
    state.winner()
    assert len(read) == 60
