"""Liveness, checked against exploration of all states."""

from __future__ import annotations

import itertools
import re

import pytest

from rtlang_grammars.regular.language import Language, compile_regex
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget, Limits

PARTS = ["(aa)*", "(aaa)+", "a{2,5}", "(ab|ba)*", ".*bb.*", "[ab]{4}", "a*b*", "(?!.*ab).*"]


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(PARTS, 2)))
@pytest.mark.parametrize(("low", "high"), [(0, None), (3, 3), (1, 4)])
def test_emptiness_agrees_with_enumeration(one: str, other: str, low: int, high: int | None) -> None:
    first, second = compile_regex(one), compile_regex(other)
    words = ["".join(word) for length in range(8) for word in itertools.product("ab", repeat=length)]
    has_word = any(
        low <= len(word) <= (99 if high is None else high) and first.accepts(word) and second.accepts(word)
        for word in words
    )
    assert first.intersect(second).bounded(low, high).is_empty() is not has_word


def test_distant_bounds_are_decided_by_lengths() -> None:
    few = Budget(Limits(max_states=60))
    assert not compile_regex("[a-z]+(-[a-z]+)*").bounded(10**8, 10**9).is_empty(few)
    assert compile_regex("a{3}b{0,4}").bounded(8, None).is_empty(few)
    assert not compile_regex("(abc)*").bounded(10**9, None).is_empty(few)
    assert compile_regex("x{5,}").bounded(0, 4).is_empty(few)
    assert not compile_regex("[0-9]{2,3}|[0-9]{4,8}").bounded(7, 7).is_empty(few)


def test_lengths_with_gaps_need_a_search() -> None:
    assert compile_regex("(abc)*").bounded(10, 11).is_empty()
    assert not compile_regex("(abc)*").bounded(10, 12).is_empty()
    assert compile_regex("a|a{5}").bounded(2, 4).is_empty()


def test_a_long_search_is_stopped_by_the_budget() -> None:
    with pytest.raises(GrammarError, match="states"):
        compile_regex("(abc)*").bounded(3_000_001, 3_000_001).is_empty(Budget(Limits(max_states=2000, max_seconds=60)))


def test_a_long_literal_before_an_assertion_does_not_recurse() -> None:
    language = compile_regex("a" * 5000 + "(?!b).?")
    automaton = language.automaton()
    assert automaton.row(automaton.start)[ord("a")] >= 0
    assert language.accepts("a" * 5000 + "c")
    assert not language.accepts("a" * 5000 + "b")
    assert Language.literal("a" * 5000).includes(Language.literal("a" * 5000))


def test_nested_assertions_are_searched_without_recursion() -> None:
    pattern = r'"(?:(?!(?<!\\)(?:(?!")(\\\\))*").)*(?<!\\)(?:(?!")(\\\\))*"'
    language = compile_regex(pattern, dialect="python")
    for length in range(7):
        for letters in itertools.product('"\\a', repeat=length):
            text = "".join(letters)
            assert language.accepts(text) == bool(re.fullmatch(pattern, text)), text
