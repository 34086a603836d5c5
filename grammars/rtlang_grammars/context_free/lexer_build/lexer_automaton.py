"""The lexer of a grammar as one automaton over bytes: ordered threads of terminals, determinized for each set of terminals in context.

A state is a list of threads. A match counts one symbol late: `winners[state, class of the next symbol]` is the terminal that ends there,
so look-ahead sees what really follows. Two ways to choose between terminals:

- longest: the longest match wins; among equally long ones the higher priority, then literals before expressions, then lark's order;
- lark: as lark's scanner, one alternation of Python's `re`: the first terminal in its order that matches at all, with the length that its
  expression prefers. A literal that an expression of the same priority matches in full is found by that expression and renamed.

Both are decided while states are made, by cutting threads at a match (as leftmost-first automata do, RE2); nothing is searched later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.context_free.lark_source import SourceTerminal
from rtlang_grammars.context_free.lexer_build.indentation import NUM_COLUMNS, Columns
from rtlang_grammars.context_free.lexer_build.terminal_programs.instructions import END, Read, Split, TerminalMatch
from rtlang_grammars.context_free.lexer_build.terminal_programs.terminal_threads import TerminalProgram
from rtlang_grammars.context_free.lexer_build.terminal_programs.thread_steps import ThreadSteps
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

_Sides = tuple[tuple[int, int, tuple[int, ...]], ...]

Win = tuple[int, int, int]
"""A terminal, the classes before which it can end, as bits, and those of them before which no terminal goes on, so that it surely ends."""

_State = tuple[tuple[int, ...], _Sides, int, int]
"""Threads; literals that may rename an expression (literal, expression, the literal's own threads); the last byte, -2 at the start; the
column of the newline terminal, NUM_COLUMNS where it does not matter."""


class _Part(NamedTuple):
    """What a state does before some classes, given as bits.

    Attributes:
        target: the next state, -1.
        winner, num_behind: the terminal that ends, -1, and how many bytes ago.
    """

    classes: int
    target: int
    winner: int
    num_behind: int


def in_order(terminals: Iterable[SourceTerminal], *, is_lark: bool) -> tuple[SourceTerminal, ...]:
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
        end_class: the class of END alone.
        class_sizes: how many symbols each class has.
        first_bytes: a byte of each class, a letter, digit or blank if there is one; b"" for END.
        following: int32 [num_states, num_classes], -1 where no terminal goes on.
        winners: int32 as `following`, the terminal that ends before a symbol, -1.
        num_behind: int32 as `following`, how many bytes ago it ended.
        wins: for each state, triples (terminal, classes before which it can still end, those of them before which no terminal goes on).
        is_start: for each state, whether no byte of a lexeme has been read.
        is_sure: for each state, whether a match ends there whatever follows.
        pending: for each state inside look-ahead, pairs (terminal, how many bytes ago it ended if the look-ahead holds).
        firsts: for each terminal, the classes with which it can begin, as bits.
        column_sets: sets of columns as bits. The newline terminal in `wins` is num_numbers + 1 + the place of the columns that it may have.
        num_numbers: numbers of terminals, columns and declared terminals included.
        expiries: for each state, after how many tokens of its lexeme a budget is used up, and the state then; 0 and -1 without a budget.
        lists: empty: one terminal ends at a place, see `anywhere_automaton`.
    """

    def __init__(
        self,
        terminals: Sequence[SourceTerminal],
        budget: Budget,
        *,
        is_lark: bool,
        ignored: frozenset[int] = frozenset(),
        columns: Columns | None = None,
    ) -> None:
        """Compile terminals, given by who wins.

        Args:
            ignored: numbers of terminals, as given by `indentation.numbered`.
            columns: the indentation; None: terminals are numbered as given.
        """
        self._columns, self._num_skipped = columns, 0 if columns is None else NUM_COLUMNS
        self.num_numbers = len(terminals) if columns is None else columns.dedent + 1
        self._ignored = frozenset(self._place(number) for number in ignored)
        self.budget, self._terminals = budget, terminals
        self._program = TerminalProgram(terminals, budget, keeps_order=is_lark)
        steps = self._steps = ThreadSteps(
            self._program, budget, is_lark=is_lark, own_classes=() if columns is None else (9, 10, 32)
        )
        self.classes, self.num_classes, self.end_class = steps.classes, steps.num_classes, steps.end_class
        self.class_sizes, self.first_bytes = steps.class_sizes, steps.first_bytes
        self._homes = self._literal_homes() if is_lark else {}
        self._numbers: dict[_State, int] = {}
        self._states: list[_State] = []
        self.following: NDArray[np.int32] = np.zeros((0, self.num_classes), dtype=np.int32)
        self.winners = self.num_behind = self.following
        self.wins: list[frozenset[Win]] = []
        self.column_sets: list[int] = [(1 << NUM_COLUMNS) - 1]
        self._known_parts: dict[tuple[tuple[int, ...], int], list[tuple[int, tuple[int, ...], int, int]]] = {}
        self._counts = self._counting() if columns is not None else set()
        self.lists: list[int] = []
        self.is_start: list[bool] = []
        self.is_sure: list[bool] = []
        self.pending: list[frozenset[tuple[int, int]]] = []
        self.expiries: list[tuple[int, int]] = []
        firsts = [self._steps.first_classes(entry) for entry in self._program.entries]
        self.firsts = [firsts[each] if each >= 0 else 0 for each in map(self._place, range(self.num_numbers))]

    @property
    def renames(self) -> bool:
        """Whether an expression may find the text of a literal, which then is that literal."""
        return bool(self._homes)

    def start(self, terminals: Iterable[int]) -> int:
        """The state before the first byte of a lexeme, for the terminals that may come; makes all states after it."""
        return self.starts([terminals])[0]

    def starts(self, contexts: Iterable[Iterable[int]]) -> list[int]:
        """`start` of several sets of terminals."""
        num_before = len(self.is_start)
        found = [self._number(self._begun(sorted({*map(self._place, each)} - {-1}))) for each in contexts]
        try:
            self._grow()
        except (GrammarError, RecursionError) as error:  # as if nothing had been asked for
            for state in self._states[num_before:]:
                del self._numbers[state]
            del self._states[num_before:], self.is_start[num_before:], self.is_sure[num_before:]
            del self.pending[num_before:], self.wins[num_before:], self.expiries[num_before:]
            if isinstance(error, RecursionError):
                raise GrammarError("too complex: look-ahead is nested too deeply") from None
            raise
        return found

    def _begun(self, terminals: list[int]) -> _State:
        main, sides = [], []
        for number in terminals:
            homes = [each for each in self._homes.get(number, ()) if each[0] in terminals]
            own = self._steps.closure(self._program.entries[number], -1)
            sides += [(number, home, own) for home, _ in homes if home not in self._ignored]
            if not any(is_replaced for _, is_replaced in homes):
                main.append(number)
        threads = dict.fromkeys(at for number in main for at in self._steps.closure(self._program.entries[number], -1))
        return tuple(threads), tuple(sides), -2, NUM_COLUMNS

    def _place(self, number: int) -> int:
        """Where a terminal stands among the given ones; -1 for those that have no pattern."""
        if self._columns is None or number <= self._columns.newline:
            return number
        if number >= self._columns.indent:
            return -1
        return self._columns.newline if self._columns.is_newline(number) else number - self._num_skipped

    def _number_at(self, place: int, column: int) -> int:
        """The number of a terminal that ends at a column."""
        if self._columns is None or place < self._columns.newline:
            return place
        return place + (column if place == self._columns.newline else NUM_COLUMNS)

    def _counting(self) -> set[int]:
        """The instructions of the newline terminal from which it can match before a line break."""
        assert self._columns is not None
        code = self._program.code
        found = {
            at
            for at, instruction in enumerate(code)
            if isinstance(instruction, TerminalMatch) and instruction.terminal == self._columns.newline
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
                    is_found = (
                        not isinstance(instruction, TerminalMatch) and not is_line_break and instruction.to in found
                    )
                if is_found:
                    found.add(at)
                    has_changed = True
        return found

    def _counted(self, classes: int, threads: tuple[int, ...], sides: _Sides, column: int) -> Iterator[tuple[int, int]]:
        """Classes in parts that lead to the same column, and the column after them, NUM_COLUMNS where none of the threads needs it."""
        if self._columns is not None and not (
            self._counts.isdisjoint(threads) and all(self._counts.isdisjoint(own) for _, _, own in sides)
        ):
            for symbol in (9, 10, 32):
                part = 1 << int(self.classes[symbol])
                if classes & part:
                    yield part, self._columns.after(column, symbol)
                    classes &= ~part
        else:
            column = NUM_COLUMNS
        if classes:
            yield classes, column

    def _matches(self, terminal: int, text: bytes) -> bool:
        """Whether the match of a terminal that Python's `re` prefers at the start of a text is all of it."""
        self.budget.spend()
        last, best = -1, -1
        threads = self._steps.closure(self._program.entries[terminal], -1)
        for at in range(len(text) + 1):
            symbol = text[at] if at < len(text) else END
            ((_, threads, winner, num_behind),) = self._steps.divided(threads, 1 << int(self.classes[symbol]), last)
            if winner >= 0:
                best = at - num_behind
            last = symbol
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

    def _number(self, state: _State) -> int:
        found = self._numbers.get(state)
        if found is None:
            found = self._numbers[state] = len(self._states)
            self._states.append(state)
        return found

    def _grow(self) -> None:
        """Make the rows of all states that have none."""
        first = len(self.is_start)
        parts: list[list[_Part]] = []
        while first + len(parts) < len(self._states):
            self.budget.spend(states=1, num_bytes=12 * self.num_classes)
            state = self._states[first + len(parts)]
            row = self._parts(*state)
            parts.append(row)
            self.expiries.append(self._expiry(state))
            self.is_start.append(state[2] == -2)
            is_won = _union(part.classes for part in row if part.winner >= 0 and not part.num_behind)
            self.is_sure.append(is_won == self._steps.all_classes)
        if not parts:
            return
        cells = [(index, *part) for index, row in enumerate(parts) for part in row]
        columns = [self._steps.members(part[1]) for part in cells]
        places = np.repeat([part[0] for part in cells], [len(each) for each in columns]), np.concatenate(columns)
        tables = np.empty((3, len(parts), self.num_classes), dtype=np.int32)
        for table, column in zip(tables, (2, 3, 4), strict=True):
            table[places] = np.repeat([part[column] for part in cells], [len(each) for each in columns])
        self._add_pending(first, parts)
        self._add_wins(first, parts)
        self.following = np.vstack([self.following, tables[0]])
        self.winners = np.vstack([self.winners, tables[1]])
        self.num_behind = np.vstack([self.num_behind, tables[2]])

    def _expiry(self, state: _State) -> tuple[int, int]:
        """See `expiries`."""
        threads, sides, last, column = state
        expired, owners, most = self._program.expired, self._program.owners, self._program.max_tokens
        budget = min((most[owners[at]] for at in threads if at in expired), default=0)
        if not budget or last == -2:
            return 0, -1
        is_over = [at in expired and most[owners[at]] == budget for at in threads]
        steps = [
            self._steps.closure(expired[at], -1) if over else (at,) for at, over in zip(threads, is_over, strict=True)
        ]
        reached = dict.fromkeys(each for step in steps for each in step)
        return budget, self._number((tuple(reached), sides, last, column))

    def _add_wins(self, first: int, parts: list[list[_Part]]) -> None:
        """The terminals that can still win from each new state: a fixed point over the states after it.

        Classes are bits twice: those before which a terminal can end, then those before which it surely ends.
        """
        enders: list[dict[int, int]] = []
        before: list[list[int]] = [[] for _ in parts]
        width = self.num_classes
        for index, row in enumerate(parts):
            own: dict[int, int] = {}
            for classes, target, winner, behind in row:
                if winner >= 0 and not behind and not self._goes_on(classes, target, first, parts):
                    own[winner] = own.get(winner, 0) | classes | (classes << width if target < 0 else 0)
                for terminal, num_bytes in self.pending[target] if target >= 0 else ():
                    if num_bytes == 1:
                        own[terminal] = own.get(terminal, 0) | classes
            if (
                self._columns is not None
            ):  # from here on, -1 - classes: columns at which the newline ends before these classes
                for terminal in [each for each in own if self._columns.is_newline(each)]:
                    key = -1 - own.pop(terminal)
                    own[key] = own.get(key, 0) | 1 << terminal - self._columns.newline
            enders.append(own)
            for target in {part.target for part in row} | {self.expiries[first + index][1]}:
                if target < 0:
                    continue
                if target >= first:
                    before[target - first].append(index)
                else:
                    for terminal, ends, sure in self.wins[target]:
                        ends |= sure << width
                        if terminal > self.num_numbers:
                            terminal, ends = -1 - ends, self.column_sets[terminal - self.num_numbers - 1]
                        own[terminal] = own.get(terminal, 0) | ends
        todo = list(range(len(parts)))
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

    def _goes_on(self, classes: int, target: int, first: int, parts: list[list[_Part]]) -> bool:
        """Whether a longer match is sure after some classes: those that begin a character may ask for all that can end it."""
        if target < 0 or self.is_sure[target]:
            return target >= 0
        symbol = self._steps.symbols[(classes & -classes).bit_length() - 1]
        if symbol < 0xC2 or symbol > 0xF4:
            return False
        states, bytes_left = {target}, 1 if symbol < 0xE0 else 2 if symbol < 0xF0 else 3
        low, high = {0xE0: (0xA0, 0xBF), 0xED: (0x80, 0x9F), 0xF0: (0x90, 0xBF), 0xF4: (0x80, 0x8F)}.get(
            symbol, (0x80, 0xBF)
        )
        while bytes_left:
            wanted = _union(1 << each for each in self.classes[low : high + 1].tolist())
            reached: set[int] = set()
            for state in states:
                if state < first:
                    reached |= set(self.following[state, self._steps.members(wanted)].tolist())
                    continue
                rows = [part for part in parts[state - first] if part.classes & wanted]
                reached |= {part.target for part in rows}
            if -1 in reached:
                return False
            states, low, high, bytes_left = reached, 0x80, 0xBF, bytes_left - 1
        return all(self.is_sure[state] for state in states)

    def _win(self, terminal: int, classes: int) -> Win:
        if terminal < 0:
            if classes not in self.column_sets:
                self.column_sets.append(classes)
            terminal, classes = self.num_numbers + 1 + self.column_sets.index(classes), -1 - terminal
        return terminal, classes & self._steps.all_classes, classes >> self.num_classes

    def _add_pending(self, first: int, parts: list[list[_Part]]) -> None:
        """Which terminals may have ended before each new state: a fixed point, as far back as the longest look-ahead."""
        self.pending += [frozenset()] * len(parts)
        has_changed = any(part.num_behind for row in parts for part in row)
        while has_changed:
            has_changed = False
            for index in range(len(parts) - 1, -1, -1):
                found = {(part.winner, part.num_behind) for part in parts[index] if part.num_behind}
                for target in {part.target for part in parts[index] if part.target >= 0}:
                    found |= {
                        (terminal, num_bytes - 1) for terminal, num_bytes in self.pending[target] if num_bytes > 1
                    }
                if len(found) > len(self.pending[first + index]):
                    self.pending[first + index], has_changed = frozenset(found), True

    def _parts(self, threads: tuple[int, ...], sides: _Sides, last: int, column: int) -> list[_Part]:
        """What a state does before each class."""
        found = []
        end = 1 << self.end_class
        divided = self._known_parts.get((threads, last))
        if divided is None:
            divided = [*self._steps.divided(threads, self._steps.all_classes, last)]
            if column < NUM_COLUMNS:
                self._known_parts[threads, last] = divided
        for classes, reached, winner, behind in divided:
            if sides and winner >= 0:
                winner = self._renamed(winner, sides)
            winner = self._number_at(winner, column)
            if classes & end or not reached:
                found.append(_Part(classes & end if reached else classes, -1, winner, behind))
                classes &= ~end
            if not reached or not classes:
                continue
            if not sides:
                last_read = self._steps.last_byte(reached, self._steps.symbols[(classes & -classes).bit_length() - 1])
                for part, after in self._counted(classes, reached, (), column):
                    found.append(_Part(part, self._number((reached, (), last_read, after)), winner, behind))
                continue
            for symbol_class in self._steps.members(classes):
                symbol = self._steps.symbols[symbol_class]
                left = [(literal, home, self._steps.read(own, symbol_class, -1)) for literal, home, own in sides]
                kept = tuple(each for each in left if each[2])
                ((_, after),) = self._counted(1 << symbol_class, reached, kept, column)
                state = (reached, kept, self._steps.last_byte(reached, symbol), after)
                found.append(_Part(1 << symbol_class, self._number(state), winner, behind))
        return found

    def _renamed(self, terminal: int, sides: _Sides) -> int:
        """The literal that has the text of an expression, or the expression."""
        for literal, home, own in sides:
            if home == terminal and any(isinstance(self._program.code[each], TerminalMatch) for each in own):
                return literal
        return terminal


def _union(sets: Iterable[int]) -> int:
    found = 0
    for each in sets:
        found |= each
    return found
