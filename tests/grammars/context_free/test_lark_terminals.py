"""Patterns of terminals that use other terminals."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtlang_grammars.context_free.lark_modules import load_module
from rtlang_grammars.context_free.lark_terminals import TerminalPatterns
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

SOURCE = r"""
A: "a"i | "b".."d" ["+"]
B: A~2..3 C? | /x(?=y)/ /y|z/
C: ("(" A ")")* "."
"""
EXPECTED = r"(?:(?i:a)|[b-d]\+?){2,3}(?:(?:\((?:(?i:a)|[b-d]\+?)\))*\.)?|xy"


def pattern_of(source: str, name: str) -> str:
    return TerminalPatterns(Budget()).of(load_module(source, Budget()).definitions[name])


@given(st.text(alphabet="aAbd+(.)xyz", max_size=8))
@settings(max_examples=300, derandomize=True)
def test_a_pattern_is_assembled_from_its_parts(text: str) -> None:
    assert bool(re.fullmatch(pattern_of(SOURCE, "B"), text)) == bool(re.fullmatch(EXPECTED, text))


def test_long_chains_of_terminals_do_not_recurse() -> None:
    source = "".join(f"T{i}: T{i + 1}\n" for i in range(2000)) + 'T2000: "x"\n'
    assert re.sub(r"[(?:)]", "", pattern_of(source, "T0")) == "x"


def test_exponentially_long_patterns_are_an_error() -> None:
    source = "".join(f"T{i}: T{i + 1} T{i + 1}\n" for i in range(60)) + 'T60: "x"\n'
    with pytest.raises(GrammarError, match=r"too long|too large"):
        pattern_of(source, "T0")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ('T: "x" T', "is recursive"),
        ('T: "x" U\nU: V?\nV: T', "is recursive"),
        ('T: "x" a\na: "y"', "cannot use the rule a"),
    ],
)
def test_recursive_terminals_and_rules_in_terminals_are_errors(source: str, reason: str) -> None:
    with pytest.raises(GrammarError, match=reason):
        pattern_of(source, "T")
