"""Tokens of Lark grammars and their locations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lark.load_grammar import eval_escaping

from rtlang_grammars.context_free.lark_tokens import SourceText, unescape
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget


def test_tokens_exclude_whitespace_and_comments() -> None:
    source = 'a.2: "x\\"y"i /b\\/[c]/ims // comment\n  | T~3..5 -> c # more\n%ignore WS\\\n+'
    tokens = SourceText(source, "").tokens(Budget())
    assert [(token.kind, token.text) for token in tokens] == [
        ("rule", "a"),
        ("mark", "."),
        ("number", "2"),
        ("mark", ":"),
        ("string", '"x\\"y"i'),
        ("regexp", "/b\\/[c]/ims"),
        ("newline", "\n"),
        ("mark", "|"),
        ("terminal", "T"),
        ("mark", "~"),
        ("number", "3"),
        ("mark", ".."),
        ("number", "5"),
        ("mark", "->"),
        ("rule", "c"),
        ("newline", "\n"),
        ("directive", "%ignore"),
        ("terminal", "WS"),
        ("mark", "+"),
        ("end", ""),
    ]


@pytest.mark.parametrize(
    ("source", "reason", "location"),
    [
        ('a: "x', "not terminated", "1:4"),
        ("a: x\nb: /[", "not terminated", "2:4"),
        ("a: <tok>", "special tokens", "1:4"),
        ("a: \x00", "unexpected", "1:4"),
        ('a: "' + "\\\\" * 5000, "not terminated", "1:4"),
    ],
)
def test_invalid_tokens_are_located(source: str, reason: str, location: str) -> None:
    with pytest.raises(GrammarError, match=reason) as caught:
        SourceText(source, "").tokens(Budget())
    assert caught.value.location == location


@given(st.text(alphabet='ab\\"ntrfx41ud ', max_size=12))
def test_string_literals_agree_with_lark(inner: str) -> None:
    try:
        SourceText(f'"{inner}"', "").tokens(Budget())
        ours: str | None = unescape(inner)
    except (GrammarError, ValueError):
        return
    if '"' in inner.replace("\\\\", "").replace('\\"', ""):
        return  # two literals
    assert ours == eval_escaping(inner).replace("\\\\", "\\")
