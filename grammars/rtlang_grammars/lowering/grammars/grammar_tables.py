"""Lowers a context-free grammar to tables: one automaton over symbols per rule, embedded automata for terminals, calls between them.

Every rule is an expression over symbols. Sets of positions in it become states, whose rows are built on demand: where a terminal or a rule
is allowed, each byte that can start it calls its automaton. Empty rules are skipped when the sets are built, so a called frame always reads
a byte. The machine handles parallel heads, left recursion and ambiguity. There is no lexer: a text is accepted if any split into terminals
parses, as with Lark's Earley parser and its dynamic lexer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache

from rtlang_grammars.lowering.grammars.rules import Frame, NumberedRule, NumberedRules
from rtlang_grammars.lowering.languages.embedding import Embedding
from rtlang_grammars.lowering.languages.raw_text import RawLanguage, raw_embedding
from rtlang_grammars.machine.automaton.json_base_states import BEFORE_TEXT_SLICE
from rtlang_grammars.machine.automaton.layout import (
    ALTERNATIVES,
    CALL_TO,
    ENDS,
    ENDS_OR_GOES_ON,
    NONE,
    OPEN,
    PARAM,
    ROW,
    SLICE,
)
from rtlang_grammars.machine.automaton.tables import Tables
from rtlang_grammars.regular.language import Language
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget


@dataclass(slots=True)
class _State:
    """A subset of positions.

    Attributes:
        following: next states by symbol.
        is_end: the rule may end here.
        number: number of its state in the machine, once it has one.
    """

    following: dict[int, int] = field(default_factory=dict)
    is_end: bool = False
    number: int | None = None


_Set = frozenset[int]
_MAX_LISTED = 64  # symbols that are searched for raw text
_MAX_LOOKED_AT = 4096  # states of a terminal that are inspected


class GrammarTables:
    """Builds the tables of a grammar. Owned by one compile; afterwards it builds rows on demand, under the lock of the tables.

    Attributes:
        tables: the tables under construction.
        starts: known start states by symbol; rules whose states are built elsewhere are entered here.
        never_empty: rules that must not derive the empty text.
        raw: by terminal, raw text (its nonempty texts are the terminal's language, bounds aside).
    """

    def __init__(self, grammar: NumberedRules, tables: Tables, budget: Budget) -> None:
        """Start empty.

        Args:
            tables: where to build; already contain the frames of the grammar.
        """
        self._grammar, self.tables, self._budget = grammar, tables, budget
        self._nullable: set[int] = set()
        self._states: list[list[_State]] = []
        self._embeddings: dict[int, Embedding] = {}
        self._first: dict[int, int] = {}
        self._follow: dict[int, int] = {}
        self.starts: dict[int, int] = {}
        self.never_empty: set[int] = set()
        self.raw: dict[int, RawLanguage] = {}
        self._call_states: dict[tuple[int, int], int] = {}

    def build(self) -> int:
        """Fill the tables; returns the start state.

        Raises:
            GrammarError: no text can be derived, or the budget is used up.
        """
        grammar, tables, budget = self._grammar, self.tables, self._budget
        self._find_nullable()
        for rule in self.never_empty & self._nullable:
            raise GrammarError(f"rule {grammar.rules[rule].name}: must not match the empty string")
        self._states = [self._subsets(rule) for rule in grammar.rules]
        self._join_repeats()
        self._prune()
        start_symbol = -1 - grammar.start
        if not self._states[grammar.start]:
            raise GrammarError(f"rule {grammar.rules[grammar.start].name}: derives no string")
        self._find_first()
        self._find_follow()
        for i, terminal in enumerate(grammar.terminals):
            if i in self.raw:
                self._embeddings[i] = raw_embedding(tables, self.raw[i], _bytes_in(self._follow[i]), budget)
            elif isinstance(terminal, Language):
                is_deterministic = not self._continues(i, terminal)
                automaton = terminal.automaton(budget)
                self._embeddings[i] = Embedding(tables, automaton, is_deterministic=is_deterministic)
        root_acc = ENDS_OR_GOES_ON if grammar.start in self._nullable else OPEN
        calls = {start_symbol: -1}
        return tables.leave_open(lambda number: self._make_row(number, calls), acc=root_acc)

    def is_productive(self, rule: int) -> bool:
        """Whether a rule derives any text."""
        return bool(self._states[rule])

    def leave_call_open(self, symbol: int, to: int) -> int:
        """A state that calls a symbol and returns to `to`."""
        found = self._call_states.get((symbol, to))
        if found is None:
            found = self.tables.leave_open(lambda number: self._make_row(number, {symbol: to}))
            self._note_text(found, (symbol,), may_end=False)
            self._call_states[symbol, to] = found
        return found

    # The automata of the rules

    def _find_nullable(self) -> None:
        """Find the rules that derive the empty text."""
        callers: dict[int, set[int]] = {}
        for i, rule in enumerate(self._grammar.rules):
            for moves in rule.moves:
                for symbol, _ in moves:
                    if symbol < 0:
                        callers.setdefault(-1 - symbol, set()).add(i)
        waiting = set(range(len(self._grammar.rules)))
        while waiting:
            i = waiting.pop()
            self._budget.spend()
            if i not in self._nullable and 1 in self._closure(self._grammar.rules[i], {0}):
                self._nullable.add(i)
                waiting |= callers.get(i, set())

    def _closure(self, rule: NumberedRule, positions: Iterable[int]) -> _Set:
        """The positions that are reachable without reading a byte."""
        found, waiting = set(positions), list(positions)
        while waiting:
            at = waiting.pop()
            following = list(rule.empty[at])
            following += [to for symbol, to in rule.moves[at] if symbol < 0 and -1 - symbol in self._nullable]
            for to in following:
                if to not in found:
                    found.add(to)
                    waiting.append(to)
        return frozenset(found)

    def _subsets(self, rule: NumberedRule) -> list[_State]:
        """The deterministic automaton of a rule over symbols; state 0 is its start and has no predecessors."""
        states = [_State()]
        sets = [self._closure(rule, {0})]
        numbers: dict[_Set, int] = {}
        for at, each in enumerate(sets):  # grows during iteration
            self._budget.spend(states=1)
            states[at].is_end = 1 in each
            moves: dict[int, set[int]] = {}
            for position in each:
                for symbol, to in rule.moves[position]:
                    moves.setdefault(symbol, set()).add(to)
            for symbol, to_positions in moves.items():
                reached = self._closure(rule, to_positions)
                number = numbers.get(reached)
                if number is None:
                    number = numbers[reached] = len(sets)
                    sets.append(reached)
                    states.append(_State())
                states[at].following[symbol] = number
        return states

    def _join_repeats(self) -> None:
        """Match a repeated terminal only once if the concatenation of its texts is a text of it anyway."""
        loops = {
            symbol
            for states in self._states
            for at, state in enumerate(states)
            for symbol, to in state.following.items()
            if to == at and symbol >= 0
        }
        joined = {symbol for symbol in loops if self._is_closed(symbol)}
        for states in self._states:
            for at in range(len(states)):
                for symbol in joined & states[at].following.keys():
                    if states[at].following[symbol] != at:
                        continue
                    rest = {each: to for each, to in states[at].following.items() if each != symbol}
                    states.append(_State(rest, states[at].is_end))
                    for state in states[:-1]:
                        if state.following.get(symbol) == at:
                            state.following[symbol] = len(states) - 1

    def _is_closed(self, terminal: int) -> bool:
        """Whether the concatenation of two texts of a terminal is always another of its texts."""
        language = self._grammar.terminals[terminal]
        if isinstance(language, Frame) or not language.automaton(self._budget).num_states < _MAX_LOOKED_AT:
            return False
        try:
            return language.includes(language.concat(language), self._budget)
        except GrammarError:
            self._budget.check()  # raises if the budget was the cause; otherwise the terminal has a lookbehind
            return False

    def _prune(self) -> None:
        """Remove everything that leads to no text: empty rules, and states from which their rule cannot end."""
        alive_terminals = {
            i
            for i, terminal in enumerate(self._grammar.terminals)
            if isinstance(terminal, Frame) or not terminal.is_empty(self._budget)
        }
        productive: set[int] = set()
        callers: dict[int, set[int]] = {}
        for i, states in enumerate(self._states):
            for state in states:
                for symbol in state.following:
                    if symbol < 0:
                        callers.setdefault(-1 - symbol, set()).add(i)

        def alive_states(i: int) -> set[int]:
            states = self._states[i]
            before: list[list[int]] = [[] for _ in states]
            for at, state in enumerate(states):
                for symbol, to in state.following.items():
                    if symbol in alive_terminals if symbol >= 0 else -1 - symbol in productive:
                        before[to].append(at)
            waiting = [at for at, state in enumerate(states) if state.is_end]
            alive = set(waiting)
            while waiting:
                for at in before[waiting.pop()]:
                    if at not in alive:
                        alive.add(at)
                        waiting.append(at)
            return alive

        pending = set(range(len(self._states)))
        while pending:
            i = pending.pop()
            self._budget.spend()
            if i not in productive and 0 in alive_states(i):
                productive.add(i)
                pending |= callers.get(i, set())
        for i, states in enumerate(self._states):
            alive = alive_states(i) if i in productive else set()
            for state in states:
                state.following = {
                    symbol: to
                    for symbol, to in state.following.items()
                    if to in alive and (symbol in alive_terminals if symbol >= 0 else -1 - symbol in productive)
                }
            if i not in productive:
                self._states[i] = []

    # First and following bytes, as sets of 256 bits

    def _find_first(self) -> None:
        for i, terminal in enumerate(self._grammar.terminals):
            if isinstance(terminal, Frame):
                self._first[i] = _bits(terminal.first)
            else:
                self._first[i] = 0 if terminal.is_empty(self._budget) else _bytes_of(terminal, self._budget)
        callers: dict[int, set[int]] = {}
        for i, states in enumerate(self._states):
            self._first[-1 - i] = 0
            for symbol in states[0].following if states else ():
                callers.setdefault(symbol, set()).add(i)
        waiting = set(range(len(self._states)))
        while waiting:
            i = waiting.pop()
            self._budget.spend()
            found = self._bytes_at(self._states[i][0]) if self._states[i] else 0
            if found != self._first[-1 - i]:
                self._first[-1 - i] = found
                waiting |= callers.get(-1 - i, set())

    def _bytes_at(self, state: _State) -> int:
        """The bytes allowed at a state of a rule, within the rule."""
        found = 0
        for symbol in state.following:
            found |= self._first[symbol]
        return found

    def _find_follow(self) -> None:
        follow = dict.fromkeys(self._first, 0)
        inherits: dict[int, set[int]] = {}
        for i, states in enumerate(self._states):
            for state in states:
                for symbol, to in state.following.items():
                    target = states[to]
                    follow[symbol] |= self._bytes_at(target)
                    if target.is_end:
                        inherits.setdefault(-1 - i, set()).add(symbol)
        waiting = set(inherits)
        while waiting:
            rule = waiting.pop()
            self._budget.spend()
            for symbol in inherits.get(rule, ()):
                if follow[rule] & ~follow[symbol]:
                    follow[symbol] |= follow[rule]
                    if symbol < 0:
                        waiting.add(symbol)
        self._follow = follow

    def _continues(self, terminal: int, language: Language) -> bool:
        """Whether a byte that follows the terminal could also continue it, as far as its first states show."""
        if language.is_empty(self._budget):
            return False
        automaton = language.automaton(self._budget)
        seen, waiting = {automaton.start}, [automaton.start]
        follow = self._follow[terminal]
        while waiting:
            state = waiting.pop()
            row = automaton.row(state)
            if automaton.is_accepting(state) and follow & sum(1 << b for b in (row >= 0).nonzero()[0].tolist()):
                return True
            for target in set(row[row >= 0].tolist()) - seen:
                seen.add(target)
                waiting.append(target)
            if len(seen) > _MAX_LOOKED_AT:
                return True
        return False

    # Rows

    def _number(self, rule: int, at: int) -> int:
        """The machine's state for a state of a rule; negative if the frame can only end there."""
        state = self._states[rule][at]
        if not state.following:
            return -1
        if state.number is None:
            acc = OPEN
            if state.is_end and at > 0:
                acc = ENDS_OR_GOES_ON if self._bytes_at(state) & self._follow[-1 - rule] else ENDS
            state.number = self.tables.leave_open(lambda number: self._make_rule_row(number, rule, at), acc=acc)
            self._note_text(state.number, state.following, may_end=acc != OPEN)
        return state.number

    def _note_text(self, number: int, symbols: Iterable[int], *, may_end: bool) -> None:
        """Note the facts of the raw text that may come in a state, itself or at the beginning of a rule."""
        tables, listed, raw = self.tables, list(symbols), None
        for symbol in listed:  # grows during iteration
            if symbol in self.raw:
                raw = symbol if raw is None or self.raw[raw].last is None else raw
            elif symbol < 0 and len(listed) < _MAX_LISTED and self._states[-1 - symbol]:
                listed += [each for each in self._states[-1 - symbol][0].following if each not in listed]
        if raw is None:
            return
        start = self._start_of(raw)
        facts = tables.texts[tables.state(start, PARAM)]
        others = 0
        for each in listed:
            if each != raw and (each >= 0 or not self._states[-1 - each]):
                others |= self._first[each]
        tables.set_state(number, SLICE, BEFORE_TEXT_SLICE)
        tables.set_state(number, PARAM, len(tables.texts))
        tables.texts.append(replace(facts, start=start, others=None if may_end else _bytes_in(others)))

    def _make_rule_row(self, number: int, rule: int, at: int) -> None:
        state = self._states[rule][at]
        self._make_row(number, {symbol: self._number(rule, to) for symbol, to in state.following.items()})

    def _make_row(self, number: int, calls: dict[int, int]) -> None:
        """Build the row of a state: the symbols that it calls, each with its return state."""
        tables = self.tables
        if len(calls) == 1:
            ((symbol, to),) = calls.items()
            place = tables.add_row()
            tables.rows[place, list(_bytes_in(self._first[symbol]))] = tables.action(
                CALL_TO, self._start_of(symbol), 0, to
            )
            tables.set_state(number, ROW, place)
            return
        values: dict[int, list[int]] = {}
        for symbol, to in calls.items():
            first = self._first[symbol]
            value = tables.action(CALL_TO, self._start_of(symbol), 0, to)
            while first:
                byte = (first & -first).bit_length() - 1
                first &= first - 1
                values.setdefault(byte, []).append(value)
        made: dict[tuple[int, ...], int] = {}
        place = tables.add_row()
        row = tables.rows[place]
        row[:] = NONE
        for byte, each in values.items():
            key = tuple(each)
            if key not in made:
                made[key] = each[0] if len(each) == 1 else tables.action(ALTERNATIVES, len(each), *each)
            row[byte] = made[key]
        tables.set_state(number, ROW, place)

    def _start_of(self, symbol: int) -> int:
        found = self.starts.get(symbol)
        if found is None:
            terminal = self._grammar.terminals[symbol] if symbol >= 0 else None
            if isinstance(terminal, Frame):
                found = terminal.start
            else:
                found = self._number(-1 - symbol, 0) if symbol < 0 else self._embeddings[symbol].start()
            self.starts[symbol] = found
        return found


def _bits(first: bytes) -> int:
    return sum(1 << byte for byte in set(first))


@lru_cache(maxsize=256)
def _bytes_in(bits: int) -> bytes:
    return bytes(byte for byte in range(256) if bits >> byte & 1)


def _bytes_of(language: Language, budget: Budget) -> int:
    automaton = language.automaton(budget)
    row = automaton.row(automaton.start)
    return sum(1 << byte for byte in (row >= 0).nonzero()[0].tolist())
