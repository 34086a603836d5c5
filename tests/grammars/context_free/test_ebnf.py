"""Translation of EBNF to rules: exact repetition counts and small grammars."""

from __future__ import annotations

import pytest

from rtlang_grammars.context_free.cfg import Cfg, Symbol, Terminal
from rtlang_grammars.context_free.ebnf import (
    CfgBuilder,
    EbnfChoice,
    EbnfRepeat,
    EbnfSequence,
    Expression,
    Name,
    Pattern,
    names_in,
)
from rtlang_grammars.regular.language import compile_regex
from rtlang_grammars.spec.limits import Budget
from tests.support.grammars.cfg_membership import cfg_accepts

X, Y = Pattern("x", "1:1"), Pattern("y?", "1:1")


def lowered(expression: Expression) -> Cfg:
    builder = CfgBuilder(Budget())

    def resolve(part: Name | Pattern) -> Symbol:
        assert isinstance(part, Pattern)
        return builder.terminal(part.source, lambda: Terminal(part.source, compile_regex(part.source)))

    root = builder.new_rule("root")
    builder.define(root, expression, resolve)
    return builder.build(root)


@pytest.mark.parametrize(
    "item",
    [X, EbnfSequence((X, EbnfChoice((X, X)))), EbnfChoice((X, Pattern("xx", "")))],
    ids=["token", "pair", "1 or 2"],
)
@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 0), (0, None), (1, None), (2, 2), (3, 5), (2, None), (0, 4)])
def test_repetitions_match_exactly_their_counts(item: Expression, low: int, high: int | None) -> None:
    cfg = lowered(EbnfRepeat(item, low, high))
    sizes = {X: {1}}.get(item, {2} if isinstance(item, EbnfSequence) else {1, 2})  # type: ignore[arg-type]
    expected = {0} if low == 0 else set()
    totals = {0}
    for count in range(1, 9 if high is None else high + 1):
        totals = {total + size for total in totals for size in sizes}
        expected |= totals if count >= low else set()
    for length in range(9):
        assert cfg_accepts(cfg, "x" * length) == (length in expected), length


PAIR = EbnfSequence((X, Pattern("y", "")))
"""Not one terminal, so that its repetitions are rules."""


@pytest.mark.parametrize("low", [0, 65, 100])
@pytest.mark.parametrize("more", [0, 1, 70])
def test_large_counts_are_exact_and_need_few_rules(low: int, more: int) -> None:
    cfg = lowered(EbnfRepeat(PAIR, low, low + more))
    assert len(cfg.rules) < 90
    for length in {max(low - 1, 0), low, low + more // 2, low + more, low + more + 1}:
        assert cfg_accepts(cfg, "xy" * length) == (low <= length <= low + more), length


def test_a_count_of_a_billion_needs_few_rules() -> None:
    assert len(lowered(EbnfRepeat(PAIR, 10**9, 10**9 + 10**8)).rules) < 300


def test_a_nullable_terminal_is_optional() -> None:
    cfg = lowered(EbnfSequence((X, Y, X)))
    assert cfg_accepts(cfg, "xx")
    assert cfg_accepts(cfg, "xyx")
    assert not any(terminal.language.accepts("") for terminal in cfg.terminals)


def test_names_in_returns_references_in_order() -> None:
    inner = Name("b", (Name("c", (), ""),), "")
    expression = EbnfSequence((Name("a", (), ""), EbnfRepeat(EbnfChoice((inner, X)), 0, None)))
    assert [name.name for name in names_in(expression)] == ["a", "b", "c"]
