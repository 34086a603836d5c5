"""The parser of Lark grammars: statements and syntax errors."""

from __future__ import annotations

import pytest

from rtlang_grammars.context_free.ebnf import Choice, Name, Pattern, Repeat, Sequence
from rtlang_grammars.context_free.lark_syntax import Definition, Ignore, Import, Mode, parse_lark
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget, Limits


def test_definitions_imports_and_ignores_are_parsed() -> None:
    source = """
// a comment
?start{p, q}.3: "a" p -> first
    | [T] (q | )
!T.-1: "b".."d"
%import common.INT -> N
%import common (WS, WORD)
%ignore WS
%override a: b~2
%extend a: c{d, "x", c{a}}+
"""
    start, terminal, single, many, ignore, override, extend = parse_lark(source, Budget())
    assert start == Definition(
        "start",
        False,
        ("p", "q"),
        3,
        Choice(
            (
                Sequence((Pattern("a", "3:17"), Name("p", (), "3:21"))),
                Sequence((Repeat(Name("T", (), "4:8"), 0, 1), Choice((Name("q", (), "4:12"), Sequence(()))))),
            )
        ),
        Mode.DEFINE,
        "3:1",
    )
    assert isinstance(terminal, Definition)
    assert (terminal.is_terminal, terminal.priority) == (True, -1)
    assert terminal.expression == Pattern("[\\U00000062-\\U00000064]", "5:8")
    assert single == Import(("common",), (("INT", "N"),), "6:1")
    assert many == Import(("common",), (("WS", "WS"), ("WORD", "WORD")), "7:1")
    assert ignore == Ignore(Name("WS", (), "8:9"), "8:1")
    assert isinstance(override, Definition)
    assert (override.mode, override.expression) == (Mode.OVERRIDE, Repeat(Name("b", (), "9:14"), 2, 2))
    assert isinstance(extend, Definition)
    assert extend.mode is Mode.EXTEND


@pytest.mark.parametrize(
    ("source", "reason", "location"),
    [
        ("a: (b", "not closed", "1:4"),
        ("a: b)", "unexpected", "1:5"),
        ("a: (b]", "unexpected", "1:6"),
        ("a: b??", "unexpected", "1:6"),
        ("a: *", "unexpected", "1:4"),
        ("a b", "expected :", "1:3"),
        ("A: b -> c", "aliases are not allowed", "1:6"),
        ("a: b -> c d", "end of its alternative", "1:11"),
        ('a: "bc".."d"', "single characters", "1:4"),
        ('a: "d".."b"', "ascending order", "1:4"),
        ('a: "\\u12"', "4 hexadecimal", "1:4"),
        ('a: "\\ud800"', "surrogate", "1:4"),
        ("a: /b/l", "flags", "1:4"),
        ("a: /b\n/", "flag x", "1:4"),
        ("a: b~5..3", "ascending order", "1:5"),
        ("a: b~9999999999999", "too large", "1:6"),
        ("%declare A", "every terminal must be defined", "1:1"),
        ("%json {}", "not supported", "1:1"),
        ("%import .x.y", "relative", "1:1"),
        ("%import x", "grammar and a name", "1:1"),
        ("%import x.A -> b", "alias of a rule must be in lower case", "1:1"),
        ("a[max_tokens=3]: b", "attributes", "1:13"),
        ("a{b, b}: b", "different names", "1:1"),
        ("a: " + "(" * 90, "nested too deeply", "1:84"),
        ("a: " + "b{" * 90, "nested too deeply", None),
    ],
)
def test_syntax_errors_are_located(source: str, reason: str, location: str | None) -> None:
    with pytest.raises(GrammarError, match=reason) as caught:
        parse_lark(source, Budget())
    assert caught.value.location is not None
    assert location is None or caught.value.location == location


def test_a_too_long_source_is_an_error() -> None:
    with pytest.raises(GrammarError, match="too long"):
        parse_lark("a: b\n" * 100, Budget(Limits(max_source_bytes=400)))
