"""Sets of tokens as disjoint terminals: every token belongs to one, and the rules take the same tokens as before."""

from __future__ import annotations

import itertools

import pytest
from lark.grammar import NonTerminal

from rtlang_grammars.context_free.lark_source import LarkSource, read_source
from rtlang_grammars.context_free.lexer_build.token_terminals import with_disjoint_tokens
from rtlang_grammars.spec.tokens import Ranges, SpecialTokens

TOKENS = SpecialTokens(tuple(b"t%d" % i for i in range(12)))


def ids_of(ranges: Ranges | None) -> set[int]:
    return {i for first, last in ranges or () for i in range(first, last + 1)}


def texts_of(source: LarkSource) -> set[tuple[int, ...]]:
    """The sequences of tokens of the start rule, which is not recursive."""
    terminals = {each.name: ids_of(each.tokens) for each in source.terminals}

    def expand(name: str, is_rule: bool) -> set[tuple[int, ...]]:
        if not is_rule:
            return {(i,) for i in terminals[name]}
        found = set()
        for rule in source.rules:
            if rule.origin.name == name:
                parts = [expand(each.name, isinstance(each, NonTerminal)) for each in rule.expansion]
                found |= {tuple(itertools.chain(*way)) for way in itertools.product(*parts)}
        return found

    return expand("start", True)


@pytest.mark.parametrize(
    "rules",
    [
        "start: <[1-5]> <[4-8]> | <[9]>",
        "start: <[1-5]> | <[1-5]> <[*]> | <[^3]> <[2]> <[2]>",
        "start: a <[0,2,4]>\na: <[0-1]> | <[^0]>",
    ],
)
def test_the_texts_stay_and_the_sets_are_disjoint(rules: str) -> None:
    before = read_source(rules, tokens=TOKENS)
    after = with_disjoint_tokens(before)
    assert texts_of(after) == texts_of(before)
    sets = [ids_of(each.tokens) for each in after.terminals]
    assert sum(map(len, sets)) == len(set().union(*sets))


def test_sets_without_common_members_stay() -> None:
    source = read_source('start: <[1-3]> <[4]> "a"\n%ignore <[7]>', tokens=TOKENS)
    assert with_disjoint_tokens(source) is source


def test_ignored_tokens_stay_ignored() -> None:
    source = read_source("start: <[1-5]>\n%ignore <[3-8]>", tokens=TOKENS)
    found = with_disjoint_tokens(source)
    ignored = set().union(*(ids_of(each.tokens) for each in found.terminals if each.name in found.ignored))
    assert ignored == {3, 4, 5, 6, 7, 8}
