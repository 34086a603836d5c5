r"""Left recursion: where it is, and an equal grammar without it.

A machine that walks rules from the top would call a left-recursive rule for ever. Rules that can call one another at their very beginning
(directly, through other rules, or behind rules that match the empty text) are replaced by the left-corner transform: a text of A begins
with what is no such rule, and `A\B` is what may follow a B at the start of an A. Before that, rules are split into their non-empty texts,
so that the beginning of every alternative is in view. Every step keeps the language exactly, and the size at most squares.
Source: Rosenkrantz and Lewis 1970; Moore 2000 for keeping it to the rules that need it.
"""

from __future__ import annotations

from collections.abc import Sequence

from rtlang_grammars.context_free.cfg import (
    Alternative,
    Call,
    Cfg,
    Rule,
    Symbol,
    Token,
    nullable_rules,
    prune,
    strongly_connected_components,
)
from rtlang_grammars.limits import Budget


def left_recursive_rules(cfg: Cfg) -> frozenset[int]:
    """The rules that can come to call themselves before any byte was read."""
    return frozenset(index for component in _recursive_components(cfg) for index in component)


def without_left_recursion(cfg: Cfg, budget: Budget | None = None) -> Cfg:
    """A grammar with the same language in which no rule is left-recursive; `cfg` itself where none is.

    Raises:
        GrammarError: nothing can match, or the result is larger than the budget.
    """
    budget = budget or Budget()
    if not _recursive_components(cfg):
        return cfg
    cfg = prune(cfg, budget)
    found = _recursive_components(cfg)
    if not found:
        return cfg
    result = prune(_Transform(cfg, found, budget).result(), budget)
    assert not left_recursive_rules(result)
    return result


def _recursive_components(cfg: Cfg) -> list[list[int]]:
    nullable = nullable_rules(cfg)
    corners: list[list[int]] = []
    for rule in cfg.rules:
        first: dict[int, None] = {}
        for alternative in rule.alternatives:
            for symbol in alternative:
                if isinstance(symbol, Token):
                    break
                first[symbol.rule] = None
                if symbol.rule not in nullable:
                    break
        corners.append(list(first))
    return [
        component
        for component in strongly_connected_components(len(cfg.rules), lambda index: corners[index])
        if len(component) > 1 or component[0] in corners[component[0]]
    ]


class _Transform:
    """Owned by one call of `without_left_recursion`."""

    def __init__(self, cfg: Cfg, recursive: Sequence[Sequence[int]], budget: Budget) -> None:
        self.cfg, self.recursive, self.budget = cfg, recursive, budget
        self.nullable = nullable_rules(cfg)
        self.rules: list[Rule | None] = []
        self.nonempty_of: dict[int, int] = {}
        self.waiting: list[int] = []

    def result(self) -> Cfg:
        cfg = self.cfg
        self.rules = list(cfg.rules)
        groups = [[self._nonempty(index) for index in component] for component in self.recursive]
        for component in self.recursive:
            for index in component:
                if index in self.nullable:
                    self.rules[index] = Rule(cfg.rules[index].name, ((Call(self.nonempty_of[index]),), ()))
        self._close_nonempty()
        for group in groups:
            self._replace(group)
        assert all(rule is not None for rule in self.rules)
        return Cfg(cfg.terminals, tuple(rule for rule in self.rules if rule is not None), cfg.start)

    def _name(self, index: int) -> str:
        return self.cfg.rules[index].name + ("+" if index in self.nullable else "")

    def _nonempty(self, index: int) -> int:
        """The rule of the non-empty texts of a rule: itself, where it has no empty one."""
        if index not in self.nonempty_of:
            self.waiting.append(index)
            self.nonempty_of[index] = index
            if index in self.nullable:
                self.nonempty_of[index] = self._new()
        return self.nonempty_of[index]

    def _new(self) -> int:
        self.budget.spend(states=1)
        self.rules.append(None)
        return len(self.rules) - 1

    def _nonempty_alternatives(self, symbols: Sequence[Symbol]) -> list[Alternative]:
        """Alternatives for the non-empty texts of a sequence, each beginning with a symbol that is never empty."""
        alternatives: list[Alternative] = []
        for at, symbol in enumerate(symbols):
            self.budget.spend(states=1 + (len(symbols) - at) // 8)
            if isinstance(symbol, Call) and symbol.rule in self.nullable:
                alternatives.append((Call(self._nonempty(symbol.rule)), *symbols[at + 1 :]))
                continue
            alternatives.append(tuple(symbols[at:]))
            break
        return alternatives

    def _is_nullable(self, symbols: Sequence[Symbol]) -> bool:
        return all(isinstance(symbol, Call) and symbol.rule in self.nullable for symbol in symbols)

    def _replace(self, group: Sequence[int]) -> None:
        """The left-corner transform of rules that begin with one another."""
        members = set(group)
        starts: dict[int, list[Alternative]] = {index: [] for index in group}
        steps: dict[int, list[tuple[Alternative, int]]] = {index: [] for index in group}  # behind B: (rest, D)
        unit_parents: dict[int, list[int]] = {index: [] for index in group}  # a B that is a whole D
        for index in group:
            rule = self.rules[index]
            assert rule is not None
            for alternative in rule.alternatives:
                first = alternative[0]
                if not (isinstance(first, Call) and first.rule in members):
                    starts[index].append(alternative)
                    continue
                rest = alternative[1:]
                steps[first.rule] += [(way, index) for way in self._nonempty_alternatives(rest)]
                if self._is_nullable(rest):
                    unit_parents[first.rule].append(index)
        self._close_nonempty()
        above = {index: _closure(index, unit_parents) for index in group}
        names = {index: rule.name for index in group if (rule := self.rules[index]) is not None}
        for whole in group:
            rests = {part: self._new() for part in group}
            self.rules[whole] = Rule(
                names[whole],
                tuple((*start, Call(rests[part])) for part in group for start in starts[part]),
            )
            for part in group:
                alternatives: list[Alternative] = [()] if whole in above[part] else []
                for each in above[part]:
                    for way, owner in steps[each]:
                        self.budget.spend(states=1 + len(way) // 8)
                        alternatives.append((*way, Call(rests[owner])))
                self.rules[rests[part]] = Rule(f"{names[whole]}\\{names[part]}", tuple(alternatives))

    def _close_nonempty(self) -> None:
        """Make the rules that `_nonempty` promised."""
        while self.waiting:
            index = self.waiting.pop()
            alternatives = [
                way for each in self.cfg.rules[index].alternatives for way in self._nonempty_alternatives(each)
            ]
            self.rules[self.nonempty_of[index]] = Rule(self._name(index), tuple(alternatives))


def _closure(start: int, unit_parents: dict[int, list[int]]) -> list[int]:
    found = {start: None}
    waiting = [start]
    while waiting:
        for target in unit_parents[waiting.pop()]:
            if target not in found:
                found[target] = None
                waiting.append(target)
    return list(found)
