"""The lexer without competition: what ends where, against Python's `re`, for terminals that overlap."""

from __future__ import annotations

import random
import re

from rtlang_grammars.context_free.cfg import Terminal
from rtlang_grammars.context_free.lexer_build.anywhere_automaton import AnywhereAutomaton
from rtlang_grammars.regular.language import compile_regex
from rtlang_grammars.spec.limits import Budget

PATTERNS = ["[a-c]+", "ab?", "a(bc|é)*", "[^b]{2}", "if", "é"]


def automaton_of(patterns: list[str]) -> AnywhereAutomaton:
    return AnywhereAutomaton([Terminal(each, compile_regex(each)) for each in patterns], Budget())


def endings(automaton: AnywhereAutomaton, winner: int, num_terminals: int) -> set[int]:
    at = winner - num_terminals - 1
    if at < 0:
        return {winner} - {-1}
    return set(automaton.lists[at + 1 : at + 1 + automaton.lists[at]])


def test_every_terminal_ends_wherever_it_matches() -> None:
    automaton = automaton_of(PATTERNS)
    contexts = [range(len(PATTERNS)), [0], [1, 2], [3, 4, 5]]
    starts, rng = automaton.starts(contexts), random.Random(3)
    for _ in range(400):
        text = "".join(rng.choice("abcifé") for _ in range(rng.randint(1, 4)))
        for context, start in zip(contexts, starts, strict=True):
            state = start
            for byte in text.encode():
                state = int(automaton.following[state, automaton.classes[byte]]) if state >= 0 else -1
            expected = {each for each in context if re.fullmatch(PATTERNS[each], text)}
            found = set() if state < 0 else endings(automaton, automaton.winners[state, automaton.end_class], 6)
            assert found == expected, (text, context)
    assert automaton.is_start[starts[0]]
    assert not any(automaton.is_start[each] for each in automaton.following[starts].ravel() if each >= 0)


def test_a_terminal_ends_only_before_what_may_follow() -> None:
    automaton = automaton_of(["[a-z]+", "[a-z]", "!"])
    automaton.end_only_before([[2], [0, 1], []])
    (start,) = automaton.starts([[0, 1]])
    state = int(automaton.following[start, automaton.classes[ord("q")]])
    ends = {
        symbol: endings(automaton, int(automaton.winners[state, automaton.classes[ord(symbol)]]), 3) for symbol in "b!?"
    }
    assert ends == {"b": {1}, "!": {0}, "?": set()}
    assert endings(automaton, int(automaton.winners[state, automaton.end_class]), 3) == {0, 1}
    assert {terminal for terminal, *_ in automaton.wins[state]} == {0, 1}


def test_equal_states_are_one() -> None:
    automaton = automaton_of(["(a|b)(c|d)x", "(ac|ad|bc|bd)x"])
    automaton.starts([[0], [1], [0, 1]])
    assert len(automaton.following) == 3 * 4
