"""Lark grammars, checked against lark's Earley parser with the dynamic_complete lexer."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtlang_grammars.context_free.lark_reader import lark_language, read_lark
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget, Limits
from tests.support.grammars.cfg_membership import cfg_accepts
from tests.support.grammars.random_grammars import lark_accepts, lark_grammars, lark_parser, words
from tests.support.long_tests import sized

GRAMMARS = {
    "templates": (
        'start: list{item, ","}\nlist{x, y}: "[" (x (y x)*)? "]"\nitem: "a" | list{item, ";"}',
        ["[]", "[a,a]", "[a;a]", "[[a;a],a]", "[[a,a]]"],
    ),
    "template of a template": (
        'start: twice{pair, "a"}\ntwice{t, x}: t{x} t{x}\npair{x}: x "-" x',
        ["a-aa-a", "a-a", "aa"],
    ),
    "modifiers and aliases": (
        '?start: a | "(" start ")" -> nested\n!a.2: "x" | _b -> other\n_b: "y"',
        ["((x))", "y", "(x"],
    ),
    "maybe": ('start: ["a"] ["b" "c"] "d"', ["d", "ad", "bcd", "abcd", "bd"]),
    "ignore": ('start: "a" T+\nT: "b" "c"\n%ignore /[ ]+/\n%ignore "#"', ["abc", " a # bcbc #", "a b c", "#"]),
    "flags": ('start: "ab"i /[c-d]/i /e.f/s', ["abce\nf", "AbCe.f", "abee.f", "ABDEzf"]),
    "lookahead": ('start: NAME ("=" NAME)?\nNAME: /(?!if\\b)[a-z]+/', ["x=y", "if", "iff=x", "x=if"]),
    "same letters": ('start: A B\nA: "a"+\nB: "a" "b"', ["aab", "ab", "aaab"]),
    "two readings": ('start: ("a" | "ab") ("c" | "bc")', ["abc", "ac", "abbc", "ab"]),
    "repeats": ('start: "a"~2 ("b" "c")~1..2 "d"~0..1', ["aabc", "aabcbcd", "abc", "aabcbcbc"]),
    "escapes": (r'start: "\"\\\n\x41\u00e9" /\// "\d"', ['"\\\nAé/\\d', '"\\\nAé/1']),
    "continued lines": ('start: "a"\n\n  // between\n  | "b" \\\n  "c"\n', ["a", "bc", "b"]),
    "strings": ("%import common.ESCAPED_STRING\nstart: ESCAPED_STRING+", ['"a\\"b"', '"a""b"', '"a"b"', '"a\\"']),
    "comments": ("%import common.C_COMMENT\nstart: C_COMMENT", ["/* a */", "/**/", "/* */ */", "/*/"]),
}


@pytest.mark.parametrize(("source", "texts"), GRAMMARS.values(), ids=GRAMMARS)
def test_grammars_agree_with_lark(source: str, texts: list[str]) -> None:
    parser = lark_parser(source)
    assert parser is not None
    cfg = read_lark(source)
    verdicts = [cfg_accepts(cfg, text) for text in texts]
    assert verdicts == [lark_accepts(parser, text) for text in texts]
    assert any(verdicts)
    assert not all(verdicts)


@given(lark_grammars(), st.lists(words(), min_size=1, max_size=6))
@settings(max_examples=sized(150), deadline=None, derandomize=True)
def test_random_grammars_agree_with_lark(source: str, texts: list[str]) -> None:
    parser = lark_parser(source)
    if parser is None:
        return
    try:
        cfg = read_lark(source)
    except GrammarError:  # nothing can match
        assert not any(lark_accepts(parser, text) for text in texts)
        return
    for text in texts:
        assert cfg_accepts(cfg, text) == lark_accepts(parser, text), text


@pytest.mark.parametrize(
    ("source", "good", "bad"),
    [
        ("start: /a|ab/", ["a", "ab"], ["b"]),
        ("start: /[a]*/ /b?/", ["", "b", "aab"], ["ba"]),
    ],
    ids=["no alternative hides another", "empty terminals"],
)
def test_differences_from_lark_are_as_documented(source: str, good: list[str], bad: list[str]) -> None:
    cfg = read_lark(source)
    assert all(cfg_accepts(cfg, text) for text in good)
    assert not any(cfg_accepts(cfg, text) for text in bad)


def test_a_regular_grammar_is_one_language() -> None:
    """As lark reads it; the rule `sum` is in OpenAI's documentation, where lark finds `term` defined twice."""
    refused = set()
    for name, (source, texts) in GRAMMARS.items():
        parser = lark_parser(source)
        assert parser is not None
        try:
            language = lark_language(source)
        except GrammarError:
            refused.add(name)
            continue
        assert [language.accepts(text) for text in texts] == [lark_accepts(parser, text) for text in texts]
    assert refused == {"templates", "modifiers and aliases", "lookahead", "strings"}
    sums = (
        'start: sum\nsum: term (" + " term)* -> add\n | term\nterm: INT (" * " INT)* -> mul\n | INT\n%import common.INT'
    )
    assert lark_parser(sums) is None
    language = lark_language(sums)
    assert [language.accepts(text) for text in ("4", "4 + 4 * 12", "4 +4", "", "4 + ")] == [
        True,
        True,
        False,
        False,
        False,
    ]
    for source in ('start: "(" start ")" | "x"', 'start: a a\na: "<" a ">" | "b"'):
        with pytest.raises(GrammarError, match="not regular"):
            lark_language(source)


@given(lark_grammars(), st.lists(words(), min_size=1, max_size=6))
@settings(max_examples=sized(100, usual=20), deadline=None, derandomize=True)
def test_random_languages_agree_with_lark(source: str, texts: list[str]) -> None:
    parser = lark_parser(source)
    if parser is None:
        return
    try:
        language = lark_language(source)
    except GrammarError:  # nothing can match, or it is not regular
        return
    for text in texts:
        assert language.accepts(text) == lark_accepts(parser, text), text


def test_the_start_rule_can_be_chosen() -> None:
    cfg = read_lark('start: "a"\nother: "b" start', start="other")
    assert cfg_accepts(cfg, "ba")
    assert not cfg_accepts(cfg, "a")


def test_terminals_have_their_names_and_priorities() -> None:
    cfg = read_lark('start: KEY NAME\nKEY.3: "if"\nNAME: /[a-z]+/')
    assert [(terminal.name, terminal.priority) for terminal in cfg.terminals] == [("KEY", 3), ("NAME", 0)]


@pytest.mark.parametrize(
    ("source", "reason", "location"),
    [
        ("", "start rule start is not defined", None),
        ('start{x}: x "a"', "start rule start is not defined", None),
        ("start: start", "nothing can match", None),
        ("start: /(?!)a/", "nothing can match", None),
        (r"start: /(a)\1/", "backreferences", "1:8"),
        ("start: T\nT: /a(/", "missing \\), unterminated", "2:1"),
        ('start: t\nt{x}: x "a"', "template t requires arguments", "2:1"),
        ('start: t{"a", "b"}\nt{x}: x', "expected 1, got 2", "1:8"),
        ('start: u{"a"}\nu{x}: x{"b"}', "not a template", None),
    ],
)
def test_errors_are_located(source: str, reason: str, location: str | None) -> None:
    with pytest.raises(GrammarError, match=reason) as caught:
        read_lark(source)
    assert caught.value.location == location


@pytest.mark.parametrize(
    "source",
    [
        'start: t{"x"}\nt{q}: q | t{u{q}}\nu{q}: q q\n',
        "start: " + " | ".join(f'"w{number}"' for number in range(3000)),
        "start: T0\n" + "".join(f"T{i}: T{i + 1} T{i + 1}\n" for i in range(60)) + 'T60: "z"\n',
    ],
    ids=["endless templates", "many words", "doubling terminals"],
)
def test_hostile_grammars_stop_within_the_budget(source: str) -> None:
    budget = Budget(Limits(max_states=3000, max_bytes=400_000))
    with pytest.raises(GrammarError, match=r"too (complex|large|long|deeply)|grow"):
        read_lark(source, budget=budget)


def test_rules_with_options_are_read_without_a_lexer() -> None:
    cfg = read_lark('start: a "!"\na[lazy]: /[a-z<]*</ | B\nB: ~/(?s:.*)</ & ">>"\n')
    assert [each for each in ("a<!", "<!", ">>!", "a<<!", "a!") if cfg_accepts(cfg, each)] == ["a<!", "<!", ">>!"]
    with pytest.raises(GrammarError, match="rule a: capture, temperature, max_tokens and stop need a lexer"):
        read_lark('start: a\na[capture]: "b"')
