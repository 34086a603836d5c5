"""Automata of regular languages as states of the machine, their rows made when a walk first comes by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.machine.layout import (
    AT_LEAST,
    AT_MOST,
    COUNT,
    ENDS,
    ENDS_OR_GOES_ON,
    NONE,
    OPEN,
    PARAM,
    ROW,
    SLICE,
    WIDTH,
)
from rtlang_grammars.machine.prelude import EMBEDDED_SLICE, QUOTE, TWIN_SLICE
from rtlang_grammars.machine.tables import Tables
from rtlang_grammars.regular.grains import ALL_LEVELS

_DEAD = -1
"""The state of an automaton that cannot go on."""
_MAX_COUNTED = 1000
_MAX_CROSSINGS = 64
_MAX_SEARCHED = 300
"""States that are looked at for the nearest end of a string."""
FREE_LENGTH = 16
"""Where so many plain characters may follow, most tokens need no walk: all but 1 % of those of Qwen2 are shorter."""


class ByteAutomaton(Protocol):
    """What is needed of an automaton; see `regular.byte_automaton`."""

    start: int

    def row(self, state: int) -> NDArray[np.int32]:
        """[256] next states, -1 where nothing can follow."""

    def is_accepting(self, state: int) -> bool:
        """Whether a text may end here."""

    def is_between_characters(self, state: int) -> bool:
        """Whether the next byte begins a character."""

    def after_character(self, state: int) -> list[int]:
        """The states that one character leads to, from a state between characters."""

    def after_rest(self, state: int) -> list[int]:
        """The same from a state within a character, with the rest of it."""

    def ways(self, state: int) -> tuple[list[int], NDArray[np.uint8]]:
        """The states that can follow, -1 for none, and for each byte which of them, [256]."""

    def free_length(self, state: int, limit: int) -> int | None:
        """How many plain characters may follow, whichever they are: up to `limit`, None where there is no end to it."""

    def nearest_end(self, state: int, limit: int) -> bytes | None:
        """A short text from a state between characters to acceptance; None where that takes more states than `limit`."""

    def grain_levels(self, state: int) -> int:
        """The levels of grains, as bits, of which nothing behind a state between characters tells two characters of one grain apart."""


class Embedding:
    """One automaton within the tables. Its texts end the frame by what follows them."""

    def __init__(
        self, tables: Tables, automaton: ByteAutomaton, *, is_deterministic: bool = True, is_everything: bool = False
    ) -> None:
        """Nothing yet.

        Args:
            is_deterministic: no byte that may follow a whole text could also go on within it.
            is_everything: nothing follows a whole text.
        """
        self._tables, self._automaton, self._is_everything = tables, automaton, is_everything
        self._acc = ENDS if is_deterministic else ENDS_OR_GOES_ON
        self._states: dict[int, int] = {_DEAD: NONE}
        self._locals: dict[int, int] = {}
        self._maker = self._make_row

    def state(self, local: int) -> int:
        """The machine's number of a state of the automaton."""
        found = self._states.get(local)
        if found is None:
            acc = self._acc if self._automaton.is_accepting(local) else OPEN
            is_sliced = self._is_everything and self._automaton.is_between_characters(local)
            found = self._tables.leave_open(self._maker, acc=acc, slice_id=EMBEDDED_SLICE if is_sliced else 0)
            self._states[local] = found
            self._locals[found] = local
            if is_sliced:
                self._tables.embedded[found] = self
        return found

    def free_length(self, number: int) -> int | None:
        """See `tables.Embedded`."""
        return self._automaton.free_length(self._locals[number], FREE_LENGTH)

    def nearest_ends(self, number: int) -> list[bytes]:
        """See `tables.Embedded`: there is no quote."""
        return []

    def grain_levels(self, number: int) -> int:
        """See `tables.Embedded`."""
        return self._automaton.grain_levels(self._locals[number])

    def start(self, *, is_called: bool = True) -> int:
        """The state to begin in. A called frame must not end before its first byte: its start is then a state of its own."""
        local = self._automaton.start
        if not is_called or not self._automaton.is_accepting(local):
            return self.state(local)
        start = self._tables.leave_open(self._maker)
        self._locals[start] = local
        return start

    def first_bytes(self) -> bytes:
        """The bytes that a text begins with."""
        return bytes(np.flatnonzero(self._automaton.row(self._automaton.start) >= 0).tolist())

    def _make_row(self, number: int) -> None:
        targets, index = self._automaton.ways(self._locals[number])
        states = self._states
        values = [states[at] if at in states else self.state(at) for at in targets]
        self._tables.set_state(number, ROW, self._tables.add_row_of(values, index))


_Local = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Crossing:
    """Where bytes lead in several automata at once, which is the same for many of their states.

    Attributes:
        indices: of each automaton, which way each byte takes. Kept, since a crossing is found again by which arrays these are.
        ways: ways that some byte takes, one of each automaton.
        by_byte: [256], which of `ways` each byte takes.
    """

    indices: list[NDArray[np.uint8]]
    ways: list[tuple[int, ...]]
    by_byte: NDArray[np.intp]

    @classmethod
    def of(cls, indices: list[NDArray[np.uint8]]) -> _Crossing:
        numbers: dict[tuple[int, ...], int] = {}
        by_byte = [
            numbers.setdefault(ways, len(numbers)) for ways in zip(*(index.tolist() for index in indices), strict=True)
        ]
        return cls(indices, list(numbers), np.array(by_byte, dtype=np.intp))


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
        dead = (_DEAD,) * len(automata)
        self._states: dict[_Local, int] = {dead: NONE}
        self._alone: list[dict[int, int]] = [{_DEAD: NONE} for _ in automata]  # where no other automaton goes on
        self._locals: dict[int, _Local] = {}
        self._crossings: dict[tuple[int, ...], _Crossing] = {}
        self._is_free = is_free
        self._maker = self._make_row

    def start(self) -> int:
        """The state behind the opening quote."""
        return self.state(tuple(automaton.start for automaton in self._automata))

    def free_length(self, number: int) -> int | None:
        """How many plain characters may follow in this state, where a character begins, whichever they are; None where it never ends."""
        if self._is_free:
            return None
        best = 0
        for at, automaton in zip(self._locals[number], self._automata, strict=True):
            length = automaton.free_length(at, FREE_LENGTH) if at >= 0 else 0
            if length is None:
                return None
            best = max(best, length)
        return best

    def nearest_ends(self, number: int) -> list[bytes]:
        """See `tables.Embedded`: one for each language, since the end of a text leads to what its language says."""
        texts = []
        for at, automaton in zip(self._locals[number], self._automata, strict=True):
            if at >= 0:
                text = automaton.nearest_end(at, _MAX_SEARCHED)
                if text is None:
                    return []
                texts.append(text)
        return texts

    def grain_levels(self, number: int) -> int:
        """See `tables.Embedded`."""
        levels = ALL_LEVELS
        for at, automaton in zip(self._locals[number], self._automata, strict=True):
            if at >= 0:
                levels &= automaton.grain_levels(at)
        return levels

    def state(self, local: _Local) -> int:
        """The machine's number of a state."""
        found = self._states.get(local)
        if found is None:
            tables = self._tables
            place = next(i for i, at in enumerate(local) if at >= 0)
            is_between = self._automata[place].is_between_characters(local[place])
            slice_id = EMBEDDED_SLICE if is_between else 0
            found = self._states[local] = tables.leave_open(self._maker, block=self._block, slice_id=slice_id)
            self._locals[found] = local
            if is_between:
                tables.embedded[found] = self
        return found

    def _state_alone(self, place: int, at: int) -> int:
        """The state where only one automaton goes on."""
        dead = (_DEAD,) * len(self._automata)
        found = self._alone[place][at] = self.state((*dead[:place], at, *dead[place + 1 :]))
        return found

    def _ways(self, local: _Local, alive: list[int]) -> tuple[list[_Local], NDArray[np.integer[Any]]]:
        """The states that follow where several automata go on, and for each byte which of them."""
        following = [self._automata[i].ways(local[i]) for i in alive]
        key = tuple([id(index) for _, index in following])
        crossing = self._crossings.get(key)
        if crossing is None:
            if len(self._crossings) >= _MAX_CROSSINGS:
                self._crossings.clear()
            crossing = self._crossings[key] = _Crossing.of([index for _, index in following])
        found: list[_Local] = []
        if len(alive) == len(local) == 2:
            (first, _), (second, _) = following
            for one, other in crossing.ways:
                found.append((first[one], second[other]))
            return found, crossing.by_byte
        for ways in crossing.ways:
            column = [_DEAD] * len(local)
            for i, (targets, _), way in zip(alive, following, ways, strict=True):
                column[i] = targets[way]
            found.append(tuple(column))
        return found, crossing.by_byte

    def _make_row(self, number: int) -> None:
        tables, local = self._tables, self._locals[number]
        alive = [i for i, at in enumerate(local) if at >= 0]
        if len(alive) == 1:
            (only,) = alive
            following, index = self._automata[only].ways(local[only])
            alone = self._alone[only]
            row = tables.add_row_of(
                [alone[at] if at in alone else self._state_alone(only, at) for at in following], index
            )
        else:
            columns, by_byte = self._ways(local, alive)
            states = self._states
            row = tables.add_row_of([states[at] if at in states else self.state(at) for at in columns], by_byte)
        for i in alive:
            if self._automata[i].is_accepting(local[i]):
                tables.rows[row, QUOTE] = self._ends[i]
        tables.set_state(number, ROW, row)


def distances(automaton: ByteAutomaton) -> dict[int, int] | None:
    """For each state between characters, how many characters are missing at least; None where there are too many states."""
    before: dict[int, list[int]] = {automaton.start: []}
    for state in (waiting := [automaton.start]):  # grows while it is walked
        for following in automaton.after_character(state):
            if following not in before:
                if len(waiting) >= _MAX_COUNTED:
                    return None
                before[following] = []
                waiting.append(following)
            before[following].append(state)
    found = {state: 0 for state in waiting if automaton.is_accepting(state)}
    for state in (near := list(found)):
        for earlier in before[state]:
            if earlier not in found:
                found[earlier] = found[state] + 1
                near.append(earlier)
    return found


class CountedEmbedding:
    """The inside of a JSON string of a language, with at least and at most some code points, counted in the register.

    A character may begin only where the rest of a text still fits, so every way can be ended. More than one code point may be asked for
    only where as many as are left may follow in every state (any number of the characters of one set).
    """

    def __init__(
        self, tables: Tables, automaton: ByteAutomaton, end: int, least: int, most: int, missing: dict[int, int]
    ) -> None:
        """`missing`: what `distances` says, of which the start's is at most `most`."""
        assert least <= 1 or set(missing.values()) == {0}
        self._tables, self._automaton, self._end, self._least, self._most = tables, automaton, end, least, most
        self._missing = dict(missing)
        self._far = most - max(missing.values())
        self._twin = QuotedEmbedding(tables, [automaton], [end])
        self._states: dict[int, int] = {}
        self._locals: dict[int, int] = {}
        self._maker = self._make_row

    def start(self) -> int:
        """The state behind the opening quote."""
        return self._state(self._automaton.start)

    def _state(self, local: int) -> int:
        found = self._states.get(local)
        if found is None:
            tables = self._tables
            found = self._states[local] = tables.leave_open(self._maker)
            self._locals[found] = local
            if self._automaton.is_between_characters(local):
                tables.set_state(found, SLICE, TWIN_SLICE)
                tables.set_state(found, PARAM, self._twin.state((local,)))
                tables.set_state(found, WIDTH, self._far)
                tables.counted[found] = (max(1, self._least), self._far)
                tables.embedded[found] = self
        return found

    def free_length(self, number: int) -> int | None:
        """See `tables.Embedded`: nothing is known without the count."""
        return 0

    def nearest_ends(self, number: int) -> list[bytes]:
        """See `tables.Embedded`: nothing is known without the count."""
        return []

    def grain_levels(self, number: int) -> int:
        """See `tables.Embedded`."""
        return self._automaton.grain_levels(self._locals[number])

    def _near(self, local: int) -> int:
        """Characters that are missing at least, behind the one that is under way."""
        found = self._missing.get(local)
        if found is None:
            found = self._missing[local] = min(self._missing[after] for after in self._automaton.after_rest(local))
        return found

    def _make_row(self, number: int) -> None:
        tables, automaton, local = self._tables, self._automaton, self._locals[number]
        begins = automaton.is_between_characters(local)
        targets, index = automaton.ways(local)
        values = [NONE] * len(targets)
        made: dict[int, int] = {}
        for i, target in enumerate(targets):
            if target in made:
                values[i] = made[target]
            elif target >= 0:
                room = self._most - self._near(target)
                if begins:
                    if room > 0:
                        values[i] = tables.action(COUNT, self._state(target), room, self._most)
                elif self._near(target) == self._near(local):
                    values[i] = self._state(target)
                elif room >= 0:
                    values[i] = tables.action(AT_MOST, self._state(target), room)
                made[target] = values[i]
        place = tables.add_row_of(values, index)
        if automaton.is_accepting(local):
            tables.rows[place, QUOTE] = tables.action(AT_LEAST, self._end, self._least)
        tables.set_state(number, ROW, place)
