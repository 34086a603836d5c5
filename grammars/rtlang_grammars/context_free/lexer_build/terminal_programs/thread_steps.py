"""Steps of ordered threads over classes of symbols: which threads go on before a class, and which terminal ends before it.

Threads are cut at a match, as leftmost-first automata do (RE2): threads later in Python's order no longer count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.context_free.lexer_build.terminal_programs.instructions import (
    END,
    LookAhead,
    LookBehind,
    Read,
    Split,
    TerminalMatch,
)
from rtlang_grammars.context_free.lexer_build.terminal_programs.terminal_threads import TerminalProgram
from rtlang_grammars.spec.limits import Budget

_FEW_THREADS = 6


class ThreadSteps:
    """Steps of the threads of a program; they are remembered.

    Attributes:
        num_classes, classes, end_class, class_sizes, first_bytes: see `lexer_automaton.LexerAutomaton`.
        all_classes: as bits.
        symbols: a symbol of each class.
    """

    def __init__(
        self, program: TerminalProgram, budget: Budget, *, is_lark: bool, own_classes: Iterable[int] = ()
    ) -> None:
        """Divide symbols into classes.

        Args:
            is_lark: the first thread that matches wins.
            own_classes: symbols with a class of their own.
        """
        self._program, self._budget, self._is_lark = program, budget, is_lark
        self._closures: dict[tuple[int, int], tuple[int, ...]] = {}
        self._sets: dict[int, list[int]] = {}
        self._reached: dict[tuple[tuple[int, ...], int], tuple[int, ...]] = {}
        self._set_classes(own_classes)

    def _set_classes(self, own_classes: Iterable[int]) -> None:
        sets = {1 << END} | {1 << each for each in own_classes}
        for instruction in self._program.code:
            if isinstance(instruction, Read | LookAhead | LookBehind):
                sets.add(instruction.symbols)
        signatures: dict[int, int] = {}
        columns = np.zeros((len(sets), END + 1), dtype=np.uint8)
        for row, symbols in enumerate(sets):
            data = symbols.to_bytes(33, "little")
            columns[row] = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")[: END + 1]
        self.classes: NDArray[np.int32] = np.zeros(END + 1, dtype=np.int32)
        self.symbols: list[int] = []
        keys = np.packbits(columns, axis=0).T
        for symbol in range(END + 1):
            key = int.from_bytes(keys[symbol].tobytes(), "little")
            if key not in signatures:
                signatures[key] = len(signatures)
                self.symbols.append(symbol)
            self.classes[symbol] = signatures[key]
        self.num_classes = len(signatures)
        code = self._program.code
        self._set_behind()
        known: dict[int, int] = {}
        self._class_bits: list[int] = []  # for each instruction the classes before which it goes on
        for instruction in code:
            symbols = instruction.symbols if isinstance(instruction, Read | LookAhead) else 0
            if symbols not in known:
                known[symbols] = sum(1 << i for i, symbol in enumerate(self.symbols) if symbols >> symbol & 1)
            self._class_bits.append(known[symbols])
        self.all_classes = (1 << self.num_classes) - 1
        self.end_class = int(self.classes[END])
        self.class_sizes: list[int] = np.bincount(self.classes).tolist()
        self.first_bytes = [b"" if symbol == END else bytes([symbol]) for symbol in self.symbols]
        for symbol in b"0 a":
            self.first_bytes[self.classes[symbol]] = bytes([symbol])

    def _set_behind(self) -> None:
        """Find the instructions for which the byte before matters: reads after which a thread looks behind, and look-ahead before that."""
        code = self._program.code
        found = {at for at, each in enumerate(code) if isinstance(each, LookBehind)}
        num_before = 0
        while num_before < len(found):
            num_before = len(found)
            for at, each in enumerate(code):
                if (isinstance(each, Split) and not found.isdisjoint(each.targets)) or (
                    isinstance(each, LookAhead) and each.to in found
                ):
                    found.add(at)
        self._behind_reads = {at for at, each in enumerate(code) if isinstance(each, Read) and each.to in found}
        self._behind_aheads = {at for at in found if isinstance(code[at], LookAhead)}

    def last_byte(self, threads: tuple[int, ...], symbol: int) -> int:
        """A symbol if threads that follow it will ask for it, else -1."""
        return -1 if self._behind_aheads.isdisjoint(threads) else symbol

    def closure(self, at: int, last: int) -> tuple[int, ...]:
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

    def members(self, classes: int) -> list[int]:
        """The classes of a set."""
        found = self._sets.get(classes)
        if found is None:
            found = self._sets[classes] = [each for each in range(self.num_classes) if classes >> each & 1]
        return found

    def first_classes(self, entry: int) -> int:
        """The classes with which a terminal can begin, as bits."""
        found = 0
        todo = [(at, self.all_classes) for at in self.closure(entry, -1)]
        seen: dict[int, int] = {}
        while todo:
            at, allowed = todo.pop()
            allowed &= self._class_bits[at] & ~seen.get(at, 0)
            if allowed:
                self._budget.spend()
                seen[at] = seen.get(at, 0) | allowed
                instruction = self._program.code[at]
                if isinstance(instruction, Read):
                    found |= allowed
                elif isinstance(instruction, LookAhead):
                    todo += [(each, allowed) for each in self.closure(instruction.to, -1)]
        return found

    def divided(
        self, threads: tuple[int, ...], classes: int, last: int
    ) -> Iterator[tuple[int, tuple[int, ...], int, int]]:
        """Classes in parts before which the same threads go on, the threads after them, and the terminal that ends before them."""
        self._budget.spend()
        for inside, resolved in self._resolved(threads, classes, last, frozenset()):
            reading, winner, behind = self._ended(resolved)
            for part, chosen in self._grouped(reading, inside).items():
                if self._behind_reads.isdisjoint(chosen):
                    yield part, self.targets(chosen, -1), winner, behind
                    continue
                joined: dict[tuple[tuple[int, ...], int], int] = {}
                for symbol_class in self.members(part):
                    symbol = self.symbols[symbol_class]
                    reached = self.targets(chosen, symbol)
                    key = reached, self.last_byte(reached, symbol)
                    joined[key] = joined.get(key, 0) | 1 << symbol_class
                for (reached, _), inside_part in joined.items():
                    yield inside_part, reached, winner, behind

    def _resolved(
        self, threads: tuple[int, ...], classes: int, last: int, passed: frozenset[int]
    ) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Classes in parts with the threads that read or match before them: look-ahead holds or fails before all of a part."""
        for position, at in enumerate(threads):
            instruction = self._program.code[at]
            if not isinstance(instruction, LookAhead):
                continue
            self._budget.spend()
            before, behind = threads[:position], threads[position + 1 :]
            holds = 0 if at in passed else classes & self._class_bits[at]
            if holds:
                inner = before + self.closure(instruction.to, last) + behind
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
        readers: dict[int, list[int]] = {each: [] for each in self.members(classes)}
        for at in threads:
            for each in self.members(bits[at] & classes):
                readers[each].append(at)
        joined: dict[tuple[int, ...], int] = {}
        for each, ats in readers.items():
            key = tuple(ats)
            joined[key] = joined.get(key, 0) | 1 << each
        return {part: ats for ats, part in joined.items()}

    def targets(self, threads: tuple[int, ...], symbol: int) -> tuple[int, ...]:
        """The threads after some that read. symbol: the byte that they read; -1 if no thread asks for it."""
        found = self._reached.get((threads, symbol))
        if found is None:
            steps = [self.closure(self._program.code[at].to, symbol) for at in threads]  # type: ignore[union-attr]
            found = self._reached[threads, symbol] = tuple(dict.fromkeys(each for step in steps for each in step))
        return found

    def read(self, threads: tuple[int, ...], symbol_class: int, symbol: int) -> tuple[int, ...]:
        """The threads after those that read a class."""
        code, bits = self._program.code, self._class_bits
        reading = tuple(at for at in threads if isinstance(code[at], Read) and bits[at] >> symbol_class & 1)
        return self.targets(reading, symbol)
