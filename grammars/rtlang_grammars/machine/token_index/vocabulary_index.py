"""A vocabulary prepared for masks: its trie, slices of it, and the workspaces of the threads that walk it.

A slice is a set of tokens that are always allowed in a given kind of state, whatever its frames hold, together with a trie of all other
tokens: a mask for such a state is a copy of the slice plus a short walk. Inside a JSON string, the slice holds the tokens without a quote,
96% of all tokens.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.machine.automaton.json_base_states import (
    COUNTED_SLICE,
    EMBEDDED_SLICE,
    QUOTE,
    STRING_SLICE,
    plain_body,
    string_body,
)
from rtlang_grammars.machine.automaton.layout import (
    BOUNDS,
    BUCKETS,
    HEADS,
    LENGTH,
    NUM_HEADS,
    NUM_LEVELS,
    OUT_WORDS,
)
from rtlang_grammars.machine.native.repeated_names import ROOM, RiskyTokens
from rtlang_grammars.machine.native.step_functions import DEPTH_WORDS
from rtlang_grammars.machine.token_index.byte_kinds import byte_kinds
from rtlang_grammars.machine.token_index.coarse_token_trie import CoarseTokenTrie, coarse_token_tries, string_ends
from rtlang_grammars.machine.token_index.mask import Mask, mask_of_ids
from rtlang_grammars.machine.token_index.token_trie import ArrayCache, TokenTrie, token_trie
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.vocabulary import Vocabulary

REACH = 32
"""Longer tokens, in bytes, count as long: 240 of 151,936 in the vocabulary of Qwen2."""

SHORT = (16, 10)
"""Maximum code points of the tokens in the slices of short tokens, which hold 99 % and 94 % of the tokens without a quote."""

_MAX_KEPT = 512
"""Arrays that are kept for raw texts."""
_Array = TypeVar("_Array", bound="NDArray[Any]")

_MAX_ARENA = 1 << 24
_MAX_HEADS = 1 << 16


class Workspace:
    """The scratch arrays of `walks`. Owned by one thread.

    Attributes:
        W, H, Q, D, P, R, ids, out: see `walks`.
        C: int64, where a new configuration is assembled.
        trail, found: see `repeated_names`.
    """

    __slots__ = ("C", "D", "H", "P", "Q", "R", "W", "found", "ids", "out", "trail")

    def __init__(self, max_depth: int, num_tokens: int) -> None:
        # Large, so that they rarely grow: memory is not taken until it is first written.
        self.ids: NDArray[np.int32] = np.empty(num_tokens + 1, dtype=np.int32)
        self.W: NDArray[np.int64] = np.zeros(1 << 19, dtype=np.int64)
        self.C: NDArray[np.int64] = np.zeros(1 << 19, dtype=np.int64)
        self.H: NDArray[np.int64] = np.zeros((max(1 << 15, 2 * max_depth + 64), 4), dtype=np.int64)
        self.Q: NDArray[np.int64] = np.zeros((1 << 15, 4), dtype=np.int64)
        self.D: NDArray[np.int64] = np.zeros((max_depth + 2, DEPTH_WORDS), dtype=np.int64)
        self.P: NDArray[np.int64] = np.zeros(max_depth + 2, dtype=np.int64)
        self.R: NDArray[np.int64] = np.zeros(max_depth + 2, dtype=np.int64)
        self.trail: NDArray[np.int64] = np.zeros(ROOM, dtype=np.int64)
        self.found: NDArray[np.int32] = np.empty(num_tokens + 1, dtype=np.int32)
        self.out: NDArray[np.int64] = np.zeros(OUT_WORDS + 3 * BUCKETS, dtype=np.int64)

    def grow(self) -> None:
        """Double the size of all arrays and keep their contents.

        Raises:
            GrammarError: the bound is reached.
        """
        if len(self.W) >= _MAX_ARENA or len(self.H) >= _MAX_HEADS * 4:
            raise GrammarError(
                f"too ambiguous or nested too deeply: the text needs more than {_MAX_HEADS} heads or {_MAX_ARENA} words of frames"
            )
        for name in ("W", "C", "H", "Q"):
            old = getattr(self, name)
            grown = np.zeros((2 * len(old), *old.shape[1:]), dtype=np.int64)
            grown[: len(old)] = old
            setattr(self, name, grown)


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """Tokens that are allowed wherever the slice applies.

    Attributes:
        mask: uint32 [num_mask_words].
        others: records of the trie of all other tokens.
        inside: without those that no JSON string allows, such as line breaks, or quotes after them.
    """

    mask: NDArray[np.uint32]
    others: NDArray[np.int64]
    inside: NDArray[np.int64]


class VocabularyIndex:
    """A vocabulary prepared for masks. Safe to use from several threads.

    Attributes:
        vocabulary, trie: as given.
        slices: by SLICE.
        long_tokens: trie of the long tokens.
        string_ends: the tokens that end a JSON string, by what comes after it; all others but those of the slice are not allowed in one.
        coarse_tries: the tokens grouped by coarse classes, one trie for each level.
        is_long: bool by token id.
        risky: the tokens that may repeat a name.
        short_tokens: mask of all other tokens, uint32 [num_mask_words].
        counted_others: tries of the short and of the long tokens that are not in the counted slice, without those that no string allows.
        no_tokens: an empty mask, uint32 [num_mask_words].
        no_ids: an empty array, int32 [0].
        end_ids: int32, the end tokens.
        num_words: words of a mask.
        spare_scratch: scratch of walks through lexers that no grammar is using; taken and put back.
    """

    def __init__(self, vocabulary: Vocabulary, cache: ArrayCache | None = None) -> None:
        self.vocabulary = vocabulary
        self.trie: TokenTrie = token_trie(vocabulary, cache)
        self._local = threading.local()
        self.spare_scratch: list[Any] = []
        self.num_words = vocabulary.num_mask_words
        self.no_tokens: NDArray[np.uint32] = np.zeros(self.num_words, dtype=np.uint32)
        self.no_ids: NDArray[np.int32] = np.empty(0, dtype=np.int32)
        self.end_ids: NDArray[np.int32] = np.array(sorted(vocabulary.eos_token_ids), dtype=np.int32)
        self._non_end_mask: NDArray[np.uint32] = np.full(self.num_words, 0xFFFFFFFF, dtype=np.uint32)
        for token_id in vocabulary.eos_token_ids:
            self._non_end_mask[token_id >> 5] &= np.uint32(0xFFFFFFFF ^ (1 << (token_id & 31)))
        self._in_strings = self._walked(string_body(), ends=True)
        self.slices: dict[int, Slice] = {
            STRING_SLICE: self._body_slice(string_body()),
        }
        self.string_ends = string_ends(
            self.trie, self._others(self.slices[STRING_SLICE].mask, inside=True), self.num_words
        )
        self.slices[COUNTED_SLICE] = self.slices[EMBEDDED_SLICE] = self._body_slice(plain_body())
        self.coarse_tries: tuple[CoarseTokenTrie, ...] = coarse_token_tries(self.trie, self.num_words, cache)
        self.risky = RiskyTokens.of(self.trie.data, self.trie.offsets, self.trie.order)
        self.is_long: NDArray[np.bool_] = np.zeros(32 * self.num_words, dtype=np.bool_)
        self.is_long[: len(self.trie.offsets) - 1] = np.diff(self.trie.offsets) > REACH
        self.short_tokens: NDArray[np.uint32] = np.packbits(~self.is_long, bitorder="little").view(np.uint32)
        self.long_tokens = self.trie.part(self.trie.order[self.is_long[self.trie.order]])
        self.counted_others = self._split(self._others(self.slices[COUNTED_SLICE].mask, inside=True))
        self._arrays: dict[tuple[Any, ...], Any] = {}
        self._at_most: dict[int, NDArray[np.uint32]] = {}
        self._num_points = self._count_points()
        self._by_points = self.trie.order[np.argsort(self._num_points[self.trie.order], kind="stable")]
        """The tokens, those with few code points first."""
        self._ends_of_points: list[int] = np.cumsum(np.bincount(self._num_points[self.trie.order])).tolist()
        """For each number of code points, how many tokens have no more."""
        lengths = np.diff(self.trie.offsets)
        holders = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
        self._holders = holders[np.argsort(self.trie.data, kind="stable")]
        """The tokens that hold a byte, by byte."""
        self._ends_of_byte = np.concatenate(([0], np.cumsum(np.bincount(self.trie.data, minlength=256)))).tolist()
        self._with_text = mask_of_ids(self.trie.order, self.num_words)
        plain = np.unpackbits(self.slices[EMBEDDED_SLICE].mask.view(np.uint8), bitorder="little")[: len(lengths)]
        self._is_broken = self._has_any(bytes(range(0x80, 0x100))) & (plain == 0)
        """Whether a token may not begin with whole characters."""
        self._code_points = self._count_code_points()
        self._counted: dict[int, NDArray[np.uint32]] = {}
        self._short = {room: self._short_slice(room) for room in SHORT}

    @property
    def workspace(self) -> Workspace:
        """The workspace of the calling thread."""
        found: Workspace | None = getattr(self._local, "workspace", None)
        if found is None:
            found = self._local.workspace = Workspace(self.trie.max_depth, len(self.trie.order))
        return found

    def only_ends(self, mask: NDArray[np.uint32]) -> bool:
        """Whether a mask, uint32 [num_words], allows no token but end tokens."""
        return not (mask & self._non_end_mask).any()

    @functools.cached_property
    def byte_kinds(self) -> NDArray[np.int64]:
        """The trie with what bytes stand below each record, see `byte_kinds`."""
        return byte_kinds(self.trie)

    def tokens_breaking(self, last: bytes) -> NDArray[np.int64]:
        """The trie of the tokens that hold any of some bytes, or do not begin with whole characters; others stay in any text."""

        def make() -> NDArray[np.int64]:
            order = self.trie.order
            return self.trie.part(order[(self.has_any(last) | self._is_broken)[order]])

        return self._kept(("breaking", last), make)

    def has_any(self, wanted: bytes) -> NDArray[np.bool_]:
        """Whether a token holds any of some bytes, bool by token id."""
        return self._kept(("any", wanted), lambda: self._has_any(wanted))

    def _has_any(self, wanted: bytes) -> NDArray[np.bool_]:
        found = np.zeros(len(self.trie.offsets) - 1, dtype=np.bool_)
        for byte in wanted:
            found[self._holders[self._ends_of_byte[byte] : self._ends_of_byte[byte + 1]]] = True
        return found

    def tokens_with(self, wanted: bytes | None, first: bytes = b"", *, longer_than: int = 0) -> NDArray[np.int64]:
        """The trie of the tokens with more code points than that which hold any of some bytes (None: all), or begin with one of others."""
        if wanted is None and longer_than == 0:
            return self.trie.nodes

        def make() -> NDArray[np.int64]:
            found = self._tokens_with(wanted, first)
            return self.trie.part(found[self._num_points[found] > longer_than] if longer_than else found)

        return self._kept(("trie", wanted, first, longer_than), make)

    def _tokens_with(self, wanted: bytes | None, first: bytes) -> NDArray[np.int32]:
        """The tokens that hold any of some bytes or begin with one of others, in the order of the trie."""
        order, trie = self.trie.order, self.trie
        if wanted is None:
            return order

        def make() -> NDArray[np.int32]:
            is_first = np.zeros(256, dtype=np.bool_)
            is_first[list(first)] = True
            return order[self.has_any(wanted)[order] | is_first[trie.data[trie.offsets[order]]]]

        return self._kept(("tokens", wanted, first), make)

    def at_most(self, room: int) -> NDArray[np.uint32]:
        """The tokens of at most `room` code points, uint32 [num_mask_words]."""
        found = self._at_most.get(room)
        if found is None:
            end = self._ends_of_points[max(room, 0)]
            is_short = 2 * end < len(self._by_points)
            ids = self._by_points[:end] if is_short else self._by_points[end:]
            found = self._at_most[room] = self.mask_of(ids, all_but=not is_short)
        return found

    @property
    def max_points(self) -> int:
        """Code points of the token that has most."""
        return len(self._ends_of_points) - 1

    def mask_of(self, token_ids: NDArray[np.int32], *, all_but: bool = False) -> NDArray[np.uint32]:
        """A mask of some tokens, or of all that have a text but these, uint32 [num_mask_words]."""
        found = np.empty(self.num_words, dtype=np.uint32)
        Mask(self.no_tokens, np.ascontiguousarray(token_ids)).write(found.view(np.int32))
        return self._with_text & ~found if all_but else found

    def _kept(self, key: tuple[Any, ...], make: Callable[[], _Array]) -> _Array:
        """An array that depends on the vocabulary only; a bounded number of them is kept."""
        found = self._arrays.get(key)
        if found is None:
            if len(self._arrays) >= _MAX_KEPT:
                self._arrays.clear()
            found = self._arrays[key] = make()
        return found

    def _count_points(self) -> NDArray[np.int32]:
        """Number of code points that begin in each token."""
        trie = self.trie
        counts = np.zeros(len(trie.data) + 1, dtype=np.int64)
        np.cumsum((trie.data & 0xC0) != 0x80, out=counts[1:])
        return (counts[trie.offsets[1:]] - counts[trie.offsets[:-1]]).astype(np.int32)

    @property
    def max_depth(self) -> int:
        """Bytes of the longest token."""
        return self.trie.max_depth

    def counted(self, room: int) -> NDArray[np.uint32]:
        """The tokens of the counted slice with at most `room` code points, uint32 [num_mask_words]."""
        if room >= self.max_depth:
            return self.slices[COUNTED_SLICE].mask
        found = self._counted.get(room)
        if found is None:
            bits = np.zeros(32 * self.num_words, dtype=np.bool_)
            bits[: len(self._code_points)] = (self._code_points > 0) & (self._code_points <= room)
            found = np.packbits(bits, bitorder="little").view(np.uint32)
            self._counted[room] = found
        return found

    def short(self, length: int) -> Slice | None:
        """The largest slice of short tokens with at most `length` code points; None if it would leave out too many."""
        return next((self._short[room] for room in SHORT if room <= length), None)

    def _short_slice(self, room: int) -> Slice:
        return self._slice(self.counted(room))

    def _slice(self, mask: NDArray[np.uint32]) -> Slice:
        return Slice(mask, self.trie.part(self._others(mask)), self.trie.part(self._others(mask, inside=True)))

    def _others(self, mask: NDArray[np.uint32], *, inside: bool = False) -> NDArray[np.int32]:
        """The tokens that are not in a mask; inside: only those that some JSON string allows."""
        found = self._in_strings & ~mask if inside else ~mask
        order = self.trie.order
        others: NDArray[np.int32] = order[np.unpackbits(found.view(np.uint8), bitorder="little")[order] == 1]
        return others

    def _split(self, token_ids: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        is_long = self.is_long[token_ids]
        return self.trie.part(token_ids[~is_long]), self.trie.part(token_ids[is_long])

    def _count_code_points(self) -> NDArray[np.int32]:
        """Number of code points that begin in each token of the counted slice; 0 for other tokens."""
        found = self._num_points.copy()
        bits = np.unpackbits(self.slices[COUNTED_SLICE].mask.view(np.uint8), bitorder="little")[: len(found)]
        found[bits == 0] = 0
        return found

    def _body_slice(self, body: NDArray[np.int32]) -> Slice:
        return self._slice(self._walked(body))

    def _walked(self, body: NDArray[np.int32], *, ends: bool = False) -> NDArray[np.uint32]:
        """The tokens that may follow in a string, uint32 [num_mask_words]. ends: with any bytes after its closing quote.

        All tokens take a step at once, so numpy does it as fast as a compiled walk, and without compiled code.
        """
        refused, anything = len(body), len(body) + 1
        steps = np.full((len(body) + 2, 256), refused, dtype=np.int32)
        steps[: len(body)] = np.where(body < 0, refused, body)
        steps[anything] = anything
        if ends:
            steps[0, QUOTE] = anything
        ids = self.trie.order
        at, stop = self.trie.offsets[ids], self.trie.offsets[ids + 1]
        states, found = np.zeros(len(ids), dtype=np.int32), []
        while len(ids):
            states, at = steps[states, self.trie.data[at]], at + 1
            found.append(ids[(states != refused) & (at == stop)])
            goes_on = np.flatnonzero((states != refused) & (at < stop))
            ids, at, stop, states = ids[goes_on], at[goes_on], stop[goes_on], states[goes_on]
        return mask_of_ids(np.concatenate([self.no_ids, *found]), self.num_words)


def start_configuration(state: int) -> NDArray[np.int64]:
    """A configuration with one head at `state` and no frame to return to."""
    configuration = np.zeros(HEADS + 3, dtype=np.int64)
    configuration[LENGTH] = configuration[BOUNDS] = HEADS + 3
    configuration[NUM_LEVELS] = configuration[NUM_HEADS] = 1
    configuration[HEADS] = state
    return configuration
