"""Elimination of left recursion, checked against lark's parser and an independent recognizer."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtlang_grammars.context_free.cfg import RuleCall
from rtlang_grammars.context_free.lark_reader import read_lark
from rtlang_grammars.context_free.left_recursion import left_recursive_rules, without_left_recursion
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget, Limits
from tests.support.grammars.cfg_membership import cfg_accepts
from tests.support.grammars.random_grammars import lark_accepts, lark_grammars, lark_parser, words
from tests.support.long_tests import sized

CASES = {
    "direct": ('start: start "+" "1" | "1"', ["1", "1+1", "1+1+1"], ["", "+", "1+", "11"]),
    "indirect": (
        'start: a "x" | "s"\na: b "y"\nb: start "z" | "b"',
        ["s", "byx", "szyx", "byxzyx"],
        ["", "b", "sz", "byz"],
    ),
    "hidden": ('start: n start "x" | "1"\nn: "y"? ', ["1", "1x", "y1x", "yy1xx", "y1xx"], ["y1", "x", "yy1x"]),
    "unit cycle": ('start: a | "s"\na: b\nb: start | a "t"', ["s", "st", "stt"], ["", "t", "ts"]),
    "nullable in the cycle": ('start: start start | "(" start ")" |', ["", "()", "()()", "(())()"], ["(", ")(", "(()"]),
    "empty behind": ('start: start n | "x"\nn: "y"?', ["x", "xy", "xyy"], ["", "y", "yx"]),
}


@pytest.mark.parametrize(("source", "good", "bad"), CASES.values(), ids=CASES)
def test_the_language_is_unchanged(source: str, good: list[str], bad: list[str]) -> None:
    cfg = read_lark(source)
    assert left_recursive_rules(cfg)
    free = without_left_recursion(cfg)
    assert not left_recursive_rules(free)
    for text in good:
        assert cfg_accepts(cfg, text)
        assert cfg_accepts(free, text)
    for text in bad:
        assert not cfg_accepts(cfg, text)
        assert not cfg_accepts(free, text)


def test_a_grammar_without_left_recursion_is_returned_as_is() -> None:
    cfg = read_lark('start: "(" start ")" | "x" start?')
    assert not left_recursive_rules(cfg)
    assert without_left_recursion(cfg) is cfg


def test_only_left_recursive_rules_are_found() -> None:
    cfg = read_lark('start: list "!" tail\nlist: list "," "x" | "x"\ntail: "y" tail |')
    assert [cfg.rules[index].name for index in left_recursive_rules(cfg)] == ["list"]


def test_growth_beyond_the_budget_is_an_error() -> None:
    rules = [f"a{i}: " + " | ".join(f'a{j} "x{i}"' for j in range(30)) + ' | "z"' for i in range(30)]
    cfg = read_lark("start: a0\n" + "\n".join(rules))
    with pytest.raises(GrammarError, match="too complex"):
        without_left_recursion(cfg, Budget(Limits(max_states=5000)))


@given(lark_grammars(), st.lists(words(), min_size=1, max_size=6))
@settings(max_examples=sized(120), deadline=None, derandomize=True)
def test_random_grammars_keep_their_language(source: str, texts: list[str]) -> None:
    parser = lark_parser(source)
    if parser is None:
        return
    try:
        cfg = read_lark(source)
    except GrammarError:
        return
    free = without_left_recursion(cfg)
    assert not left_recursive_rules(free)
    assert all(
        isinstance(each, RuleCall) or each.terminal < len(free.terminals)
        for r in free.rules
        for a in r.alternatives
        for each in a
    )
    for text in texts:
        assert cfg_accepts(free, text) == lark_accepts(parser, text), text
