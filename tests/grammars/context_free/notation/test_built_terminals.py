"""Terminals that lark cannot define: their leaves are lark's, their options are counted in."""

from __future__ import annotations

import pytest

from rtlang_grammars.context_free.lark_source import read_source
from rtlang_grammars.context_free.notation.terminal_expressions import BuiltTerminal
from rtlang_grammars.spec.errors import GrammarError


def terminal(source: str) -> BuiltTerminal:
    (found,) = [each.built for each in read_source(source).terminals if each.built is not None]
    return found


def test_leaves_are_terminals_and_imports_of_the_grammar() -> None:
    found = terminal('%import common.INT\nstart: A\nA: (INT | W-2{2}) & ~"12"\nW-2: "a".."c" | C\nC: "x"i\n')
    assert [each for each in ("1", "12", "ab", "Xx", "a", "abc") if found.language.accepts(each)] == ["1", "ab", "Xx"]


def test_options_shape_the_language() -> None:
    found = terminal('start: a\na[max_chars=2, suffix=">", max_tokens=3]: /é*/')
    assert [each for each in (">", "é>", "éé", "éé>", "é", "") if found.language.accepts(each)] == [">", "é>", "éé"]
    assert (found.is_lazy, found.max_tokens, found.body.accepts("éé"), found.body.accepts("ééé")) == (
        True,
        3,
        True,
        False,
    )


@pytest.mark.parametrize(
    ("source", "reason", "location"),
    [
        ('start: A\n\nA: "b" & B\nB: ~A', "contains itself", "3:1"),
        ("start: A\nA: ~BAZ", "BAZ", "2:1"),
        ('start: a\na[suffix=X]: "b"', "X", "2:1"),
        ('start: A\nA: %json {} & "a"', "%json: not allowed in a terminal", "2:1"),
    ],
)
def test_errors_have_the_place_of_the_terminal(source: str, reason: str, location: str) -> None:
    with pytest.raises(GrammarError, match=reason) as caught:
        read_source(source)
    assert caught.value.location == location
