r"""Left recursion: detection, and elimination by the left-corner transform.

A top-down recognizer would call a left-recursive rule forever. For a set of rules that can call one another before reading any byte
(directly, through other rules, or after nullable rules), the left-corner transform replaces A by a start of A that is not such a rule,
followed by `A\B`: the continuations of an A that begins with a B. Nullable rules are first split into the empty string and the rest, so
that the left corner of every alternative is explicit. The language is unchanged, and the size grows at most quadratically.
Sources: Rosenkrantz and Lewis 1970; Moore 2000 for applying it only to left-recursive rules.
"""

from __future__ import annotations

from collections.abc import Sequence

from rtlang_grammars.context_free.cfg import (
    Alternative,
    Cfg,
    Rule,
    RuleCall,
    Symbol,
    TokenSymbol,
    nullable_rules,
    prune,
    strongly_connected_components,
)
from rtlang_grammars.spec.limits import Budget


def left_recursive_rules(cfg: Cfg) -> frozenset[int]:
    """The rules that can call themselves before reading any byte."""
    return frozenset(index for component in _recursive_components(cfg) for index in component)


def without_left_recursion(cfg: Cfg, budget: Budget | None = None) -> Cfg:
    """Return a grammar with the same language and no left-recursive rule; `cfg` itself if it has none.

    Raises:
        GrammarError: the language is empty, or the result exceeds the budget.
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
                if isinstance(symbol, TokenSymbol):
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
    """The state of one call of `without_left_recursion`."""

    def __init__(self, cfg: Cfg, recursive: Sequence[Sequence[int]], budget: Budget) -> None:
        self.cfg, self.recursive, self.budget = cfg, recursive, budget
        self.nullable = nullable_rules(cfg)
        self.rules: list[Rule | None] = []
        self.nonempty_of: dict[int, int] = {}
        self.worklist: list[int] = []

    def result(self) -> Cfg:
        cfg = self.cfg
        self.rules = list(cfg.rules)
        groups = [[self._nonempty(index) for index in component] for component in self.recursive]
        for component in self.recursive:
            for index in component:
                if index in self.nullable:
                    self.rules[index] = Rule(cfg.rules[index].name, ((RuleCall(self.nonempty_of[index]),), ()))
        self._close_nonempty()
        for group in groups:
            self._replace(group)
        assert all(rule is not None for rule in self.rules)
        return Cfg(cfg.terminals, tuple(rule for rule in self.rules if rule is not None), cfg.start)

    def _name(self, index: int) -> str:
        return self.cfg.rules[index].name + ("+" if index in self.nullable else "")

    def _nonempty(self, index: int) -> int:
        """The rule of the nonempty strings of a rule; the rule itself if it is not nullable."""
        if index not in self.nonempty_of:
            self.worklist.append(index)
            self.nonempty_of[index] = index
            if index in self.nullable:
                self.nonempty_of[index] = self._new()
        return self.nonempty_of[index]

    def _new(self) -> int:
        self.budget.spend(states=1)
        self.rules.append(None)
        return len(self.rules) - 1

    def _nonempty_alternatives(self, symbols: Sequence[Symbol]) -> list[Alternative]:
        """Alternatives for the nonempty strings of a sequence; the first symbol of each is not nullable."""
        alternatives: list[Alternative] = []
        for at, symbol in enumerate(symbols):
            self.budget.spend(states=1 + (len(symbols) - at) // 8)
            if isinstance(symbol, RuleCall) and symbol.rule in self.nullable:
                alternatives.append((RuleCall(self._nonempty(symbol.rule)), *symbols[at + 1 :]))
                continue
            alternatives.append(tuple(symbols[at:]))
            break
        return alternatives

    def _is_nullable(self, symbols: Sequence[Symbol]) -> bool:
        return all(isinstance(symbol, RuleCall) and symbol.rule in self.nullable for symbol in symbols)

    def _replace(self, group: Sequence[int]) -> None:
        """Apply the left-corner transform to a strongly connected set of rules."""
        members = set(group)
        starts: dict[int, list[Alternative]] = {index: [] for index in group}
        steps: dict[int, list[tuple[Alternative, int]]] = {index: [] for index in group}  # D -> B rest, by B
        unit_parents: dict[int, list[int]] = {index: [] for index in group}  # D -> B, by B
        for index in group:
            rule = self.rules[index]
            assert rule is not None
            for alternative in rule.alternatives:
                first = alternative[0]
                if not (isinstance(first, RuleCall) and first.rule in members):
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
                tuple((*start, RuleCall(rests[part])) for part in group for start in starts[part]),
            )
            for part in group:
                alternatives: list[Alternative] = [()] if whole in above[part] else []
                for each in above[part]:
                    for way, owner in steps[each]:
                        self.budget.spend(states=1 + len(way) // 8)
                        alternatives.append((*way, RuleCall(rests[owner])))
                self.rules[rests[part]] = Rule(f"{names[whole]}\\{names[part]}", tuple(alternatives))

    def _close_nonempty(self) -> None:
        """Define the rules that `_nonempty` has reserved."""
        while self.worklist:
            index = self.worklist.pop()
            alternatives = [
                way for each in self.cfg.rules[index].alternatives for way in self._nonempty_alternatives(each)
            ]
            self.rules[self.nonempty_of[index]] = Rule(self._name(index), tuple(alternatives))


def _closure(start: int, unit_parents: dict[int, list[int]]) -> list[int]:
    found = {start: None}
    worklist = [start]
    while worklist:
        for target in unit_parents[worklist.pop()]:
            if target not in found:
                found[target] = None
                worklist.append(target)
    return list(found)
