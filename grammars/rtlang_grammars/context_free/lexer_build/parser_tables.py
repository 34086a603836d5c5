"""LALR(1) tables with all conflicts kept.

Item sets are made over numbers; look-ahead follows DeRemer and Pennello, "Efficient Computation of LALR(1) Look-Ahead Sets" (1982), with
sets of terminals as bits. Where lark would refuse a grammar or choose to shift, the parser here follows every action: on a grammar without
conflicts the language is lark's, on others the rules alone define it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np
from lark.grammar import Rule
from lark.grammar import Terminal as LarkTerminal
from numpy.typing import NDArray

from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

Ints: TypeAlias = NDArray[np.int32]

_CHECK_EVERY = 1024
"""Transitions of the analysis between two checks of the budget."""
_SHIFT_BYTES, _GOTO_BYTES = 100, 300
"""Memory of the analysis for each move of a state: in mappings of several, for a goto also its follow set and edges."""


class ParserTables:
    """The actions of a parser, dense.

    Attributes:
        num_terminals: number of terminals; the end of the text has this number.
        shifts: int32 [num_states, num_terminals + 1], the state after a terminal, -1.
        reductions: int32 [num_states, num_terminals + 1, 2], where the rules to reduce by begin in `rules`, and how many.
        rules: int32, numbers of rules.
        sizes, heads: int32, for each rule, its length and the number of its origin.
        gotos: int32 [num_states, num_heads], -1.
        contexts: int32 [num_states], the number of each state's set in `rows`.
        rows: the different sets of terminals that lark's contextual lexer looks for.
        start, final: the first state, and the one after the start rule.
        start_head: the number of the start rule.
        num_conflicts: cells with more than one action.
        head_names: the names of origins, by number.
        symbols: int32, the symbols of all rules, one rule after another: terminals by their numbers, others as -1 - number.
        kernels: int32 [num_items, 3], for each state its rules in progress: state, rule, symbols read; rule -1 is the whole text.
    """

    def __init__(self, rules: Sequence[Rule], start: str, terminals: Iterable[str], budget: Budget) -> None:
        """Analyze plain rules.

        Args:
            terminals: their names, in the order of their numbers.
        Raises:
            GrammarError: a rule can contain itself in infinitely many ways without reading, or the tables are too large.
        """
        analysis = _Analysis(rules, start, list(terminals), budget)
        analysis.make_states()
        analysis.make_look_ahead()
        self.num_terminals = analysis.end
        num_states, width, num_heads = len(analysis.kernels), analysis.end + 1, len(analysis.names)
        budget.spend(num_bytes=num_states * (12 * width + 4 * num_heads))
        self.shifts: Ints = np.full((num_states, width), -1, dtype=np.int32)
        self.gotos: Ints = np.full((num_states, num_heads), -1, dtype=np.int32)
        self.reductions: Ints = np.zeros((num_states, width, 2), dtype=np.int32)
        moves = np.array(
            [(state, *move) for state, row in enumerate(analysis.moves) for move in row.items()], dtype=np.int32
        ).reshape(-1, 3)
        is_shift = moves[:, 1] < width
        self.shifts[moves[is_shift, 0], moves[is_shift, 1]] = moves[is_shift, 2]
        self.gotos[moves[~is_shift, 0], moves[~is_shift, 1] - width] = moves[~is_shift, 2]
        self.rules, self.num_conflicts = self._reduce(analysis)
        self.sizes: Ints = np.array([len(symbols) for _, symbols in analysis.rules], dtype=np.int32)
        self.heads: Ints = np.array([head for head, _ in analysis.rules], dtype=np.int32)
        self.symbols: Ints = np.array(
            [each if each < width else width - 1 - each for _, symbols in analysis.rules for each in symbols],
            dtype=np.int32,
        )
        self.kernels: Ints = analysis.kernel_items()
        numbers: dict[int, int] = {}
        rows = [analysis.row(state) & ~(1 << analysis.end) for state in range(num_states)]
        self.contexts: Ints = np.array([numbers.setdefault(row, len(numbers)) for row in rows], dtype=np.int32)
        self.rows = [frozenset(_bits(row)) for row in numbers]
        self.start, self.start_head = 0, analysis.start
        self.head_names = analysis.names
        self.final = int(self.gotos[0, analysis.start])

    @property
    def num_states(self) -> int:
        """States of the parser."""
        return len(self.shifts)

    @cached_property
    def rule_symbols(self) -> list[tuple[int, ...]]:
        """For each rule its symbols, as in `symbols`."""
        ends = np.cumsum(self.sizes).tolist()
        symbols = self.symbols.tolist()
        return [tuple(symbols[end - size : end]) for end, size in zip(ends, self.sizes.tolist(), strict=True)]

    def _reduce(self, analysis: _Analysis) -> tuple[Ints, int]:
        """Fill `reductions`; returns `rules` and the number of conflicts."""
        found: list[int] = []
        columns: dict[int, list[int]] = {}
        num_conflicts = 0
        for state, row in enumerate(analysis.look_ahead):
            shifted = analysis.shifted[state]
            if len(row) == 1:
                ((rule, ahead),) = row.items()
                if ahead not in columns:
                    columns[ahead] = _bits(ahead)
                self.reductions[state, columns[ahead]] = len(found), 1
                found.append(rule)
                num_conflicts += (ahead & shifted).bit_count()
                continue
            for terminal in _bits(_union(row.values())):
                rules = [rule for rule, ahead in row.items() if ahead >> terminal & 1]
                self.reductions[state, terminal] = len(found), len(rules)
                found += rules
                num_conflicts += len(rules) > 1 or shifted >> terminal & 1
        return np.array(found or [0], dtype=np.int32), num_conflicts


class _Analysis:
    """The analysis of one grammar.

    Symbols are numbers: terminals, the end of the text `end`, then the origins of rules. An item is a place in a rule, numbered through all
    rules; the last two items stand for the whole text.

    Attributes:
        names: of the origins, by number; `start` is the start rule's.
        rules: the number of the origin and the symbols.
        kernels: the states, by their items in progress.
        moves: for each state the states after symbols.
        shifted: for each state the terminals that it shifts, as bits.
        look_ahead: for each state the terminals before which it reduces, as bits, by rule.
    """

    def __init__(self, rules: Sequence[Rule], start: str, terminals: list[str], budget: Budget) -> None:
        self._budget, self.end = budget, len(terminals)
        self._width = width = self.end + 1
        self.names: list[str] = []
        self.rules = self._numbered(rules, start, {name: number for number, name in enumerate(terminals)})
        self._nullable = self._nullable_heads()
        self._check_hidden_left_recursion()
        self._next: list[int] = []  # for each item the symbol to come, -1
        self._firsts: list[int] = []  # for each rule its first item
        self._of_head: list[list[int]] = [[] for _ in self.names]
        for rule, (head, symbols) in enumerate(self.rules):
            self._of_head[head].append(rule)
            self._firsts.append(len(self._next))
            self._next += symbols
            self._next.append(-1)
        self._rule_of: list[int] = []
        for rule, (_, symbols) in enumerate(self.rules):
            self._rule_of += [rule] * (len(symbols) + 1)
        self._root = len(self._next)
        self._next += [width + self.start, -1]
        self._rule_of += [-1, -1]
        self._begins = self._leftmost()

    def _numbered(self, rules: Sequence[Rule], start: str, terminals: dict[str, int]) -> list[tuple[int, list[int]]]:
        """The rules that some text fulfils, in numbers."""
        heads: dict[str, int] = {}
        width, plain = self._width, []
        for rule in rules:
            self._budget.spend(states=1)
            symbols = [
                terminals[each.name]
                if isinstance(each, LarkTerminal)
                else width + heads.setdefault(each.name, len(heads))
                for each in rule.expansion
            ]
            plain.append((heads.setdefault(rule.origin.name, len(heads)), symbols))
        productive, num_before = set(range(width)), -1
        while len(productive) != num_before:
            self._budget.check()
            num_before = len(productive)
            productive.update(width + head for head, symbols in plain if productive.issuperset(symbols))
        if width + heads.get(start, -width) not in productive:
            raise GrammarError("the grammar matches no string: its rules never terminate")
        self.names, self.start = list(heads), heads[start]
        return [(head, symbols) for head, symbols in plain if productive.issuperset(symbols)]

    def _nullable_heads(self) -> set[int]:
        """The symbols that may be empty."""
        nullable: set[int] = set()
        num_before = -1
        while len(nullable) != num_before:
            self._budget.check()
            num_before = len(nullable)
            nullable.update(self._width + head for head, symbols in self.rules if nullable.issuperset(symbols))
        return nullable

    def _check_hidden_left_recursion(self) -> None:
        """Refuse rules that can begin with themselves after parts that may be empty: a parser would stack such parts without end."""
        if not self._nullable:
            return
        begins: dict[int, set[int]] = {}
        hidden: set[tuple[int, int]] = set()
        for head, symbols in self.rules:
            for position, symbol in enumerate(symbols):
                if symbol >= self._width:
                    begins.setdefault(self._width + head, set()).add(symbol)
                    if position:
                        hidden.add((self._width + head, symbol))
                if symbol not in self._nullable:
                    break
        reach: dict[int, set[int]] = {}
        for origin, first in hidden:
            if first not in reach:
                seen, todo = {first}, [first]
                while todo:
                    self._budget.spend()
                    for symbol in begins.get(todo.pop(), ()):
                        if symbol not in seen:
                            seen.add(symbol)
                            todo.append(symbol)
                reach[first] = seen
            if origin in reach[first]:
                name = self.names[origin - self._width]
                raise GrammarError(f"Lark grammar: rule {name} can begin with itself after parts that may be empty")

    def _leftmost(self) -> list[int]:
        """For each origin all origins that its texts' derivations begin with, itself included, as bits."""
        begins = [1 << head for head in range(len(self.names))]
        for head, symbols in self.rules:
            if symbols and symbols[0] >= self._width:
                begins[head] |= 1 << symbols[0] - self._width
        for _ in begins:
            has_changed = False
            for head, found in enumerate(begins):
                self._budget.spend()
                joined = _union(begins[each] for each in _bits(found))
                if joined != found:
                    begins[head], has_changed = joined, True
            if not has_changed:
                break
        return begins

    def make_states(self) -> None:
        """The item sets and the moves between them."""
        following, width, begins = self._next, self._width, self._begins
        numbers: dict[tuple[int, ...], int] = {(self._root,): 0}
        self.kernels: list[tuple[int, ...]] = [(self._root,)]
        self.moves: list[dict[int, int]] = []
        self.shifted: list[int] = []
        self._fresh: list[int] = []  # for each state the origins whose rules may begin, as bits
        known: dict[int, dict[int, tuple[int, ...]]] = {}
        state = 0
        while state < len(self.kernels):
            kernel = self.kernels[state]
            fresh = 0
            groups: dict[int, list[int]] = {}
            for item in kernel:
                symbol = following[item]
                if symbol >= 0:
                    groups.setdefault(symbol, []).append(item + 1)
                    if symbol >= width:
                        fresh |= begins[symbol - width]
            self._fresh.append(fresh)
            if fresh not in known:
                known[fresh] = self._begun(fresh)
            begun = known[fresh]
            self._budget.spend(states=1)
            moves: dict[int, tuple[int, ...]] = dict(begun)
            for symbol, items in groups.items():
                moves[symbol] = tuple(sorted([*items, *begun.get(symbol, ())]))
            row, shifted = {}, 0
            for symbol, target in moves.items():
                number = numbers.get(target)
                if number is None:
                    number = numbers[target] = len(self.kernels)
                    self.kernels.append(target)
                row[symbol] = number
                if symbol < width:
                    shifted |= 1 << symbol
            self.moves.append(row)
            self.shifted.append(shifted)
            num_shifts = shifted.bit_count()
            self._budget.spend(num_bytes=_SHIFT_BYTES * num_shifts + _GOTO_BYTES * (len(row) - num_shifts))
            state += 1

    def _begun(self, fresh: int) -> dict[int, tuple[int, ...]]:
        """The kernels after the first symbols of the rules of some origins."""
        groups: dict[int, list[int]] = {}
        for head in _bits(fresh):
            self._budget.spend()
            for rule in self._of_head[head]:
                item = self._firsts[rule]
                if self._next[item] >= 0:
                    groups.setdefault(self._next[item], []).append(item + 1)
        return {symbol: tuple(sorted(items)) for symbol, items in groups.items()}

    def make_look_ahead(self) -> None:
        """Before which terminals each state reduces."""
        width, moves, budget = self._width, self.moves, self._budget
        places: list[dict[int, int]] = []  # for each state the numbers of its moves by origins
        follow: list[int] = []
        for row in moves:
            found = {}
            for symbol, target in row.items():
                if symbol >= width:
                    found[symbol] = len(follow)
                    follow.append(self.shifted[target])
            places.append(found)
        if width + self.start in places[0]:
            follow[places[0][width + self.start]] |= 1 << self.end
        if self._nullable:
            edges: list[list[int]] = [[] for _ in follow]
            for state, found in enumerate(places):
                for symbol, place in found.items():
                    for nullable, later in places[moves[state][symbol]].items():
                        if nullable in self._nullable:
                            edges[later].append(place)
            self._spread(follow, edges)
        ends: list[dict[int, list[int]]] = [
            {} for _ in moves
        ]  # for each state, by rule, the moves that its end completes
        edges = [[] for _ in follow]
        cuts = [self._nullable_from(symbols) for _, symbols in self.rules]
        for state, found in enumerate(places):
            for origin, place in found.items():
                budget.spend()
                for rule in self._of_head[origin - width]:
                    at = state
                    for position, symbol in enumerate(self.rules[rule][1]):
                        if symbol >= width and position >= cuts[rule]:
                            edges[place].append(places[at][symbol])
                        at = moves[at][symbol]
                    ends[at].setdefault(rule, []).append(place)
        self._spread(follow, edges)
        self.look_ahead = [
            {rule: _union(follow[place] for place in completed) for rule, completed in row.items()} for row in ends
        ]

    def _nullable_from(self, symbols: list[int]) -> int:
        """The first position after which all symbols may be empty."""
        at = len(symbols) - 1
        while at > 0 and symbols[at] in self._nullable:
            at -= 1
        return at

    def _spread(self, sets: list[int], edges: list[list[int]]) -> None:
        """Add each set to those that its edges name, until nothing changes."""
        todo = [place for place, targets in enumerate(edges) if targets]
        is_waiting = [bool(targets) for targets in edges]
        num_done = 0
        while todo:
            place = todo.pop()
            is_waiting[place] = False
            added = sets[place]
            num_done += 1
            if num_done % _CHECK_EVERY == 0:
                self._budget.check()
            for target in edges[place]:
                if added & ~sets[target]:
                    sets[target] |= added
                    if edges[target] and not is_waiting[target]:
                        is_waiting[target] = True
                        todo.append(target)

    def row(self, state: int) -> int:
        """The terminals that have an action in a state, as bits."""
        return self.shifted[state] | _union(self.look_ahead[state].values())

    def kernel_items(self) -> Ints:
        """See `ParserTables.kernels`."""
        rule_of, firsts, root = self._rule_of, self._firsts, self._root
        items = [
            (state, rule_of[item], item - (root if item >= root else firsts[rule_of[item]]))
            for state, kernel in enumerate(self.kernels)
            for item in kernel
        ]
        return np.array(items, dtype=np.int32)


def _union(sets: Iterable[int]) -> int:
    found = 0
    for each in sets:
        found |= each
    return found


def _bits(number: int) -> list[int]:
    """The places of the bits that are set, ascending."""
    found = []
    while number:
        low = number & -number
        found.append(low.bit_length() - 1)
        number ^= low
    return found
