"""Analyses of context-free grammars, checked against enumeration of all words."""

from __future__ import annotations

import pytest

from rtlang_grammars.context_free.cfg import (
    Cfg,
    Rule,
    RuleCall,
    Terminal,
    TokenSymbol,
    nullable_rules,
    prune,
    strongly_connected_components,
    with_ignored,
)
from rtlang_grammars.regular.language import Language
from rtlang_grammars.spec.errors import GrammarError
from tests.support.grammars.cfg_membership import cfg_accepts

X, Y, NEVER = (
    Terminal("X", Language.literal("x")),
    Terminal("Y", Language.literal("yy")),
    Terminal("N", Language.nothing()),
)


def grammar(*rules: tuple[tuple[TokenSymbol | RuleCall, ...], ...]) -> Cfg:
    return Cfg((X, Y, NEVER), tuple(Rule(f"r{index}", alternatives) for index, alternatives in enumerate(rules)), 0)


def test_nullable_rules() -> None:
    cfg = grammar(
        ((RuleCall(1), RuleCall(2)), (RuleCall(3),)),
        ((), (TokenSymbol(0),)),
        ((RuleCall(1),),),
        ((RuleCall(3), TokenSymbol(0)),),
        ((TokenSymbol(2),), (TokenSymbol(1),)),
        ((TokenSymbol(2),),),
    )
    assert nullable_rules(cfg) == {0, 1, 2}


def test_ignored_terminals_stand_before_all_others_and_at_the_end() -> None:
    cfg = with_ignored(
        grammar(((TokenSymbol(0), RuleCall(1)),), ((TokenSymbol(1),), ())), [Terminal("Z", Language.literal("z"))]
    )
    for text in ("x", "zxz", "zzxzyyzz", "xyy"):
        assert cfg_accepts(cfg, text), text
    for text in ("z", "xyzy", "", "xzyyzyy"):
        assert not cfg_accepts(cfg, text), text
    assert with_ignored(cfg, ()) is cfg


def test_pruning_removes_unproductive_and_unreachable_symbols() -> None:
    cfg = prune(
        grammar(
            ((RuleCall(1),), (RuleCall(0),), (RuleCall(1),), (RuleCall(2),), (TokenSymbol(2),)),
            ((TokenSymbol(1),),),
            ((RuleCall(2),),),
        )
    )
    assert [rule.alternatives for rule in cfg.rules] == [((RuleCall(1),),), ((TokenSymbol(0),),)]
    assert cfg.terminals == (Y,)
    assert cfg.start == 0


def test_pruning_an_empty_language_is_an_error() -> None:
    with pytest.raises(GrammarError, match="nothing can match"):
        prune(grammar(((RuleCall(0), TokenSymbol(0)),)))
    with pytest.raises(GrammarError, match="nothing can match"):
        prune(grammar(((TokenSymbol(2),),)))


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
