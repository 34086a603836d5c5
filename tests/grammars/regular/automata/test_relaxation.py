"""Relaxed states, compared with the states they stand for on every short string."""

from __future__ import annotations

import itertools
import random

from rtlang_grammars.regular.automata.code_point_automaton import NO_STATE, CodePointAutomaton
from rtlang_grammars.regular.language import Language, compile_regex
from rtlang_grammars.spec.limits import Budget
from tests.support.long_tests import sized

_REACH = 3
_LETTERS = "ab-"


def _random_pattern(rng: random.Random, depth: int = 3) -> str:
    if depth == 0:
        return rng.choice(["a", "b", "[ab]", ".", "-", "ab", "(?:a|)"])
    parts = [_random_pattern(rng, depth - 1) for _ in range(rng.randint(1, 3))]
    joined = "".join(parts) if rng.random() < 0.6 else "(?:" + "|".join(parts) + ")"
    if rng.random() < 0.6:
        low = rng.choice([0, 0, 1, 2, 4, 6])
        high = rng.choice(["", str(low + rng.choice([0, 1, 3, 5, 9]))])
        joined = f"(?:{joined}){{{low},{high}}}"
    return joined


def _follow(automaton: CodePointAutomaton, state: int, text: str, budget: Budget) -> int:
    for letter in text:
        if state == NO_STATE:
            break
        state = automaton.moves(state, budget)[automaton.partition.class_of(ord(letter))]
    return state


def test_a_relaxed_state_allows_and_ends_the_same_short_strings() -> None:
    rng, num_relaxed = random.Random(8), 0
    words = [word for length in range(_REACH + 1) for word in itertools.product(_LETTERS, repeat=length)]
    for _ in range(sized(1500, usual=120)):
        pattern = _random_pattern(rng)
        language = compile_regex(pattern, dialect="python")
        if rng.random() < 0.5:
            language = language.bounded(rng.choice([0, 1, 1, 2]), rng.choice([4, 7, 9, 14, 30]))
        if rng.random() < 0.2:
            language = language.minus(Language.literals(["a", "ab", "abab"]))
        budget = Budget()
        if language.is_empty(budget):
            continue
        automaton = CodePointAutomaton(language._tree, budget)
        state = automaton.start
        for _ in range(12):
            relaxed = automaton.relaxed(state, _REACH, budget)
            num_relaxed += relaxed != state
            for word in words if relaxed != state else ():
                one, other = (_follow(automaton, at, "".join(word), budget) for at in (state, relaxed))
                assert (one == NO_STATE) == (other == NO_STATE), (pattern, word)
                assert one == NO_STATE or automaton.is_accepting(one) == automaton.is_accepting(other), (pattern, word)
            following = [at for at in automaton.moves(state, budget) if at != NO_STATE]
            if not following:
                break
            state = rng.choice(following)
    assert num_relaxed > 100


def test_counts_far_from_their_bounds_share_a_state() -> None:
    budget = Budget()
    for pattern in ("[ab]{3,500}", "(?:a|b{1,3}){0,400}-?", "(?:(?:ab){1,90}-){1,90}"):
        automaton = CodePointAutomaton(compile_regex(pattern)._tree, budget)
        state, found = automaton.start, set()
        for letter in "ab" * 40:
            state = _follow(automaton, state, letter, budget)
            found.add(automaton.relaxed(state, 32, budget))
        assert len(found) <= 8, pattern
