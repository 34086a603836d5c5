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

from rtlang_grammars.regular.automata.branching import Branching, Branchings, continuations, uniform_branching
from rtlang_grammars.regular.automata.code_point_automaton import NO_STATE
from rtlang_grammars.regular.automata.sorted_names import SortedNames
from rtlang_grammars.regular.characters.byte_spellings import ESCAPE, Place, Spelling, shape
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

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


class CodePointMoves(Protocol):
    """What a view asks of an automaton over code points; see `CodePointAutomaton`."""

    branchings: Branchings
    start: int

    @property
    def num_states(self) -> int:
        """States made so far."""

    def is_accepting(self, state: int) -> bool:
        """Whether the text so far is in the language."""

    def moves(self, state: int, budget: Budget) -> tuple[int, ...]:
        """The state after a code point of each class; NO_STATE where nothing can follow."""

    def known_moves(self, state: int) -> tuple[int, ...] | None:
        """What `moves` answered before; None where it was not asked."""

    def free_length(self, state: int, limit: int, budget: Budget) -> int | None:
        """How many plain characters may follow, whichever they are: up to `limit`, None where there is no end to it."""

    def is_free(self, state: int) -> bool:
        """Whether any plain text may certainly follow for ever; False says nothing."""

    def nearest_end(self, state: int, limit: int, budget: Budget) -> list[int] | None:
        """The classes of the characters of a short text to acceptance; None where more than `limit` states would have to be looked at."""

    def coarse_levels(self, state: int) -> int:
        """The levels of grains, as bits, of which nothing that may follow tells two characters of one grain apart."""

    def missing(self, limit: int, budget: Budget) -> dict[int, int] | None:
        """For each state, how many characters are missing at least; None where there are more states than `limit`."""


class ByteAutomaton:
    """A view of an automaton over code points. Safe to share between threads; `row` makes a new array at each call."""

    def __init__(self, automaton: CodePointMoves, *, is_json_string: bool, budget: Budget) -> None:
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
        self._blocks: dict[int, int] = {}  # by the state behind a character: the first of `continuations` before it
        self._branchings = automaton.branchings
        self._max_codes = 2 * budget.limits.max_states
        self._high: dict[int, list[int]] = {}
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

    def continuation(self, state: int) -> tuple[int, int] | None:
        """Where all ways to end the character in UTF-8 lead to one state: that state, and the first of those of `continuations` before it.

        They follow each other. None in other states.
        """
        inside = self._inside[state]
        if inside is None or not isinstance(inside[1], int) or inside[0].spelling is not Spelling.CONTINUATION:
            return None
        with self._lock:
            return self._state_between(inside[1]), self._blocks[inside[1]]

    def missing(self, limit: int) -> dict[int, int] | None:
        """For each state between characters, how many characters are missing at least; None where there are more than `limit` of them.

        Raises:
            GrammarError: as `row`.
        """
        with self._lock:
            found = self._automaton.missing(limit, self._budget.renewed())
            return None if found is None else {self._state_between(code): count for code, count in found.items()}

    def after_rest(self, state: int) -> list[int]:
        """The states between characters that the rest of a character leads to, from a state within it.

        Raises:
            GrammarError: as `row`.
        """
        inside = self._inside[state]
        assert inside is not None
        place, moves = inside
        with self._lock:
            codes = (
                {moves} if isinstance(moves, int) else {moves[number] for number in self._branchings.classes_of(place)}
            )
            return sorted({self._state_between(code) for code in codes if code != NO_STATE})

    def row(self, state: int) -> NDArray[np.int32]:
        """[256] int32: the state after each byte, -1 where nothing can follow.

        Raises:
            GrammarError: the automaton outgrew the limits of its budget; the time of one row counts for itself.
        """
        targets, index = self.ways(state)
        row: NDArray[np.int32] = np.array(targets, np.int32)[index]
        return row

    def ways(self, state: int) -> tuple[list[int], NDArray[np.uint8]]:
        """The states that can follow, some perhaps twice or -1 for none, and for each byte which of them: [256].

        Raises:
            GrammarError: as `row`.
        """
        with self._lock:
            if len(self._codes) + self._automaton.num_states > self._max_codes:
                raise GrammarError(f"too complex: more than {self._max_codes // 2} states are needed")
            inside = self._inside[state]
            if inside is not None:
                return self._ways_within(*inside)
            code = self._codes[state]
            moves = self._automaton.known_moves(code)
            return self._ways_between(self._automaton.moves(code, self._budget.renewed()) if moves is None else moves)

    def free_length(self, state: int, limit: int) -> int | None:
        """How many plain characters may follow a state between characters, whichever they are: up to `limit`, None where it never ends.

        Plain are all but control characters, the quote, the backslash, U+2028 and U+2029. Low where more states would have to be made.
        """
        with self._lock:
            return self._automaton.free_length(self._codes[state], limit, self._budget.renewed())

    def is_free(self, state: int) -> bool:
        """Whether any plain text, as in `free_length`, may certainly follow a state between characters for ever; False says nothing."""
        with self._lock:
            return self._automaton.is_free(self._codes[state])

    def nearest_end(self, state: int, limit: int) -> bytes | None:
        """A short text from a state between characters to acceptance; None where more than `limit` states would have
        to be looked at.

        Raises:
            GrammarError: as `row`.
        """
        with self._lock:
            numbers = self._automaton.nearest_end(self._codes[state], limit, self._budget.renewed())
        return None if numbers is None else self._spelled(numbers)

    def _spelled(self, numbers: list[int]) -> bytes:
        return b"".join([self._branchings.spelling(number, self._is_json_string) for number in numbers])

    def coarse_levels(self, state: int) -> int:
        """The levels of `grains`, as bits, of which nothing behind a state between characters tells two characters of one grain apart."""
        return self._automaton.coarse_levels(self._codes[state])

    def _state_between(self, code: int) -> int:
        state = self._between.get(code)
        if state is None:
            state = self._between[code] = len(self._codes)
            self._codes.append(code)
            self._inside.append(None)
        return state

    def _ways_between(self, moves: tuple[int, ...]) -> tuple[list[int], NDArray[np.uint8]]:
        """Classes of ASCII, then the places behind lead bytes of UTF-8, then what follows the backslash."""
        layout = self._branchings.between(self._is_json_string)
        known, state_between = self._between, self._state_between
        targets = [
            known[code] if (code := moves[number]) in known else state_between(code) for number in layout.classes
        ]
        codes = {moves[number] for number in layout.beyond}
        if len(codes) == 1:
            (code,) = codes
            targets += self._high_states(code, layout.shapes)
            by_byte = layout.by_byte_in_shapes
        else:
            by_byte = layout.by_byte
            for place, classes in zip(layout.leads, layout.lead_classes, strict=True):
                targets.append(self._state_at(place, classes, moves))
        targets.append(self._state_at(ESCAPE, layout.all_classes, moves) if self._is_json_string else NO_STATE)
        targets.append(NO_STATE)
        return targets, by_byte

    def _high_states(self, code: int, places: tuple[Place, ...]) -> list[int]:
        """The states behind lead bytes of UTF-8, where all characters beyond ASCII lead to one state."""
        found = self._high.get(code)
        if found is None:
            found = self._high[code] = [self._state_within(place, code) for place in places]
        return found

    def _state_at(self, place: Place, classes: tuple[int, ...], moves: tuple[int, ...]) -> int:
        """The state at a place, given the moves of the state before the character and the classes that are possible there."""
        codes = moves if len(classes) == len(moves) else tuple([moves[number] for number in classes])
        first = codes[0]
        if codes.count(first) == len(codes):
            return self._state_within(place, first)
        key: tuple[object, ...] = (place, codes)
        state = self._within.get(key)
        if state is None:
            state = self._add_within(key, place, moves)
        return state

    def _state_within(self, place: Place, code: int) -> int:
        """The state at a place from which all characters lead to one state."""
        if code == NO_STATE:
            return NO_STATE
        if place.spelling is Spelling.CONTINUATION:
            return self._block(code) + continuations().numbers[shape(place)]
        key = (shape(place), code)
        state = self._within.get(key)
        if state is None:
            state = self._add_within(key, place, code)
        return state

    def _block(self, code: int) -> int:
        """The first of the states of `continuations` before a state."""
        first = self._blocks.get(code)
        if first is None:
            first = self._blocks[code] = len(self._codes)
            places = continuations().places
            self._codes += [NO_STATE] * len(places)
            self._inside += [(place, code) for place in places]
        return first

    def _add_within(self, key: tuple[object, ...], place: Place, moves: tuple[int, ...] | int) -> int:
        state = self._within[key] = len(self._codes)
        self._codes.append(NO_STATE)
        self._inside.append((place, moves))
        return state

    def _ways_within(self, place: Place, moves: tuple[int, ...] | int) -> tuple[list[int], NDArray[np.uint8]]:
        targets = [NO_STATE]
        if isinstance(moves, int):
            branching: Branching = uniform_branching(place)
            for below, _ in branching.ways:
                targets.append(self._state_between(moves) if below is None else self._state_within(below, moves))
            return targets, branching.by_byte
        branching = self._branchings.at(place)
        for below, classes in branching.ways:
            if below is None:
                targets.append(self._state_between(moves[classes[0]]))
            else:
                targets.append(self._state_at(below, classes, moves))
        return targets, branching.by_byte


class NamesAutomaton(ByteAutomaton):
    """The insides of JSON strings that are names, and what the names are."""

    def __init__(self, names: SortedNames, budget: Budget) -> None:
        """Make the first state."""
        super().__init__(names, is_json_string=True, budget=budget)
        self._names = names

    def label(self, state: int) -> int | None:
        """See `SortedNames.label`; None within a character, too."""
        code = self._codes[state]
        return None if code == NO_STATE else self._names.label(code)

    def nearest_ends(self, state: int, limit: int) -> list[bytes]:
        """Short texts from a state between characters to names of different labels, as many of them as are found within `limit` states.

        Raises:
            GrammarError: as `row`.
        """
        with self._lock:
            found = self._names.nearest_labels(self._codes[state], limit, self._budget.renewed())
        return [self._spelled(numbers) for numbers in found.values()]
