"""LALR(1) tables with all conflicts kept, by lark's own analysis.

Where lark would refuse a grammar or choose to shift, the parser here follows every action: on a grammar without conflicts the language is
lark's, on others it is that of the rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from lark.grammar import NonTerminal, Rule
from lark.grammar import Terminal as LarkTerminal
from lark.parsers.lalr_analysis import LALR_Analyzer
from numpy.typing import NDArray

from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

_MAX_NULLABLE = 40


class ParserTables:
    """The actions of a parser, dense.

    Attributes:
        num_states, num_terminals: counts; END_OF_TEXT is terminal `num_terminals`.
        shifts: int32 [num_states, num_terminals + 1], the state behind a terminal, -1.
        reductions: int32 [num_states, num_terminals + 1, 2], where the rules to reduce by begin in `rules`, and how many.
        rules: int32, numbers of rules.
        sizes, heads: int32, for each rule, its length and the number of its origin.
        gotos: int32 [num_states, num_heads], -1.
        rows: for each state the terminals that lark's contextual lexer looks for there.
        start, final: the first state, and the one behind the start rule.
        num_conflicts: cells with more than one action.
        productions: all rules: the number of the origin and the symbols, terminals by their numbers, others as -1 - number.
        kernels: for each state its rules in progress: the symbols still to come, how many there were, and the number of the origin, -1 for
            the rule of the whole text.
    """

    def __init__(self, rules: Sequence[Rule], start: str, terminals: Iterable[str], budget: Budget) -> None:
        """Analyze plain rules.

        Args:
            terminals: their names, in the order of their numbers.
        Raises:
            GrammarError: a rule can contain itself in infinitely many ways without reading, or the tables are too large.
        """
        rules = _productive(rules, start, budget)
        _check_hidden_left_recursion(rules, budget)
        analyzer: Any = _Analyzer(rules, start, budget)  # type: ignore[arg-type, no-untyped-call, unused-ignore]
        budget.check()
        analyzer.compute_lr0_states()
        budget.check()
        analyzer.compute_reads_relations()
        analyzer.compute_includes_lookback()
        analyzer.compute_lookaheads()
        budget.check()
        number = {name: index for index, name in enumerate(terminals)}
        number["$END"] = self.num_terminals = len(number)
        states = list(analyzer.lr0_itemsets)
        numbers = {state: index for index, state in enumerate(states)}
        self.num_states, width = len(states), len(number)
        budget.spend(states=self.num_states, num_bytes=12 * self.num_states * width)
        self.shifts: NDArray[np.int32] = np.full((self.num_states, width), -1, dtype=np.int32)
        self.reductions: NDArray[np.int32] = np.zeros((self.num_states, width, 2), dtype=np.int32)
        self.rows: list[frozenset[int]] = []
        self.num_conflicts = 0
        used: dict[Any, int] = {}
        heads: dict[str, int] = {}
        reduced: list[int] = []
        gotos: list[tuple[int, int, int]] = []
        for index, state in enumerate(states):
            row = set()
            for symbol, target in state.transitions.items():
                if isinstance(symbol, LarkTerminal):
                    self.shifts[index, number[symbol.name]] = numbers[target]
                    row.add(number[symbol.name])
                else:
                    gotos.append((index, heads.setdefault(symbol.name, len(heads)), numbers[target]))
            for symbol, found in state.lookaheads.items():
                terminal = number[symbol.name]
                self.reductions[index, terminal] = len(reduced), len(found)
                reduced += [used.setdefault(rule, len(used)) for rule in found]
                self.num_conflicts += len(found) > 1 or self.shifts[index, terminal] >= 0
                row.add(terminal)
            self.rows.append(frozenset(row - {self.num_terminals}))
        self.rules: NDArray[np.int32] = np.array(reduced or [0], dtype=np.int32)
        self.sizes: NDArray[np.int32] = np.array([len(rule.expansion) for rule in used] or [0], dtype=np.int32)
        self.heads: NDArray[np.int32] = np.array(
            [heads.setdefault(rule.origin.name, len(heads)) for rule in used] or [0], dtype=np.int32
        )

        def plain(symbols: Iterable[Any]) -> tuple[int, ...]:
            return tuple(
                number[each.name] if isinstance(each, LarkTerminal) else -1 - heads.setdefault(each.name, len(heads))
                for each in symbols
            )

        self.productions = [(heads.setdefault(rule.origin.name, len(heads)), plain(rule.expansion)) for rule in rules]
        self.kernels = [
            [
                (
                    plain(pointer.rule.expansion[pointer.index :]),
                    pointer.index,
                    -1 if pointer.rule.origin.name.startswith("$root_") else heads[pointer.rule.origin.name],
                )
                for pointer in state.kernel
            ]
            for state in states
        ]
        self.gotos: NDArray[np.int32] = np.full((self.num_states, len(heads)), -1, dtype=np.int32)
        for index, head, goto in gotos:
            self.gotos[index, head] = goto
        self.start = numbers[next(iter(analyzer.lr0_start_states.values()))]
        self.final = int(self.gotos[self.start, heads[start]])


class _Rules(list[Rule]):
    """Rules that check the budget whenever a pass over them begins: lark's analysis cannot be interrupted otherwise."""

    def __init__(self, rules: Iterable[Rule], budget: Budget) -> None:
        super().__init__(rules)
        self.budget = budget

    def __iter__(self) -> Iterator[Rule]:
        self.budget.check()
        return super().__iter__()

    def __add__(self, other: Any) -> _Rules:
        return _Rules([*super().__iter__(), *other], self.budget)


class _Analyzer(LALR_Analyzer):  # type: ignore[misc, unused-ignore]
    """lark's analysis within a budget."""

    def __init__(self, rules: Iterable[Rule], start: str, budget: Budget) -> None:
        self.budget = budget
        super().__init__(SimpleNamespace(rules=_Rules(rules, budget), start=[start]), debug=False, strict=False)  # type: ignore[arg-type, no-untyped-call, unused-ignore]

    def expand_rule(self, *arguments: Any, **options: Any) -> Any:
        self.budget.spend(states=1)
        return super().expand_rule(*arguments, **options)


def _nullable(rules: Sequence[Rule], budget: Budget) -> set[str]:
    """The rules that may be empty."""
    nullable: set[str] = set()
    while True:
        more = {
            rule.origin.name
            for rule in rules
            if rule.origin.name not in nullable and all(symbol.name in nullable for symbol in rule.expansion)
        }
        budget.spend(states=0)
        if not more:
            break
        nullable |= more
    return nullable


def _productive(rules: Sequence[Rule], start: str, budget: Budget) -> list[Rule]:
    """The rules that some text fulfils."""
    productive: set[str] = set()
    while True:
        budget.check()
        kept = [
            rule
            for rule in rules
            if all(isinstance(symbol, LarkTerminal) or symbol.name in productive for symbol in rule.expansion)
        ]
        found = {rule.origin.name for rule in kept}
        if found == productive:
            break
        productive = found
    if start not in productive:
        raise GrammarError("the grammar matches no string: its rules never terminate")
    return kept


def _check_hidden_left_recursion(rules: Sequence[Rule], budget: Budget) -> None:
    """Refuse rules that can begin with themselves behind parts that may be empty: a parser would stack such parts without end."""
    nullable = _nullable(rules, budget)
    for rule in rules:
        if (
            sum(symbol.name in nullable for symbol in rule.expansion) > _MAX_NULLABLE
        ):  # lark's analysis takes their cube
            raise GrammarError(
                f"Lark grammar: rule {rule.origin.name} has more than {_MAX_NULLABLE} parts that may be empty"
            )
    begins: dict[str, set[str]] = {}
    hidden: set[tuple[str, str]] = set()
    for rule in rules:
        for position, symbol in enumerate(rule.expansion):
            if isinstance(symbol, NonTerminal):
                begins.setdefault(rule.origin.name, set()).add(symbol.name)
                if position:
                    hidden.add((rule.origin.name, symbol.name))
            if symbol.name not in nullable:
                break
    reach: dict[str, set[str]] = {}
    for origin, first in hidden:
        if first not in reach:
            seen, todo = {first}, [first]
            while todo:
                budget.spend(states=0)
                for name in begins.get(todo.pop(), ()):
                    if name not in seen:
                        seen.add(name)
                        todo.append(name)
            reach[first] = seen
        if origin in reach[first]:
            raise GrammarError(f"Lark grammar: rule {origin} can begin with itself after parts that may be empty")
