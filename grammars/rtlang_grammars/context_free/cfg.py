"""Context-free grammars as plain data, over terminals that are regular languages.

A grammar is a tuple of rules, each with alternatives, each a tuple of symbols: a terminal by its index or a rule by its index. The
language is that of all derivations; there is no lexer, no longest match and no precedence, and whatever may be ignored between tokens is in
the rules. No terminal accepts the empty text. Everything here is a pure function and leaves its argument as it is.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rtlang_grammars.limits import Budget
from rtlang_grammars.regular.language import Language
from rtlang_grammars.spec import GrammarError


@dataclass(frozen=True, slots=True)
class Token:
    """A symbol: a text of the terminal with this index."""

    terminal: int


@dataclass(frozen=True, slots=True)
class Call:
    """A symbol: a text of the rule with this index."""

    rule: int


Symbol: TypeAlias = Token | Call
Alternative: TypeAlias = tuple[Symbol, ...]


@dataclass(frozen=True, slots=True)
class Terminal:
    """A regular language of non-empty texts.

    Attributes:
        name: for messages and reports.
        language: its texts. Assertions in it see only the text of the terminal itself.
        priority: as the source gives it; it does not change which texts are in the language.
    """

    name: str
    language: Language
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Rule:
    """A name, and the alternatives for it. Without alternatives it matches nothing; the empty alternative is the empty text."""

    name: str
    alternatives: tuple[Alternative, ...]


@dataclass(frozen=True, slots=True)
class Cfg:
    """A context-free grammar.

    Attributes:
        terminals, rules: what symbols refer to by index.
        start: the index of the rule for a whole text.
    """

    terminals: tuple[Terminal, ...]
    rules: tuple[Rule, ...]
    start: int


def nullable_rules(cfg: Cfg) -> frozenset[int]:
    """The rules that match the empty text."""
    return _rules_deriving(cfg, lambda symbol: False)


def productive_rules(cfg: Cfg, budget: Budget | None = None) -> frozenset[int]:
    """The rules that match any text at all.

    Raises:
        GrammarError: the budget ran out while terminals were looked at.
    """
    budget = budget or Budget()
    alive = [not terminal.language.is_empty(budget) for terminal in cfg.terminals]
    return _rules_deriving(cfg, lambda symbol: alive[symbol.terminal])


def _rules_deriving(cfg: Cfg, holds: Callable[[Token], bool]) -> frozenset[int]:
    """The rules with an alternative all of whose tokens and rules hold."""
    missing: list[int] = []
    owner: list[int] = []
    users: dict[int, list[int]] = {}
    ready: list[int] = []
    for index, rule in enumerate(cfg.rules):
        for alternative in rule.alternatives:
            if any(isinstance(symbol, Token) and not holds(symbol) for symbol in alternative):
                continue
            calls = [symbol.rule for symbol in alternative if isinstance(symbol, Call)]
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


def reachable_rules(cfg: Cfg) -> frozenset[int]:
    """The rules that a text of the start rule may use, the start rule among them."""
    found = {cfg.start}
    waiting = [cfg.start]
    while waiting:
        for alternative in cfg.rules[waiting.pop()].alternatives:
            for symbol in alternative:
                if isinstance(symbol, Call) and symbol.rule not in found:
                    found.add(symbol.rule)
                    waiting.append(symbol.rule)
    return frozenset(found)


def prune(cfg: Cfg, budget: Budget | None = None) -> Cfg:
    """The same language without what cannot be part of any text, without repeated alternatives and without rules for themselves alone.

    Raises:
        GrammarError: nothing can match, or the budget ran out.
    """
    budget = budget or Budget()
    alive = [not terminal.language.is_empty(budget) for terminal in cfg.terminals]
    productive = _rules_deriving(cfg, lambda symbol: alive[symbol.terminal])
    if cfg.start not in productive:
        raise GrammarError("nothing can match this grammar: no text can be made of its start rule")

    def is_alive(symbol: Symbol) -> bool:
        return alive[symbol.terminal] if isinstance(symbol, Token) else symbol.rule in productive

    kept = [
        Rule(
            rule.name,
            tuple(
                dict.fromkeys(
                    alternative
                    for alternative in rule.alternatives
                    if alternative != (Call(index),) and all(is_alive(symbol) for symbol in alternative)
                )
            ),
        )
        for index, rule in enumerate(cfg.rules)
    ]
    budget.check()
    return _renumber(Cfg(cfg.terminals, tuple(kept), cfg.start))


def _renumber(cfg: Cfg) -> Cfg:
    """Only what can be reached, in the order of first use; the start rule is the first."""
    rules: dict[int, int] = {cfg.start: 0}
    terminals: dict[int, int] = {}
    waiting = deque([cfg.start])
    made: list[Rule] = []
    while waiting:
        rule = cfg.rules[waiting.popleft()]
        alternatives: list[Alternative] = []
        for alternative in rule.alternatives:
            symbols: list[Symbol] = []
            for symbol in alternative:
                if isinstance(symbol, Token):
                    symbols.append(Token(terminals.setdefault(symbol.terminal, len(terminals))))
                    continue
                if symbol.rule not in rules:
                    rules[symbol.rule] = len(rules)
                    waiting.append(symbol.rule)
                symbols.append(Call(rules[symbol.rule]))
            alternatives.append(tuple(symbols))
        made.append(Rule(rule.name, tuple(alternatives)))
    return Cfg(tuple(cfg.terminals[index] for index in terminals), tuple(made), 0)


def strongly_connected_components(num_nodes: int, edges: Callable[[int], Iterable[int]]) -> list[list[int]]:
    """Strongly connected strongly_connected_components of a graph, each after those that it leads to. Source: Tarjan 1972, with an explicit stack."""
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


def shortest_lengths(cfg: Cfg, budget: Budget | None = None) -> tuple[int | None, ...]:
    """The bytes of a shortest text of each rule; None where it has no text. Source: Knuth 1977.

    Raises:
        GrammarError: the budget ran out.
    """
    return tuple(
        None if way is None else way[0] for way in _shortest_derivations(cfg, _shortest_tokens(cfg, budget or Budget()))
    )


def shortest_words(cfg: Cfg, budget: Budget | None = None, max_bytes: int = 1 << 16) -> tuple[bytes | None, ...]:
    """A shortest text of each rule in UTF-8, with the fewest bytes; None where there is none of at most `max_bytes`.

    Raises:
        GrammarError: the budget ran out.
    """
    budget = budget or Budget()
    tokens = _shortest_tokens(cfg, budget)
    alternatives = _shortest_derivations(cfg, tokens)
    words: list[bytes | None] = [None] * len(cfg.rules)
    order = sorted((way[2], index) for index, way in enumerate(alternatives) if way is not None and way[0] <= max_bytes)
    for _, index in order:  # what a shortest text is made of was settled before it
        way = alternatives[index]
        assert way is not None
        parts: list[bytes] = []
        for symbol in way[1]:
            part = tokens[symbol.terminal] if isinstance(symbol, Token) else words[symbol.rule]
            assert part is not None
            parts.append(part)
        budget.spend(num_bytes=way[0])
        words[index] = b"".join(parts)
    return tuple(words)


def _shortest_derivations(cfg: Cfg, tokens: Sequence[bytes | None]) -> list[tuple[int, Alternative, int] | None]:
    """For each rule: the length, the alternative that has it, and a rank that is higher than those of all rules in it."""
    missing: list[int] = []
    lengths: list[int] = []
    owner: list[tuple[int, Alternative]] = []
    users: dict[int, list[int]] = {}
    queue: list[tuple[int, int]] = []
    for index, rule in enumerate(cfg.rules):
        for alternative in rule.alternatives:
            words = [tokens[symbol.terminal] for symbol in alternative if isinstance(symbol, Token)]
            if any(word is None for word in words):
                continue
            calls = [symbol.rule for symbol in alternative if isinstance(symbol, Call)]
            for callee in calls:
                users.setdefault(callee, []).append(len(owner))
            lengths.append(sum(len(word) for word in words if word is not None))
            missing.append(len(calls))
            if not calls:
                heapq.heappush(queue, (lengths[-1], len(owner)))
            owner.append((index, alternative))
    found: list[tuple[int, Alternative, int] | None] = [None] * len(cfg.rules)
    rank = 0
    while queue:
        length, use = heapq.heappop(queue)
        index, alternative = owner[use]
        if found[index] is not None:
            continue
        found[index] = (length, alternative, rank)
        rank += 1
        for each in users.get(index, ()):
            missing[each] -= 1
            lengths[each] += length
            if missing[each] == 0:
                heapq.heappush(queue, (lengths[each], each))
    return found


def _shortest_tokens(cfg: Cfg, budget: Budget) -> list[bytes | None]:
    return [shortest_bytes(terminal.language, budget) for terminal in cfg.terminals]


def shortest_bytes(language: Language, budget: Budget) -> bytes | None:
    """A text with the fewest bytes; None where the language is empty.

    Raises:
        GrammarError: the budget ran out.
    """
    if language.is_empty(budget):
        return None
    automaton = language.automaton(budget)
    came_from: dict[int, tuple[int, int]] = {}
    seen = {automaton.start}
    waiting = deque([automaton.start])
    while not automaton.is_accepting(waiting[0]):
        state = waiting.popleft()
        budget.spend()
        for byte, target in enumerate(automaton.row(state).tolist()):
            if target >= 0 and target not in seen:
                seen.add(target)
                came_from[target] = (state, byte)
                waiting.append(target)
    state, word = waiting[0], bytearray()
    while state in came_from:
        state, byte = came_from[state]
        word.append(byte)
    return bytes(reversed(word))
