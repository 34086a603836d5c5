"""A grammar whose terminals may end wherever they match, bound to a vocabulary: places in a text, masks and completions.

Several readings of a text may be alive at once, each in its own state of the lexer, with its own parser stacks. A reading is a place of
`LexedGrammar`, which has the tables, the stacks and the masks; a place here is a set of readings, and its mask what any of them allows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.machine.lexed.anywhere_captures import AnywhereCaptures
from rtlang_grammars.machine.lexed.lexed_completion import (
    FAR,
    MAX_CACHED,
    UNITS_A_STATE,
    Ending,
    LexedCompletion,
)
from rtlang_grammars.machine.lexed.lexed_grammar import LexedGrammar, forced_bytes
from rtlang_grammars.machine.lexed.lexed_places import Configuration
from rtlang_grammars.machine.lexer_run.lexer_tables import BoundTables
from rtlang_grammars.machine.token_index.mask import Mask, write_rows
from rtlang_grammars.machine.token_index.vocabulary_index import VocabularyIndex
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.work_limit import WorkLimit

_MAX_READINGS = 4096
_MAX_MASKS = 1 << 10

_STATE = (1 << 32) - 1
"""The state in a key of places; the tokens of its lexeme, as far as a budget counts them, lie above."""

Readings: TypeAlias = tuple[Configuration, ...]
"""Configurations with different states of the lexer or numbers of tokens, in the order of these."""


class AnywhereState:
    """A place in a text.

    Attributes:
        configuration: the readings that are alive.
        is_complete: whether the text may end there.
    """

    __slots__ = ("configuration", "is_complete")
    steps = None

    def __init__(self, configuration: Readings, is_complete: bool) -> None:
        self.configuration, self.is_complete = configuration, is_complete


class AnywhereGrammar:
    """Tables bound to a vocabulary. Safe to use from several threads, one at a time inside.

    Attributes:
        readings: follows one reading, and keeps masks.
        index, tables: as given.
        start_place: the place at the start of the text.
        has_budgets: see `LexedGrammar.has_budgets`.
    """

    def __init__(
        self,
        index: VocabularyIndex,
        tables: BoundTables,
        lock: threading.RLock | None = None,
        *,
        machine: Callable[[], object] | None = None,
    ) -> None:
        """Bind tables.

        Args:
            lock: of another grammar with the same tables.
            machine: makes the same grammar as an automaton with a stack (`machine.grammar.MachineGrammar`).
        Raises:
            GrammarError: no text begins what the grammar asks for.
        """
        self.readings = LexedGrammar(index, tables, lock)
        self.index, self.tables, self.lock = index, tables, self.readings.lock
        self._machine = machine
        self._made: object = None
        self.has_budgets = tables.reports.has_budgets
        self._masks: dict[Readings, Mask] = {}
        start = self.readings.start_place
        self.start_place = AnywhereState((start.configuration,), start.is_complete)

    @property
    def size_bytes(self) -> int:
        """Memory of tables, tree and masks."""
        return self.readings.size_bytes + len(self._masks) * 4 * self.index.num_words

    @property
    def is_worn(self) -> bool:
        """See `LexedGrammar.is_worn`."""
        return self.readings.is_worn

    @property
    def is_busy(self) -> bool:
        """See `Grammar.is_busy`."""
        return self.readings.is_busy

    @property
    def machine(self) -> object:
        """The same grammar as an automaton with a stack, made once, for devices; None if there is none.

        Raises:
            GrammarError: it is too large.
        """
        if self._made is None and self._machine is not None:
            self._made = self._machine()
        return self._made

    def renewed(self) -> AnywhereGrammar:
        """A copy that has seen no text."""
        with self.lock:
            return AnywhereGrammar(self.index, self.tables, self.lock, machine=self._machine)

    def advance(self, configuration: Readings, data: NDArray[np.uint8], start: int, end: int) -> AnywhereState | None:
        """The place after data[start:end]; None where these bytes cannot follow."""
        with self.lock:
            return self._place(self.run(configuration, data[start:end].tobytes()))

    def after(self, configuration: Readings, token_id: int) -> AnywhereState | None:
        """The place after a token; None where it cannot follow."""
        trie = self.index.trie
        if not 0 <= token_id < len(trie.offsets) - 1:
            return None
        start, end = trie.offsets[token_id], trie.offsets[token_id + 1]
        if start == end or not self.has_budgets:
            return None if start == end else self.advance(configuration, trie.data, start, end)
        with self.lock:
            return self._place(self.counted(self.run(configuration, trie.data[start:end].tobytes())))

    def mask(self, configuration: Readings) -> Mask:
        """The tokens that may follow, end tokens among them."""
        if len(configuration) == 1:
            return self.readings.mask(configuration[0])
        if self.has_budgets:  # what a budget forbids is a matter of the state
            configuration = tuple(each._replace(num_tokens=0) for each in configuration)
        found = self._masks.get(configuration)
        if found is None:
            rows = np.empty((len(configuration), self.index.num_words), dtype=np.int32)
            write_rows([self.readings.mask(each) for each in configuration], rows)
            row: NDArray[np.uint32] = np.bitwise_or.reduce(rows, axis=0).view(np.uint32)
            found = Mask(row, self.index.no_ids, 0, owns_base=True)
            with self.lock:
                if len(self._masks) >= _MAX_MASKS:
                    self._masks.clear()
                self._masks[configuration] = found
        return found

    def only_ends(self, configuration: Readings) -> bool:
        """Whether nothing but an end token may follow."""
        return self.index.only_ends(self.mask(configuration).base)

    def forced(self, configuration: Readings) -> bytes:
        """The bytes that must come next, see `forced_bytes`."""
        with self.lock:
            return forced_bytes(configuration, self.is_complete, self._only_step)

    def temperature(self, configuration: Readings) -> float | None:
        """See `GrammarMatcher.temperature`: the greatest of all readings."""
        found = [self.readings.temperature(each) for each in configuration]
        return max((each for each in found if each is not None), default=None)

    def captures(self, token_ids: Sequence[int]) -> dict[str, list[bytes]]:
        """See `GrammarMatcher.captures`."""
        if not self.tables.reports.captures:
            return {}
        trie = self.index.trie
        tokens = [trie.data[trie.offsets[each] : trie.offsets[each + 1]].tobytes() for each in token_ids]
        with self.lock:
            found = AnywhereCaptures(self.readings).find(tokens)
        return {name: [self.readings.shown(each) for each in texts] for name, texts in found.items()}

    def is_complete(self, configuration: Readings) -> bool:
        """Whether the text may end there."""
        return any(self.readings.is_complete(each) for each in configuration)

    def run(self, configuration: Readings, data: bytes) -> Readings:
        """The readings that are alive after bytes.

        Raises:
            GrammarError: there are too many.
        """
        places = {each.num_tokens << 32 | each.state: each.stacks for each in configuration}
        for byte in data:
            places = self._stepped(places, byte)
            if len(places) > 1:
                places = dict(self._alive(places))
            if len(places) > _MAX_READINGS:
                raise GrammarError(f"too ambiguous: the text has more than {_MAX_READINGS} readings")
        return _readings(self._alive(places))

    def counted(self, configuration: Readings) -> Readings:
        """The readings after one more token, and after the budgets that are used up."""
        reached: dict[int, set[int]] = {}
        for each in configuration:
            after = self.readings.counted(each, each.num_tokens + 1)
            reached.setdefault(after.num_tokens << 32 | after.state, set()).add(after.stacks)
        return _readings((key, self.readings.places.stack_sets.union(sets)) for key, sets in reached.items())

    def _place(self, reached: Readings) -> AnywhereState | None:
        return AnywhereState(reached, self.is_complete(reached)) if reached else None

    def _alive(self, places: dict[int, int]) -> Iterable[tuple[int, int]]:
        return [(key, stacks) for key, stacks in places.items() if self.readings.places.can_win(stacks, key & _STATE)]

    def _stepped(self, places: dict[int, int], byte: int) -> dict[int, int]:
        """Parser stacks by keys of places after a byte."""
        steps = self.readings.places
        column = self.tables.lexer.classes[byte]
        reached: dict[int, set[int]] = {}
        for key, stacks in places.items():
            automaton, state = self.tables.automaton, key & _STATE
            following, winner = int(automaton.following[state, column]), int(automaton.winners[state, column])
            if following >= 0:
                is_counted = key > _STATE and automaton.expiries[following][0]
                reached.setdefault(key - state + following if is_counted else following, set()).add(stacks)
            for terminal in steps.endings(winner):
                after = steps.shift(stacks, terminal)
                if after < 0:
                    continue
                fresh = steps.fresh(after).state
                following = int(self.tables.automaton.following[fresh, column])
                if following >= 0:
                    reached.setdefault(following, set()).add(after)
        return {key: steps.stack_sets.union(sets) for key, sets in reached.items()}

    def _only_step(self, configuration: Readings) -> tuple[bytes, Readings] | None:
        """The only byte that may follow, and the place after it; None where there are several."""
        automaton = self.tables.automaton
        found: tuple[bytes, Readings] | None = None
        states = [each.state for each in configuration]
        for symbol_class, count in enumerate(automaton.class_sizes):
            if symbol_class == automaton.end_class:
                continue
            if (automaton.following[states, symbol_class] < 0).all() and (
                automaton.winners[states, symbol_class] < 0
            ).all():
                continue
            byte = automaton.first_bytes[symbol_class]
            reached = self.run(configuration, byte)
            if not reached:
                continue
            if found is not None or count > 1:
                return None
            found = byte, reached
        return found


def _readings(places: Iterable[tuple[int, int]]) -> Readings:
    """Readings of keys with their stacks."""
    return tuple(Configuration(stacks, key & _STATE, -1, 0, b"", key >> 32) for key, stacks in sorted(places))


class AnywhereCompletion:
    """Finds completions for one grammar. Safe to use from several threads: they may find the same thing twice."""

    def __init__(self, grammar: AnywhereGrammar) -> None:
        self._of_readings = _ReadingCompletion(grammar)

    def find(self, configuration: Readings, work: WorkLimit | None = None) -> tuple[bytes | None, bool]:
        """The shortest completion that is found for a reading; see `LexedCompletion.find`."""
        found = [self._of_readings.find(each, work)[0] for each in configuration]
        return min((each for each in found if each is not None), key=len, default=None), False


class _ReadingCompletion(LexedCompletion):
    """The search from one reading: a terminal ends wherever it matches, whatever follows."""

    def __init__(self, grammar: AnywhereGrammar) -> None:
        super().__init__(grammar.readings)
        self._anywhere = grammar

    def _completes(self, start: Configuration, text: bytes) -> bool:
        return self._anywhere.is_complete(self._anywhere.run((start,), text))

    def _matches(self, state: int) -> list[int]:
        """The terminals that match at a state."""
        return self._grammar.places.endings(int(self._automaton.winners[state, self._automaton.end_class]))

    def _ends(
        self, state: int, first: int, may_go_on: bool = False, work: WorkLimit | None = None
    ) -> dict[int, list[Ending]]:
        known = self._endings.get((state, 0, False))
        if known is not None:
            return known
        automaton = self._automaton
        found: dict[int, list[Ending]] = {}
        layer, seen = [(state, b"")], {state}
        while layer:
            following: list[tuple[int, bytes]] = []
            for at, text in layer:
                if work is not None:
                    work.spend(UNITS_A_STATE)
                for terminal in self._matches(at):
                    found.setdefault(terminal, [Ending(text, (1 << automaton.num_classes) - 1, b"")])
                for symbol_class, target in enumerate(automaton.following[at].tolist()):
                    if target >= 0 and target not in seen:
                        seen.add(target)
                        following.append((target, text + automaton.first_bytes[symbol_class]))
            layer = following
        if len(self._endings) > MAX_CACHED:
            self._endings.clear()
        self._endings[state, 0, False] = found
        return found

    def _terminal_lengths(self) -> list[int]:
        automaton = self._automaton
        shortest = [FAR] * self._grammar.tables.num_terminals + [0]
        layer = np.flatnonzero(automaton.is_start)
        is_seen = np.array(automaton.is_start)
        num_bytes = 0
        while len(layer):
            for winner in np.unique(automaton.winners[layer, automaton.end_class]).tolist():
                for terminal in self._grammar.places.endings(winner):
                    shortest[terminal] = min(shortest[terminal], num_bytes)
            following = np.unique(automaton.following[layer])
            layer = following[(following >= 0) & ~is_seen[following]]
            is_seen[layer] = True
            num_bytes += 1
        return shortest
