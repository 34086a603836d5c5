"""Tokens and definitions of grammars."""

from __future__ import annotations

import pytest

from rtlang_grammars.context_free.notation.scanner import TokenKind, definition_in, lines_of, scan
from rtlang_grammars.spec.errors import GrammarError


def test_tokens_keep_their_places_and_what_is_embedded_is_one() -> None:
    source = 'a-b[x]: %json {"}": [1, "%lark {"]} // b: "c"\n  | /a#\\/b/i "d\\""i..  @g-1 <|t|> C-D~2\n%lark { start: "}" t{x} }'
    found = scan(source)
    assert [source[each.start : each.end] for each in found] == [each.text for each in found]
    assert [(each.kind, each.text) for each in found if each.kind not in (TokenKind.SIGN, TokenKind.NEWLINE)] == [
        (TokenKind.RULE, "a-b"),
        (TokenKind.RULE, "x"),
        (TokenKind.EMBEDDED, '%json {"}": [1, "%lark {"]}'),
        (TokenKind.REGEXP, "/a#\\/b/i"),
        (TokenKind.STRING, '"d\\""i'),
        (TokenKind.REFERENCE, "@g-1"),
        (TokenKind.SPECIAL, "<|t|>"),
        (TokenKind.TERMINAL, "C-D"),
        (TokenKind.NUMBER, "2"),
        (TokenKind.EMBEDDED, '%lark { start: "}" t{x} }'),
    ]


def test_definitions_end_before_the_next_item() -> None:
    lines = lines_of(scan('!?a{x}.2[lazy, max_tokens=3]: "b"\n\n  | c -> d\n%import common.INT\nE: "e"'))
    first, other, last = (definition_in(line) for line in lines)
    assert first is not None
    assert (first.name.text, [each.text for each in first.options or ()]) == (
        "a",
        ["lazy", ",", "max_tokens", "=", "3"],
    )
    assert [each.text for each in first.body] == ['"b"', "|", "c", "->", "d"]
    assert other is None
    assert last is not None
    assert last.is_terminal


@pytest.mark.parametrize(
    ("source", "location"),
    [('start: "a" %json {"a": }', "1:24"), ("start: %lark { a", "1:14"), ("a: b\nc: %regex [1", "2:13")],
)
def test_what_does_not_end_is_refused_with_its_place(source: str, location: str) -> None:
    with pytest.raises(GrammarError) as caught:
        scan(source)
    assert caught.value.location == location
