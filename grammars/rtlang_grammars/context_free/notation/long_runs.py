"""The runs of many chunks of a text as a terminal of its own: `%regex {"substring_words": ...}` for long texts.

A state is the set of places in the text where a run that was read may stand. Few places are left after a few characters, so there are
about as many states as characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.regular.language import Language
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

MANY_CHUNKS = 100
"""Texts with more chunks are made here."""


class LongRuns(Language):
    """All runs of consecutive chunks, the empty one among them."""

    __slots__ = ("_chunks", "_made")

    def __init__(self, chunks: Sequence[str]) -> None:
        super().__init__(Language.nothing()._tree)
        self._chunks = tuple(chunks)
        self._made: _RunsAutomaton | None = None

    def __getattribute__(self, name: str) -> Any:
        """Refuse operations on languages, which read the tree."""
        if name == "_tree":
            raise GrammarError(
                f"%regex with more than {MANY_CHUNKS} parts: it must be a terminal of its own, not a part of one"
            )
        return super().__getattribute__(name)

    def accepts(self, text: str | bytes, budget: Budget | None = None) -> bool:
        """Whether a text is a run."""
        automaton = self.automaton(budget)
        state = automaton.start
        for byte in text.encode() if isinstance(text, str) else text:
            state = int(automaton.row(state)[byte])
            if state < 0:
                return False
        return automaton.is_accepting(state)

    def is_empty(self, budget: Budget | None = None) -> bool:
        """Whether there is none."""
        return False

    def automaton(self, budget: Budget | None = None) -> _RunsAutomaton:  # type: ignore[override]
        """The automaton over UTF-8."""
        if self._made is None:
            self._made = _RunsAutomaton(self._chunks, budget or Budget())
        return self._made


class _RunsAutomaton:
    """See `regular.automata.byte_automaton.Automaton`."""

    start = 0

    def __init__(self, chunks: Sequence[str], budget: Budget) -> None:
        self._text = np.frombuffer("".join(chunks).encode(), dtype=np.uint8)
        ends = np.cumsum([len(each.encode()) for each in chunks])
        self._is_end = np.zeros(len(self._text) + 1, dtype=np.bool_)
        self._is_end[ends] = True
        places = np.append(0, ends[:-1]).astype(np.int64)
        self._budget = budget
        self._states = [places]
        self._numbers = {b"": 0}

    @property
    def num_states(self) -> int:
        """See `Automaton`."""
        return len(self._states)

    def row(self, state: int) -> NDArray[np.int32]:
        """See `Automaton`."""
        found = np.full(256, -1, dtype=np.int32)
        places = self._states[state]
        places = places[places < len(self._text)]
        read = self._text[places]
        for byte in np.unique(read).tolist():
            following = places[read == byte] + 1
            key = following.tobytes()
            number = self._numbers.get(key)
            if number is None:
                self._budget.spend(states=1, num_bytes=len(key))
                number = self._numbers[key] = len(self._states)
                self._states.append(following)
            found[byte] = number
        return found

    def is_accepting(self, state: int) -> bool:
        """See `Automaton`."""
        return state == 0 or bool(self._is_end[self._states[state]].any())
