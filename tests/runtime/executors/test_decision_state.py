"""A decision comes as early as it is certain, and is the same in whatever order the operands come."""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from random import Random
from typing import Any

import pytest

from rtlang.contract.request_graph import Const, Decide
from rtlang.runtime.executors.decision_state import DecisionState, ranking


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


def num_calls(act: Any) -> int:
    """Calls of functions, those of comprehensions and keys included."""
    count = 0

    def note(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(before)
    return count


def learn_all(how: Any, count: int, num_values: int) -> int:
    """Calls to decide over so many operands, of which a third is lost, with a look at the winner after each."""
    operands = (Const(0),) * count
    state = DecisionState(Decide(0, how, operands, None, operands if how == "best" else None))
    keys = [str(index % num_values) for index in range(count)]

    def act() -> None:
        if how == "best":
            for index in range(count):
                state.rate(index, index % num_values)
                assert state.winner() is None
        for index in reversed(range(count)):
            if index % 3:
                state.know(index, index % num_values, keys[index])
            else:
                state.lose(index)
            if state.winner() is not None:
                break

    return num_calls(act)


@pytest.mark.parametrize("how", ["vote", "best", "first"])
@pytest.mark.parametrize("num_values", [1, 2, 30, 4_000])
def test_the_work_of_a_decision_grows_with_its_operands_and_not_faster(how: str, num_values: int) -> None:
    few, many = (learn_all(how, count, num_values) for count in (500, 4_000))
    assert many < 2 * 8 * few


def test_ratings_that_are_compared_elsewhere_decide_when_they_are_back() -> None:
    operands: Any = (Const(0), Const(1), Const(2))
    state = DecisionState(Decide(0, "best", operands, None, operands))
    for index, number in enumerate((3, 9, 5)):
        assert state.begin_ranking() is None
        state.know(index, "abc"[index])
        state.rate(index, number)
    rates = state.begin_ranking()
    assert rates == {0: 3, 1: 9, 2: 5}
    assert (state.begin_ranking(), state.winner()) == (None, None)
    state.lose(1)
    state.rank(ranking(rates))
    assert state.winner() == 2


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
