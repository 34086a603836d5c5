"""Computes and caches the masks of one grammar.

A mask is a shared base of the vocabulary plus a few tokens. Its key is the part of the configuration that its walk read: the heads and the
levels of frames down to the deepest one visited, a prefix of the configuration. A lookup tries every level that was seen with these heads.
Inside a string whose code points are counted, nearly all tokens are shorter than the remaining room: their mask is cached once for all such
places, and only the few long tokens are walked at each. Inside a string with a pattern the walk runs over the coarse token trie if that
decides all tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.machine.automaton.json_base_states import (
    BEFORE_TEXT_SLICE,
    COUNTED_SLICE,
    EMBEDDED_SLICE,
    STRING_SLICE,
    TEXT_SLICE,
    TWIN_SLICE,
)
from rtlang_grammars.machine.automaton.layout import (
    ACC,
    BOUNDS,
    BYTE,
    EDGE_NEXT,
    EDGE_PARENT,
    EDGE_REGISTER,
    EDGE_RETURN,
    ENDS,
    HEADS,
    LENGTH,
    MAX_LEVELS,
    NEED_FREEDOM,
    NEED_ROW,
    NO_SPACE,
    NODE_EDGE,
    NONE,
    NUM_HEADS,
    NUM_LEVELS,
    OK,
    PARAM,
    ROOT,
    ROW,
    SLICE,
    UNKNOWN_ROW,
    WIDTH,
)
from rtlang_grammars.machine.automaton.tables import NO_BYTE, Tables, TextFacts
from rtlang_grammars.machine.native import walks
from rtlang_grammars.machine.raw_masks import Parts, RawMasks
from rtlang_grammars.machine.string_masks import MAX_FORBIDDEN, clear, walk_forbidden
from rtlang_grammars.machine.token_index.coarse_token_trie import CoarseTokenTrie
from rtlang_grammars.machine.token_index.mask import Mask
from rtlang_grammars.machine.token_index.vocabulary_index import REACH, VocabularyIndex

Configuration = NDArray[np.int64]

_MAX_SLICED_HEADS = 8
_LETTER = ord("a")


class Masks:
    """Computes and caches the masks of a grammar. Safe to use from several threads; if two compute the same mask, that is harmless.

    Attributes:
        num_looks: number of trie records visited so far.
    """

    def __init__(self, index: VocabularyIndex, tables: Tables, max_bytes: int) -> None:
        self._index, self._tables, self._max_bytes = index, tables, max_bytes
        self._raw_masks = RawMasks(index, tables)
        self._cached: dict[tuple[int, bytes], Mask] = {}
        self._older: dict[tuple[int, bytes], Mask] = {}
        self._levels: dict[bytes, tuple[int, ...]] = {}
        self._cached_bytes = self._older_bytes = 0
        self.num_looks = 0

    @property
    def num_bytes(self) -> int:
        """Memory of all cached masks."""
        return self._cached_bytes + self._older_bytes

    def mask(self, configuration: Configuration) -> Mask:
        """The tokens that may follow."""
        heads = self._heads(configuration)
        found = self._cached.get((0, heads))  # nearly half of all masks read no frame
        return found or self._found(heads, configuration, lambda: self._make(configuration))

    def _found(self, heads: bytes, configuration: Configuration, make: Callable[[], Mask]) -> Mask:
        """Look up a mask or compute it."""
        levels = self._levels.get(heads, ())
        for level in levels:
            key = (level, heads + _frames(configuration, level) if level else heads)
            found = self._cached.get(key)
            if found is not None:
                return found
            found = self._older.get(key)
            if found is not None:
                self._store(key, found)
                return found
        mask = make()
        if mask.level not in levels:
            self._levels[heads] = tuple(sorted((*levels, mask.level)))
        self._store((mask.level, heads + _frames(configuration, mask.level)), mask)
        return mask

    def _store(self, key: tuple[int, bytes], mask: Mask) -> None:
        num_bytes = mask.num_bytes + len(key[1])
        if self._cached_bytes + num_bytes > self._max_bytes // 2 and self._cached:
            self._older, self._older_bytes = self._cached, self._cached_bytes
            self._cached, self._cached_bytes = {}, 0
            if len(self._levels) > 4 * len(self._older):
                self._levels = {}
        self._cached[key] = mask
        self._cached_bytes += num_bytes

    def _heads(self, configuration: Configuration) -> bytes:
        """The heads as a key. Counts far from their bounds share one key."""
        item = configuration.item
        if item(NUM_HEADS) == 1:
            counted = self._tables.counted.get(item(HEADS))
            if counted is not None:
                state, count, far = item(HEADS), item(HEADS + 1), self._index.max_depth + 1
                lack, room = min(max(counted[0] - count, 0), far), min(counted[1] - count, far)
                return np.array([state, lack, room], dtype=np.int64).tobytes()
        return configuration[NUM_HEADS : item(BOUNDS)].tobytes()

    def _make(self, configuration: Configuration) -> Mask:
        index, S, item = self._index, self._tables.published.S, configuration.item
        if item(NUM_HEADS) > 1:
            return self._raw(configuration)
        state, count = item(HEADS), item(HEADS + 1)
        slice_id = S.item(state, SLICE)
        if slice_id in (0, TEXT_SLICE, BEFORE_TEXT_SLICE):
            return self._raw(configuration)
        if slice_id < COUNTED_SLICE:
            found = index.slices[slice_id]
            if slice_id == STRING_SLICE and self._goes_on(state):
                return self._walk_groups(configuration, found.mask, index.string_ends)
            return self._walk(configuration, found.mask, found.inside)
        room = S.item(state, WIDTH) - count
        if slice_id == COUNTED_SLICE:
            if count >= S.item(state, PARAM) and REACH <= room < index.max_depth:
                return self._bounded(configuration, room)
            return self._walk(configuration, index.counted(room), index.slices[COUNTED_SLICE].inside)
        if slice_id == TWIN_SLICE and count >= self._tables.counted[state][0] and room >= REACH:
            twin = configuration.copy()
            twin[HEADS], twin[HEADS + 1] = S.item(state, PARAM), 0
            simple = self._found(self._heads(twin), twin, lambda: self._make(twin))
            return simple if room >= index.max_depth else self._shortened(simple, configuration)
        if slice_id == EMBEDDED_SLICE:
            near, far = (self._tables.relaxed(state, reach) for reach in (REACH, index.max_depth))
            if near != state:
                simple = self._of_head(configuration, near)
                return simple if near == far else self._shortened(simple, _with_state(configuration, far))
        is_quoted = self._tables.embedded[state].is_quoted(state)
        base, nodes = self._slice(configuration, S, inside=is_quoted)
        if nodes is index.trie.nodes:
            coarse = self._coarse_trie(state)
            if coarse is not None:
                return self._walk_coarse(configuration, coarse)
            if slice_id == EMBEDDED_SLICE:
                forbidden = self._forbidden(state)
                if forbidden is not None:
                    return self._walk_all_but(configuration, forbidden, inside=is_quoted)
        return self._walk(configuration, base, nodes)

    def _of_head(self, configuration: Configuration, state: int) -> Mask:
        """The mask of a configuration whose only head is in another state."""
        other = _with_state(configuration, state)
        return self._found(self._heads(other), other, lambda: self._make(other))

    def _goes_on(self, state: int) -> bool:
        """Whether a state of the string slice is the inside of a string: characters lead back to it, and not into a trie of names."""
        tables = self._tables.published
        return bool(tables.T[256 * int(tables.S[state, ROW]) + _LETTER] == state)

    def _raw(self, configuration: Configuration) -> Mask:
        """A mask of heads of which one may be inside raw text or before it: what each of these allows, and what all others do."""
        num_heads = int(configuration[NUM_HEADS])
        heads = configuration[HEADS : HEADS + 3 * num_heads].reshape(-1, 3)
        parts: list[tuple[int, Parts]] = []
        for i in range(min(num_heads, _MAX_SLICED_HEADS)):
            place = self._raw_place(configuration, *heads[i].tolist())
            if place is not None:
                parts.append((i, self._raw_masks.parts(*place)))
        if not parts:
            return self._walk(configuration, *self._slice(configuration, self._tables.published.S))
        masks = [
            mask for i, each in parts for mask in self._masks_of(_with_heads(configuration, heads[i : i + 1]), each)
        ]
        if len(parts) < num_heads:
            rest = _with_heads(configuration, np.delete(heads, [i for i, _ in parts], axis=0))
            masks.append(self._walk(rest, *self._slice(rest, self._tables.published.S)))
        return self._union(masks)

    def _raw_place(
        self, configuration: Configuration, state: int, count: int, node: int
    ) -> tuple[int, TextFacts, int] | None:
        """The state inside raw text in which a head is or with which it goes on, its facts, and the characters so far; else None."""
        tables = self._tables
        while True:
            S = tables.published.S
            slice_id = int(S[state, SLICE])
            if slice_id in (TEXT_SLICE, BEFORE_TEXT_SLICE):
                facts = tables.texts[S[state, PARAM]]
                return (state, facts, count) if slice_id == TEXT_SLICE else (facts.start, facts, 0)
            if S[state, ACC] != ENDS or node == ROOT or S[state, SLICE]:
                return None
            edge = node + NODE_EDGE
            if configuration[edge + EDGE_NEXT] or not self._is_at_end(state):
                return None
            state, count, node = (int(configuration[edge + each]) for each in (EDGE_RETURN, EDGE_REGISTER, EDGE_PARENT))

    def _is_at_end(self, state: int) -> bool:
        """Whether no byte goes on within a frame from a state."""
        snapshot = self._tables.published
        if snapshot.S[state, ROW] == UNKNOWN_ROW:
            snapshot = self._tables.complete(state)
        row = 256 * int(snapshot.S[state, ROW])
        return int(snapshot.S[state, BYTE]) == NO_BYTE and bool((snapshot.T[row : row + 256] == NONE).all())

    def _masks_of(self, configuration: Configuration, parts: Parts) -> list[Mask]:
        masks = [self._walk(configuration, parts.base, parts.tries[0])]
        masks[0].owns_base |= parts.owns_base
        return masks + [self._walk(configuration, self._index.no_tokens, trie) for trie in parts.tries[1:]]

    def _union(self, masks: Sequence[Mask]) -> Mask:
        """A mask of all tokens of some masks."""
        if len(masks) == 1:
            return masks[0]
        bases = [each for each in masks if each.base is not self._index.no_tokens]
        base = bases[0].base if bases else self._index.no_tokens
        for each in bases[1:]:
            base = base | each.base
        owns_base = len(bases) > 1 or (len(bases) == 1 and bases[0].owns_base)
        ids = np.concatenate([each.ids for each in masks])
        return Mask(base, ids, max(each.level for each in masks), owns_base=owns_base)

    def _coarse_trie(self, state: int) -> CoarseTokenTrie | None:
        """The coarsest trie that decides all tokens in a state inside a string."""
        embedded = self._tables.embedded.get(state)
        if embedded is None:
            return None
        with self._tables.lock:
            levels = embedded.coarse_levels(state)  # the lowest is the coarsest
        return self._index.coarse_tries[(levels & -levels).bit_length() - 1] if levels else None

    def _shortened(self, simple: Mask, configuration: Configuration) -> Mask:
        """A mask derived from `simple` where every short token still fits, so that only the long tokens are walked."""
        index = self._index
        long = self._walk(configuration, index.no_tokens, index.long_tokens)
        ids = np.concatenate((simple.ids[~index.is_long[simple.ids]], long.ids))
        level = max(simple.level, long.level)
        if simple.base is index.no_tokens:
            return Mask(simple.base, ids, level)
        return Mask(simple.base & index.short_tokens, ids, level, owns_base=True)

    def _bounded(self, configuration: Configuration, room: int) -> Mask:
        """A mask inside a counted string where every short token fits: the short part is cached once, only the long tokens are walked."""
        index = self._index
        parts = index.counted_others
        key = b"short" + configuration[HEADS : HEADS + 1].tobytes()
        short = self._found(key, configuration, lambda: self._walk(configuration, index.no_tokens, parts[0]))
        long = self._walk(configuration, index.no_tokens, parts[1])
        ids, level = np.concatenate((short.ids, long.ids)), max(short.level, long.level)
        base = index.counted(room)
        if short.base is index.no_tokens:
            return Mask(base, ids, level)
        return Mask(short.base | base, ids, level, owns_base=True)

    def _slice(
        self, configuration: Configuration, S: NDArray[np.int32], *, inside: bool = False
    ) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Tokens that are certainly allowed after one of the heads, and the trie of all other tokens; inside: see `Slice`."""
        index = self._index
        for i in range(min(int(configuration[NUM_HEADS]), _MAX_SLICED_HEADS)):
            state, count, _ = configuration[HEADS + 3 * i : HEADS + 3 * i + 3].tolist()
            slice_id = int(S[state, SLICE])
            if slice_id in (0, TWIN_SLICE, TEXT_SLICE, BEFORE_TEXT_SLICE):
                continue
            if slice_id == COUNTED_SLICE and S[state, WIDTH] - count < index.max_depth:
                continue
            found = index.slices[slice_id]
            if slice_id == EMBEDDED_SLICE:
                with self._tables.lock:
                    length = self._tables.embedded[state].free_length(state)
                if length is not None:
                    short = index.short(length)
                    if short is None:
                        continue
                    found = short
            return found.mask, found.inside if inside else found.others
        return index.no_tokens, index.trie.nodes

    def _walk(self, configuration: Configuration, base: NDArray[np.uint32], trie: NDArray[np.int64]) -> Mask:
        """A mask of `base`, those tokens of `trie` that may follow, and end tokens."""
        index = self._index
        level, is_complete, ids = self._followed(configuration, trie)
        if is_complete:
            ids = np.concatenate((ids, index.end_ids))
        if len(ids) > index.num_words:
            dense = np.empty(index.num_words, dtype=np.uint32)
            Mask(base, ids).write(dense.view(np.int32))
            return Mask(dense, index.no_ids, level, owns_base=True)
        return Mask(base, ids if is_complete else ids.copy(), level)

    def _forbidden(self, state: int) -> NDArray[np.int32] | None:
        """The plain tokens that cannot follow a state inside a string, possibly with others, in the thread's workspace; None: too many."""
        tables, workspace, at = self._tables, self._index.workspace, 0
        out = workspace.out
        ids, trie = workspace.ids[:MAX_FORBIDDEN], self._index.trie.nodes
        snapshot = tables.published
        while True:
            code = walk_forbidden(snapshot.S, snapshot.T, state, trie, at, workspace.P, ids, out)
            if code not in (NEED_ROW, NEED_FREEDOM):
                return ids[: out[7]] if code == OK else None
            asked, at = int(out[0]), int(out[1])
            snapshot = tables.complete(asked) if code == NEED_ROW else tables.record_freedom(asked)

    def _walk_all_but(self, configuration: Configuration, forbidden: NDArray[np.int32], *, inside: bool) -> Mask:
        """A mask of all plain tokens except the forbidden ones, and of the other tokens that may follow."""
        plain = self._index.slices[EMBEDDED_SLICE]
        base = plain.mask
        if len(forbidden):
            base = base.copy()
            clear(forbidden, base)
        mask = self._walk(configuration, base, plain.inside if inside else plain.others)
        return Mask(mask.base, mask.ids, mask.level, owns_base=mask.owns_base or base is not plain.mask)

    def _walk_coarse(self, configuration: Configuration, trie: CoarseTokenTrie) -> Mask:
        """A mask of the tokens of all groups that may follow, and end tokens."""
        index = self._index
        level, is_complete, groups = self._followed(configuration, trie.nodes)
        end_ids = index.end_ids if is_complete else index.no_ids
        if trie.count(groups) > index.num_words:
            return Mask(trie.mask(groups), end_ids, level, owns_base=True)
        ids = trie.tokens(groups)
        return Mask(index.no_tokens, np.concatenate((ids, end_ids)) if is_complete else ids, level)

    def _walk_groups(self, configuration: Configuration, base: NDArray[np.uint32], trie: CoarseTokenTrie) -> Mask:
        """A mask of `base` and of the tokens of all groups that may follow; the text does not end here."""
        level, _, groups = self._followed(configuration, trie.nodes)
        if trie.count(groups) > self._index.num_words:
            return Mask(base | trie.mask(groups), self._index.no_ids, level, owns_base=True)
        return Mask(base, trie.tokens(groups), level)

    def _followed(self, configuration: Configuration, trie: NDArray[np.int64]) -> tuple[int, bool, NDArray[np.int32]]:
        """Walk over a trie: the levels read, whether the text is complete, and the tokens that may follow, in the thread's workspace."""
        workspace, tables = self._index.workspace, self._tables.published
        at = 0
        while True:
            code = walks.walk(
                tables.S,
                tables.T,
                tables.X,
                configuration,
                workspace.W,
                workspace.H,
                workspace.Q,
                workspace.D,
                workspace.P,
                workspace.R,
                trie,
                at,
                workspace.ids,
                workspace.out,
            )
            if code == OK:
                break
            if code == NEED_ROW:
                at = int(workspace.out[1])
                tables = self._tables.complete(int(workspace.out[0]))
            else:
                assert code == NO_SPACE
                at = 0
                workspace.grow()
        _, level, _, _, _, is_complete, looks, count = workspace.out[:8].tolist()
        self.num_looks += looks
        return level, bool(is_complete), workspace.ids[:count]


def _with_state(configuration: Configuration, state: int) -> Configuration:
    """A configuration whose only head is in another state."""
    found = configuration.copy()
    found[HEADS] = state
    return found


def _with_heads(configuration: Configuration, heads: NDArray[np.int64]) -> Configuration:
    """A configuration with some of its heads only."""
    if len(heads) == configuration[NUM_HEADS]:
        return configuration
    found = configuration.copy()
    found[NUM_HEADS] = len(heads)
    found[HEADS : HEADS + heads.size] = heads.reshape(-1)
    return found


def _frames(configuration: Configuration, level: int) -> bytes:
    """The frames down to a level."""
    if level == 0:
        return b""
    end = configuration[LENGTH if level >= min(MAX_LEVELS, int(configuration[NUM_LEVELS])) else BOUNDS + level]
    return configuration[configuration[BOUNDS] : end].tobytes()
