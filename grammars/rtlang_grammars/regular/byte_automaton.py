r"""Deterministic automata over bytes: a language's texts in UTF-8, or as the inside of a JSON string.

Both are views of one automaton over code points. A state is a state of that one between two characters, or a place within a character
together with the moves that are still possible there; where those all lead to one state, equal places are one. Every row leads only to
states from which acceptance can be reached.
"""

from __future__ import annotations

import threading
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.limits import Budget
from rtlang_grammars.regular.code_point_automaton import NO_STATE, CodePointAutomaton
from rtlang_grammars.regular.code_points import MAX_CODE_POINT
from rtlang_grammars.regular.spellings import (
    ESCAPE,
    UTF8_LEADS,
    Place,
    branches,
    code_point_ranges,
    lead_place,
    shape,
)
from rtlang_grammars.spec import GrammarError

_QUOTE, _BACKSLASH = 0x22, 0x5C


class Automaton(Protocol):
    """A deterministic automaton over bytes, rows made when asked for."""

    @property
    def start(self) -> int:
        """The first state."""

    @property
    def num_states(self) -> int:
        """States made so far; they are numbered from 0."""

    def row(self, state: int) -> NDArray[np.int32]:
        """[256] int32: the state after each byte, -1 where nothing can follow. Only states that lead to acceptance.

        Raises:
            GrammarError: the automaton outgrew its limits.
        """

    def is_accepting(self, state: int) -> bool:
        """Whether the bytes so far are a whole text of the language."""


class ByteAutomaton:
    """A view of an automaton over code points. Safe to share between threads; `row` makes a new array at each call."""

    def __init__(self, automaton: CodePointAutomaton, *, is_json_string: bool, budget: Budget) -> None:
        """Make the first state.

        Raises:
            GrammarError: no text is in the language.
        """
        if automaton.start == NO_STATE:
            raise GrammarError("no text matches")
        self._automaton, self._is_json_string, self._budget = automaton, is_json_string, budget
        self._codes: list[int] = []
        self._inside: list[tuple[Place, tuple[int, ...] | int] | None] = []
        self._between: dict[int, int] = {NO_STATE: NO_STATE}
        self._within: dict[tuple[object, ...], int] = {}
        self._classes: dict[Place, tuple[int, ...]] = {}
        self._high_rows: dict[tuple[int, ...], NDArray[np.int32]] = {}
        partition = automaton.partition
        self._ascii = np.array([partition.class_of(byte) for byte in range(128)], np.intp)
        self._beyond_ascii = tuple(sorted(partition.classes_within(0x80, MAX_CODE_POINT)))
        self._lock = threading.Lock()
        self.start = self._state_between(automaton.start)

    @property
    def num_states(self) -> int:
        """States made so far; they are numbered from 0."""
        return len(self._codes)

    def is_accepting(self, state: int) -> bool:
        """Whether the bytes so far are a whole text of the language."""
        code = self._codes[state]
        return code != NO_STATE and self._automaton.is_accepting(code)

    def is_between_characters(self, state: int) -> bool:
        """Whether the bytes so far end with a whole character."""
        return self._codes[state] != NO_STATE

    def after_character(self, state: int) -> list[int]:
        """The states between characters that one character leads to, from a state between characters.

        Raises:
            GrammarError: as `row`.
        """
        with self._lock:
            moves = self._automaton.moves(self._codes[state], self._budget.renewed())
            return sorted({self._state_between(code) for code in moves if code != NO_STATE})

    def row(self, state: int) -> NDArray[np.int32]:
        """[256] int32: the state after each byte, -1 where nothing can follow.

        Raises:
            GrammarError: the automaton outgrew the limits of its budget; the time of one row counts for itself.
        """
        with self._lock:
            limit = self._budget.limits.max_states
            if len(self._codes) + self._automaton.num_states > 2 * limit:
                raise GrammarError(f"too complex: more than {limit} states are needed")
            inside = self._inside[state]
            if inside is not None:
                return self._row_within(*inside)
            return self._row_between(self._automaton.moves(self._codes[state], self._budget.renewed()))

    def _state_between(self, code: int) -> int:
        state = self._between.get(code)
        if state is None:
            state = self._between[code] = len(self._codes)
            self._codes.append(code)
            self._inside.append(None)
        return state

    def _row_between(self, moves: tuple[int, ...]) -> NDArray[np.int32]:
        row = np.empty(256, np.int32)
        targets = np.array([self._state_between(code) for code in moves], np.int32)
        row[:128] = targets[self._ascii]
        beyond = tuple([moves[number] for number in self._beyond_ascii])
        high_row = self._high_rows.get(beyond)
        if high_row is None:
            high_row = self._high_rows[beyond] = self._high_row(moves)
        row[128:] = high_row
        if self._is_json_string:
            row[:0x20] = NO_STATE
            row[_QUOTE] = NO_STATE
            row[_BACKSLASH] = self._state_within(ESCAPE, moves)
        return row

    def _high_row(self, moves: tuple[int, ...]) -> NDArray[np.int32]:
        """The row from 0x80 on, where UTF-8 begins characters beyond ASCII."""
        row = np.full(128, NO_STATE, np.int32)
        for low, high, run in UTF8_LEADS:
            codes = {moves[number] for number in self._classes_of(run)}
            if len(codes) == 1:
                row[low - 128 : high - 127] = self._state_within(lead_place(low, low, run), codes.pop())
                continue
            for byte in range(low, high + 1):
                row[byte - 128] = self._state_within(lead_place(low, byte, run), moves)
        return row

    def _state_within(self, place: Place, moves: tuple[int, ...] | int) -> int:
        """The state at a place, given the moves of the state before the character, or the one state that all of them lead to."""
        if isinstance(moves, int):
            if moves == NO_STATE:
                return NO_STATE
            key: tuple[object, ...] = (shape(place), moves)
        else:
            codes = [moves[number] for number in self._classes_of(place)]
            if codes.count(codes[0]) == len(codes):
                return self._state_within(place, codes[0])
            key = (place, *codes)
        state = self._within.get(key)
        if state is None:
            state = self._within[key] = len(self._codes)
            self._codes.append(NO_STATE)
            self._inside.append((place, moves))
        return state

    def _row_within(self, place: Place, moves: tuple[int, ...] | int) -> NDArray[np.int32]:
        row = np.full(256, NO_STATE, np.int32)
        for low, high, below, first in branches(place):
            if below is not None:
                row[low : high + 1] = self._state_within(below, moves)
            elif isinstance(moves, int):
                row[low : high + 1] = self._state_between(moves)
            else:
                for range_first, range_last, number in self._automaton.partition.ranges_within(
                    first, first + high - low
                ):
                    state = self._state_between(moves[number])
                    row[low + range_first - first : low + range_last - first + 1] = state
        return row

    def _classes_of(self, place: Place) -> tuple[int, ...]:
        classes = self._classes.get(place)
        if classes is None:
            found: set[int] = set()
            for first, last in code_point_ranges(place):
                found |= self._automaton.partition.classes_within(first, last)
            classes = self._classes[place] = tuple(sorted(found))
        return classes
