"""The tables of a search are complete, bounded, and tell a certain match from one that stands only at the end."""

from __future__ import annotations

import pytest

from rtlang_grammars import GrammarError
from rtlang_grammars.regular.automata.code_point_automaton import NO_STATE
from rtlang_grammars.regular.automata.search_automaton import SearchTables, compile_search
from rtlang_grammars.spec.limits import Budget


def tables(pattern: str, max_states: int = 1000) -> SearchTables:
    return compile_search(pattern, max_states=max_states, budget=Budget())


def state_after(found: SearchTables, text: str, start: int = 0) -> int:
    """The state of a match that begins at `start`."""
    context, state = found.context, found.first if start == 0 else NO_STATE
    for place, character in enumerate(text):
        if place == start and start:
            state = found.later[context]
        number = found.partition.class_of(ord(character))
        state = NO_STATE if state == NO_STATE else found.moves[state][number]
        context = found.moves[context][number]
    return state


@pytest.mark.parametrize("pattern", ["a+b", r"\bfor\b", "(?:ab|c)*d", "(?i)stop$", ".{3,9}x"])
def test_every_move_leads_to_a_state_of_the_tables(pattern: str) -> None:
    found = tables(pattern)
    num_states = len(found.moves)
    assert all(len(row) == found.partition.num_classes for row in found.moves)
    assert all(NO_STATE <= target < num_states for row in found.moves for target in row)
    assert len(found.is_certain) == len(found.accepts_at_end) == len(found.later) == num_states


def test_a_match_is_certain_once_nothing_can_refuse_it() -> None:
    found = tables("foo(?!bar)")
    assert not found.is_certain[state_after(found, "foo")]
    assert found.accepts_at_end[state_after(found, "foo")]
    assert found.is_certain[state_after(found, "foox")]
    assert state_after(found, "foobar") == NO_STATE


def test_what_cannot_match_any_more_is_dropped() -> None:
    found = tables("ab")
    assert state_after(found, "ac") == NO_STATE
    assert state_after(found, "a") != NO_STATE


def test_anchors_and_lookbehinds_depend_on_what_is_before() -> None:
    found = tables("^ab")
    assert found.is_certain[state_after(found, "ab")]
    assert state_after(found, "xab", 1) == NO_STATE
    found = tables("(?<=x)ab")
    assert state_after(found, "ab") == NO_STATE
    assert found.is_certain[state_after(found, "xab", 1)]


def test_a_pattern_that_needs_more_states_is_refused() -> None:
    assert len(tables("(?:a|b)*a(?:a|b){4}").moves) <= 1000
    with pytest.raises(GrammarError, match="more than 1000 states"):
        tables("(?:a|b)*a(?:a|b){14}")


@pytest.mark.parametrize("pattern", [r"(a)\1", "(?>a)", "a++"])
def test_patterns_that_are_not_regular_are_refused(pattern: str) -> None:
    with pytest.raises(GrammarError):
        tables(pattern)
