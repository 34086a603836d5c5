"""Context-free grammars as plain data, with regular languages as terminals.

A grammar is a tuple of rules; a rule has alternatives, each a tuple of symbols that refer to a terminal or a rule by index. The language
is the set of all derivations: there is no lexer, no longest match and no precedence, and ignored terminals are spelled out in the rules.
No terminal matches the empty string. All functions are pure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from rtlang_grammars.context_free.notation.rule_options import RuleOptions
from rtlang_grammars.context_free.notation.terminal_expressions import BuiltTerminal
from rtlang_grammars.regular.language import Language
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget
from rtlang_grammars.spec.tokens import Ranges


@dataclass(frozen=True, slots=True)
class TokenSymbol:
    """A terminal symbol, by index."""

    terminal: int


@dataclass(frozen=True, slots=True)
class RuleCall:
    """A nonterminal symbol, by the index of its rule."""

    rule: int


Symbol: TypeAlias = TokenSymbol | RuleCall
Alternative: TypeAlias = tuple[Symbol, ...]


@dataclass(frozen=True, slots=True)
class Terminal:
    """A regular language of nonempty strings, or a set of tokens.

    Attributes:
        name: for messages and reports.
        language: its strings. Its assertions see only the terminal's own string.
        priority: as given in the source; it does not affect the language.
        tokens: ids of tokens, any one of which it is; `language` is empty then. None for text.
        built: how it ends before its longest text, for the terminal of a rule with options; None: wherever it matches.
    """

    name: str
    language: Language
    priority: int = 0
    tokens: Ranges | None = None
    built: BuiltTerminal | None = None

    @property
    def is_plain(self) -> bool:
        """Whether it is a language, which may be joined with others."""
        return self.tokens is None and self.built is None

    @classmethod
    def of_tokens(cls, name: str, tokens: Ranges) -> Terminal:
        """The terminal of some tokens."""
        return cls(name, Language.nothing(), tokens=tokens)

    def is_empty(self, budget: Budget) -> bool:
        """Whether nothing matches."""
        return self.tokens is None and self.language.is_empty(budget)


@dataclass(frozen=True, slots=True)
class Rule:
    """A nonterminal and its alternatives. Without alternatives it is the empty language; the empty alternative is the empty string.

    Attributes:
        name: for messages and reports.
        alternatives: as given.
        options: to report; None without.
    """

    name: str
    alternatives: tuple[Alternative, ...]
    options: RuleOptions | None = None


@dataclass(frozen=True, slots=True)
class Cfg:
    """A context-free grammar.

    Attributes:
        terminals, rules: the targets of the indices in symbols.
        start: the index of the start rule.
    """

    terminals: tuple[Terminal, ...]
    rules: tuple[Rule, ...]
    start: int

    @property
    def has_options(self) -> bool:
        """Whether rules have options that matchers follow."""
        return any(rule.options for rule in self.rules) or any(each.built for each in self.terminals)


def with_ignored(cfg: Cfg, ignored: Sequence[Terminal]) -> Cfg:
    """The grammar with any number of ignored terminals before each of its terminals, and at the end."""
    if not ignored:
        return cfg
    first, count = len(cfg.terminals), len(cfg.rules)
    rest = RuleCall(count + first)

    def spelled(way: Alternative) -> Alternative:
        return tuple(RuleCall(count + each.terminal) if isinstance(each, TokenSymbol) else each for each in way)

    rules = [Rule(rule.name, tuple(map(spelled, rule.alternatives))) for rule in cfg.rules]
    rules += [Rule(each.name, ((rest, TokenSymbol(number)),)) for number, each in enumerate(cfg.terminals)]
    rules.append(Rule("ignored", (*((TokenSymbol(first + i), rest) for i in range(len(ignored))), ())))
    rules.append(Rule("start", ((RuleCall(cfg.start), rest),)))
    return Cfg((*cfg.terminals, *ignored), tuple(rules), len(rules) - 1)


def nullable_rules(cfg: Cfg) -> frozenset[int]:
    """The rules that match the empty string."""
    return _rules_deriving(cfg, lambda symbol: False)


def _rules_deriving(cfg: Cfg, holds: Callable[[TokenSymbol], bool]) -> frozenset[int]:
    """The least set of rules with an alternative of tokens that satisfy `holds` and of rules in the set."""
    missing: list[int] = []
    owner: list[int] = []
    users: dict[int, list[int]] = {}
    ready: list[int] = []
    for index, rule in enumerate(cfg.rules):
        for alternative in rule.alternatives:
            if any(isinstance(symbol, TokenSymbol) and not holds(symbol) for symbol in alternative):
                continue
            calls = [symbol.rule for symbol in alternative if isinstance(symbol, RuleCall)]
            for callee in calls:
                users.setdefault(callee, []).append(len(owner))
            missing.append(len(calls))
            owner.append(index)
            if not calls:
                ready.append(index)
    found: set[int] = set()
    while ready:
        index = ready.pop()
        if index in found:
            continue
        found.add(index)
        for use in users.get(index, ()):
            missing[use] -= 1
            if missing[use] == 0:
                ready.append(owner[use])
    return frozenset(found)


def prune(cfg: Cfg, budget: Budget | None = None) -> Cfg:
    """Remove unproductive and unreachable symbols, duplicate alternatives and alternatives A -> A. The language is unchanged.

    Raises:
        GrammarError: the language is empty, or the budget ran out.
    """
    budget = budget or Budget()
    alive = [not terminal.is_empty(budget) for terminal in cfg.terminals]
    productive = _rules_deriving(cfg, lambda symbol: alive[symbol.terminal])
    if cfg.start not in productive:
        raise GrammarError("nothing can match this grammar: its start rule derives no string")

    def is_alive(symbol: Symbol) -> bool:
        return alive[symbol.terminal] if isinstance(symbol, TokenSymbol) else symbol.rule in productive

    retained = [
        replace(
            rule,
            alternatives=tuple(
                dict.fromkeys(
                    alternative
                    for alternative in rule.alternatives
                    if alternative != (RuleCall(index),) and all(is_alive(symbol) for symbol in alternative)
                )
            ),
        )
        for index, rule in enumerate(cfg.rules)
    ]
    budget.check()
    return _renumber(Cfg(cfg.terminals, tuple(retained), cfg.start))


def _renumber(cfg: Cfg) -> Cfg:
    """Keep reachable rules, numbered by first use; the start rule becomes rule 0."""
    rules: dict[int, int] = {cfg.start: 0}
    terminals: dict[int, int] = {}
    worklist = deque([cfg.start])
    made: list[Rule] = []
    while worklist:
        rule = cfg.rules[worklist.popleft()]
        alternatives: list[Alternative] = []
        for alternative in rule.alternatives:
            symbols: list[Symbol] = []
            for symbol in alternative:
                if isinstance(symbol, TokenSymbol):
                    symbols.append(TokenSymbol(terminals.setdefault(symbol.terminal, len(terminals))))
                    continue
                if symbol.rule not in rules:
                    rules[symbol.rule] = len(rules)
                    worklist.append(symbol.rule)
                symbols.append(RuleCall(rules[symbol.rule]))
            alternatives.append(tuple(symbols))
        made.append(replace(rule, alternatives=tuple(alternatives)))
    return Cfg(tuple(cfg.terminals[index] for index in terminals), tuple(made), 0)


def strongly_connected_components(num_nodes: int, edges: Callable[[int], Iterable[int]]) -> list[list[int]]:
    """Return the strongly connected components of a graph in reverse topological order. Source: Tarjan 1972, with an explicit stack.

    Args:
        num_nodes: nodes are numbered from 0.
        edges: the successors of a node.
    """
    number = [-1] * num_nodes
    low = [0] * num_nodes
    is_open = [False] * num_nodes
    stack: list[int] = []
    found: list[list[int]] = []
    count = 0
    for root in range(num_nodes):
        if number[root] >= 0:
            continue
        calls = [(root, iter(edges(root)))]
        number[root] = low[root] = count
        count += 1
        stack.append(root)
        is_open[root] = True
        while calls:
            node, targets = calls[-1]
            for target in targets:
                if number[target] < 0:
                    number[target] = low[target] = count
                    count += 1
                    stack.append(target)
                    is_open[target] = True
                    calls.append((target, iter(edges(target))))
                    break
                if is_open[target]:
                    low[node] = min(low[node], number[target])
            else:
                calls.pop()
                if calls:
                    low[calls[-1][0]] = min(low[calls[-1][0]], low[node])
                if low[node] == number[node]:
                    component: list[int] = []
                    while not component or component[-1] != node:
                        component.append(stack.pop())
                        is_open[component[-1]] = False
                    found.append(component)
    return found
