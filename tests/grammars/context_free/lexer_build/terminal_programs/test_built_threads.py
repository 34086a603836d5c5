"""States of terminals that are given as languages, run byte by byte against Python's `re`."""

from __future__ import annotations

import itertools
import re

import pytest

from rtlang_grammars.context_free.lexer_build.terminal_programs.built_threads import StateNode, built_states
from rtlang_grammars.context_free.notation.terminal_expressions import BuiltTerminal
from rtlang_grammars.regular.language import Language, compile_regex
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

TEXTS = [bytes(each) for count in range(1, 6) for each in itertools.product(b"ab!", repeat=count)]


def after(states: list[StateNode], text: bytes, *, budget: int | None = None) -> StateNode | None:
    """The state after a text, whose budget is used up after some of its bytes."""
    at = 0
    for index, byte in enumerate(text):
        found = [to for to, symbols in states[at].moves if symbols >> byte & 1]
        if not found:
            return None
        (at,) = found
        if index + 1 == budget and states[at].expired >= 0:
            at = states[at].expired
    return states[at]


@pytest.mark.parametrize("pattern", ["a*b?", "(ab|a)+!?", "[ab]*!"])
@pytest.mark.parametrize("is_lazy", [False, True], ids=["greedy", "lazy"])
def test_texts_match_and_lazy_ones_end_where_they_first_can(pattern: str, *, is_lazy: bool) -> None:
    language = compile_regex(pattern, dialect="python")
    states = built_states(BuiltTerminal(language, language, is_lazy), Budget())
    for text in TEXTS:
        state = after(states, text)
        is_first = not any(re.fullmatch(pattern, text[:end].decode()) for end in range(1, len(text)))
        expected = re.fullmatch(pattern, text.decode()) is not None and (is_first or not is_lazy)
        assert (state is not None and state.is_match) == expected, text


def test_after_the_budget_the_terminal_ends_where_it_or_its_body_first_can() -> None:
    body, marker = compile_regex("(?:ab)*", dialect="python"), Language.literal("!")
    states = built_states(BuiltTerminal(body.concat(marker), body, is_lazy=True, max_tokens=2, marker=marker), Budget())
    for text, ends in ((b"abab!", True), (b"ab!", True), (b"abab", False)):
        state = after(states, text)
        assert state is not None
        assert state.is_match == ends
    used_up = after(states, b"ab", budget=2)
    assert used_up is not None
    assert (used_up.is_match, used_up.moves) == (True, [])
    later = after(states, b"aba", budget=3)  # inside a pair: it goes on to its end
    assert later is not None
    assert not later.is_match
    ended = after(states, b"abab", budget=3)
    assert ended is not None
    assert (ended.is_match, ended.moves) == (True, [])


def test_a_terminal_that_is_always_empty_is_refused() -> None:
    with pytest.raises(GrammarError, match="at most the empty text"):
        built_states(BuiltTerminal(Language.literal(""), Language.literal("")), Budget())
