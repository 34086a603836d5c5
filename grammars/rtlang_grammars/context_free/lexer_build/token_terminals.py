"""Sets of tokens that share members, as rules over disjoint sets: a lexer finds one terminal for a token, a parser follows all."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from lark.grammar import NonTerminal, Rule
from lark.grammar import Terminal as LarkTerminal

from rtlang_grammars.context_free.lark_source import LarkSource, SourceTerminal
from rtlang_grammars.spec.tokens import Ranges, normalized


def with_disjoint_tokens(source: LarkSource) -> LarkSource:
    """The grammar with the same texts in which no token belongs to two terminals."""
    sets = {each.name: each for each in source.terminals if each.tokens is not None}
    parts = _parts({name: each.tokens for name, each in sets.items() if each.tokens is not None})
    shared = {name for names in parts if len(names) > 1 for name in names}
    if not shared:
        return source
    made: dict[tuple[str, ...], SourceTerminal] = {}
    for names, tokens in parts.items():
        if shared.intersection(names):
            made[names] = replace(sets[names[0]], name="&".join(names) + "_part", tokens=tokens)
    rules = [
        Rule(rule.origin, [_symbol(each, shared) for each in rule.expansion], rule.order, rule.alias, rule.options)
        for rule in source.rules
    ]
    for names, terminal in made.items():
        rules += [Rule(NonTerminal(name), [LarkTerminal(terminal.name)]) for name in names]
    ignored = {each.name for names, each in made.items() if source.ignored.intersection(names)}
    return replace(
        source,
        terminals=(*(each for each in source.terminals if each.name not in shared), *made.values()),
        ignored=source.ignored - shared | ignored,
        rules=tuple(rules),
    )


def _symbol(symbol: object, shared: set[str]) -> object:
    return NonTerminal(symbol.name) if isinstance(symbol, LarkTerminal) and symbol.name in shared else symbol


def _parts(sets: dict[str, Ranges]) -> dict[tuple[str, ...], Ranges]:
    """All tokens by the sets that they belong to."""
    edges = sorted({edge for ranges in sets.values() for first, last in ranges for edge in (first, last + 1)})
    found: dict[tuple[str, ...], list[tuple[int, int]]] = {}
    for low, high in pairwise(edges):
        names = tuple(name for name, ranges in sets.items() if any(first <= low <= last for first, last in ranges))
        if names:
            found.setdefault(names, []).append((low, high - 1))
    return {names: normalized(ranges) for names, ranges in found.items()}
