"""Automata of regular languages as states of the machine, their rows made when a walk first comes by."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.machine.layout import (
    ENDS,
    ENDS_OR_GOES_ON,
    NONE,
    OPEN,
    ROW,
)
from rtlang_grammars.machine.prelude import QUOTE
from rtlang_grammars.machine.tables import Tables


class ByteAutomaton(Protocol):
    """What is needed of an automaton; see `regular.byte_automaton`."""

    start: int

    def row(self, state: int) -> NDArray[np.int32]:
        """[256] next states, -1 where nothing can follow."""

    def is_accepting(self, state: int) -> bool:
        """Whether a text may end here."""


class Embedding:
    """One automaton within the tables.

    Its texts end a frame: where `end` is given, by a quote that leads there (the automaton never takes one itself), else by what follows.
    """

    def __init__(
        self, tables: Tables, automaton: ByteAutomaton, *, end: int | None = None, is_deterministic: bool = True
    ) -> None:
        """`is_deterministic`: no byte that may follow a whole text could also go on within it."""
        self._tables, self._automaton, self._end = tables, automaton, end
        self._acc = ENDS if is_deterministic else ENDS_OR_GOES_ON
        self._states: dict[int, int] = {}
        self._locals: dict[int, int] = {}

    def state(self, local: int) -> int:
        """The machine's number of a state of the automaton."""
        found = self._states.get(local)
        if found is None:
            is_end = self._end is None and self._automaton.is_accepting(local)
            found = self._states[local] = self._tables.leave_open(self._make_row, acc=self._acc if is_end else OPEN)
            self._locals[found] = local
        return found

    def start(self, *, is_called: bool = True) -> int:
        """The state to begin in. A called frame must not end before its first byte: its start is then a state of its own."""
        local = self._automaton.start
        if not is_called or self._end is not None or not self._automaton.is_accepting(local):
            return self.state(local)
        start = self._tables.leave_open(self._make_row)
        self._locals[start] = local
        return start

    def first_bytes(self) -> bytes:
        """The bytes that a text begins with, the quote of an empty one among them."""
        first = bytes(np.flatnonzero(self._automaton.row(self._automaton.start) >= 0).tolist())
        is_empty = self._end is not None and self._automaton.is_accepting(self._automaton.start)
        return first + b'"' if is_empty else first

    def _make_row(self, number: int) -> None:
        local, automaton, tables = self._locals[number], self._automaton, self._tables
        targets, inverse = np.unique(automaton.row(local), return_inverse=True)
        values = np.array([self.state(target) if target >= 0 else NONE for target in targets.tolist()], dtype=np.int32)
        place = tables.add_row()
        tables.rows[place] = values[inverse.reshape(-1)]
        if self._end is not None and automaton.is_accepting(local):
            tables.rows[place, QUOTE] = self._end
        tables.set_state(number, ROW, place)
