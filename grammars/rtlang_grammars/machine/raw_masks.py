"""Masks inside raw text: most tokens stay in the text, and only those that may lead out of it need a walk over heads and frames.

For each state inside raw text, the tokens that stay in it are found by a walk over the rows of its states alone, once for all places. Where
nothing is forbidden but texts whose last characters are known, the walk needs only the tokens with one of these. A token
that does not stay in the text is allowed only if it holds a byte that may follow the text.
"""
# mypy: disable-error-code="no-untyped-def, untyped-decorator, misc, no-untyped-call"

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.machine.automaton.layout import COUNT, COUNT_UP, FIRST_ACTION, MANY, NEED_ROW, NONE, OK, UNKNOWN
from rtlang_grammars.machine.automaton.tables import Tables, TextFacts
from rtlang_grammars.machine.native.array_types import BOOL, INT, INT32, INT32_TABLE, INT64
from rtlang_grammars.machine.native.native_code import compiled
from rtlang_grammars.machine.native.step_functions import value
from rtlang_grammars.machine.token_index.vocabulary_index import VocabularyIndex

_MAX_STATES = 256
"""States whose tokens are kept; each takes 20 KB with 152,000 tokens."""


@compiled(INT32_TABLE, INT32, INT32, INT, INT64, BOOL, INT, INT64, INT32, INT64, nogil=True)
def walk_raw(S, T, X, state, trie, finds_staying, p, path, ids, out):  # pragma: no cover
    """Follow the tokens of `trie` from a state inside raw text, between characters, beginning at record `p` (0: from the start).

    `ids`: the tokens that stay in the text, or those that do not. OK: out[7] is their number. NEED_ROW: out[0] is the state whose row is
    needed, out[1] the record to resume from. MANY: a row has actions that raw text does not have. Counts are taken to have room. `path`:
    int64, the state at each depth.
    """
    if p == 0:
        path[0] = state
        out[7] = 0
    count = np.uint64(out[7])
    num = np.uint64(trie.shape[0])
    at = np.uint64(p)
    while at < num:
        record = np.uint64(trie[at])
        depth = (record >> np.uint64(8)) & np.uint64(4095)
        s = np.uint64(path[depth - np.uint64(1)])
        v = np.int64(value(S, T, s, record & np.uint64(255)))
        if v <= FIRST_ACTION:
            a = FIRST_ACTION - v
            if X[a] == COUNT:
                v = np.int64(X[a + 1])
            elif X[a] == COUNT_UP:
                v = np.int64(X[a + 2])
            else:
                return MANY
        if v == UNKNOWN:
            out[0], out[1], out[7] = np.int64(s), np.int64(at), np.int64(count)
            return NEED_ROW
        end = at + np.uint64(1)
        if v == NONE:
            end = record >> np.uint64(40)
        else:
            path[depth] = v
        if finds_staying == (v != NONE):
            while at < end:
                token = (np.uint64(trie[at]) >> np.uint64(20)) & np.uint64(0xFFFFF)
                if token != 0:
                    ids[count] = token - np.uint64(1)
                    count += np.uint64(1)
                at += np.uint64(1)
        at = end
    out[7] = np.int64(count)
    return OK


@dataclass(frozen=True, slots=True, eq=False)
class Staying:
    """The tokens that stay in raw text from one state on, however many characters it may have.

    Attributes:
        mask: uint32 [num_mask_words].
        leaving: int32, all other tokens in the order of the trie; None: nearly all.
    """

    mask: NDArray[np.uint32]
    leaving: NDArray[np.int32] | None


@dataclass(frozen=True, slots=True)
class Parts:
    """A mask in parts: the tokens of `base`, and the tokens of the tries that can follow.

    Attributes:
        base: uint32 [num_mask_words].
        tries: records of the tries of all other tokens that may be allowed.
        owns_base: whether the base is used for this mask only.
    """

    base: NDArray[np.uint32]
    tries: tuple[NDArray[np.int64], ...]
    owns_base: bool = False


class RawMasks:
    """Finds the tokens that stay in the raw texts of one grammar. Safe to use from several threads."""

    def __init__(self, index: VocabularyIndex, tables: Tables) -> None:
        self._index, self._tables = index, tables
        self._known: dict[int, Staying] = {}
        self._leaving: dict[tuple[int, bytes | None], NDArray[np.int64]] = {}

    def parts(self, state: int, facts: TextFacts, count: int) -> Parts:
        """The parts of a mask with one head, in a state inside raw text or before it.

        Args:
            state: inside the text; its start, if the head is before it.
            count: code points that the text has.
        """
        index, staying = self._index, self._staying(state, facts)
        room = index.max_depth if facts.most is None else facts.most - count
        follow, others = (None if facts.others is None else facts.follow), facts.others or b""
        has_room = room >= index.max_points
        if staying.leaving is not None:
            tries = [self._leaving_trie(state, staying.leaving, None if others else follow)]
            tries += [] if has_room else [index.tokens_with(follow, others, longer_than=room)]
        else:
            tries = [index.tokens_with(follow, others)]
        if has_room:
            return Parts(staying.mask, tuple(tries))
        return Parts(staying.mask & index.at_most(room), tuple(tries), owns_base=True)

    def _staying(self, state: int, facts: TextFacts) -> Staying:
        found = self._known.get(state)
        if found is None:
            if len(self._known) >= _MAX_STATES:
                self._known.clear()
                self._leaving.clear()
            found = self._known[state] = self._make(state, facts)
        return found

    def _leaving_trie(self, state: int, leaving: NDArray[np.int32], follow: bytes | None) -> NDArray[np.int64]:
        found = self._leaving.get((state, follow))
        if found is None:
            if follow is not None:
                leaving = leaving[self._index.has_any(follow)[leaving]]
            found = self._leaving[state, follow] = self._index.trie.part(leaving)
        return found

    def _make(self, state: int, facts: TextFacts) -> Staying:
        index, tables, workspace, at = self._index, self._tables, self._index.workspace, 0
        finds_staying, snapshot = facts.last is None, tables.published
        trie = index.trie.nodes if facts.last is None else index.tokens_breaking(facts.last)
        while True:
            code = walk_raw(
                snapshot.S,
                snapshot.T,
                snapshot.X,
                state,
                trie,
                finds_staying,
                at,
                workspace.P,
                workspace.ids,
                workspace.out,
            )
            if code != NEED_ROW:
                break
            at = int(workspace.out[1])
            snapshot = tables.complete(int(workspace.out[0]))
        assert code == OK, "raw text has no other actions"
        ids = workspace.ids[: workspace.out[7]].copy()
        return Staying(index.mask_of(ids), None) if finds_staying else Staying(index.mask_of(ids, all_but=True), ids)
