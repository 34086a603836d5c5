"""The tables of one grammar, while they are built and while they grow.

Building appends to plain arrays. `publish` creates the arrays that compiled code reads. After that only open rows are added, one at a time
under a lock, by the first thread that needs them. Readers hold one `Snapshot`: it never changes, except that rows appear in place, and
everything that such a row refers to lies within the same arrays. If a row does not fit, all arrays are copied into larger ones and
published as a new snapshot.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.machine.automaton.layout import (
    DEAD_ROW,
    FIRST_ACTION,
    IS_BOUND,
    IS_FREE,
    NONE,
    OPEN,
    STATE_WORDS,
    UNKNOWN,
    UNKNOWN_ROW,
    WIDTH,
)
from rtlang_grammars.machine.automaton.room import empty_room
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget
from rtlang_grammars.spec.tokens import Ranges

RowMaker = Callable[[int], None]
"""Builds the row of a state that was left open; called under the lock of the tables."""


class Closer(Protocol):
    """Completes a frame from one of its states."""

    @property
    def weight(self) -> int:
        """Work of `text` at most, in the units of WorkLimit."""

    def text(self, register: Register, shortest: Callable[[int], bytes | None], avoid: frozenset[str]) -> bytes | None:
        """A short text that ends the frame; None if none is known.

        Args:
            register: of the frame.
            shortest: maps a start state to a short text of its frame.
            avoid: names that made up members must not have.
        """


class Embedded(Protocol):
    """Answers what may follow in the states of strings with a pattern."""

    def is_quoted(self, number: int) -> bool:
        """Whether a state is inside a JSON string, where no control character may follow."""

    def free_length(self, number: int) -> int | None:
        """Number of arbitrary plain characters that may follow a state between characters; None: unbounded."""

    def is_free(self, number: int) -> bool:
        """Whether any plain text is certainly allowed forever after a state between characters. False means unknown."""

    def nearest_ends(self, number: int) -> list[bytes]:
        """Short texts from a state to the end of the string, one for each place that the end may lead to; empty if that takes long."""

    def relaxed(self, number: int, reach: int) -> int:
        """A state after which the same texts of up to `reach` characters may follow; may add states."""

    def coarse_levels(self, number: int) -> int:
        """Levels of `coarse_classes`, as bits, at which the rest of the string treats all characters of a class alike."""


@dataclass(frozen=True, slots=True)
class TextFacts:
    """The text that may follow the states of raw text; see `lowering.languages.raw_text`.

    Attributes:
        start: the state before the text; -1 in the facts of the states within it.
        last: bytes without which no text leads out of the raw text, if nothing else is forbidden in it; None: they are not known.
        follow: the bytes that may come right after the raw text.
        most: code points that it may have; None: any number.
        others: first bytes of what else may come in the state before the text; None: not known.
    """

    start: int
    last: bytes | None
    follow: bytes
    most: int | None
    others: bytes | None = b""


Register = int | tuple[int, ...]
"""A register in Python: a number, or the block of words that it points to."""

NO_BYTE = 256
"""The single byte of a state without one."""


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The arrays that compiled code reads.

    Attributes:
        S: int32 [capacity, 8], states.
        T: int32 [256 * rows], rows, flat.
        X: int32, actions and descriptions.
    """

    S: NDArray[np.int32]
    T: NDArray[np.int32]
    X: NDArray[np.int32]


class Tables:
    """States, rows and actions of one grammar. Built by one thread; afterwards safe to read and to complete from several threads.

    Attributes:
        makers: by state, what builds its open row.
        closers: by state, how its frame ends.
        counted: by state that counts code points, the minimum and maximum on which masks depend.
        token_bounds: by state of a text whose tokens the register counts, how many may end in it, and the state to go on from then.
        embedded: by state inside strings with patterns, between characters; query it under the lock.
        texts: by PARAM of the states of raw text, and of those before it.
        token_sets: the sets of tokens that its states take.
        has_distinct_names: all text is JSON, and a name must not come twice in one object (see `repeated_names`).
    """

    def __init__(self, budget: Budget, base: Tables | None = None) -> None:
        """Start empty.

        Args:
            base: tables to copy first.
        """
        self.budget = budget
        self.lock = threading.RLock()
        self.makers: dict[int, RowMaker] = {}
        self.closers: dict[int, Closer] = {}
        self.counted: dict[int, tuple[int, int]] = {}
        self.token_bounds: dict[int, tuple[int, int]] = {}
        self.embedded: dict[int, Embedded] = {}
        self.texts: list[TextFacts] = []
        self.token_sets: set[Ranges] = set()
        self.has_distinct_names = False
        if base is None:
            self.states, self.words = array("i"), array("i")
            self._rows = np.empty((64, 256), dtype=np.int32)
            self.num_rows = 2
            self._rows[DEAD_ROW] = NONE
            self._rows[UNKNOWN_ROW] = UNKNOWN
        else:
            self.states, self.words = array("i", base.states), array("i", base.words)
            self._rows = np.empty((base.num_rows + 64, 256), dtype=np.int32)
            self._rows[: base.num_rows] = base.rows
            self.num_rows = base.num_rows
        self.snapshot: Snapshot | None = None

    @property
    def num_states(self) -> int:
        """Number of states."""
        return len(self.states) // STATE_WORDS

    @property
    def rows(self) -> NDArray[np.int32]:
        """The rows, int32 [num_rows, 256]; a view, valid until more rows are added."""
        return self._rows[: self.num_rows]

    @property
    def num_bytes(self) -> int:
        """Memory of the arrays."""
        return 4 * (len(self.states) + len(self.words) + 256 * self.num_rows)

    def add_state(
        self,
        row: int = DEAD_ROW,
        byte: int = NO_BYTE,
        target: int = NONE,
        *,
        param: int = -1,
        acc: int = OPEN,
        block: int = 0,
        slice_id: int = 0,
    ) -> int:
        """Add a state; returns its number."""
        number = len(self.states) // STATE_WORDS
        self.states.extend((row, byte, target, param, acc, block, slice_id, 0))
        return number

    def add_states(self, states: NDArray[np.int32]) -> int:
        """Add many states at once, int32 [n, 8]; returns the number of the first."""
        number = len(self.states) // STATE_WORDS
        self.states.frombytes(states.tobytes())
        return number

    def add_states_of(self, row: int, count: int, block: int) -> None:
        """Add a state for each of `count` rows from `row` on."""
        rest = (NO_BYTE, NONE, -1, OPEN, block, 0, 0)
        for number in range(row, row + count):
            self.states.extend((number, *rest))

    def set_state(self, number: int, column: int, content: int) -> None:
        """Set one column of a state."""
        self.states[number * STATE_WORDS + column] = content

    def state(self, number: int, column: int) -> int:
        """One column of a state."""
        return self.states[number * STATE_WORDS + column]

    def add_rows(self, count: int) -> int:
        """Reserve `count` rows, to be filled through `rows`; returns the number of the first."""
        first = self.num_rows
        self.budget.spend(num_bytes=1024 * count)
        if 1024 * (first + count) > self.budget.limits.max_bytes:  # the budgets of rows that are built later start at 0
            raise GrammarError(f"too large: the tables need more than {self.budget.limits.max_bytes} bytes")
        if first + count > len(self._rows):
            grown = np.empty((max(2 * len(self._rows), first + count), 256), dtype=np.int32)
            grown[:first] = self._rows[:first]
            self._rows = grown
        self.num_rows = first + count
        return first

    def add_row(self, template: int = DEAD_ROW) -> int:
        """Add a copy of a row; returns its number."""
        number = self.add_rows(1)
        self._rows[number] = self._rows[template]
        return number

    def add_words(self, *words: int) -> int:
        """Add words to X; returns the offset of the first."""
        place = len(self.words)
        self.words.extend(words)
        return place

    def action(self, *words: int) -> int:
        """Add an action; returns the value that stands for it."""
        return FIRST_ACTION - self.add_words(*words)

    def put(self, rows: Iterable[int], byte: int, value: int) -> None:
        """Write one value into several rows; faster than indexing `rows` with lists."""
        found = self._rows
        for row in rows:
            found[row, byte] = value

    def add_row_of(self, values: list[int], index: NDArray[np.integer[Any]]) -> int:
        """Add a row with values[index[b]] for byte b; returns its number."""
        number = self.add_rows(1)
        np.array(values, dtype=np.int32).take(index, out=self._rows[number], mode="clip")
        return number

    def leave_open(self, maker: RowMaker, *, acc: int = OPEN, block: int = 0, slice_id: int = 0) -> int:
        """Add a state whose row is built on demand; returns its number."""
        number = len(self.states) // STATE_WORDS
        self.states.extend((UNKNOWN_ROW, NO_BYTE, NONE, -1, acc, block, slice_id, 0))
        self.makers[number] = maker
        return number

    @property
    def published(self) -> Snapshot:
        """The latest snapshot."""
        assert self.snapshot is not None
        return self.snapshot

    def publish(self) -> Snapshot:
        """Create the arrays for compiled code, with room to grow. Afterwards only `complete` adds rows."""
        size, num_words, num_rows = self.num_states, len(self.words), self.num_rows
        grows = bool(self.makers)  # the room doubles; much of it at first, in a memory map, took 0.1 ms of each compile
        S = empty_room(size + grows * max(512, size) + 1, STATE_WORDS)
        S[:size] = np.frombuffer(self.states, dtype=np.int32).reshape(size, STATE_WORDS)
        rows = empty_room(num_rows + grows * max(64, num_rows), 256)
        rows[:num_rows] = self.rows
        self._rows = rows
        X = np.empty(num_words + grows * max(2048, num_words) + 1, dtype=np.int32)
        X[:num_words] = np.frombuffer(self.words, dtype=np.int32)
        self.snapshot = Snapshot(S, rows.reshape(-1), X)
        return self.snapshot

    def record_freedom(self, state: int) -> Snapshot:
        """Record whether any plain text may follow a state inside a string, between characters; returns the snapshot to use."""
        with self.lock:
            width = IS_FREE if self.embedded[state].is_free(state) else IS_BOUND
            self.set_state(state, WIDTH, width)
            self.published.S[state, WIDTH] = width
            return self.published

    def relaxed(self, state: int, reach: int) -> int:
        """See `Embedded.relaxed`.

        Raises:
            GrammarError: the budget of the grammar is used up.
        """
        with self.lock:
            num_states, num_words, rows = self.num_states, len(self.words), self._rows
            self.budget = self.budget.renewed()
            found = self.embedded[state].relaxed(state, reach)
            if self.num_states > num_states:
                self._extend(num_states, num_words, rows)
            return found

    def _extend(self, num_states: int, num_words: int, rows: NDArray[np.int32]) -> bool:
        """Copy what was added to the snapshot; returns False if that has no room, and publishes another.

        Args:
            num_states, num_words, rows: the counts and rows before.
        """
        snapshot, end = self.published, self.num_states
        if rows is not self._rows or end > len(snapshot.S) or len(self.words) > len(snapshot.X):
            self.publish()
            return False
        if len(self.words) > num_words:
            snapshot.X[num_words : len(self.words)] = self.words[num_words:]
        if end > num_states:  # copying from an array into its memory takes a third of the time
            flat = snapshot.S.reshape(-1).data
            flat[STATE_WORDS * num_states : STATE_WORDS * end] = self.states[STATE_WORDS * num_states :]
        return True

    def complete(self, state: int) -> Snapshot:
        """Build the row of a state that compiled code asked for; returns the snapshot to continue with.

        Raises:
            GrammarError: the budget of the grammar is used up.
        """
        with self.lock:
            snapshot = self.published
            if snapshot.S[state, 0] != UNKNOWN_ROW:
                return snapshot
            states, num_words, rows = self.states, len(self.words), self._rows
            num_states = len(states) // STATE_WORDS
            self.budget = self.budget.renewed()
            self.makers[state](state)
            begin = state * STATE_WORDS
            assert states[begin] != UNKNOWN_ROW, "the maker has to make the row"
            del self.makers[state]
            if not self._extend(num_states, num_words, rows):
                return self.published
            flat = snapshot.S.reshape(-1).data
            flat[begin + 1 : begin + STATE_WORDS] = states[begin + 1 : begin + STATE_WORDS]
            flat[begin] = states[begin]  # the row comes last: from here on readers see it
            return snapshot
