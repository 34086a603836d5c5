"""Embeds automata of regular languages as states of the machine, whose rows are built on demand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.machine.automaton.json_base_states import EMBEDDED_SLICE, QUOTE
from rtlang_grammars.machine.automaton.layout import ENDS, ENDS_OR_GOES_ON, NONE, OPEN, ROW
from rtlang_grammars.machine.automaton.tables import Tables
from rtlang_grammars.regular.automata.branching import continuations
from rtlang_grammars.regular.automata.byte_automaton import NamesAutomaton
from rtlang_grammars.regular.characters.coarse_classes import ALL_LEVELS

_DEAD = -1
"""Stands for the state of an automaton that cannot go on."""
_MAX_CROSSINGS = 64
_MAX_SEARCHED = 300
"""States visited to find the nearest end of a string."""
FREE_LENGTH = 16
"""If this many plain characters may follow, most tokens need no walk: 99 % of the tokens of Qwen2 are shorter."""


class EmbeddedAutomaton(Protocol):
    """The interface that an automaton must have; see `regular.automata.byte_automaton`."""

    start: int

    def row(self, state: int) -> NDArray[np.int32]:
        """[256] next states, -1 where nothing can follow."""

    def is_accepting(self, state: int) -> bool:
        """Whether a text may end here."""

    def is_between_characters(self, state: int) -> bool:
        """Whether the next byte begins a character."""

    def continuation(self, state: int) -> tuple[int, int] | None:
        """If all ways to complete the current character in UTF-8 lead to one state: that state, and the first of the
        `branching.continuations` before it; else None.
        """

    def remaining_lengths(self, limit: int) -> dict[int, int] | None:
        """For each state between characters, the minimum number of missing characters; None if there are more than `limit` states."""

    def breaking_bytes(self, limit: int) -> dict[int, bytes] | None:
        """For each state between characters, bytes of which every text that is forbidden from there on has one; None: too many states."""

    def states_after_character(self, state: int) -> list[int]:
        """The states between characters reached by completing the character, from a state within it."""

    def compressed_row(self, state: int) -> tuple[list[int], NDArray[np.uint8]]:
        """The possible next states, -1 for none, and for each byte the index of its state, [256]."""

    def free_length(self, state: int, limit: int) -> int | None:
        """Number of arbitrary plain characters that may follow: up to `limit`, None for unbounded."""

    def is_free(self, state: int) -> bool:
        """Whether any plain text is certainly allowed forever after a state between characters. False means unknown."""

    def relaxed(self, state: int, reach: int) -> int:
        """A state between characters after which the same texts of up to `reach` characters may follow."""

    def nearest_end(self, state: int, limit: int) -> bytes | None:
        """A short text from a state between characters to acceptance; None if that takes more than `limit` states."""

    def coarse_levels(self, state: int) -> int:
        """Levels of coarse classes, as bits, at which all that follows a state between characters treats a whole class alike."""


def add_continuations(tables: Tables, target: int, block: int = 0) -> int:
    """Add the states of `branching.continuations` that lead to `target`, with all their rows; returns the first."""
    by_byte = continuations().by_byte
    count, first = len(by_byte), tables.num_states
    row = tables.add_rows(count)
    values = np.array([NONE, target, *range(first, first + count)], dtype=np.int32)
    values.take(by_byte, out=tables.rows[row : row + count], mode="clip")
    tables.add_states_of(row, count, block)
    return first


def continuation_state(
    tables: Tables, automaton: EmbeddedAutomaton, local: int, state: Callable[[int], int], states: dict[int, int]
) -> int | None:
    """The machine's number of a state from which all ways to complete the character lead to one state; adds it with its neighbours.

    Args:
        state: returns the machine's number of another state of the automaton.
        states: all known numbers; added states are entered.
    Returns:
        None if the character may end in several states.
    """
    ends = automaton.continuation(local)
    if ends is None:
        return None
    first = add_continuations(tables, state(ends[0]))
    states.update((ends[1] + i, first + i) for i in range(len(continuations().states)))
    return states[local]


class Embedding:
    """One automaton within the tables. A text and its frame end where something else follows."""

    def __init__(
        self,
        tables: Tables,
        automaton: EmbeddedAutomaton,
        *,
        is_deterministic: bool = True,
        is_everything: bool = False,
    ) -> None:
        """Start empty.

        Args:
            is_deterministic: no byte that may follow a complete text could also continue it.
            is_everything: nothing follows a complete text.
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
            found = continuation_state(self._tables, self._automaton, local, self.state, self._states)
        if found is None:
            acc = self._acc if self._automaton.is_accepting(local) else OPEN
            is_sliced = self._is_everything and self._automaton.is_between_characters(local)
            found = self._tables.leave_open(self._maker, acc=acc, slice_id=EMBEDDED_SLICE if is_sliced else 0)
            self._states[local] = found
            self._locals[found] = local
            if is_sliced:
                self._tables.embedded[found] = self
        return found

    def is_quoted(self, number: int) -> bool:
        """See `tables.Embedded`."""
        return False

    def free_length(self, number: int) -> int | None:
        """See `tables.Embedded`."""
        return self._automaton.free_length(self._locals[number], FREE_LENGTH)

    def is_free(self, number: int) -> bool:
        """See `tables.Embedded`."""
        return self._automaton.is_free(self._locals[number])

    def nearest_ends(self, number: int) -> list[bytes]:
        """See `tables.Embedded`: a text has no closing quote."""
        return []

    def relaxed(self, number: int, reach: int) -> int:
        """See `tables.Embedded`."""
        local = self._locals[number]
        relaxed = self._automaton.relaxed(local, reach)
        return number if relaxed == local else self.state(relaxed)

    def coarse_levels(self, number: int) -> int:
        """See `tables.Embedded`."""
        return self._automaton.coarse_levels(self._locals[number])

    def start(self, *, is_called: bool = True) -> int:
        """The start state. A called frame must not end before its first byte: its start is then a separate state."""
        local = self._automaton.start
        if not is_called or not self._automaton.is_accepting(local):
            return self.state(local)
        start = self._tables.leave_open(self._maker)
        self._locals[start] = local
        return start

    def first_bytes(self) -> bytes:
        """The first bytes of its texts."""
        return bytes(np.flatnonzero(self._automaton.row(self._automaton.start) >= 0).tolist())

    def _make_row(self, number: int) -> None:
        targets, index = self._automaton.compressed_row(self._locals[number])
        states = self._states
        values = [states[at] if at in states else self.state(at) for at in targets]
        self._tables.set_state(number, ROW, self._tables.add_row_of(values, index))


_Local = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Crossing:
    """The joint transitions of several automata, which many of their states share.

    Attributes:
        indices: for each automaton, the transition index of each byte. Kept because crossings are looked up by the identity of these
            arrays.
        ways: combinations of transitions taken by some byte, one transition for each automaton.
        by_byte: [256], index into `ways` for each byte.
    """

    indices: list[NDArray[np.uint8]]
    ways: list[tuple[int, ...]]
    by_byte: NDArray[np.intp]

    @classmethod
    def of(cls, indices: list[NDArray[np.uint8]]) -> _Crossing:
        numbers: dict[tuple[int, ...], int] = {}
        number = numbers.setdefault
        by_byte = [number(ways, len(numbers)) for ways in zip(*[index.tolist() for index in indices], strict=True)]
        return cls(indices, list(numbers), np.array(by_byte, dtype=np.intp))


class QuotedEmbedding:
    """The insides of JSON strings of several disjoint languages in parallel, as one automaton within the surrounding frame.

    The target of the closing quote depends on the language of the text.
    """

    def __init__(
        self,
        tables: Tables,
        automata: Sequence[EmbeddedAutomaton],
        ends: Sequence[int],
        *,
        block: int = 0,
        is_free: bool = False,
    ) -> None:
        """Start empty.

        Args:
            ends: for each automaton, the value of the quote after one of its texts.
            block: BLOCK of the states.
            is_free: every beginning can be completed to a text of some language.
        """
        self._tables, self._automata, self._ends, self._block = tables, automata, ends, block
        dead = (_DEAD,) * len(automata)
        self._states: dict[_Local, int] = {dead: NONE}
        self._alone: list[dict[int, int]] = [{_DEAD: NONE} for _ in automata]  # where only one automaton continues
        self._locals: dict[int, _Local] = {}
        self._crossings: dict[tuple[int, ...], _Crossing] = {}
        self._is_free = is_free
        self._maker = self._make_row

    def start(self) -> int:
        """The state after the opening quote."""
        return self.state(tuple(automaton.start for automaton in self._automata))

    def is_quoted(self, number: int) -> bool:
        """See `tables.Embedded`."""
        return True

    def free_length(self, number: int) -> int | None:
        """See `tables.Embedded`."""
        if self._is_free:
            return None
        best = 0
        for at, automaton in zip(self._locals[number], self._automata, strict=True):
            length = automaton.free_length(at, FREE_LENGTH) if at >= 0 else 0
            if length is None:
                return None
            best = max(best, length)
        return best

    def is_free(self, number: int) -> bool:
        """See `tables.Embedded`."""
        pairs = zip(self._locals[number], self._automata, strict=True)
        return self._is_free or any(at >= 0 and automaton.is_free(at) for at, automaton in pairs)

    def nearest_ends(self, number: int) -> list[bytes]:
        """See `tables.Embedded`: one for each language, since the target of the quote depends on it."""
        texts = []
        for at, automaton in zip(self._locals[number], self._automata, strict=True):
            if at >= 0:
                text = automaton.nearest_end(at, _MAX_SEARCHED)
                if text is None:
                    return []
                texts.append(text)
        return texts

    def relaxed(self, number: int, reach: int) -> int:
        """See `tables.Embedded`."""
        local = self._locals[number]
        pairs = zip(local, self._automata, strict=True)
        relaxed = tuple([at if at < 0 else automaton.relaxed(at, reach) for at, automaton in pairs])
        return number if relaxed == local else self.state(relaxed)

    def coarse_levels(self, number: int) -> int:
        """See `tables.Embedded`."""
        levels = ALL_LEVELS
        for at, automaton in zip(self._locals[number], self._automata, strict=True):
            if at >= 0:
                levels &= automaton.coarse_levels(at)
        return levels

    def state(self, local: _Local) -> int:
        """The machine's number of a state."""
        found = self._states.get(local)
        if found is None:
            alive = [i for i, at in enumerate(local) if at >= 0]
            if len(alive) == 1:
                found = self._state_alone(alive[0], local[alive[0]])
            elif self._automata[alive[0]].is_between_characters(local[alive[0]]):
                found = self._open(local, is_between=True)
            elif self._add_continuations(local):
                return self._states[local]
            else:
                found = self._open(local, is_between=False)
            self._states[local] = found
        return found

    def _open(self, local: _Local, *, is_between: bool) -> int:
        slice_id = EMBEDDED_SLICE if is_between else 0
        found = self._tables.leave_open(self._maker, block=self._block, slice_id=slice_id)
        self._locals[found] = local
        if is_between:
            self._tables.embedded[found] = self
        return found

    def _add_continuations(self, local: _Local) -> bool:
        """Add a state and its neighbours if, in each automaton, all ways to complete the character lead to one; else return False."""
        ends: list[tuple[int, int]] = []
        for at, automaton in zip(local, self._automata, strict=True):
            end = (_DEAD, _DEAD) if at < 0 else automaton.continuation(at)
            if end is None:
                return False
            ends.append(end)
        first = add_continuations(self._tables, self.state(tuple([end for end, _ in ends])), self._block)
        for i in range(len(continuations().states)):
            self._states[tuple([_DEAD if begin < 0 else begin + i for _, begin in ends])] = first + i
        return True

    def _state_alone(self, place: int, at: int) -> int:
        """The machine's number of a state from which only one automaton continues."""
        alone, automaton = self._alone[place], self._automata[place]
        found = alone.get(at)
        if found is not None:
            return found
        is_between = automaton.is_between_characters(at)
        ends = None if is_between else automaton.continuation(at)
        if ends is not None:
            end, begin = ends
            first = add_continuations(self._tables, self._state_alone(place, end), self._block)
            count = len(continuations().states)
            alone.update(zip(range(begin, begin + count), range(first, first + count), strict=True))
            return alone[at]
        dead = (_DEAD,) * len(self._automata)
        found = alone[at] = self._open((*dead[:place], at, *dead[place + 1 :]), is_between=is_between)
        return found

    def _ways(self, local: _Local, alive: list[int]) -> tuple[list[_Local], NDArray[np.integer[Any]]]:
        """The next states if several automata continue, and for each byte the index of its state."""
        following = [self._automata[i].compressed_row(local[i]) for i in alive]
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
            following, index = self._automata[only].compressed_row(local[only])
            alone = self._alone[only]
            row = tables.add_row_of(
                [alone[at] if at in alone else self._state_alone(only, at) for at in following], index
            )
        else:
            columns, by_byte = self._ways(local, alive)
            states = self._states
            row = tables.add_row_of([states[at] if at in states else self.state(at) for at in columns], by_byte)
        end = self._end(local)
        if end != NONE:
            tables.rows[row, QUOTE] = end
        tables.set_state(number, ROW, row)

    def _end(self, local: _Local) -> int:
        """The value of the closing quote."""
        for at, automaton, end in zip(local, self._automata, self._ends, strict=True):
            if at >= 0 and automaton.is_accepting(at):
                return end
        return NONE


class NamesEmbedding(QuotedEmbedding):
    """The insides of all names of an object without dead ends, as one automaton within the surrounding frame."""

    def __init__(self, tables: Tables, names: NamesAutomaton, ends: Sequence[int], *, block: int = 0) -> None:
        """Start empty.

        Args:
            ends: for each label, the value of the closing quote after a name with that label.
            block: BLOCK of the states.
        """
        super().__init__(tables, [names], ends[:1], block=block, is_free=True)
        self._names, self._ends_by_label = names, ends

    def nearest_ends(self, number: int) -> list[bytes]:
        """See `tables.Embedded`."""
        return self._names.nearest_ends(self._locals[number][0], _MAX_SEARCHED)

    def _end(self, local: _Local) -> int:
        label = self._names.label(local[0])
        return NONE if label is None else self._ends_by_label[label]
