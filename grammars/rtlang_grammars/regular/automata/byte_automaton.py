"""DFAs over bytes: the strings of a language in UTF-8, or as the body of a JSON string.

Both are views of one automaton over code points. A state is either a state of that automaton at a character boundary, or a decoder state
within a character together with the transitions that are still possible; where these all lead to one state, equal decoder states are
merged. Rows contain no transition to a dead state.
"""

from __future__ import annotations

import threading
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.regular.automata.branching import ByteDispatch, CharacterDecoder, continuations, uniform_dispatch
from rtlang_grammars.regular.automata.code_point_automaton import NO_STATE
from rtlang_grammars.regular.automata.sorted_names import NameClassifier
from rtlang_grammars.regular.characters.byte_spellings import ESCAPE, DecoderPhase, DecoderState, shape
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

_QUOTE, _BACKSLASH = 0x22, 0x5C


class Automaton(Protocol):
    """A DFA over bytes whose rows are computed on demand."""

    @property
    def start(self) -> int:
        """The start state."""

    @property
    def num_states(self) -> int:
        """The number of states created so far; they are numbered from 0."""

    def row(self, state: int) -> NDArray[np.int32]:
        """Return the next state for each byte, int32 [256], -1 where the byte is not allowed. Every next state can reach acceptance.

        Raises:
            GrammarError: the automaton exceeds its limits.
        """

    def is_accepting(self, state: int) -> bool:
        """Whether the bytes read so far are a complete string of the language."""


class CodePointMoves(Protocol):
    """The automaton over code points that a byte automaton spells out; see `CodePointAutomaton`."""

    decoder: CharacterDecoder
    start: int

    @property
    def num_states(self) -> int:
        """The number of states created so far."""

    def is_accepting(self, state: int) -> bool:
        """Whether the string read so far is in the language."""

    def moves(self, state: int, budget: Budget) -> tuple[int, ...]:
        """The next state for each character class; NO_STATE where no character of the class is allowed."""

    def known_moves(self, state: int) -> tuple[int, ...] | None:
        """The result of `moves` if it was computed before, else None."""

    def free_length(self, state: int, limit: int, budget: Budget) -> int | None:
        """The number of arbitrary plain characters that may follow: at most `limit`, None if unbounded."""

    def is_free(self, state: int) -> bool:
        """Whether every plain string is known to be allowed next; False may mean unknown."""

    def relaxed(self, state: int, reach: int, budget: Budget) -> int:
        """A state after which the same strings of up to `reach` characters are allowed and accepted."""

    def nearest_end(self, state: int, limit: int, budget: Budget) -> list[int] | None:
        """The character classes of a short completion; None if the search visits more than `limit` states."""

    def coarse_levels(self, state: int) -> int:
        """The levels (as bits) of coarse classes that are never split by anything that may follow."""

    def remaining_lengths(self, limit: int, budget: Budget) -> dict[int, int] | None:
        """For each state, the least number of characters to acceptance; None if there are more than `limit` states."""

    def forbidden_classes(self, limit: int, budget: Budget) -> dict[int, int] | None:
        """For each state, the classes (as bits) without which a string never leads to NO_STATE; None if there are too many states."""


class ByteAutomaton:
    """A byte view of an automaton over code points. Safe to share between threads; `row` returns a new array per call."""

    def __init__(self, automaton: CodePointMoves, *, is_json_string: bool, budget: Budget) -> None:
        """Create the start state.

        Args:
            automaton: the automaton over code points.
            is_json_string: read the body of a JSON string, with every escape, instead of plain UTF-8.
            budget: its limits also hold for states that are created later.
        Raises:
            GrammarError: the language is empty.
        """
        if automaton.start == NO_STATE:
            raise GrammarError("the pattern matches no string")
        self._automaton, self._is_json_string, self._budget = automaton, is_json_string, budget
        self._character_states: list[int] = []
        self._partial: list[tuple[DecoderState, tuple[int, ...] | int] | None] = []
        self._boundaries: dict[int, int] = {NO_STATE: NO_STATE}
        self._partial_states: dict[tuple[object, ...], int] = {}
        self._blocks: dict[int, int] = {}  # the first `continuations` state that leads to a state
        self._decoder = automaton.decoder
        self._max_states = 2 * budget.limits.max_states
        self._high: dict[int, list[int]] = {}
        self._lock = threading.Lock()
        self.start = self._boundary_state(automaton.start)

    @property
    def num_states(self) -> int:
        """The number of states created so far; they are numbered from 0."""
        return len(self._character_states)

    def is_accepting(self, state: int) -> bool:
        """Whether the bytes read so far are a complete string of the language."""
        character_state = self._character_states[state]
        return character_state != NO_STATE and self._automaton.is_accepting(character_state)

    def is_between_characters(self, state: int) -> bool:
        """Whether a state is at a character boundary."""
        return self._character_states[state] != NO_STATE

    def continuation(self, state: int) -> tuple[int, int] | None:
        """The target of a state within a UTF-8 character from which all completions of the character lead to one state.

        Returns:
            That state, and the first of its block of `continuations` states, which are numbered consecutively; None for other states.
        """
        partial = self._partial[state]
        if partial is None or not isinstance(partial[1], int) or partial[0].phase is not DecoderPhase.CONTINUATION:
            return None
        with self._lock:
            return self._boundary_state(partial[1]), self._blocks[partial[1]]

    def remaining_lengths(self, limit: int) -> dict[int, int] | None:
        """For each state at a character boundary, the least number of characters to acceptance; None if there are more than `limit`.

        Raises:
            GrammarError: as `row`.
        """
        with self._lock:
            found = self._automaton.remaining_lengths(limit, self._budget.renewed())
            return (
                None
                if found is None
                else {self._boundary_state(character_state): count for character_state, count in found.items()}
            )

    def breaking_bytes(self, limit: int) -> dict[int, bytes] | None:
        """For each state at a character boundary, bytes of which every string that is forbidden from there on has one.

        Bytes beyond ASCII are taken together. Only for plain UTF-8; None if there are more than `limit` states.

        Raises:
            GrammarError: as `row`.
        """
        with self._lock:
            found = self._automaton.forbidden_classes(limit, self._budget.renewed())
            if found is None:
                return None
            class_of = self._decoder.partition.class_of
            beyond = sum(1 << number for number in self._decoder.boundary(False).beyond)
            made: dict[int, bytes] = {}
            for classes in set(found.values()):
                ascii_bytes = bytes(byte for byte in range(0x80) if classes >> class_of(byte) & 1)
                made[classes] = ascii_bytes + bytes(range(0x80, 0x100)) * bool(classes & beyond)
            return {self._boundary_state(state): made[classes] for state, classes in found.items()}

    def states_after_character(self, state: int) -> list[int]:
        """The states at a character boundary that complete the character which `state` is within.

        Raises:
            GrammarError: as `row`.
        """
        partial = self._partial[state]
        assert partial is not None
        decoder_state, moves = partial
        with self._lock:
            character_states = (
                {moves}
                if isinstance(moves, int)
                else {moves[number] for number in self._decoder.classes_of(decoder_state)}
            )
            return sorted(
                {
                    self._boundary_state(character_state)
                    for character_state in character_states
                    if character_state != NO_STATE
                }
            )

    def row(self, state: int) -> NDArray[np.int32]:
        """Return the next state for each byte, int32 [256], -1 where the byte is not allowed.

        Raises:
            GrammarError: the automaton exceeds the limits of its budget; the time limit applies to each row separately.
        """
        targets, index = self.compressed_row(state)
        row: NDArray[np.int32] = np.array(targets, np.int32)[index]
        return row

    def compressed_row(self, state: int) -> tuple[list[int], NDArray[np.uint8]]:
        """Return a row as its target states (possibly repeated, -1 for none) and the index into them for each byte, uint8 [256].

        Raises:
            GrammarError: as `row`.
        """
        with self._lock:
            if len(self._character_states) + self._automaton.num_states > self._max_states:
                raise GrammarError(f"too complex: more than {self._max_states // 2} states are needed")
            partial = self._partial[state]
            if partial is not None:
                return self._partial_row(*partial)
            character_state = self._character_states[state]
            moves = self._automaton.known_moves(character_state)
            return self._boundary_row(
                self._automaton.moves(character_state, self._budget.renewed()) if moves is None else moves
            )

    def free_length(self, state: int, limit: int) -> int | None:
        """The number of arbitrary plain characters that may follow a state at a character boundary: at most `limit`, None if unbounded.

        Plain characters are all but control characters, the quote, the backslash, U+2028 and U+2029. The result is a lower bound where an
        exact one would need many new states.
        """
        with self._lock:
            return self._automaton.free_length(self._character_states[state], limit, self._budget.renewed())

    def is_free(self, state: int) -> bool:
        """Whether every plain string (see `free_length`) is known to be allowed after a state at a boundary; False may mean unknown."""
        with self._lock:
            return self._automaton.is_free(self._character_states[state])

    def relaxed(self, state: int, reach: int) -> int:
        """A state after which the same strings of up to `reach` characters are allowed and accepted, at a character boundary as `state`.

        Raises:
            GrammarError: as `row`.
        """
        with self._lock:
            return self._boundary_state(
                self._automaton.relaxed(self._character_states[state], reach, self._budget.renewed())
            )

    def nearest_end(self, state: int, limit: int) -> bytes | None:
        """A short completion of a state at a character boundary; None if the search visits more than `limit` states.

        Raises:
            GrammarError: as `row`.
        """
        with self._lock:
            numbers = self._automaton.nearest_end(self._character_states[state], limit, self._budget.renewed())
        return None if numbers is None else self._encode(numbers)

    def _encode(self, numbers: list[int]) -> bytes:
        return b"".join([self._decoder.encoded_example(number, self._is_json_string) for number in numbers])

    def coarse_levels(self, state: int) -> int:
        """The levels (as bits) of coarse classes that are never split by anything that may follow a state at a character boundary."""
        return self._automaton.coarse_levels(self._character_states[state])

    def _boundary_state(self, character_state: int) -> int:
        state = self._boundaries.get(character_state)
        if state is None:
            state = self._boundaries[character_state] = len(self._character_states)
            self._character_states.append(character_state)
            self._partial.append(None)
        return state

    def _boundary_row(self, moves: tuple[int, ...]) -> tuple[list[int], NDArray[np.uint8]]:
        """Targets in the order of `BoundaryDispatch.by_byte`: ASCII classes, UTF-8 lead bytes, the backslash."""
        layout = self._decoder.boundary(self._is_json_string)
        known, boundary_state = self._boundaries, self._boundary_state
        targets = [
            known[character_state] if (character_state := moves[number]) in known else boundary_state(character_state)
            for number in layout.classes
        ]
        character_states = {moves[number] for number in layout.beyond}
        if len(character_states) == 1:
            (character_state,) = character_states
            targets += self._high_states(character_state, layout.shapes)
            by_byte = layout.by_byte_in_shapes
        else:
            by_byte = layout.by_byte
            for decoder_state, classes in zip(layout.leads, layout.lead_classes, strict=True):
                targets.append(self._partial_state(decoder_state, classes, moves))
        targets.append(self._partial_state(ESCAPE, layout.all_classes, moves) if self._is_json_string else NO_STATE)
        targets.append(NO_STATE)
        return targets, by_byte

    def _high_states(self, character_state: int, decoder_states: tuple[DecoderState, ...]) -> list[int]:
        """The states after UTF-8 lead bytes where all characters beyond ASCII lead to one state."""
        found = self._high.get(character_state)
        if found is None:
            found = self._high[character_state] = [
                self._uniform_state(decoder_state, character_state) for decoder_state in decoder_states
            ]
        return found

    def _partial_state(self, decoder_state: DecoderState, classes: tuple[int, ...], moves: tuple[int, ...]) -> int:
        """The state within a character, given the transitions of the state before it and the classes that are still possible."""
        character_states = moves if len(classes) == len(moves) else tuple([moves[number] for number in classes])
        first = character_states[0]
        if character_states.count(first) == len(character_states):
            return self._uniform_state(decoder_state, first)
        key: tuple[object, ...] = (decoder_state, character_states)
        state = self._partial_states.get(key)
        if state is None:
            state = self._add_partial_state(key, decoder_state, moves)
        return state

    def _uniform_state(self, decoder_state: DecoderState, character_state: int) -> int:
        """The state within a character where all its completions lead to one state."""
        if character_state == NO_STATE:
            return NO_STATE
        if decoder_state.phase is DecoderPhase.CONTINUATION:
            return self._block(character_state) + continuations().numbers[shape(decoder_state)]
        key = (shape(decoder_state), character_state)
        state = self._partial_states.get(key)
        if state is None:
            state = self._add_partial_state(key, decoder_state, character_state)
        return state

    def _block(self, character_state: int) -> int:
        """The first of the `continuations` states that lead to a state; creates them together."""
        first = self._blocks.get(character_state)
        if first is None:
            first = self._blocks[character_state] = len(self._character_states)
            decoder_states = continuations().states
            self._character_states += [NO_STATE] * len(decoder_states)
            self._partial += [(decoder_state, character_state) for decoder_state in decoder_states]
        return first

    def _add_partial_state(
        self, key: tuple[object, ...], decoder_state: DecoderState, moves: tuple[int, ...] | int
    ) -> int:
        state = self._partial_states[key] = len(self._character_states)
        self._character_states.append(NO_STATE)
        self._partial.append((decoder_state, moves))
        return state

    def _partial_row(
        self, decoder_state: DecoderState, moves: tuple[int, ...] | int
    ) -> tuple[list[int], NDArray[np.uint8]]:
        targets = [NO_STATE]
        if isinstance(moves, int):
            dispatch: ByteDispatch = uniform_dispatch(decoder_state)
            for following, _ in dispatch.targets:
                targets.append(
                    self._boundary_state(moves) if following is None else self._uniform_state(following, moves)
                )
            return targets, dispatch.by_byte
        dispatch = self._decoder.dispatch(decoder_state)
        for following, classes in dispatch.targets:
            if following is None:
                targets.append(self._boundary_state(moves[classes[0]]))
            else:
                targets.append(self._partial_state(following, classes, moves))
        return targets, dispatch.by_byte


class NamesAutomaton(ByteAutomaton):
    """A byte automaton over the bodies of JSON strings that are property names, which classifies the name."""

    def __init__(self, names: NameClassifier, budget: Budget) -> None:
        """Create the start state."""
        super().__init__(names, is_json_string=True, budget=budget)
        self._names = names

    def label(self, state: int) -> int | None:
        """See `NameClassifier.label`; None within a character."""
        character_state = self._character_states[state]
        return None if character_state == NO_STATE else self._names.label(character_state)

    def nearest_ends(self, state: int, limit: int) -> list[bytes]:
        """Short completions of a state at a character boundary, one for each label found within `limit` states.

        Raises:
            GrammarError: as `row`.
        """
        with self._lock:
            found = self._names.nearest_labels(self._character_states[state], limit, self._budget.renewed())
        return [self._encode(numbers) for numbers in found.values()]
