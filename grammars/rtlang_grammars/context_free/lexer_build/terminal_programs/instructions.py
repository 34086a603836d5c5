"""Instructions of byte threads, and look-ahead inside them.

An `Ahead` asks whether the text from there on begins with a text of its body. `without_aheads` turns a program with such questions into one
without: each instruction after the question is made once for each state that the question may be in, and a terminal that ends before the
answer reads on. The order of threads is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple, TypeAlias

from rtlang_grammars.spec.errors import GrammarError

END = 256
"""The symbol after the last byte of the text."""

MAX_LOOK_AHEAD = 8
"""Bytes after the end of a terminal that its look-ahead may see."""

_FOUND = -1
_ALL_SYMBOLS = (1 << END + 1) - 1


class Read(NamedTuple):
    """Read a byte of `symbols` (a set as bits) and go on at `to`."""

    symbols: int
    to: int


class Split(NamedTuple):
    """Go on at all of `targets`; the first is preferred."""

    targets: tuple[int, ...]


class LookAhead(NamedTuple):
    """Go on at `to` if the next symbol, a byte or END, is in `symbols` (a set as bits)."""

    symbols: int
    to: int


class LookBehind(NamedTuple):
    """Go on at `to` if the last byte was in `symbols` (a set as bits). Never where a terminal begins."""

    symbols: int
    to: int


class Ahead(NamedTuple):
    """Go on at `to` if the instructions from `body` match the text that follows (negative: if they do not).

    The body ends in a `TerminalMatch`. `without_aheads` replaces all of these.
    """

    body: int
    is_negative: bool
    to: int


class TerminalMatch(NamedTuple):
    """The terminal has matched, `num_behind` bytes ago."""

    terminal: int
    num_behind: int


Instruction: TypeAlias = Read | Split | LookAhead | LookBehind | Ahead | TerminalMatch

_Question = tuple[bool, frozenset[int]]
"""Whether it is negative; the instructions of its body that wait for the next symbol, and _FOUND if it has matched."""

_Open = frozenset[_Question]
"""Questions whose answers must all be right."""


def without_aheads(
    code: Sequence[Instruction], entry: int, emit: Callable[[Instruction], int], fill: Callable[[int, Split], None]
) -> int:
    """Emit a program without `Ahead`.

    Args:
        code: the program; its instructions may lie anywhere.
        entry: where it begins.
        emit: takes an instruction and returns its place.
        fill: replaces an emitted instruction.
    Returns:
        The new entry.
    Raises:
        GrammarError: the answer may need more than `MAX_LOOK_AHEAD` bytes after the terminal.
    """
    return _Rewriter(code, emit, fill).result(entry)


class _Rewriter:
    """The state of one call of `without_aheads`."""

    def __init__(
        self, code: Sequence[Instruction], emit: Callable[[Instruction], int], fill: Callable[[int, Split], None]
    ) -> None:
        self._code, self._emit, self._fill = code, emit, fill
        self._places: dict[tuple[int, _Open], int] = {}
        self._todo: list[tuple[int, _Open]] = []
        self._ended: dict[tuple[TerminalMatch, _Open], int] = {}
        self._moves = cache(self._make_moves)

    def result(self, entry: int) -> int:
        """The new entry."""
        found = self._place(entry, frozenset())
        while self._todo:
            at, opened = self._todo.pop()
            self._fill(self._places[at, opened], Split(self._heads(self._code[at], opened)))
        return found

    def _place(self, at: int, opened: _Open) -> int:
        key = at, opened
        if key not in self._places:
            self._places[key] = self._emit(Split(()))
            self._todo.append(key)
        return self._places[key]

    def _heads(self, instruction: Instruction, opened: _Open) -> tuple[int, ...]:
        """The instructions in place of one."""
        match instruction:
            case Split(targets):
                return tuple(self._place(each, opened) for each in targets)
            case Read(symbols, to):
                return tuple(
                    self._emit(Read(symbols & part, self._place(to, after)))
                    for after, part in self._moves(opened)
                    if symbols & part
                )
            case LookAhead(symbols, to):
                return (self._emit(LookAhead(symbols, self._place(to, opened))),)
            case LookBehind(symbols, to):
                return (self._emit(LookBehind(symbols, self._place(to, opened))),)
            case Ahead(body, is_negative, to):
                asked = _answered([(is_negative, frozenset(self._closed([body])))])
                return () if asked is None else (self._place(to, opened | asked),)
            case TerminalMatch():
                return (self._ends(instruction, opened),)

    def _ends(self, match: TerminalMatch, opened: _Open) -> int:
        """The end of a terminal: it reads on until all questions are answered."""
        found = self._ended.get((match, opened))
        if found is None:
            found = self._ended[match, opened] = self._emit(
                Split(self._ways_to_end(match, opened)) if opened else match
            )
        return found

    def _ways_to_end(self, match: TerminalMatch, opened: _Open) -> tuple[int, ...]:
        heads = []
        for after, part in self._moves(opened):
            if not after:
                heads.append(self._emit(LookAhead(part, self._ends(match, after))))
            elif match.num_behind == MAX_LOOK_AHEAD:
                raise GrammarError(
                    f"look-ahead over more than {MAX_LOOK_AHEAD} bytes after the terminal is not supported"
                )
            else:
                heads.append(self._emit(Read(part, self._ends(match._replace(num_behind=match.num_behind + 1), after))))
        return tuple(heads)

    def _make_moves(self, opened: _Open) -> list[tuple[_Open, int]]:
        """The questions that stay open after each symbol, with the symbols as bits. Symbols with a wrong answer are left out."""
        parts = [_ALL_SYMBOLS]
        for at in {each for _, waiting in opened for each in waiting}:
            instruction = self._code[at]
            assert isinstance(instruction, Read | LookAhead)
            parts = [
                piece for part in parts for piece in (part & instruction.symbols, part & ~instruction.symbols) if piece
            ]
        found: dict[_Open, int] = {}
        for part in parts:
            symbol = (part & -part).bit_length() - 1
            after = _answered([(is_negative, self._after(waiting, symbol)) for is_negative, waiting in opened])
            if after is not None:
                found[after] = found.get(after, 0) | part
        return list(found.items())

    def _after(self, waiting: frozenset[int], symbol: int) -> frozenset[int]:
        """The instructions of a body that wait after a symbol, with _FOUND if it has matched."""
        found: set[int] = set()
        todo, seen = list(waiting), set(waiting)
        while todo:
            at = todo.pop()
            instruction = self._code[at]
            assert isinstance(instruction, Read | LookAhead)
            if instruction.symbols >> symbol & 1:
                reached = self._closed([instruction.to])
                if isinstance(instruction, Read):
                    found |= reached
                    continue
                found |= reached & {_FOUND}
                todo += reached - seen - {_FOUND}
                seen |= reached
        return frozenset(found)

    def _closed(self, places: list[int]) -> set[int]:
        """The instructions reached without a symbol that wait for one, and _FOUND."""
        todo, seen, found = list(places), set(places), set()
        while todo:
            at = todo.pop()
            instruction = self._code[at]
            if isinstance(instruction, Split):
                todo += [each for each in instruction.targets if each not in seen]
                seen.update(instruction.targets)
            else:
                found.add(_FOUND if isinstance(instruction, TerminalMatch) else at)
        return found


def _answered(questions: Sequence[_Question]) -> _Open | None:
    """The questions that are still open; None if the answer to one is wrong."""
    opened = set()
    for is_negative, waiting in questions:
        if _FOUND in waiting or not waiting:
            if is_negative == (_FOUND in waiting):
                return None
        else:
            opened.add((is_negative, waiting))
    return frozenset(opened)
