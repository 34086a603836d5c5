"""Terminals that may be empty: rules over terminals that are not, with the same texts."""

from __future__ import annotations

import pytest

from rtlang_grammars.context_free.lark_source import read_source
from rtlang_grammars.context_free.lexer_build.optional_terminals import with_optional_terminals
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget
from tests.support.grammars.lexed_grammars import accepts, lexed_grammar


@pytest.mark.parametrize(
    ("source", "good", "bad"),
    [
        ("start: A B\nA: /a*/\nB: /b*/", ["", "a", "b", "aab"], ["ba", "aba"]),
        ('start: (A ",")* B?\nA: /a*/\nB: "b"*', ["", ",", "a,,b", "bb"], ["a", "ab"]),
        ('start: "x" E "y"\nE: ""', ["xy"], ["x y"]),
        ('start: "x" E\nE[lazy]: /a*/'.replace("E", "e"), ["x"], ["xa"]),
        ('start: "foo" | ST "x" | r\nST: /a/? & /a{2}/\nr[max_chars=1]: "ab"', ["foo"], ["", "a", "aax", "x", "ab"]),
        ('start: "x" "y"\n%ignore /-*/', ["xy", "x--y", "-xy-"], ["x-"]),
    ],
)
def test_such_terminals_may_be_left_out(source: str, good: list[str], bad: list[str]) -> None:
    grammar = lexed_grammar(source)
    assert [each for each in good if not accepts(grammar, each)] == []
    assert [each for each in bad if accepts(grammar, each)] == []


def test_other_terminals_stay() -> None:
    source = read_source("start: A B\nA: /a+/\nB: /b(?=c)|/")
    assert with_optional_terminals(source, Budget()) is source


def test_a_grammar_whose_terminals_match_nothing_is_refused() -> None:
    with pytest.raises(GrammarError, match="the grammar matches no string"):
        lexed_grammar("start: A\nA: /a/ & /b/")
