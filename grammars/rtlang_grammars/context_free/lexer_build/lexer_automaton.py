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
from rtlang_grammars.context_free.lexer_build.terminal_threads import (
    END,
    LookAhead,
    LookBehind,
    Read,
    Split,
    TerminalMatch,
    TerminalProgram,
)
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

_FEW_THREADS = 6

_Sides = tuple[tuple[int, int, tuple[int, ...]], ...]

Win = tuple[int, int, int]
"""A terminal, the classes before which it can end, as bits, and those of them before which it surely does: no terminal goes on."""

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
        self.budget, self._terminals, self._is_lark = budget, terminals, is_lark
        self._program = TerminalProgram(terminals, budget, keeps_order=is_lark)
        self._closures: dict[tuple[int, int], tuple[int, ...]] = {}
        self._sets: dict[int, list[int]] = {}
        self._reached: dict[tuple[tuple[int, ...], int], tuple[int, ...]] = {}
        self._set_classes()
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
        firsts = [self._first_classes(entry) for entry in self._program.entries]
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
            own = self._closure(self._program.entries[number], -1)
            sides += [(number, home, own) for home, _ in homes if home not in self._ignored]
            if not any(is_replaced for _, is_replaced in homes):
                main.append(number)
        threads = dict.fromkeys(at for number in main for at in self._closure(self._program.entries[number], -1))
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

    def _first_classes(self, entry: int) -> int:
        found = 0
        todo = [(at, self._all_classes) for at in self._closure(entry, -1)]
        seen: dict[int, int] = {}
        while todo:
            at, allowed = todo.pop()
            allowed &= self._class_bits[at] & ~seen.get(at, 0)
            if allowed:
                self.budget.spend()
                seen[at] = seen.get(at, 0) | allowed
                instruction = self._program.code[at]
                if isinstance(instruction, Read):
                    found |= allowed
                elif isinstance(instruction, LookAhead):
                    todo += [(each, allowed) for each in self._closure(instruction.to, -1)]
        return found

    def _matches(self, terminal: int, text: bytes) -> bool:
        """Whether the match of a terminal that Python's `re` prefers at the start of a text is all of it."""
        self.budget.spend()
        last, best = -1, -1
        threads = self._closure(self._program.entries[terminal], -1)
        for at in range(len(text) + 1):
            symbol = text[at] if at < len(text) else END
            ((_, threads, winner, num_behind),) = self._divided(threads, 1 << int(self.classes[symbol]), last)
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

    def _set_classes(self) -> None:
        sets = {1 << END} | ({1 << 9, 1 << 10, 1 << 32} if self._columns is not None else set())
        for instruction in self._program.code:
            if isinstance(instruction, Read | LookAhead | LookBehind):
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
        self._has_behind = any(isinstance(each, LookBehind) for each in code)
        known: dict[int, int] = {}
        self._class_bits: list[int] = []  # for each instruction the classes before which it goes on
        for instruction in code:
            symbols = instruction.symbols if isinstance(instruction, Read | LookAhead) else 0
            if symbols not in known:
                known[symbols] = sum(1 << i for i, symbol in enumerate(self._symbols) if symbols >> symbol & 1)
            self._class_bits.append(known[symbols])
        self._all_classes = (1 << self.num_classes) - 1
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
                elif isinstance(instruction, LookBehind):
                    if last >= 0 and instruction.symbols >> last & 1:
                        todo.append(instruction.to)
                else:
                    out.append(place)
            found = self._closures[at, last] = tuple(out)
        return found

    def _members(self, classes: int) -> list[int]:
        """The classes of a set."""
        found = self._sets.get(classes)
        if found is None:
            found = self._sets[classes] = [each for each in range(self.num_classes) if classes >> each & 1]
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
        parts: list[list[_Part]] = []
        while first + len(parts) < len(self._states):
            self.budget.spend(states=1, num_bytes=12 * self.num_classes)
            state = self._states[first + len(parts)]
            row = self._parts(*state)
            parts.append(row)
            self.expiries.append(self._expiry(state))
            self.is_start.append(state[2] == -2)
            is_won = _union(part.classes for part in row if part.winner >= 0 and not part.num_behind)
            self.is_sure.append(is_won == self._all_classes)
        if not parts:
            return
        cells = [(index, *part) for index, row in enumerate(parts) for part in row]
        columns = [self._members(part[1]) for part in cells]
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
        steps = [self._closure(expired[at], -1) if over else (at,) for at, over in zip(threads, is_over, strict=True)]
        reached = dict.fromkeys(each for step in steps for each in step)
        return budget, self._number((tuple(reached), sides, last, column))

    def _add_wins(self, first: int, parts: list[list[_Part]]) -> None:
        """What can still win from each new state: a fixed point over the states after it.

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
        symbol = self._symbols[(classes & -classes).bit_length() - 1]
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
                    reached |= set(self.following[state, self._members(wanted)].tolist())
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
        return terminal, classes & self._all_classes, classes >> self.num_classes

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
            divided = [*self._divided(threads, self._all_classes, last)]
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
            if not sides and not self._has_behind:
                for part, after in self._counted(classes, reached, (), column):
                    found.append(_Part(part, self._number((reached, (), -1, after)), winner, behind))
                continue
            for symbol_class in self._members(classes):
                symbol = self._symbols[symbol_class]
                left = [(literal, home, self._read(own, symbol_class, -1)) for literal, home, own in sides]
                kept = tuple(each for each in left if each[2])
                ((_, after),) = self._counted(1 << symbol_class, reached, kept, column)
                state = (reached, kept, symbol if self._has_behind else -1, after)
                found.append(_Part(1 << symbol_class, self._number(state), winner, behind))
        return found

    def _divided(
        self, threads: tuple[int, ...], classes: int, last: int
    ) -> Iterator[tuple[int, tuple[int, ...], int, int]]:
        """Classes in parts before which the same threads go on, the threads after them, and the terminal that ends before them."""
        self.budget.spend()
        for inside, resolved in self._resolved(threads, classes, last, frozenset()):
            reading, winner, behind = self._ended(resolved)
            for part, chosen in self._grouped(reading, inside).items():
                if not self._has_behind:
                    yield part, self._targets(chosen, -1), winner, behind
                    continue
                for symbol_class in self._members(part):
                    yield 1 << symbol_class, self._targets(chosen, self._symbols[symbol_class]), winner, behind

    def _resolved(
        self, threads: tuple[int, ...], classes: int, last: int, passed: frozenset[int]
    ) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Classes in parts with the threads that read or match before them: look-ahead holds or fails before all of a part."""
        for position, at in enumerate(threads):
            instruction = self._program.code[at]
            if not isinstance(instruction, LookAhead):
                continue
            self.budget.spend()
            before, behind = threads[:position], threads[position + 1 :]
            holds = 0 if at in passed else classes & self._class_bits[at]
            if holds:
                inner = before + self._closure(instruction.to, last) + behind
                yield from self._resolved(inner, holds, last, passed | {at})
            if classes & ~holds:
                yield from self._resolved(before + behind, classes & ~holds, last, passed)
            return
        yield classes, threads

    def _ended(self, threads: tuple[int, ...]) -> tuple[list[int], int, int]:
        """The threads that read and still count, and the terminal that ends."""
        code, owners = self._program.code, self._program.owners
        reading, winner, behind = [], -1, 0
        cut: set[int] = set()  # terminals whose later threads no longer count
        is_over = False  # a lazy terminal has matched
        for at in threads:
            instruction = code[at]
            if owners[at] in cut:
                continue
            if isinstance(instruction, Read):
                reading.append(at)
            elif isinstance(instruction, TerminalMatch):
                terminal, num_behind = instruction
                if at in self._program.lazy_ends:
                    winner, is_over = terminal if not is_over else min(winner, terminal), True
                    continue
                if not is_over and (winner < 0 or (num_behind, terminal) < (behind, winner)):
                    winner, behind = terminal, num_behind
                if self._is_lark:
                    break
                if self._program.is_ordered[terminal]:
                    cut.add(terminal)
        return ([], winner, 0) if is_over else (reading, winner, behind)

    def _grouped(self, threads: list[int], classes: int) -> dict[int, tuple[int, ...]]:
        """Classes in parts that the same threads read."""
        bits = self._class_bits
        if len(threads) <= _FEW_THREADS:
            found: dict[int, tuple[int, ...]] = {classes: ()}
            for at in threads:
                for part, chosen in list(found.items()):
                    inside = part & bits[at]
                    if inside:
                        del found[part]
                        found[inside] = (*chosen, at)
                        if part & ~inside:
                            found[part & ~inside] = chosen
            return found
        readers: dict[int, list[int]] = {each: [] for each in self._members(classes)}
        for at in threads:
            for each in self._members(bits[at] & classes):
                readers[each].append(at)
        joined: dict[tuple[int, ...], int] = {}
        for each, ats in readers.items():
            key = tuple(ats)
            joined[key] = joined.get(key, 0) | 1 << each
        return {part: ats for ats, part in joined.items()}

    def _targets(self, threads: tuple[int, ...], symbol: int) -> tuple[int, ...]:
        """The threads after some that read. symbol: what they read, -1 where it is not asked for."""
        found = self._reached.get((threads, symbol))
        if found is None:
            steps = [self._closure(self._program.code[at].to, symbol) for at in threads]  # type: ignore[union-attr]
            found = self._reached[threads, symbol] = tuple(dict.fromkeys(each for step in steps for each in step))
        return found

    def _read(self, threads: tuple[int, ...], symbol_class: int, symbol: int) -> tuple[int, ...]:
        """The threads after those that read a class."""
        code, bits = self._program.code, self._class_bits
        reading = tuple(at for at in threads if isinstance(code[at], Read) and bits[at] >> symbol_class & 1)
        return self._targets(reading, symbol)

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
