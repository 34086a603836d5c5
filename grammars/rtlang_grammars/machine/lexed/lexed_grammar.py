"""A grammar with a lexer, bound to a vocabulary: places in a text, steps and masks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.machine.lexed.lexed_masks import LexedMasks
from rtlang_grammars.machine.lexed.lexed_places import Configuration, LexedPlaces
from rtlang_grammars.machine.lexed.living_places import LivingPlaces
from rtlang_grammars.machine.lexed.rule_reports import Lexeme, find_captures, find_temperatures
from rtlang_grammars.machine.lexer_run.lexer_tables import BoundTables
from rtlang_grammars.machine.locks import is_held
from rtlang_grammars.machine.token_index.mask import Mask
from rtlang_grammars.machine.token_index.vocabulary_index import VocabularyIndex
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.tokens import segments_of

_MAX_FORCED_BYTES = 256
_MAX_STACKS = 1 << 17
_Place = TypeVar("_Place")


class LexedState(NamedTuple):
    """A place in a text.

    Attributes:
        configuration: where the parser and the lexer are.
        is_complete: whether the text may end there.
    """

    configuration: Configuration
    is_complete: bool

    @property
    def steps(self) -> None:
        """See `MatcherState`."""


class LexedGrammar:
    """Tables bound to a vocabulary. Safe to use from several threads, one at a time inside.

    Attributes:
        index, tables: as given.
        places: steps between places.
        masks: the masks of places.
        start_place: the place at the start of the text.
        lock: held by callers of the methods that do not take it, of `places` and of `masks`.
        has_budgets: whether rules have budgets of tokens, so that tokens must be followed one by one.
    """

    def __init__(self, index: VocabularyIndex, tables: BoundTables, lock: threading.RLock | None = None) -> None:
        """Bind tables.

        Args:
            lock: of another grammar with the same tables.
        Raises:
            GrammarError: no text begins what the grammar asks for.
        """
        self.index, self.tables = index, tables
        self.lock = lock or threading.RLock()
        self.places = LexedPlaces(tables)
        self._living = LivingPlaces(self.places)
        self.masks = LexedMasks(index, self.places, self._living)
        self.has_budgets = tables.reports.has_budgets
        start = self.places.fresh(0)
        if not self._living.is_alive(start) and not self.is_complete(start):
            raise GrammarError(
                "the grammar matches no string: no terminal that can start it can be followed by another"
            )
        self.start_place = LexedState(start, self.is_complete(start))

    @property
    def size_bytes(self) -> int:
        """Memory of tables, tree and masks."""
        return self.tables.num_bytes + self.masks.num_bytes + (1 << 18)

    @property
    def is_worn(self) -> bool:
        """Whether so many places were seen that new texts should begin with a fresh copy."""
        return self.places.stack_sets.num_kept > _MAX_STACKS or self._living.is_worn

    def renewed(self) -> LexedGrammar:
        """A copy that has seen no text."""
        with self.lock:
            return LexedGrammar(self.index, self.tables, self.lock)

    @property
    def is_busy(self) -> bool:
        """See `Grammar.is_busy`."""
        return is_held(self.lock)

    def advance(self, configuration: Configuration, data: NDArray[np.uint8], start: int, end: int) -> LexedState | None:
        """The place after data[start:end]; None where these bytes cannot follow."""
        with self.lock:
            reached, ends = self._followed(configuration, data[start:end].tobytes())
            if reached is not None and self.has_budgets and not ends:  # bytes are not counted
                reached = reached._replace(num_tokens=configuration.num_tokens)
            return None if reached is None else LexedState(reached, self.is_complete(reached))

    def after(self, configuration: Configuration, token_id: int) -> LexedState | None:
        """The place after a token; None where it cannot follow."""
        trie = self.index.trie
        if not 0 <= token_id < len(trie.offsets) - 1:
            return None
        start, end = trie.offsets[token_id], trie.offsets[token_id + 1]
        if start == end or not self.has_budgets:
            return None if start == end else self.advance(configuration, trie.data, start, end)
        with self.lock:
            reached, ends = self._followed(configuration, trie.data[start:end].tobytes())
            if reached is None:
                return None
            reached = self.counted(reached, 1 if ends else configuration.num_tokens + 1)
            return LexedState(reached, self.is_complete(reached))

    def temperature(self, configuration: Configuration) -> float | None:
        """The temperature of the rules of the next byte; see `GrammarMatcher.temperature`."""
        if not self.tables.reports.temperatures:
            return None
        with self.lock:
            return max(find_temperatures(self.places, configuration), default=None)

    def captures(self, token_ids: Sequence[int]) -> dict[str, list[bytes]]:
        """The texts of rules in a text that was accepted, see `GrammarMatcher.captures`."""
        if not self.tables.reports.captures:
            return {}
        trie, text = self.index.trie, b""
        lexemes: list[Lexeme] = []
        configuration = self.start_place.configuration
        with self.lock:
            for token_id in token_ids:
                data = trie.data[trie.offsets[token_id] : trie.offsets[token_id + 1]].tobytes()
                reached, ends = self._followed(configuration, data)
                assert reached is not None, "these tokens were accepted"
                if self.has_budgets:
                    reached = self.counted(reached, 1 if ends else configuration.num_tokens + 1)
                for terminal, end in ends:
                    lexemes.append(Lexeme(terminal, lexemes[-1].end if lexemes else 0, len(text) + end))
                configuration, text = reached, text + data
            is_complete = self.is_complete(configuration)
            if is_complete:
                ends = []
                self.places.run(configuration, b"", is_final=True, ends=ends)
                for terminal, end in ends:
                    lexemes.append(Lexeme(terminal, lexemes[-1].end if lexemes else 0, len(text) + end))
            found = find_captures(self.tables, self.tables.reports, text, lexemes, is_complete=is_complete)
        return {name: [self.shown(each) for each in texts] for name, texts in found.items()}

    def mask(self, configuration: Configuration) -> Mask:
        """The tokens that may follow, end tokens among them."""
        if configuration.num_tokens:  # what a budget forbids is a matter of the state
            configuration = configuration._replace(num_tokens=0)
        found = self.masks.known.get(configuration)
        if found is None:
            with self.lock:
                found = self.masks.make(configuration)
        return found

    def only_ends(self, configuration: Configuration) -> bool:
        """Whether nothing but an end token may follow."""
        return self.index.only_ends(self.mask(configuration).base)

    def forced(self, configuration: Configuration) -> bytes:
        """The bytes that must come next, at most _MAX_FORCED_BYTES."""
        with self.lock:
            return forced_bytes(configuration, self.is_complete, self._only_step)

    def is_complete(self, configuration: Configuration) -> bool:
        """Whether the text may end there."""
        return self.places.is_complete(configuration)

    def _followed(
        self, configuration: Configuration, data: bytes
    ) -> tuple[Configuration | None, list[tuple[int, int]]]:
        """The place after bytes, and the terminals that ended in them, each with where it ended from the first byte on."""
        ends: list[tuple[int, int]] = []
        return self._living.advanced(configuration, data, ends), ends

    def counted(self, configuration: Configuration, num_tokens: int) -> Configuration:
        """A place with the number of tokens of its lexeme, after the budgets that are used up."""
        automaton, state = self.tables.automaton, configuration.state
        budget, expired = automaton.expiries[state]
        while budget and num_tokens >= budget:
            state = expired
            budget, expired = automaton.expiries[state]
        return configuration._replace(state=state, num_tokens=num_tokens if budget else 0)

    def shown(self, text: bytes) -> bytes:
        """A text with special tokens by their names."""
        shown = self.index.vocabulary.shown
        return b"".join(shown([each]) if isinstance(each, int) else each for each in segments_of(text))

    def _only_step(self, configuration: Configuration) -> tuple[bytes, Configuration] | None:
        """The only byte that may follow, and the place after it; None where there are several."""
        automaton = self.tables.automaton
        found: tuple[bytes, Configuration] | None = None
        for symbol_class, count in enumerate(automaton.class_sizes):
            if symbol_class == automaton.end_class:
                continue
            if automaton.following[configuration.state, symbol_class] < 0 and (
                automaton.winners[configuration.state, symbol_class] < 0 and configuration.last < 0
            ):
                continue
            byte = automaton.first_bytes[symbol_class]
            reached = self._living.advanced(configuration, byte)
            if reached is None:
                continue
            if found is not None or count > 1:
                return None
            found = byte, reached
        return found


def forced_bytes(
    place: _Place, is_complete: Callable[[_Place], bool], only_step: Callable[[_Place], tuple[bytes, _Place] | None]
) -> bytes:
    """The bytes that must come next from a place, until there are at least _MAX_FORCED_BYTES.

    Args:
        only_step: the only bytes that may follow a place, and the place after them; None where there are several.
    """
    text = bytearray()
    while len(text) < _MAX_FORCED_BYTES and not is_complete(place):
        step = only_step(place)
        if step is None:
            break
        text += step[0]
        place = step[1]
    return bytes(text)
