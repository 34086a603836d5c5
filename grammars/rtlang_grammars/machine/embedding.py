"""Automata of regular languages as states of the machine, their rows made when a walk first comes by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.machine.layout import ENDS, ENDS_OR_GOES_ON, NONE, OPEN, ROW, SLICE
from rtlang_grammars.machine.prelude import EMBEDDED_SLICE, QUOTE, plain_body
from rtlang_grammars.machine.tables import Tables

_MAX_EXPLORED = 400


class ByteAutomaton(Protocol):
    """What is needed of an automaton; see `regular.byte_automaton`."""

    start: int

    def row(self, state: int) -> NDArray[np.int32]:
        """[256] next states, -1 where nothing can follow."""

    def is_accepting(self, state: int) -> bool:
        """Whether a text may end here."""

    def is_between_characters(self, state: int) -> bool:
        """Whether the next byte begins a character."""


class Embedding:
    """One automaton within the tables. Its texts end the frame by what follows them."""

    def __init__(self, tables: Tables, automaton: ByteAutomaton, *, is_deterministic: bool = True) -> None:
        """`is_deterministic`: no byte that may follow a whole text could also go on within it."""
        self._tables, self._automaton = tables, automaton
        self._acc = ENDS if is_deterministic else ENDS_OR_GOES_ON
        self._states: dict[int, int] = {}
        self._locals: dict[int, int] = {}

    def state(self, local: int) -> int:
        """The machine's number of a state of the automaton."""
        found = self._states.get(local)
        if found is None:
            acc = self._acc if self._automaton.is_accepting(local) else OPEN
            found = self._states[local] = self._tables.leave_open(self._make_row, acc=acc)
            self._locals[found] = local
        return found

    def start(self, *, is_called: bool = True) -> int:
        """The state to begin in. A called frame must not end before its first byte: its start is then a state of its own."""
        local = self._automaton.start
        if not is_called or not self._automaton.is_accepting(local):
            return self.state(local)
        start = self._tables.leave_open(self._make_row)
        self._locals[start] = local
        return start

    def first_bytes(self) -> bytes:
        """The bytes that a text begins with."""
        return bytes(np.flatnonzero(self._automaton.row(self._automaton.start) >= 0).tolist())

    def _make_row(self, number: int) -> None:
        tables = self._tables
        targets, inverse = np.unique(self._automaton.row(self._locals[number]), return_inverse=True)
        values = np.array([self.state(target) if target >= 0 else NONE for target in targets.tolist()], dtype=np.int32)
        place = tables.add_row()
        tables.rows[place] = values[inverse.reshape(-1)]
        tables.set_state(number, ROW, place)


_Local = tuple[int, ...]


class QuotedEmbedding:
    """The insides of JSON strings of several languages that share no text, side by side, as one automaton in the frame it stands in.

    The closing quote leads to where the language of the text says.
    """

    def __init__(
        self,
        tables: Tables,
        automata: Sequence[ByteAutomaton],
        ends: Sequence[int],
        *,
        block: int = 0,
        is_free: bool = False,
    ) -> None:
        """Nothing yet.

        Args:
            ends: the value of the quote behind a text of each automaton.
            block: of the states.
            is_free: whatever has come, some text of some language begins like that.
        """
        self._tables, self._automata, self._ends, self._block = tables, automata, ends, block
        self._states: dict[_Local, int] = {}
        self._locals: dict[int, _Local] = {}
        self._rows: dict[_Local, tuple[list[_Local | None], NDArray[np.intp]]] = {}
        self._free: dict[_Local, bool] = {}
        self._is_free = is_free

    def start(self) -> int:
        """The state behind the opening quote."""
        return self._state(tuple(automaton.start for automaton in self._automata))

    def is_free(self, number: int) -> bool:
        """Whether any plain text may follow in this state, where a character begins, to whatever length."""
        if self._is_free:
            return True
        local = self._locals[number]
        found = self._free.get(local)
        if found is None:
            found = self._explore(local)
        return found

    def _state(self, local: _Local) -> int:
        found = self._states.get(local)
        if found is None:
            tables = self._tables
            found = self._states[local] = tables.leave_open(self._make_row, block=self._block)
            self._locals[found] = local
            at, automaton = next((at, a) for at, a in zip(local, self._automata, strict=True) if at >= 0)
            if automaton.is_between_characters(at):
                tables.set_state(found, SLICE, EMBEDDED_SLICE)
                tables.embedded[found] = self.is_free
        return found

    def _row(self, local: _Local) -> tuple[list[_Local | None], NDArray[np.intp]]:
        """The states that follow, and for each byte which of them."""
        found = self._rows.get(local)
        if found is None:
            nothing = np.full(256, -1, dtype=np.int32)
            rows = [a.row(at) if at >= 0 else nothing for at, a in zip(local, self._automata, strict=True)]
            if len(rows) == 1:
                each, inverse = np.unique(rows[0], return_inverse=True)
                columns = [(at,) for at in each.tolist()]
            else:
                each, inverse = np.unique(np.stack(rows), axis=1, return_inverse=True)
                columns = [tuple(column) for column in each.T.tolist()]
            targets: list[_Local | None] = [column if max(column) >= 0 else None for column in columns]
            found = self._rows[local] = (targets, inverse.reshape(-1))
        return found

    def _make_row(self, number: int) -> None:
        tables, local = self._tables, self._locals[number]
        targets, inverse = self._row(local)
        values = np.array([NONE if each is None else self._state(each) for each in targets], dtype=np.int32)
        place = tables.add_row()
        tables.rows[place] = values[inverse]
        for at, automaton, end in zip(local, self._automata, self._ends, strict=True):
            if at >= 0 and automaton.is_accepting(at):
                tables.rows[place, QUOTE] = end
        tables.set_state(number, ROW, place)

    def _explore(self, start: _Local) -> bool:
        """Follow every plain text from a state; note those found free on the way."""
        body = plain_body()
        seen = {(start, 0)}
        waiting = [(start, 0)]
        while waiting:
            local, place = waiting.pop()
            targets, inverse = self._row(local)
            for byte in np.flatnonzero(body[place] >= 0).tolist():
                following = targets[inverse[byte]]
                if following is None or len(seen) > _MAX_EXPLORED:
                    self._free[start] = False
                    return False
                pair = (following, int(body[place, byte]))
                if pair not in seen and not (pair[1] == 0 and self._free.get(following)):
                    seen.add(pair)
                    waiting.append(pair)
        self._free.update((local, True) for local, place in seen if place == 0)
        return True
