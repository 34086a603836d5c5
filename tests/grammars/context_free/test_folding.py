"""Folding of regular rules: the language is unchanged, and every regular rule is folded."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtlang_grammars.context_free.cfg import Alternative, Cfg, Rule, RuleCall, Symbol, Terminal, TokenSymbol, prune
from rtlang_grammars.context_free.folding import regular_languages
from rtlang_grammars.context_free.lark_library import library_grammar
from rtlang_grammars.context_free.lark_reader import read_lark
from rtlang_grammars.regular.language import compile_regex
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget
from tests.support.grammars.cfg_membership import cfg_accepts
from tests.support.grammars.random_grammars import lark_grammars, words
from tests.support.long_tests import sized


def fold_regular_rules(cfg: Cfg, budget: Budget | None = None, *, max_size: int = 2000) -> Cfg:
    """The same language with each reference from a non-regular to a regular rule replaced by a terminal.

    Raises:
        GrammarError: the language is empty, or the budget ran out.
    """
    budget = budget or Budget()
    languages = regular_languages(cfg, budget, max_size=max_size)
    terminals = list(cfg.terminals)
    rules = list(cfg.rules)
    replaced: dict[int, Symbol] = {}
    for index, language in languages.items():
        nonempty = language.bounded(1, None) if language.accepts("", budget) else language
        token = TokenSymbol(len(terminals))
        terminals.append(Terminal(cfg.rules[index].name, nonempty))
        alternatives: tuple[Alternative, ...] = ((token,),) if nonempty is language else ((token,), ())
        rules[index] = Rule(cfg.rules[index].name, alternatives)
        if nonempty is language:
            replaced[index] = token
    for index, rule in enumerate(rules):
        if index not in languages:
            rules[index] = Rule(
                rule.name,
                tuple(
                    tuple(replaced.get(each.rule, each) if isinstance(each, RuleCall) else each for each in alternative)
                    for alternative in rule.alternatives
                ),
            )
    return prune(Cfg(tuple(terminals), tuple(rules), cfg.start), budget)


REGULAR = {
    "finite": ('start: a a\na: "x" | "y"?', "[xy]{0,2}"),
    "right-linear": ('start: "x" start | "y" other |\nother: "z" start | "q"', "(x|yz)*(yq)?"),
    "left-linear": ('start: start "x" | other "y"\nother: start "z" | "q"', "qy(x|zy)*"),
    "repeats": ('start: ("x" "y")* "z"+', "(xy)*z+"),
    "counts": ('start: ("x" "y")~2..4', "(xy){2,4}"),
}


@pytest.mark.parametrize(("source", "pattern"), REGULAR.values(), ids=REGULAR)
def test_a_regular_grammar_becomes_one_terminal(source: str, pattern: str) -> None:
    cfg = read_lark(source)
    language, expected = regular_languages(cfg)[cfg.start], compile_regex(pattern)
    assert language.includes(expected)
    assert expected.includes(language)
    folded = fold_regular_rules(cfg)
    assert len(folded.rules) == 1
    assert len(folded.terminals) == 1


def test_self_embedding_rules_are_not_folded() -> None:
    cfg = read_lark('start: "(" start ")" | word\nword: "a" word | "b"')
    names = {cfg.rules[index].name for index in regular_languages(cfg)}
    assert names == {"word"}
    assert len(fold_regular_rules(cfg).rules) == 1


def test_rules_above_the_size_limit_are_not_folded() -> None:
    cfg = read_lark(library_grammar("csv"))
    assert len(fold_regular_rules(cfg).rules) == 1
    assert len(fold_regular_rules(cfg, max_size=3).rules) > 1


def test_a_terminal_with_a_lookbehind_is_folded_only_at_the_start() -> None:
    cfg = read_lark(r'start: "x" T' + "\n" + r"T: /a(?<!b)c/")
    folded = fold_regular_rules(cfg)
    assert cfg_accepts(folded, "xac")
    assert not cfg_accepts(folded, "xc")


@given(lark_grammars(), st.lists(words(), min_size=1, max_size=6))
@settings(max_examples=sized(120), deadline=None, derandomize=True)
def test_folding_preserves_the_words_of_random_grammars(source: str, texts: list[str]) -> None:
    try:
        cfg = read_lark(source)
    except GrammarError:
        return
    folded = fold_regular_rules(cfg)
    for text in texts:
        assert cfg_accepts(folded, text) == cfg_accepts(cfg, text), text
