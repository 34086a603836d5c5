"""The automaton over code points: lazy, thread-safe, and tracking lookbehinds."""

from __future__ import annotations

import threading

import pytest

from rtlang_grammars.regular.automata.code_point_automaton import NO_STATE, CodePointAutomaton
from rtlang_grammars.regular.patterns import syntax
from rtlang_grammars.regular.patterns.escapes import RegexDialect
from rtlang_grammars.regular.patterns.parser import parse_pattern
from rtlang_grammars.regular.patterns.zero_width import resolve_anchors
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget, Limits


def _automaton(pattern: str) -> CodePointAutomaton:
    return CodePointAutomaton(resolve_anchors(parse_pattern(pattern, RegexDialect.ECMA, Budget()), Budget()), Budget())


def _run(automaton: CodePointAutomaton, text: str) -> int:
    state = automaton.start
    for character in text:
        if state == NO_STATE:
            break
        state = automaton.moves(state, Budget())[automaton.partition.class_of(ord(character))]
    return state


def test_states_are_created_on_demand() -> None:
    automaton = _automaton("a{1000000}")
    assert automaton.num_states == 1
    _run(automaton, "aaa")
    assert automaton.num_states == 4


def test_equal_derivatives_are_one_state() -> None:
    automaton = _automaton("(ab|cb)*d")
    assert _run(automaton, "a") == _run(automaton, "c") == _run(automaton, "abcba")
    assert _run(automaton, "ab") == automaton.start
    assert _run(automaton, "b") == NO_STATE


def test_a_lookbehind_is_part_of_the_state() -> None:
    automaton = _automaton(r"[ab]*(?<=ab)c")
    assert _run(automaton, "aabc") != NO_STATE
    assert automaton.is_accepting(_run(automaton, "aabc"))
    assert _run(automaton, "aabac") == NO_STATE
    assert _run(automaton, "a") != _run(automaton, "b")
    assert _run(automaton, "ab") == _run(automaton, "bab")


def test_the_empty_language_has_no_state() -> None:
    automaton = CodePointAutomaton(syntax.NOTHING, Budget())
    assert automaton.start == NO_STATE
    assert automaton.num_states == 0


def test_too_deep_trees_are_an_error() -> None:
    tree = syntax.text("ab")
    for _ in range(20):
        tree = syntax.complement(syntax.concatenation([tree, syntax.CHARACTER]))
    with pytest.raises(GrammarError, match="nested too deeply"):
        CodePointAutomaton(tree, Budget(Limits(max_depth=10)))


def test_threads_can_share_an_automaton() -> None:
    automaton = _automaton("[ab]*a[ab]{9}")
    ends: list[int] = []

    def work(seed: int) -> None:
        for number in range(200):
            ends.append(_run(automaton, format(number * 7 + seed, "012b").replace("0", "a").replace("1", "b")))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = _automaton("[ab]*a[ab]{9}")
    for number in range(200):
        word = format(number * 7, "012b").replace("0", "a").replace("1", "b")
        assert automaton.is_accepting(_run(automaton, word)) == alone.is_accepting(_run(alone, word))
    assert len(ends) == 800
    assert automaton.num_states >= alone.num_states


@pytest.mark.parametrize("pattern", ["a{2,4}b", "(ab|c)*", "x?[0-9]{3}(?:z|yy)", "[^a]*aa", r"\d{1,2}:\d\d"])
def test_remaining_lengths_agree_with_a_search(pattern: str) -> None:
    automaton = _automaton(pattern)
    remaining_lengths = automaton.remaining_lengths(100, Budget())
    assert remaining_lengths is not None
    assert set(remaining_lengths) == set(range(automaton.num_states))
    for state, count in remaining_lengths.items():
        end = automaton.nearest_end(state, 1000, Budget())
        assert end is not None
        assert len(end) == count
    assert automaton.remaining_lengths(len(remaining_lengths), Budget()) == remaining_lengths
    assert automaton.remaining_lengths(len(remaining_lengths) - 1, Budget()) is None


def test_remaining_lengths_are_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    automaton = _automaton("a{1,20}")
    first, few = automaton.remaining_lengths(100, Budget()), automaton.remaining_lengths(3, Budget())
    assert few is None
    monkeypatch.setattr(automaton, "moves", None)
    assert automaton.remaining_lengths(100, Budget()) is first
    assert automaton.remaining_lengths(3, Budget()) is None
