"""Embeds strings and numbers of a regular language whose characters are also counted. The register holds the count, not the states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rtlang_grammars.lowering.languages.embedding import (
    EmbeddedAutomaton,
    Embedding,
    QuotedEmbedding,
    continuation_state,
)
from rtlang_grammars.machine.automaton.json_base_states import QUOTE, TWIN_SLICE
from rtlang_grammars.machine.automaton.layout import AT_LEAST, AT_MOST, COUNT, NONE, PARAM, ROW, SLICE, WIDTH
from rtlang_grammars.machine.automaton.tables import Register, Tables

MAX_COUNTED = 1000
"""Maximum number of states of a counted language; the distance to the end is computed for each of them."""
_MAX_NUMBER_STATES = 1 << 20  # more than the limits of a compile allow


class CountedEmbedding:
    """The inside of a JSON string of a language with a minimum and a maximum number of code points, counted in the register.

    A character may begin only where the rest of a text still fits, so every beginning can be completed. A minimum above one requires that
    every state allows as many characters as are left (any number of characters of one set).
    """

    def __init__(
        self, tables: Tables, automaton: EmbeddedAutomaton, end: int, least: int, most: int, missing: dict[int, int]
    ) -> None:
        """`missing`: for each state of the automaton, the minimum number of missing code points; at most `most` at the start."""
        assert least <= 1 or set(missing.values()) == {0}
        self._tables, self._automaton, self._end, self._least, self._most = tables, automaton, end, least, most
        self._missing = dict(missing)
        self._far = most - max(missing.values())
        self._twin = QuotedEmbedding(tables, [automaton], [end])
        self._states: dict[int, int] = {}
        self._locals: dict[int, int] = {}
        self._maker = self._make_row

    def start(self) -> int:
        """The state after the opening quote."""
        return self._state(self._automaton.start)

    def _state(self, local: int) -> int:
        found = self._states.get(local)
        if found is None:
            found = continuation_state(self._tables, self._automaton, local, self._state, self._states)
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

    def is_quoted(self, number: int) -> bool:
        """See `tables.Embedded`."""
        return True

    def free_length(self, number: int) -> int | None:
        """See `tables.Embedded`: unknown without the count."""
        return 0

    def is_free(self, number: int) -> bool:
        """See `tables.Embedded`: unknown without the count."""
        return False

    def nearest_ends(self, number: int) -> list[bytes]:
        """See `tables.Embedded`: unknown without the count."""
        return []

    def relaxed(self, number: int, reach: int) -> int:
        """See `tables.Embedded`: the count is not in the state."""
        return number

    def coarse_levels(self, number: int) -> int:
        """See `tables.Embedded`."""
        return self._automaton.coarse_levels(self._locals[number])

    def _near(self, local: int) -> int:
        """Minimum number of characters missing after the current one."""
        found = self._missing.get(local)
        if found is None:
            found = self._missing[local] = min(
                self._missing[after] for after in self._automaton.states_after_character(local)
            )
        return found

    def _make_row(self, number: int) -> None:
        tables, automaton, local = self._tables, self._automaton, self._locals[number]
        begins = automaton.is_between_characters(local)
        targets, index = automaton.compressed_row(local)
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


@dataclass(frozen=True, slots=True)
class TextCloser:
    """Completes a frame from one state, whatever its register holds."""

    end: bytes

    @property
    def weight(self) -> int:
        """Work of `text` in the units of WorkLimit."""
        return 1

    def text(self, register: Register, shortest: object, avoid: object) -> bytes:
        """The rest of the frame."""
        return self.end


class NumberEmbedding(Embedding):
    """Numbers of a regular language, of which only finitely many texts are left: the register counts what could be repeated forever.

    Where the end is near, only bytes that lead nearer to it are allowed, so every beginning can be completed.
    """

    def __init__(self, tables: Tables, automaton: EmbeddedAutomaton, most: int, *, has_cycles: bool) -> None:
        """Start empty.

        Args:
            most: how many bytes may be repeated.
            has_cycles: the automaton may return to a state by way of others; if not, only bytes that stay in a state are counted.
        """
        super().__init__(tables, automaton)
        self._most = most
        self._missing = automaton.remaining_lengths(_MAX_NUMBER_STATES) or {} if has_cycles else {}
        self._nearest: dict[int, bytes] = {}

    def state(self, local: int) -> int:
        """See `Embedding.state`."""
        is_new = local not in self._states
        found = super().state(local)
        if is_new and self._missing:
            self._tables.closers[found] = TextCloser(self._nearest_end(local))
        return found

    def _nearest_end(self, local: int) -> bytes:
        """The shortest text from a state to the end of the number."""
        found = self._nearest.get(local)
        if found is None:
            found = b""
            if self._missing[local]:
                row = self._automaton.row(local)
                near = [byte for byte in np.flatnonzero(row >= 0).tolist() if self._is_nearer(local, int(row[byte]))]
                found = bytes(near[:1]) + self._nearest_end(int(row[near[0]]))
            self._nearest[local] = found
        return found

    def _is_nearer(self, local: int, target: int) -> bool:
        return self._missing[target] < self._missing[local]

    def _make_row(self, number: int) -> None:
        tables, local = self._tables, self._locals[number]
        targets, index = self._automaton.compressed_row(local)
        values = []
        for target in targets:
            value = self.state(target)
            if value >= 0 and (target == local or (self._missing and not self._is_nearer(local, target))):
                value = tables.action(COUNT, value, self._most, self._most)
            values.append(value)
        tables.set_state(number, ROW, tables.add_row_of(values, index))
