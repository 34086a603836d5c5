"""A compiled grammar bound to a vocabulary: its tables, and steps through them for whole tokens and texts.

Each step fetches the workspace of the calling thread and the published tables once and passes both to all compiled functions it calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.machine.automaton.layout import (
    BOUNDS,
    HEADS,
    LENGTH,
    MAX_LEVELS,
    NEED_ROW,
    NO_SPACE,
    NUM_HEADS,
    NUM_LEVELS,
    OK,
    TOUCHED,
)
from rtlang_grammars.machine.automaton.tables import Snapshot, Tables
from rtlang_grammars.machine.locks import is_held
from rtlang_grammars.machine.masks import Masks
from rtlang_grammars.machine.native import walks
from rtlang_grammars.machine.native.repeated_names import (
    IN_NAME,
    MODE,
    WITH_NAME,
    find_repeats,
    remove,
    repeats,
    start_trail,
)
from rtlang_grammars.machine.string_masks import clear
from rtlang_grammars.machine.token_index.mask import Mask
from rtlang_grammars.machine.token_index.vocabulary_index import VocabularyIndex, Workspace, start_configuration

Configuration = NDArray[np.int64]

_FORCED_BYTES = 4096
_MAX_KNOWN_BYTES = 4 << 20
"""Memory of the places and steps that a grammar remembers; all are forgotten when there are more."""
_BYTES_A_PLACE, _BYTES_A_STEP = 500, 100  # of their objects, about


class TableState:
    """A place in a text.

    Attributes:
        configuration: the heads and frames there; never changed.
        is_complete: whether the text may end there.
        steps: see `MatcherState`; None before the place is known to the grammar.
    """

    __slots__ = ("configuration", "is_complete", "steps")

    def __init__(self, configuration: Configuration, is_complete: bool) -> None:
        self.configuration, self.is_complete = configuration, is_complete
        self.steps: dict[int | bytes, Any] | None = None


class _KnownPlaces:
    """Places that texts have come to: equal ones are one object, which remembers the steps from it. Harmless if threads race.

    Attributes:
        num_bytes: their memory, about.
    """

    def __init__(self) -> None:
        self._places: dict[bytes, TableState] = {}
        self.num_bytes = 0

    def find(self, place: TableState) -> TableState:
        """The known place that equals a place; else this one is known from now on."""
        key = place.configuration.tobytes()
        found = self._places.get(key)
        if found is None:
            found = self._places[key] = place
            place.steps = {}
            self.num_bytes += 2 * len(key) + _BYTES_A_PLACE
        self._note(_BYTES_A_STEP)  # the caller, who did not know it, remembers the step to it
        return found

    def note_refused(self, num_bytes: int) -> None:
        """A text of `num_bytes` bytes was refused somewhere; the caller may remember that."""
        self._note(_BYTES_A_STEP + num_bytes)

    def _note(self, num_bytes: int) -> None:
        self.num_bytes += num_bytes
        if self.num_bytes <= _MAX_KNOWN_BYTES:
            return
        places, self._places, self.num_bytes = self._places, {}, 0
        for place in places.values():  # those that are still in use remember nothing more
            place.steps = None


class MachineGrammar:
    """Tables bound to a vocabulary. Safe to use from several threads.

    Attributes:
        index, tables: as given.
        start_place: the place at the start of the text.
        masks: the masks computed so far.
    """

    def __init__(self, index: VocabularyIndex, tables: Tables, start: int, max_mask_bytes: int = 32 << 20) -> None:
        self.index, self.tables = index, tables
        self._known = _KnownPlaces()
        if tables.snapshot is None:
            tables.publish()
        configuration = start_configuration(start)
        self._has_distinct_names = tables.has_distinct_names
        if self._has_distinct_names:
            configuration = np.concatenate((configuration, start_trail()))
        start_place = self.advance(configuration, index.trie.data, 0, 0)
        assert start_place is not None, "nothing was followed"
        self.start_place = start_place
        self.masks = Masks(index, tables, max_mask_bytes)

    @property
    def size_bytes(self) -> int:
        """Memory held by tables and masks."""
        return self.tables.num_bytes + self.masks.num_bytes + self._known.num_bytes + (4 << 10)

    @property
    def is_busy(self) -> bool:
        """See `Grammar.is_busy`."""
        return is_held(self.tables.lock)

    def advance(self, configuration: Configuration, data: NDArray[np.uint8], start: int, end: int) -> TableState | None:
        """The place after data[start:end]; None if these bytes cannot follow.

        Args:
            data: read-only: for writable arrays the code would be compiled once more, which takes 10 s or more.
        """
        workspace, tables = self.index.workspace, self.tables.published
        while True:
            code = walks.advance(
                tables.S,
                tables.T,
                tables.X,
                configuration,
                workspace.W,
                workspace.H,
                workspace.Q,
                workspace.D,
                data,
                start,
                end,
                workspace.C,
                workspace.out,
            )
            if code == OK:
                item = workspace.out.item
                found = workspace.C[: item(1)].copy()
                # The workspace has words of other places here; without them, equal places have equal words.
                found[BOUNDS + min(found.item(NUM_LEVELS), MAX_LEVELS) : NUM_HEADS] = 0
                return self._known.find(TableState(found, item(5) != 0))
            if code not in (NEED_ROW, NO_SPACE):
                self._known.note_refused(end - start)
                return None
            tables = self._provide(code, tables, workspace)

    def after(self, configuration: Configuration, token_id: int) -> TableState | None:
        """The place after a token; None where it cannot follow."""
        trie = self.index.trie
        if not 0 <= token_id < len(trie.offsets) - 1:
            return None
        start, end = trie.offsets[token_id], trie.offsets[token_id + 1]
        if start == end:
            return None
        place = self.advance(configuration, trie.data, start, end)
        return self._counted(place) if place is not None and self.tables.token_bounds else place

    def _counted(self, place: TableState) -> TableState:
        """Count a token that ended in texts with a bound on their tokens; heads that reached it move to the states that end the text."""
        bounds, found = self.tables.token_bounds, place.configuration
        end = HEADS + 3 * int(found[NUM_HEADS])
        for at in range(HEADS, end, 3):
            bound = bounds.get(int(found[at]))
            if bound is not None:
                if found is place.configuration:
                    found = found.copy()
                most, ended = bound
                found[at + 1] += 1
                if found[at + 1] >= most:
                    found[at], found[at + 1] = ended, 0
        return place if found is place.configuration else self._known.find(TableState(found, place.is_complete))

    def complete_row(self, state: int) -> None:
        """Build a row that was left open."""
        self.tables.complete(state)

    def forced(self, configuration: Configuration) -> bytes:
        """The bytes that must come next, at most _FORCED_BYTES."""
        workspace, tables = self.index.workspace, self.tables.published
        text = np.empty(_FORCED_BYTES, dtype=np.uint8)
        num_bytes = 0
        while True:
            workspace.out[1] = 0
            code = walks.forced(
                tables.S,
                tables.T,
                tables.X,
                configuration,
                workspace.W,
                workspace.H,
                workspace.Q,
                workspace.D,
                text[num_bytes:],
                workspace.out,
            )
            begin = num_bytes
            num_bytes += int(workspace.out[1])
            if code == OK:
                return text[:num_bytes].tobytes()
            tables = self._provide(code, tables, workspace)
            if num_bytes > begin:  # the next walk begins here: a long text takes one walk for each row not yet built
                data = np.frombuffer(text[begin:num_bytes].tobytes(), dtype=np.uint8)
                reached = self.advance(configuration, data, 0, len(data))
                assert reached is not None, "forced bytes are allowed"
                configuration, tables = reached.configuration, self.tables.published

    def mask(self, configuration: Configuration) -> Mask:
        """The tokens that may follow, end tokens among them."""
        mask = self.masks.mask(configuration)
        if not self._has_distinct_names or (mask.holds_names is False and configuration.item(TOUCHED) <= WITH_NAME):
            return mask
        return self._without_repeats(mask, configuration)

    def _without_repeats(self, mask: Mask, configuration: Configuration) -> Mask:
        """The mask without the tokens that complete a name for the second time in its object."""
        index = self.index
        if mask.holds_names is None:
            mask.holds_names = self._removed(mask, index.risky.within) is not mask
        if not mask.holds_names and configuration[TOUCHED] <= WITH_NAME:
            return mask
        risky, workspace = index.risky, index.workspace
        trail = configuration[configuration[LENGTH] :]
        trie, found = index.trie, workspace.found
        named = risky.ending if trail[MODE] == IN_NAME else risky.whole
        within = risky.within if mask.holds_names else index.no_ids
        count = find_repeats(trail, *named, within, trie.data, trie.offsets, workspace.trail, found)
        return self._removed(mask, found[:count]) if count else mask

    def repeats_name(self, configuration: Configuration, text: bytes) -> bool:
        """Whether a text that may follow by the tables has a name twice in one object, which is not allowed."""
        if not self._has_distinct_names:
            return False
        data = np.frombuffer(text, dtype=np.uint8)
        trail = configuration[configuration[LENGTH] :]
        return bool(repeats(trail, data, 0, len(data), self.index.workspace.trail))

    def _removed(self, mask: Mask, unwanted: NDArray[np.int32]) -> Mask:
        """The mask without some tokens; the same mask if it has none of them."""
        kept = self.index.workspace.ids
        count = int(remove(mask.ids, unwanted, kept))
        base = mask.base
        if mask.owns_base and ((base[unwanted >> 5] >> (unwanted & 31).astype(np.uint32)) & 1).any():
            base = base.copy()
            clear(unwanted, base)
        if count == len(mask.ids) and base is mask.base:
            return mask
        return Mask(base, kept[:count].copy(), mask.level, owns_base=mask.owns_base)

    def only_ends(self, configuration: Configuration) -> bool:
        """Whether nothing but an end token may follow."""
        mask = self.masks.mask(configuration)
        if mask.base is not self.index.no_tokens or len(mask.ids) > len(self.index.end_ids):
            return False
        return bool(np.isin(mask.ids, self.index.end_ids).all())

    def temperature(self, configuration: Configuration) -> float | None:
        """See `GrammarMatcher.temperature`: these grammars have no options of rules."""
        return None

    def captures(self, token_ids: Sequence[int]) -> dict[str, list[bytes]]:
        """See `GrammarMatcher.captures`: these grammars have no options of rules."""
        return {}

    def _provide(self, code: int, tables: Snapshot, workspace: Workspace) -> Snapshot:
        """Build the row or grow the workspace, as compiled code asked; returns the tables to continue with."""
        if code == NEED_ROW:
            return self.tables.complete(int(workspace.out[0]))
        workspace.grow()
        return tables
