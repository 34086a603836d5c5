"""Masks of places, made by a visit of the tree of terminal sequences with the stacks of a place, and kept by place."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.machine.lexed.lexed_places import Configuration, LexedPlaces
from rtlang_grammars.machine.lexed.living_places import LivingPlaces
from rtlang_grammars.machine.lexer_run import tree_visit
from rtlang_grammars.machine.lexer_run.lexer_layout import (
    END_WIN,
    NEED_JOIN,
    NEED_STACKS,
    NEED_TREE,
    NUM_RANGES,
    OK,
    RANGE_AT,
    ROW,
    TAIL_BYTE_AT,
    TAIL_LAST,
    TAIL_NUM_BYTES,
    TAIL_STATE,
    TAIL_TOKEN,
    TOO_MANY,
    WIN_STATE,
    Begin,
    TokenArrays,
    WalkScratch,
)
from rtlang_grammars.machine.lexer_run.workspace import (
    larger_tree,
    larger_visit,
    larger_walk,
    new_tree,
    new_walk,
    size_of,
)
from rtlang_grammars.machine.token_index.mask import Mask
from rtlang_grammars.machine.token_index.vocabulary_index import VocabularyIndex
from rtlang_grammars.spec.errors import GrammarError

_MAX_TREE_BYTES = 96 << 20
_MAX_MASK_BYTES = 32 << 20
_TAIL_COLUMNS = [TAIL_LAST, TAIL_BYTE_AT, TAIL_NUM_BYTES, TAIL_TOKEN, TAIL_STATE]


class LexedMasks:
    """Makes and keeps masks. Callers of `make` hold the grammar's lock.

    Attributes:
        known: masks by place.
        tree: the tree of terminal sequences.
    """

    def __init__(self, index: VocabularyIndex, places: LexedPlaces, living: LivingPlaces) -> None:
        self._index, self._places, self._living, self._tables = index, places, living, places.tables
        self.known: dict[Configuration, Mask] = {}
        self._tokens = TokenArrays(index.byte_kinds, index.trie.order)
        self._scratch: WalkScratch  # while a mask is made
        self._new_tree()
        self._no_begin = self._begin(places.fresh(0))

    @property
    def num_bytes(self) -> int:
        """Memory of tree and masks."""
        return size_of(self.tree) + len(self.known) * 4 * self._index.num_words

    def make(self, configuration: Configuration) -> Mask:
        """Visit the tree from a place."""
        found = self.known.get(configuration)
        if found is not None:
            return found
        if size_of(self.tree) > _MAX_TREE_BYTES:
            self._new_tree()
        tables = self._tables
        first, size = self._places.stack_sets.span(configuration.stacks)
        key = (configuration.state, configuration.last, configuration.last_at, configuration.tail)
        begin = self._no_begin if key in self._roots else self._begin(configuration)
        spare = self._index.spare_scratch
        self._scratch = spare.pop() if spare else new_walk(len(self._index.trie.order), self._index.max_depth)
        while True:
            self._places.fit_verdicts()
            mask = np.zeros(self._index.num_words, dtype=np.uint32)
            code = tree_visit.visit_tree(
                self.tree, self._roots.get(key, -1), begin, tables.parser, tables.lexer, self._places.stack_sets.stack,
                first, size, self._tokens, self._scratch, self._places.visit, mask,
            )  # fmt: skip
            if self._places.visit.out[2] >= 0:
                self._roots[key] = int(self._places.visit.out[2])
            if code == OK:
                break
            if code == NEED_JOIN:
                self._tables.join(int(self._places.visit.out[0]), int(self._places.visit.out[1]))
            else:
                self._make_room(code)
        spare.append(self._scratch)
        num_asks = int(self._places.visit.out[0])
        if num_asks:
            self._ask(configuration, mask, num_asks)
        if self._places.is_complete(configuration):
            for token in self._index.end_ids.tolist():
                mask[token >> 5] |= np.uint32(1 << (token & 31))
        while self.known and (len(self.known) + 1) * mask.nbytes > _MAX_MASK_BYTES:
            self.known.pop(next(iter(self.known)), None)
        made = self.known[configuration] = Mask(mask, self._index.no_ids, owns_base=True)
        return made

    def _new_tree(self) -> None:
        self.tree = new_tree(self._index.num_words)
        self._roots: dict[tuple[int, int, int, bytes], int] = {}

    def _begin(self, configuration: Configuration) -> Begin:
        """The place and the bytes before all tokens."""
        tail = configuration.tail
        items = np.array([[0, len(self._tokens.records), 0, len(tail), -1]], dtype=np.int32)
        data = np.frombuffer(tail or b"\0", dtype=np.uint8).copy()
        place = np.array([configuration.state, configuration.last, configuration.last_at], dtype=np.int64)
        return Begin(items, data, place)

    def _make_room(self, code: int) -> None:
        """Enlarge the arrays that compiled code found full."""
        if code == TOO_MANY or size_of(self.tree) > 4 * _MAX_TREE_BYTES:
            raise GrammarError(
                f"too ambiguous: tokens can be divided into terminals in more than {tree_visit.MAX_FRAMES} ways; use a lexer (longest), or "
                "let something stand between terminals that consist of the same characters"
            )
        if code == NEED_TREE:
            self.tree = larger_tree(self.tree)
        elif code == NEED_STACKS:
            self._places.stack_sets.make_room()
        else:
            self._places.visit = larger_visit(self._places.visit)
            self._scratch = larger_walk(self._scratch)

    def _ask(self, configuration: Configuration, mask: NDArray[np.uint32], num_asks: int) -> None:
        """Allow the tokens that only the way back can save, those that end inside look-ahead, and those whose way on is not proven."""
        tree, wins = self.tree, self._tables.lexer.wins
        asks = self._places.visit.asks[:num_asks].tolist()
        graphs = {(first, size): self._places.stack_sets.read(first, size) for _, first, size in asks}
        numbers = {place: self._places.stack_sets.intern(graph) for place, graph in graphs.items()}
        for tail, first, size in asks:
            stacks = numbers[first, size]
            if tail < 0:
                end = -1 - tail
                if self._living.is_alive(
                    Configuration(stacks, int(wins[tree.ends[end, END_WIN], WIN_STATE]), -1, 0, b"")
                ):
                    self._allow(mask, end)
                continue
            last, at, count, token, state = tree.tails[tail, _TAIL_COLUMNS].tolist()
            if last < 0:
                is_allowed = self._living.advanced(configuration, self._index.vocabulary.spelled(token)) is not None
            else:
                is_allowed = self._living.is_alive(
                    Configuration(stacks, state, last, 0, tree.data[at : at + count].tobytes())
                )
            if is_allowed:
                mask[token >> 5] |= np.uint32(1 << (token & 31))

    def _allow(self, mask: NDArray[np.uint32], end: int) -> None:
        """Allow all tokens of an end."""
        tree, (row, at, count) = self.tree, self.tree.ends[end, [ROW, RANGE_AT, NUM_RANGES]].tolist()
        if row >= 0:
            mask |= tree.rows[row]
            return
        for begin, stop in tree.ranges[at : at + count].tolist():
            for token in self._tokens.order[begin:stop].tolist():
                mask[token >> 5] |= np.uint32(1 << (token & 31))
