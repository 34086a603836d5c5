"""Free text with triggers, as states of the machine.

The states combine an automaton that recognizes triggers (Aho and Corasick 1975) with the position inside a UTF-8 character and the number
of triggers so far. The byte that completes a trigger leads to the content of its tag. A special token is allowed within a trigger only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.machine.automaton.layout import ENDS_OR_GOES_ON, NONE, OPEN, ROW
from rtlang_grammars.machine.automaton.tables import Tables
from rtlang_grammars.spec.tokens import SPELLING_BYTES, TOKEN_LEAD

TEXT_FIRST = bytes((*range(0x80), *range(0xC2, 0xF5)))
"""The first bytes of characters."""

_RANGES: tuple[tuple[tuple[int, int, int], ...], ...] = (
    (
        (0x00, 0x80, 0),
        (0xC2, 0xE0, 1),
        (0xE0, 0xE1, 4),
        (0xE1, 0xED, 2),
        (0xED, 0xEE, 5),
        (0xEE, 0xF0, 2),
        (0xF0, 0xF1, 6),
        (0xF1, 0xF4, 3),
        (0xF4, 0xF5, 7),
    ),
    ((0x80, 0xC0, 0),),
    ((0x80, 0xC0, 1),),
    ((0x80, 0xC0, 2),),
    ((0xA0, 0xC0, 1),),
    ((0x80, 0xA0, 1),),
    ((0x90, 0xC0, 2),),
    ((0x80, 0x90, 2),),
)
"""Positions inside a character: for each such state, ranges of bytes and their next states."""
_IN_TOKEN = len(_RANGES)
"""From here on: positions inside the spelling of a token."""


class Triggers:
    """Recognizes several texts byte by byte (Aho-Corasick). Immutable.

    Attributes:
        rows: int32 [nodes, 256], the next node; node 0 means that no text has begun.
        found: for each node, the text that it completes; -1 for none.
        num_held: for each node, the bytes from the first token in its text to its end; 0 without a token.
    """

    def __init__(self, texts: Sequence[bytes]) -> None:
        """`texts`: none of them is empty or contained in another."""
        following: list[dict[int, int]] = [{}]
        self.found: list[int] = [-1]
        self.num_held = [0]
        for number, text in enumerate(texts):
            node = 0
            for byte in text:
                if byte not in following[node]:
                    following[node][byte] = len(following)
                    following.append({})
                    self.found.append(-1)
                    held = self.num_held[node]
                    self.num_held.append(held + 1 if held else int(byte == TOKEN_LEAD))
                node = following[node][byte]
            self.found[node] = number
        self.rows: NDArray[np.int32] = np.zeros((len(following), 256), dtype=np.int32)
        waiting = [(0, 0)]  # nodes with the longest proper suffix of their text that is a node; shorter texts first
        for node, shorter in waiting:  # grows during iteration
            if node:
                self.rows[node] = self.rows[shorter]
            for byte, target in following[node].items():
                waiting.append((target, int(self.rows[node, byte])))
                self.rows[node, byte] = target


class FreeText:
    """The states of one free text. Rows are built on demand, under the lock of the tables."""

    def __init__(
        self, tables: Tables, triggers: Sequence[bytes], low: int, high: int | None, begin: Callable[[int, int], int]
    ) -> None:
        """Start empty.

        Args:
            low, high: bounds on the number of triggers; the text may end at `low`.
            begin: returns the state after a trigger, given the trigger and the count including it.
        """
        self._tables, self._low, self._high, self._begin = tables, low, high, begin
        self._triggers = Triggers(triggers)
        self._states: dict[tuple[int, int, int], int] = {}
        self._places: dict[int, tuple[int, int, int]] = {}

    def start(self) -> int:
        """The state to call: the text has at least one byte."""
        return self._open((0, 0, 0), OPEN)

    def behind(self, count: int) -> int:
        """The state after `count` complete tags."""
        return self._state((self._counted(count), 0, 0))

    def _counted(self, count: int) -> int:
        """Cap a count: counts beyond the bounds are equivalent."""
        return min(count, self._low if self._high is None else self._high)

    def _state(self, place: tuple[int, int, int]) -> int:
        found = self._states.get(place)
        if found is None:
            may_end = place[0] >= self._low and place[2] == 0 and not self._triggers.num_held[place[1]]
            found = self._states[place] = self._open(place, ENDS_OR_GOES_ON if may_end else OPEN)
        return found

    def _open(self, place: tuple[int, int, int], acc: int) -> int:
        number = self._tables.leave_open(self._make_row, acc=acc)
        self._places[number] = place
        return number

    def _make_row(self, number: int) -> None:
        count, node, within = self._places[number]
        values = np.full(256, NONE, dtype=np.int32)
        following, held = self._triggers.rows[node], self._triggers.num_held
        for low, high, target in self._ranges(within):
            for reached in np.unique(following[low:high]).tolist():
                trigger = self._triggers.found[reached]
                if held[reached] != held[node] + 1 and (held[node] or low == TOKEN_LEAD):
                    value = NONE  # a token that would stand in free text
                elif trigger < 0:
                    value = self._state((count, reached, target))
                elif self._high is None or count < self._high:
                    value = self._begin(trigger, self._counted(count + 1))
                else:
                    value = NONE
                values[low:high][following[low:high] == reached] = value
        place = self._tables.add_row()
        self._tables.rows[place] = values
        self._tables.set_state(number, ROW, place)

    @staticmethod
    def _ranges(within: int) -> tuple[tuple[int, int, int], ...]:
        """Ranges of bytes and the next positions."""
        if within == 0:
            return (*_RANGES[0], (TOKEN_LEAD, TOKEN_LEAD + 1, _IN_TOKEN))
        if within < _IN_TOKEN:
            return _RANGES[within]
        is_last = within == _IN_TOKEN + SPELLING_BYTES - 2
        return ((0x80, 0xC0, 0 if is_last else within + 1),)
