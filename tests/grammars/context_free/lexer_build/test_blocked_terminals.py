"""Grammars of which the lexer leaves no text are refused, with the terminal, its line and a remedy."""

from __future__ import annotations

import pytest

from rtlang_grammars import Constraint, ConstraintKind, GrammarError, Lexer, check_constraint

REFUSED = [
    ('start: "say " TEXT "."\nTEXT: /[a-z .]+/', r'"\." cannot follow TEXT.*Exclude from TEXT.*lexer=anywhere', "2:1"),
    ("start: NAME NAME\nNAME: /[a-z]+/", "NAME cannot follow NAME", "2:1"),
    ('start: A "x"\n\nA: /a(?=b)/', '"x" cannot follow A', "3:1"),
    ('start: (x ";")+\nx: T ":"\nT: /[^;]+/', '":" cannot follow T', "3:1"),
    ("start: A\nA: /a/\nB.1: /a+/\n%ignore B", r"A is never found.*priority \(A\.1\)", "2:1"),
    ("start: S\nS: /x+(?=y)/", "look-ahead of its last terminal asks for more text", None),
]
ALLOWED = [
    'start: "say " TEXT "."\nTEXT: /[a-z ]+/',
    'start: "a" T ";" | "b"\nT: /[a-z;]+/',
    'start: N ".." N\nN: /[0-9]+(\\.[0-9]+)?/',
]


@pytest.mark.parametrize(("source", "message", "location"), REFUSED)
def test_a_grammar_without_texts_is_refused(source: str, message: str, location: str | None) -> None:
    for lexer in (Lexer.LONGEST, Lexer.LARK):
        with pytest.raises(GrammarError, match=f"matches no string: .*{message}") as caught:
            check_constraint(Constraint(ConstraintKind.LARK, source, lexer=lexer))
        assert caught.value.location == location
    check_constraint(
        Constraint(ConstraintKind.LARK, source.replace("(?=b)", "").replace("(?=y)", ""), lexer=Lexer.ANYWHERE)
    )


def test_a_grammar_with_some_text_is_not_refused() -> None:
    for source in ALLOWED:
        check_constraint(Constraint(ConstraintKind.LARK, source))
