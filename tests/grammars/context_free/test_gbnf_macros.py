"""Macros of xgrammar in GBNF."""

from __future__ import annotations

import itertools
import re

import pytest

from rtlang_grammars.context_free.gbnf_macros import Macro, MacroName, MacroText, read_macro
from rtlang_grammars.context_free.gbnf_reader import read_gbnf
from rtlang_grammars.spec.errors import GrammarError
from tests.support.grammars.cfg_membership import cfg_accepts

TEXTS = ["".join(each) for count in range(7) for each in itertools.product("<a/", repeat=count)]


def test_arguments_are_read() -> None:
    source = ' ("a\\n", rule-1) , # comment\n  loop = true, excludes=("b",), n=(1, (2))) rest'
    assert read_macro("(" + source, "TagDispatch", 0) == Macro(
        "TagDispatch",
        ((MacroText("a\n"), MacroName("rule-1", 10)),),
        {"loop": MacroName("true", source.index("true") + 1), "excludes": (MacroText("b"),), "n": (1, (2,))},
        len(source) - 4,
    )


@pytest.mark.parametrize(
    ("macro", "pattern"),
    [
        ('TagDispatch(("<a", call))', r"(?:(?:(?!<a)[<a/])*<aa/)*(?:(?!<a)[<a/])*"),
        ('TagDispatch(("<a", call), loop_after_dispatch=false)', r"(?:(?!<a)[<a/])*(?:<aa/)?"),
        ('TagDispatch(("<a", call), ("//", call),)', r"(?:(?:(?!<a|//)[<a/])*(?:<a|//)a/)*(?:(?!<a|//)[<a/])*"),
        ('TagDispatch(("<a", call), excludes=("//",))', r"(?:(?:(?!<a|//)[<a/])*<aa/)*(?:(?!<a|//)[<a/])*"),
        (
            'TagDispatch(("<a", call), stop_eos=false, stops=("//",))',
            r"(?:(?:(?!<a|//)[<a/])*<aa/)*(?:(?!<a|//)[<a/])*//",
        ),
    ],
)
def test_dispatches_have_the_texts_of_a_search_for_the_first_mark(macro: str, pattern: str) -> None:
    cfg = read_gbnf(f'root ::= {macro}\ncall ::= "a" "/" (= [^]* "x")')
    assert [text for text in TEXTS if cfg_accepts(cfg, text)] == [text for text in TEXTS if re.fullmatch(pattern, text)]


def test_patterns_and_runs_are_terminals() -> None:
    cfg = read_gbnf('root ::= Regex("a+/?", flags="i") Substring("<a", "/", "a")')
    pattern = r"a+/?(?:<a(?:/a?)?|/a?|a)?"
    assert [text for text in TEXTS if cfg_accepts(cfg, text)] == [text for text in TEXTS if re.fullmatch(pattern, text)]
    cfg = read_gbnf(r'root ::= "\"" Regex("[a\n]+", json_string=true) "\""')
    assert cfg_accepts(cfg, '"a\\n\\u0061"')
    assert not cfg_accepts(cfg, '"a\n"')


def test_tokens_are_terminals() -> None:
    cfg = read_gbnf(
        "root ::= Token(5, 7, 5) ExcludeToken(3) TokenTagDispatch((9, call), excludes=(2,))\ncall ::= [a-z]"
    )
    assert {each.tokens for each in cfg.terminals if each.tokens is not None} >= {((5, 5), (7, 7)), ((9, 9),)}


@pytest.mark.parametrize(
    ("source", "reason", "location"),
    [
        ('root ::= TagDispatch(("", a))\na ::= "a"', "expected strings that are not empty", "1:21"),
        ('root ::= TagDispatch(("t", a))', "rule a is not defined", "1:28"),
        ('root ::= TagDispatch("t", a)\na ::= "a"', "expected pairs of a tag and a rule", "1:21"),
        ('root ::= TagDispatch(("t" a))\na ::= "a"', "expected , or \\)", "1:21"),
        ('root ::= TagDispatch(("t", a), stops=true)\na ::= "a"', "stops: expected values in brackets", "1:21"),
        ('root ::= TagDispatch(("t", a), stop_eos=false)\na ::= "a"', "expected the option stops", "1:21"),
        ('root ::= TagDispatch(("t", a), foo=1)\na ::= "a"', "option 'foo': expected one of excludes", "1:21"),
        ('root ::= Regex("a", "b")', "expected one pattern, and flags", "1:15"),
        ('root ::= Regex("a", flags="q")', "expected one pattern, and flags", "1:15"),
        ("root ::= Substring()", "expected one or more strings", "1:19"),
        ('root ::= Substring("a", 1)', "expected one or more strings", "1:19"),
        (
            'root ::= TokenTagDispatch((1, a), stops=("b"))\na ::= "a"',
            "one of excludes, loop_after_dispatch \\(at",
            "1:26",
        ),
        ("root ::= Token()", "expected ids of tokens", "1:15"),
        ('root ::= TokenTagDispatch((1, a), excludes=(1,))\na ::= "a"', "excludes contains the trigger 1", "1:26"),
    ],
)
def test_errors_have_a_place_and_say_what_is_allowed(source: str, reason: str, location: str) -> None:
    with pytest.raises(GrammarError, match=reason) as caught:
        read_gbnf(source)
    assert caught.value.location == location
