"""Extended grammars as plain Lark: what lark reads of them has the same texts, and errors keep their places."""

from __future__ import annotations

import pytest
from lark import Lark

from rtlang_grammars.context_free.notation.plain_lark import read_notation, with_grammars
from rtlang_grammars.spec.errors import GrammarError

PLAIN = 'start: a~2 [B] t{a}\na: "x" | "y"i // {2,3}\nB: /[a-z]{2,}/\nt{x}: x "!"\n'


def accepts(grammar: str, text: str) -> bool:
    try:
        Lark(grammar, parser="earley").parse(text)
    except Exception:  # lark raises several kinds
        return False
    return True


def test_plain_grammars_stay_as_they_are() -> None:
    found = read_notation(PLAIN)
    assert found.text == PLAIN
    assert not found.is_extended


@pytest.mark.parametrize(
    ("source", "good", "bad"),
    [
        ('start: "a"{2,3}', ["aa", "aaa"], ["a", "aaaa"]),
        ('start: ("a" | "bc"){2,}', ["aa", "abc", "bcbcbc"], ["a", "bc"]),
        ('start: "a"{2} "b"{,2} "c"{0,} "d"{1,}', ["aad", "aabbcdd"], ["ad", "aabbbd"]),
        ('start: "a" ("b" ["c"]{2,}){2} "d"', ["abccbccd"], ["abcd", "abccd"]),
        ('start: foo-bar FOO-BAR{2}\nfoo-bar: "a"\nFOO-BAR: "b"', ["abb"], ["ab"]),
        ('start: "" "a" ""', ["a"], [""]),
        ('start: item %lark {\n start: item\n item: "b"\n} item\nitem: "a"', ["aba"], ["aaa", "bbb"]),
        ('start: %lark { start: "a" | "b" } %lark { start: "1" | B\n B: "2" }', ["a1", "b2"], ["a", "1a"]),
        (
            'start: "[" %lark { %import common.INT\n %ignore " "\n start: INT "," INT } "]"',
            ["[1,2]", "[1 , 2 ]"],
            ["[ 1,2]"],
        ),
    ],
)
def test_lark_reads_the_same_texts(source: str, good: list[str], bad: list[str]) -> None:
    text = read_notation(source).text
    assert [each for each in good if not accepts(text, each)] == []
    assert [each for each in bad if accepts(text, each)] == []
    assert text.count("\n") >= source.count("\n")


def test_equal_rules_with_options_share_a_terminal() -> None:
    found = read_notation(
        'start: a | b | c\na[lazy]: T "<f"\nb[lazy]: T "<f"\nc[lazy, capture]: T "<g"\nT: /[a-z<]*/\n'
    )
    assert len(found.terminals) == 2
    assert found.options["c"].capture == "c"


@pytest.mark.parametrize(
    ("source", "location", "reason"),
    [
        ('start: a\na[lazy]: "x" b\nb[capture]: "y"', "2:1", "rule a: lazy, suffix, .* not of b"),
        ('start: a\na[lazy]: "x" b\nb: "y"\n%ignore " "', "2:1", "rule a: lazy, suffix, .* not of b"),
        ('start: a\na[lazy]: "x" b\nb: "y" | "(" b ")"', "2:1", "rule a: lazy, suffix, .* not of b"),
        ('start: a\n\nA[lazy]: "x"', "3:1", "options are allowed on rules only"),
        ('start: "x" & "y"', "1:1", "& is allowed in terminals only"),
        ('start: ~"x"', "1:1", "~ is allowed in terminals only"),
        ("start: B\nB: @qux", "2:1", "@qux: no grammar of this name"),
        ("start: B\nB: %json {}", "2:1", "%json: not allowed in a terminal"),
        ('start: a{3,2}\na: "x"', "1:1", "bounds in ascending order"),
        ('%llguidance {"a": true}\nstart: "x"', "1:1", "'a': expected one of allow_initial_skip"),
        ('%llguidance {"ignore_once": true}\nstart: "x"', "1:1", "ignore_once = true is not supported"),
        ('%grammar_options {"allow_initial_skip": 1}\nstart: "x"', "1:1", "expected true or false"),
        ('start: %lark { item: "a" }', "1:1", "start rule start is not defined"),
    ],
)
def test_errors_have_the_place_of_the_item(source: str, location: str, reason: str) -> None:
    with pytest.raises(GrammarError, match=reason) as caught:
        read_notation(source)
    assert caught.value.location == location


def test_places_of_lark_become_places_of_the_source() -> None:
    found = read_notation('start: long-name{2} %json {\n"type": "string"} ) x\nlong-name: "a"\n')
    column = found.text.split("\n")[1].index(")") + 1
    with pytest.raises(GrammarError) as caught, found.errors():
        raise GrammarError("unexpected )", f"2:{column}")
    assert caught.value.location == "2:19"


def test_named_grammars_are_put_in() -> None:
    pair = {"pair": 'start: @item ":" @item', "item": "start: /[a-z]+/", "n": {"type": "integer"}}
    text = read_notation(with_grammars('start: "<" @pair ">"', pair)).text
    assert accepts(text, "<a:b>")
    assert with_grammars("start: @n", pair) == 'start: %json {"type": "integer"}'
    with pytest.raises(GrammarError, match="contain each other: @a -> @b -> @a"):
        with_grammars("start: @a", {"a": "start: @b", "b": "start: @a"})
    with pytest.raises(GrammarError, match="@c: expected the name of a given grammar: a, b"):
        with_grammars("start: @c", {"a": "", "b": ""})
