"""The lexer of a grammar as one automaton over bytes: ordered threads of terminals, determinized for each set of terminals in context.

A state is a list of threads. A match counts one symbol late: `winners[state, class of the next symbol]` is the terminal that ends there,
so look-ahead sees what really follows. Two ways to choose between terminals:

- longest: the longest match wins; among equally long ones the higher priority, then literals before expressions, then lark's order;
- lark: as lark's scanner, one alternation of Python's `re`: the first terminal in its order that matches at all, with the length that its
  expression prefers. A literal that an expression of the same priority matches in full is found by that expression and renamed.

Both are decided while states are made, by cutting threads at a match (as leftmost-first automata do, RE2); nothing is searched later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.context_free.lark_source import Terminal
from rtlang_grammars.context_free.lexing.indentation import NUM_COLUMNS, Columns
from rtlang_grammars.context_free.lexing.terminal_threads import END, Ahead, Behind, Match, Program, Read, Split
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

_ALL_TERMINALS = -1

_Sides = tuple[tuple[int, int, tuple[int, ...]], ...]

_State = tuple[tuple[int, ...], _Sides, int, int]
"""Threads; literals that may rename an expression (literal, expression, the literal's own threads); the last byte, -2 at the start; the
column of the newline terminal, NUM_COLUMNS where it does not matter."""

_Row = tuple[list[tuple[tuple[int, ...], _Sides, int] | None], list[int], list[int]]


def in_order(terminals: Iterable[Terminal], *, is_lark: bool) -> tuple[Terminal, ...]:
    """Terminals by who wins."""
    by_lark = sorted(terminals, key=lambda each: (-each.priority, -each.max_width, -each.num_chars, each.name))
    if is_lark:
        return tuple(by_lark)
    return tuple(sorted(by_lark, key=lambda each: (-each.priority, each.text is None)))


class LexerAutomaton:
    """The automaton, grown by one context at a time.

    Attributes:
        num_classes: classes of symbols, the bytes and END.
        classes: int32 [257], the class of each symbol.
        end_class: that of END, which it does not share.
        class_sizes: how many symbols each class has.
        first_bytes: a byte of each class, a letter, digit or blank if there is one; b"" for that of END.
        following: int32 [num_states, num_classes], -1 where no terminal goes on.
        winners: int32 as `following`, the terminal that ends before a symbol, -1.
        num_behind: int32 as `following`, how many bytes ago it ended.
        wins: for each state, pairs (terminal, classes before which it can still end, as bits).
        is_start: for each state, whether no byte of a lexeme has been read.
        is_sure: for each state, whether a match ends there whatever follows.
        pending: for each state inside look-ahead, pairs (terminal, how many bytes ago it ended if the look-ahead holds).
        firsts: for each terminal, the classes with which it can begin, as bits.
        is_counted: for each state, whether it is at a column of the newline terminal.
        column_sets: sets of columns as bits. The newline terminal in `wins` is num_numbers + 1 + the place of the columns that it may have.
        num_numbers: numbers of terminals, those of columns and of declared terminals included.
    """

    def __init__(
        self,
        terminals: Sequence[Terminal],
        budget: Budget,
        *,
        is_lark: bool,
        ignored: frozenset[int] = frozenset(),
        columns: Columns | None = None,
    ) -> None:
        """Compile terminals, given by who wins.

        Args:
            ignored: numbers of terminals, which are those of `indentation.numbered`.
            columns: the indentation; None: terminals are numbered as given.
        """
        self._columns, self._num_skipped = columns, 0 if columns is None else NUM_COLUMNS
        self.num_numbers = len(terminals) if columns is None else columns.dedent + 1
        self._ignored = frozenset(self._place(number) for number in ignored)
        self.budget, self._terminals, self._is_lark = budget, terminals, is_lark
        self._program = Program(terminals, budget, keeps_order=is_lark)
        self._closures: dict[tuple[int, int], tuple[int, ...]] = {}
        self._set_classes()
        self._homes = self._literal_homes() if is_lark else {}
        self._numbers: dict[_State, int] = {}
        self._states: list[_State] = []
        self.following: NDArray[np.int32] = np.zeros((0, self.num_classes), dtype=np.int32)
        self.winners = self.num_behind = self.following
        self.wins: list[frozenset[tuple[int, int]]] = []
        self.is_counted: list[bool] = []
        self.column_sets: list[int] = [(1 << NUM_COLUMNS) - 1]
        self._raw_rows: dict[tuple[tuple[int, ...], _Sides, int], _Row] = {}
        self._counts = self._counting() if columns is not None else set()
        self.is_start: list[bool] = []
        self.is_sure: list[bool] = []
        self.pending: list[frozenset[tuple[int, int]]] = []
        firsts = [self._first_classes(entry) for entry in self._program.entries]
        self.firsts = [firsts[each] if each >= 0 else 0 for each in map(self._place, range(self.num_numbers))]

    def start(self, terminals: Iterable[int]) -> int:
        """The state before the first byte of a lexeme, for the terminals that may come; makes all states behind it."""
        main, sides = [], []
        present = sorted({place for number in terminals if (place := self._place(number)) >= 0})
        for number in present:
            homes = [each for each in self._homes.get(number, ()) if each[0] in present]
            own = self._closure(self._program.entries[number], -1)
            sides += [(number, home, own) for home, _ in homes if home not in self._ignored]
            if not any(is_replaced for _, is_replaced in homes):
                main.append(number)
        threads = dict.fromkeys(at for number in main for at in self._closure(self._program.entries[number], -1))
        num_before = len(self.is_start)
        found = self._number((tuple(threads), tuple(sides), -2, NUM_COLUMNS))
        try:
            self._grow()
        except (GrammarError, RecursionError) as error:  # as if nothing had been asked for
            for state in self._states[num_before:]:
                del self._numbers[state]
            del self._states[num_before:], self.is_start[num_before:], self.is_sure[num_before:]
            del self.pending[num_before:], self.wins[num_before:], self.is_counted[num_before:]
            self.following, self.winners = self.following[:num_before], self.winners[:num_before]
            self.num_behind = self.num_behind[:num_before]
            if isinstance(error, RecursionError):
                raise GrammarError("too complex: look-ahead is nested too deeply") from None
            raise
        return found

    def _place(self, number: int) -> int:
        """Where a terminal stands among the given ones; -1 for those that have no pattern."""
        if self._columns is None or number <= self._columns.newline:
            return number
        if number >= self._columns.indent:
            return -1
        return self._columns.newline if self._columns.is_newline(number) else number - self._num_skipped

    def _numbers_at(self, places: list[int], column: int) -> list[int]:
        """The numbers of terminals that end at a column."""
        if self._columns is None:
            return places
        newline = self._columns.newline
        return [
            each if each < newline else newline + column if each == newline else each + self._num_skipped
            for each in places
        ]

    def _counting(self) -> set[int]:
        """The instructions of the newline terminal from which it can match before a line break."""
        assert self._columns is not None
        code = self._program.code
        found = {
            at
            for at, instruction in enumerate(code)
            if isinstance(instruction, Match) and instruction.terminal == self._columns.newline
        }
        has_changed = True
        while has_changed:
            has_changed = False
            for at, instruction in enumerate(code):
                if at in found or self._program.owners[at] != self._columns.newline:
                    continue
                if isinstance(instruction, Split):
                    is_found = not found.isdisjoint(instruction.targets)
                else:
                    is_line_break = isinstance(instruction, Read) and instruction.symbols == 1 << 10
                    is_found = not isinstance(instruction, Match) and not is_line_break and instruction.to in found
                if is_found:
                    found.add(at)
                    has_changed = True
        return found

    def _column_after(self, column: int, symbol: int, threads: tuple[int, ...], sides: _Sides) -> int:
        """The column after a symbol, NUM_COLUMNS where none of the threads needs it."""
        if self._columns is None:
            return NUM_COLUMNS
        if self._counts.isdisjoint(threads) and all(self._counts.isdisjoint(own) for _, _, own in sides):
            return NUM_COLUMNS
        return self._columns.after(column, symbol)

    def _first_classes(self, entry: int) -> int:
        found = 0
        todo = [(at, (1 << END) - 1) for at in self._closure(entry, -1)]
        seen: dict[int, int] = {}
        while todo:
            at, allowed = todo.pop()
            allowed &= ~seen.get(at, 0)
            if not allowed:
                continue
            seen[at] = seen.get(at, 0) | allowed
            self.budget.spend()
            instruction = self._program.code[at]
            if isinstance(instruction, Read):
                for symbol_class, symbol in enumerate(self._symbols):
                    found |= (instruction.symbols & allowed) >> symbol & 1 and 1 << symbol_class
            elif isinstance(instruction, Ahead):
                todo += [(each, allowed & instruction.symbols) for each in self._closure(instruction.to, -1)]
        return found

    def _matches(self, terminal: int, text: bytes) -> bool:
        """Whether the match of a terminal that Python's `re` prefers at the start of a text is all of it."""
        self.budget.spend()
        last, best = -1, -1
        threads = self._closure(self._program.entries[terminal], -1)
        for at in range(len(text) + 1):
            symbol = text[at] if at < len(text) else END
            reached: list[dict[int, None]] = [{}]
            winners, behind = [-1], [0]
            self._follow(threads, [0], last, reached, winners, behind, [set()], [{}], symbol)
            if winners[0] >= 0:
                best = at - behind[0]
            threads, last = tuple(reached[0]), symbol
            if not threads:
                break
        return best == len(text)

    def _literal_homes(self) -> dict[int, list[tuple[int, bool]]]:
        """For each literal the expressions of its priority that match all of it, and whether they stand for it: they have its flags."""
        homes: dict[int, list[tuple[int, bool]]] = {}
        for number, literal in enumerate(self._terminals):
            for other, expression in enumerate(self._terminals):
                if literal.text is None or expression.text is not None or expression.priority != literal.priority:
                    continue
                if self._matches(other, literal.text.encode()):
                    is_replaced = set(literal.flags) <= set(expression.flags)
                    homes.setdefault(number, []).append((other, is_replaced))
        return homes

    def _set_classes(self) -> None:
        sets = {1 << END} | ({1 << 9, 1 << 10, 1 << 32} if self._columns is not None else set())
        for instruction in self._program.code:
            if isinstance(instruction, Read | Ahead | Behind):
                sets.add(instruction.symbols)
        signatures: dict[int, int] = {}
        columns = np.zeros((len(sets), END + 1), dtype=np.uint8)
        for row, symbols in enumerate(sets):
            data = symbols.to_bytes(33, "little")
            columns[row] = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")[: END + 1]
        self.classes: NDArray[np.int32] = np.zeros(END + 1, dtype=np.int32)
        self._symbols: list[int] = []
        keys = np.packbits(columns, axis=0).T
        for symbol in range(END + 1):
            key = int.from_bytes(keys[symbol].tobytes(), "little")
            if key not in signatures:
                signatures[key] = len(signatures)
                self._symbols.append(symbol)
            self.classes[symbol] = signatures[key]
        self.num_classes = len(signatures)
        code = self._program.code
        self._has_behind = any(isinstance(each, Behind) for each in code)
        known: dict[int, list[int]] = {}
        self._classes_of: list[list[int]] = []
        for instruction in code:
            symbols = instruction.symbols if isinstance(instruction, Read | Ahead) else 0
            if symbols not in known:
                known[symbols] = [i for i, symbol in enumerate(self._symbols) if symbols >> symbol & 1]
            self._classes_of.append(known[symbols])
        self.end_class = int(self.classes[END])
        self.class_sizes: list[int] = np.bincount(self.classes).tolist()
        self.first_bytes = [b"" if symbol == END else bytes([symbol]) for symbol in self._symbols]
        for symbol in b"0 a":
            self.first_bytes[self.classes[symbol]] = bytes([symbol])

    def _closure(self, at: int, last: int) -> tuple[int, ...]:
        """The instructions that read, look ahead or match, reached from one without reading, in order. last: the byte before; -1: none."""
        found = self._closures.get((at, last))
        if found is None:
            out, todo, seen = [], [at], set()
            while todo:
                place = todo.pop()
                if place in seen:
                    continue
                seen.add(place)
                instruction = self._program.code[place]
                if isinstance(instruction, Split):
                    todo += reversed(instruction.targets)
                elif isinstance(instruction, Behind):
                    if last >= 0 and instruction.symbols >> last & 1:
                        todo.append(instruction.to)
                else:
                    out.append(place)
            found = self._closures[at, last] = tuple(out)
        return found

    def _number(self, state: _State) -> int:
        found = self._numbers.get(state)
        if found is None:
            found = self._numbers[state] = len(self._states)
            self._states.append(state)
        return found

    def _grow(self) -> None:
        """Make the rows of all states that have none."""
        first = len(self.is_start)
        rows, winners, behind = [], [], []
        done = first
        while done < len(self._states):
            self.budget.spend(states=1, num_bytes=12 * self.num_classes)
            threads, sides, last, column = self._states[done]
            raw = self._raw_rows.get((threads, sides, last)) or self._row(threads, sides, last)
            if column < NUM_COLUMNS:
                self._raw_rows[threads, sides, last] = raw
            targets, winner_row, behind_row = raw
            rows.append(
                [
                    -1 if each is None else self._number((*each, self._column_after(column, symbol, each[0], each[1])))
                    for each, symbol in zip(targets, self._symbols, strict=True)
                ]
            )
            winners.append(self._numbers_at(winner_row, column))
            behind.append(behind_row)
            self.is_counted.append(column < NUM_COLUMNS)
            self.is_start.append(last == -2)
            self.is_sure.append(min(winner_row) >= 0 and not any(behind_row))
            done += 1
        if not rows:
            return
        self.following = np.vstack([self.following, np.array(rows, dtype=np.int32)])
        self.winners = np.vstack([self.winners, np.array(winners, dtype=np.int32)])
        self.num_behind = np.vstack([self.num_behind, np.array(behind, dtype=np.int32)])
        self._add_pending(first)
        self._add_wins(first)

    def _add_wins(self, first: int) -> None:
        """What can still win from each new state: a fixed point over the states behind it."""
        count = len(self._states) - first
        enders: list[dict[int, int]] = []
        before: list[list[int]] = [[] for _ in range(count)]
        for index in range(count):
            own: dict[int, int] = {}
            row = zip(
                *(each[first + index].tolist() for each in (self.winners, self.num_behind, self.following)), strict=True
            )
            for symbol_class, (winner, behind, target) in enumerate(row):
                if winner >= 0 and not behind and not self._goes_on(self._symbols[symbol_class], target):
                    own[winner] = own.get(winner, 0) | 1 << symbol_class
                for terminal, num_bytes in self.pending[target] if target >= 0 else ():
                    if num_bytes == 1:
                        own[terminal] = own.get(terminal, 0) | 1 << symbol_class
            if self._columns is not None:  # from here on, -1 - classes: columns at which the newline ends before these classes
                for terminal in [each for each in own if self._columns.is_newline(each)]:
                    key = -1 - own.pop(terminal)
                    own[key] = own.get(key, 0) | 1 << terminal - self._columns.newline
            enders.append(own)
            for target in set(self.following[first + index].tolist()) - {-1}:
                if target >= first:
                    before[target - first].append(index)
                else:
                    for terminal, classes in self.wins[target]:
                        if terminal > self.num_numbers:
                            terminal, classes = -1 - classes, self.column_sets[terminal - self.num_numbers - 1]
                        own[terminal] = own.get(terminal, 0) | classes
        todo = list(range(count))
        while todo:
            index = todo.pop()
            for source in before[index]:
                into, has_changed = enders[source], False
                for terminal, classes in enders[index].items():
                    old = into.get(terminal, 0)
                    if classes & ~old:
                        into[terminal] = old | classes
                        has_changed = True
                if has_changed:
                    todo.append(source)
        self.wins += [frozenset(self._win(*pair) for pair in each.items()) for each in enders]

    def _goes_on(self, symbol: int, target: int) -> bool:
        """Whether a longer match is sure behind a symbol, which may begin a character."""
        if target < 0 or self.is_sure[target] or symbol < 0xC2:
            return target >= 0 and self.is_sure[target]
        states, bytes_left = {target}, 1 if symbol < 0xE0 else 2 if symbol < 0xF0 else 3
        low, high = {0xE0: (0xA0, 0xBF), 0xED: (0x80, 0x9F), 0xF0: (0x90, 0xBF), 0xF4: (0x80, 0x8F)}.get(
            symbol, (0x80, 0xBF)
        )
        while bytes_left and -1 not in states:
            classes = sorted(set(self.classes[low : high + 1].tolist()))
            states = set(self.following[sorted(states)][:, classes].ravel().tolist())
            low, high, bytes_left = 0x80, 0xBF, bytes_left - 1
        return -1 not in states and all(self.is_sure[state] for state in states)

    def _win(self, terminal: int, classes: int) -> tuple[int, int]:
        if terminal >= 0:
            return terminal, classes
        if classes not in self.column_sets:
            self.column_sets.append(classes)
        return self.num_numbers + 1 + self.column_sets.index(classes), -1 - terminal

    def _add_pending(self, first: int) -> None:
        """Which terminals may have ended before each new state: a fixed point, as far back as the longest look-ahead."""
        self.pending += [frozenset()] * (len(self._states) - first)
        if not self.num_behind[first:].any():
            return
        has_changed = True
        while has_changed:
            has_changed = False
            for state in range(len(self._states) - 1, first - 1, -1):
                pairs = zip(self.winners[state].tolist(), self.num_behind[state].tolist(), strict=True)
                found = {(terminal, num_bytes) for terminal, num_bytes in pairs if num_bytes}
                for target in set(self.following[state].tolist()) - {-1}:
                    found |= {
                        (terminal, num_bytes - 1) for terminal, num_bytes in self.pending[target] if num_bytes > 1
                    }
                if len(found) > len(self.pending[state]):
                    self.pending[state], has_changed = frozenset(found), True

    def _row(self, threads: tuple[int, ...], sides: _Sides, last: int) -> _Row:
        """For each class the next state without its column, the terminal that ends before it, and how many bytes ago it ended."""
        count, end_class = self.num_classes, self.end_class
        reached: list[dict[int, None]] = [{} for _ in range(count)]
        winners, behind = [-1] * count, [0] * count
        cuts: list[set[int]] = [set() for _ in range(count)]  # terminals whose later threads no longer count
        seen: list[dict[int, None]] = [{} for _ in range(count)]
        self._follow(threads, range(count), last, reached, winners, behind, cuts, seen)
        if self._is_lark and sides:
            winners = [each if each < 0 else self._renamed(each, sides) for each in winners]
        row: list[tuple[tuple[int, ...], _Sides, int] | None] = [None] * count
        for symbol_class, found in enumerate(reached):
            if found and symbol_class != end_class:
                symbol = self._symbols[symbol_class]
                left = []
                for literal, home, own in sides:
                    following = tuple(
                        dict.fromkeys(
                            each
                            for at in own
                            if isinstance(instruction := self._program.code[at], Read)
                            and instruction.symbols >> symbol & 1
                            for each in self._closure(instruction.to, -1)
                        )
                    )
                    if following:
                        left.append((literal, home, following))
                row[symbol_class] = tuple(found), tuple(left), symbol if self._has_behind else -1
        return row, winners, behind

    def _follow(
        self,
        threads: Iterable[int],
        classes: Iterable[int],
        last: int,
        reached: list[dict[int, None]],
        winners: list[int],
        behind: list[int],
        cuts: list[set[int]],
        seen: list[dict[int, None]],
        symbol_given: int = -1,
    ) -> None:
        """Run threads, in order, before the symbols of some classes, or before one symbol, which is then class 0.

        seen: for each class the look-ahead passed so far.
        """
        code, owners, is_ordered = self._program.code, self._program.owners, self._program.is_ordered
        before = set(classes)
        self.budget.spend()
        for at in threads:
            instruction = code[at]
            if isinstance(instruction, Read):
                for symbol_class in self._classes_before(at, before, symbol_given):
                    if not (cuts[symbol_class] & {owners[at], _ALL_TERMINALS}):
                        symbol = symbol_given if symbol_given >= 0 else self._symbols[symbol_class]
                        symbol = symbol if self._has_behind else -1
                        reached[symbol_class].update(dict.fromkeys(self._closure(instruction.to, symbol)))
            elif isinstance(instruction, Ahead):
                fitting = [each for each in self._classes_before(at, before, symbol_given) if at not in seen[each]]
                for each in fitting:
                    seen[each][at] = None
                if fitting:
                    self._follow(
                        self._closure(instruction.to, last),
                        fitting,
                        last,
                        reached,
                        winners,
                        behind,
                        cuts,
                        seen,
                        symbol_given,
                    )
            elif isinstance(instruction, Match):
                terminal, num_behind = instruction
                for symbol_class in before:
                    cut, winner = cuts[symbol_class], winners[symbol_class]
                    if terminal in cut or _ALL_TERMINALS in cut:
                        continue
                    if winner < 0 or (num_behind, terminal) < (behind[symbol_class], winner):
                        winners[symbol_class], behind[symbol_class] = terminal, num_behind
                    if self._is_lark:
                        cut.add(_ALL_TERMINALS)
                    elif is_ordered[terminal]:
                        cut.add(terminal)

    def _classes_before(self, at: int, before: set[int], symbol: int) -> list[int]:
        """The classes among some before which an instruction goes on."""
        if symbol >= 0:
            instruction = self._program.code[at]
            return [0] if isinstance(instruction, Read | Ahead) and instruction.symbols >> symbol & 1 else []
        return [each for each in self._classes_of[at] if each in before]

    def _renamed(self, terminal: int, sides: _Sides) -> int:
        """The literal that has the text of an expression, or the expression."""
        for literal, home, own in sides:
            if home == terminal and any(isinstance(self._program.code[each], Match) for each in own):
                return literal
        return terminal
