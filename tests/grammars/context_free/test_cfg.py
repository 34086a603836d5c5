"""Analyses of context-free grammars, checked against enumeration of all words."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings

from rtlang_grammars.context_free.cfg import (
    Call,
    Cfg,
    Rule,
    Terminal,
    Token,
    nullable_rules,
    productive_rules,
    prune,
    reachable_rules,
    shortest_bytes,
    shortest_lengths,
    shortest_words,
    strongly_connected_components,
)
from rtlang_grammars.context_free.lark_reader import read_lark
from rtlang_grammars.regular.language import Language, compile_regex
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget
from tests.support.cfg_membership import cfg_accepts
from tests.support.random_grammars import LETTERS, lark_grammars, lark_parser

X, Y, NEVER = (
    Terminal("X", Language.literal("x")),
    Terminal("Y", Language.literal("yy")),
    Terminal("N", Language.nothing()),
)


def grammar(*rules: tuple[tuple[Token | Call, ...], ...]) -> Cfg:
    return Cfg((X, Y, NEVER), tuple(Rule(f"r{index}", alternatives) for index, alternatives in enumerate(rules)), 0)


def test_nullable_productive_and_reachable_rules() -> None:
    cfg = grammar(
        ((Call(1), Call(2)), (Call(3),)),
        ((), (Token(0),)),
        ((Call(1),),),
        ((Call(3), Token(0)),),
        ((Token(2),), (Token(1),)),
        ((Token(2),),),
    )
    assert nullable_rules(cfg) == {0, 1, 2}
    assert productive_rules(cfg) == {0, 1, 2, 4}
    assert reachable_rules(cfg) == {0, 1, 2, 3}


def test_pruning_removes_unproductive_and_unreachable_symbols() -> None:
    cfg = prune(grammar(((Call(1),), (Call(0),), (Call(1),), (Call(2),), (Token(2),)), ((Token(1),),), ((Call(2),),)))
    assert [rule.alternatives for rule in cfg.rules] == [((Call(1),),), ((Token(0),),)]
    assert cfg.terminals == (Y,)
    assert cfg.start == 0


def test_pruning_an_empty_language_is_an_error() -> None:
    with pytest.raises(GrammarError, match="nothing can match"):
        prune(grammar(((Call(0), Token(0)),)))
    with pytest.raises(GrammarError, match="nothing can match"):
        prune(grammar(((Token(2),),)))


def test_components_are_in_reverse_topological_order() -> None:
    edges = {0: [1], 1: [2, 3], 2: [1], 3: [4], 4: [], 5: [5, 0]}
    found = [frozenset(each) for each in strongly_connected_components(6, lambda node: edges[node])]
    assert set(found) == {frozenset({1, 2}), frozenset({0}), frozenset({3}), frozenset({4}), frozenset({5})}
    assert (
        found.index(frozenset({4}))
        < found.index(frozenset({3}))
        < found.index(frozenset({1, 2}))
        < found.index(frozenset({0}))
    )


def test_long_chains_of_rules_do_not_recurse() -> None:
    size = 20_000
    assert len(strongly_connected_components(size, lambda node: [node + 1] if node + 1 < size else [])) == size


def test_shortest_words_are_measured_in_bytes() -> None:
    assert shortest_bytes(compile_regex("é|ab|abc"), Budget()) in (b"ab", "é".encode())
    assert shortest_bytes(compile_regex("日|ab"), Budget()) == b"ab"
    assert shortest_bytes(Language.nothing(), Budget()) is None


def test_a_too_long_shortest_word_has_only_a_length() -> None:
    cfg = read_lark("start: a0\n" + "".join(f"a{i}: a{i + 1} a{i + 1}\n" for i in range(60)) + 'a60: "z"\n')
    assert shortest_lengths(cfg)[cfg.start] == 2**60
    words = shortest_words(cfg)
    assert words[cfg.start] is None
    assert max(len(word) for word in words if word is not None) == 1 << 16


@given(lark_grammars())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_shortest_words_agree_with_enumeration(source: str) -> None:
    if lark_parser(source) is None:
        return
    try:
        cfg = read_lark(source)
    except GrammarError:
        return
    word = shortest_words(cfg)[cfg.start]
    assert word is not None
    assert len(word) == shortest_lengths(cfg)[cfg.start]
    assert cfg_accepts(cfg, word)
    for size in range(min(len(word), 4)):
        assert not any(cfg_accepts(cfg, "".join(letters)) for letters in itertools.product(LETTERS, repeat=size))
