"""Reading Lark grammars through lark's loader: what resolves, and what is refused by name."""

from __future__ import annotations

import pytest

from rtlang_grammars.context_free import lark_source
from rtlang_grammars.context_free.lark_source import read_source
from rtlang_grammars.spec.errors import GrammarError
from tests.support.grammars.lexed_grammars import accepts, lexed_grammar


def test_templates_extension_and_override_resolve_as_in_lark() -> None:
    source = """
start: list{item} "."
list{x}: x ("," x)*
item: NUMBER | "b"
%import common.INT -> NUMBER
%extend item: "a"
%override NUMBER: /[1-3]/
"""
    grammar = lexed_grammar(source)
    assert accepts(grammar, "1,a,b.")
    assert not accepts(grammar, "4.")


def test_the_library_can_be_imported() -> None:
    grammar = lexed_grammar("start: value\n%import json.value")
    assert accepts(grammar, '{"a": [1, true]}')


def test_optional_parts_are_not_multiplied_out() -> None:
    parts = [f'"{letter}"?' for letter in "abcdefghijklmnop"]
    source = read_source(f'start: {" ".join(parts)} "!"')
    assert len(source.rules) < 150
    grammar = lexed_grammar(f'start: {" ".join(parts)} "!"')
    assert accepts(grammar, "acp!")
    assert not accepts(grammar, "ca!")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("start: a", "'a' used but not defined"),
        ("start: A\nA: /[/", "terminal A: unterminated character set"),
        ('start: "a"~1..50000', "~50000: at most 10000 repeats"),
        ("%declare X\nstart: X", "terminal X is declared but has no pattern"),
        ('begin: "a"', "start rule start is not defined"),
        ("%import .secrets.X\nstart: X", "secrets"),
        ("%import /etc/passwd\nstart: X", "import"),
        ("start: X\nX: Y\nY: X", "terminal X uses itself"),
        ('start: "a" \0', "null character"),
        ("start: " + "(" * 3000 + '"a"' + ")" * 3000, "nested too deeply"),
        ("start: A\nA: " + "B " * 300 + "\nB: " + "C " * 300 + '\nC: "c"', "more than 65536 characters"),
        (
            'start: a{"x"}\na{x}: x | "(" a{b{x}} ")"\nb{x}: "[" x "]"',
            "template a uses itself with arguments that grow",
        ),
        ('start: t{"z"}\nt{x}: ' + "x? " * 24 + '"b"', "template t has too many alternatives"),
        ("//" + "x" * 140_000 + '\nstart: "a"', "at most 131072 are allowed"),
    ],
)
def test_what_cannot_be_read_is_refused(source: str, message: str) -> None:
    with pytest.raises(GrammarError, match=message):
        read_source(source)


def test_repeats_of_alternatives_are_not_multiplied_out() -> None:
    grammar = lexed_grammar('start: ("a" | "b")~18')
    assert accepts(grammar, "ab" * 9)
    assert not accepts(grammar, "ab" * 8)


@pytest.mark.parametrize(
    ("source", "location"),
    [
        ('start: "a', "1:8"),
        ("start: /a(/", "1:8"),
        ("start: (", "1:9"),
        ('start: A\nA: "a"\n\nB: /[/\n%ignore B', "4:1"),
        ('start: "(((" /[(]/ // (\n  | ' + "(" * 3000 + '"a"' + ")" * 3000, "2:3004"),
        ("start: x\nx: A\n" + "".join(f"A{at}: A{at + 1}\n" for at in range(300)) + 'A: A0\nA300: "a"', "3:1"),
    ],
)
def test_an_error_says_where(source: str, location: str) -> None:
    with pytest.raises(GrammarError) as caught:
        read_source(source)
    assert caught.value.location == location


def test_no_place_is_looked_up_before_an_error_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look-up reads the whole grammar: those of 10,000 literals took 28 s of a compile of 2 s."""
    monkeypatch.setattr(lark_source, "location_of", lambda *_: pytest.fail("a place was looked up"))
    found = read_source('start: A "b" /c+/\nA: /a/\n%ignore / /')
    monkeypatch.undo()
    assert {each.pattern: each.location for each in found.terminals} == {
        "a": "2:1",
        "b": None,
        "c+": "1:14",
        " ": "3:9",
    }
