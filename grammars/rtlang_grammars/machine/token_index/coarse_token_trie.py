"""The tokens of a vocabulary grouped by their coarse classes, with a trie that holds one text of each group.

Where a pattern treats all characters of a coarse class alike, a walk over this trie, which has a tenth of the records, decides whole
groups of tokens. Tokens with a quote or a backslash may leave a string or begin an escape, and some tokens split characters: each of
these is a group of its own.
"""
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.machine.native.array_types import INT32, INT64, UINT32, UINT32_TABLE
from rtlang_grammars.machine.native.native_code import compiled
from rtlang_grammars.machine.token_index.mask import mask_of_ids
from rtlang_grammars.machine.token_index.token_trie import ArrayCache, TokenTrie, build
from rtlang_grammars.regular.characters.coarse_classes import LEVELS, CoarseClass

_MAGIC = b"rtlang-coarse-2\n"
_QUOTE, _BACKSLASH = 0x22, 0x5C
_LARGE_GROUP = 300
"""Groups with more tokens than this store their mask: 66 of the 20,000 groups of Qwen2."""
_BLOCK_BITS = 9
"""Consecutive groups form blocks of 2 to the power of this, which store their masks: there are 150 blocks for Qwen2."""


_Groups = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]


@dataclass(frozen=True, slots=True, eq=False)
class CoarseTokenTrie:
    """Groups of tokens with equal coarse text, ordered by that text. Immutable.

    Attributes:
        nodes: records of a trie with one text of each group, numbered as the tokens are in `TokenTrie.nodes`.
        offsets: int64 [num_groups + 1], group i is members[offsets[i]:offsets[i + 1]].
        members: int32, token ids.
        large: int32 [num_groups], index of a group's mask in `masks`, else -1.
        masks: uint32 [num_large, num_mask_words].
        blocks: uint32 [num_blocks, num_mask_words], of all groups in a block.
    """

    nodes: NDArray[np.int64]
    offsets: NDArray[np.int64]
    members: NDArray[np.int32]
    large: NDArray[np.int32]
    masks: NDArray[np.uint32]
    blocks: NDArray[np.uint32]

    def count(self, groups: NDArray[np.int32]) -> int:
        """Number of tokens in some groups."""
        return int(total(groups, self.offsets))

    def tokens(self, groups: NDArray[np.int32]) -> NDArray[np.int32]:
        """Token ids of some groups."""
        ids = np.empty(self.count(groups), dtype=np.int32)
        gather(groups, self.offsets, self.members, ids)
        return ids

    def mask(self, groups: NDArray[np.int32]) -> NDArray[np.uint32]:
        """Mask of some groups in ascending order, uint32 [num_mask_words]."""
        row = np.zeros(self.blocks.shape[1], dtype=np.uint32)
        spread(groups, self.offsets, self.members, self.large, self.masks, self.blocks, row)
        return row


@compiled(INT32, INT64, nogil=True)  # type: ignore[misc, unused-ignore]
def total(groups, offsets):  # type: ignore[no-untyped-def] # pragma: no cover
    """The number of members of some groups."""
    count = np.int64(0)
    for i in range(groups.shape[0]):
        group = np.uint64(groups[i])
        count += offsets[group + np.uint64(1)] - offsets[group]
    return count


@compiled(INT32, INT64, INT32, INT32, nogil=True)  # type: ignore[misc, unused-ignore]
def gather(groups, offsets, members, ids):  # type: ignore[no-untyped-def] # pragma: no cover
    """Write the members of some groups consecutively into `ids`."""
    count = np.uint64(0)
    for i in range(groups.shape[0]):
        for at in range(offsets[groups[i]], offsets[groups[i] + 1]):
            ids[count] = members[at]
            count += np.uint64(1)


@compiled(INT32, INT64, INT32, INT32, UINT32_TABLE, UINT32_TABLE, UINT32, nogil=True)  # type: ignore[misc, unused-ignore]
def spread(groups, offsets, members, large, masks, blocks, row):  # type: ignore[no-untyped-def] # pragma: no cover
    """Set the bits of the members of some groups in a `row` that has none of their blocks. Groups ascend. Where few groups of a block are
    missing, the whole block is set and these are cleared.
    """
    num = groups.shape[0]
    i = 0
    while i < num:
        block = groups[i] >> _BLOCK_BITS
        count = np.int64(0)
        end = i
        while end < num and groups[end] >> _BLOCK_BITS == block:
            count += offsets[groups[end] + 1] - offsets[groups[end]]
            end += 1
        first = np.int64(block) << _BLOCK_BITS
        last = min(first + (1 << _BLOCK_BITS), offsets.shape[0] - 1)
        if block < blocks.shape[0] and 2 * count > offsets[last] - offsets[first] + (row.shape[0] >> 3):
            for word in range(row.shape[0]):
                row[word] |= blocks[block, word]
            at = first
            for j in range(i, end + 1):
                stop = np.int64(groups[j]) if j < end else last
                while at < stop:
                    write_group(at, offsets, members, large, masks, False, row)
                    at += 1
                at = stop + 1
        else:
            for j in range(i, end):
                write_group(np.int64(groups[j]), offsets, members, large, masks, True, row)
        i = end


@compiled(inner=True)  # type: ignore[misc, unused-ignore]
def write_group(group, offsets, members, large, masks, is_set, row):  # type: ignore[no-untyped-def] # pragma: no cover
    """Set or clear the bits of the members of a group."""
    at = large[group]
    if at >= 0 and is_set:
        for word in range(row.shape[0]):
            row[word] |= masks[at, word]
        return
    if at >= 0:
        for word in range(row.shape[0]):
            row[word] &= ~masks[at, word]
        return
    for j in range(offsets[group], offsets[group + 1]):
        u = np.uint64(members[j])
        bit = np.uint32(1) << np.uint32(u & np.uint64(31))
        if is_set:
            row[u >> np.uint64(5)] |= bit
        else:
            row[u >> np.uint64(5)] &= ~bit


def coarse_token_tries(trie: TokenTrie, num_words: int, cache: ArrayCache | None = None) -> tuple[CoarseTokenTrie, ...]:
    """The tries of a vocabulary, one for each level of coarse classes; read from the cache if present."""
    name = f"coarse-{trie.name}"
    magic = _MAGIC + hashlib.blake2b(repr(LEVELS).encode(), digest_size=16).digest()
    arrays = None if cache is None else cache.read(name, magic)
    if arrays is None:
        arrays = [each for level in _groups_of(trie) for each in level]
        if cache is not None:
            cache.write(name, magic, arrays)
    levels = zip(arrays[::3], arrays[1::3], arrays[2::3], strict=True)
    return tuple(_with_masks(nodes, ends, members, num_words) for nodes, ends, members in levels)


def string_ends(trie: TokenTrie, token_ids: NDArray[np.int32], num_words: int) -> CoarseTokenTrie:
    """The tokens that end a JSON string which goes on in one state, grouped by what they have from the closing quote on.

    Whatever comes before the quote leads to the same state: 1,311 tokens of Qwen2 have 577 ends.

    Args:
        token_ids: tokens whose text may follow within a string, if anything may follow the quote.
    """
    texts: dict[bytes, int] = {}
    data, offsets = trie.data.tobytes(), trie.offsets.tolist()
    groups = []
    for token_id in token_ids.tolist():
        at, end = offsets[token_id], offsets[token_id + 1]
        while data[at] != _QUOTE:
            at += 2 if data[at] == _BACKSLASH else 1
        groups.append(texts.setdefault(data[at:end], len(texts)))
    return _with_masks(*_sorted_groups([*texts], np.array(groups, dtype=np.int64), token_ids), num_words)


def _groups_of(trie: TokenTrie) -> list[_Groups]:
    """For each level: nodes, offsets and members as in `CoarseTokenTrie`."""
    texts: list[str] = []
    ids: list[int] = []
    single: dict[bytes, int] = {}
    single_ids: list[int] = []
    numbers: list[int] = []
    data, offsets = trie.data.tobytes(), trie.offsets.tolist()
    for token_id in np.sort(trie.order[: trie.num_texts]).tolist():  # no string has a special token
        text = data[offsets[token_id] : offsets[token_id + 1]]
        if b'"' not in text and b"\\" not in text:
            try:
                texts.append(text.decode())
                ids.append(token_id)
                continue
            except UnicodeDecodeError:
                pass
        numbers.append(single.setdefault(text, len(single)))
        single_ids.append(token_id)
    token_ids = np.array(single_ids + ids, dtype=np.int32)
    of_text = np.arange(len(texts))
    found: list[_Groups] = []
    for level in reversed(LEVELS):  # a coarser level merges groups of the finer one
        texts, merged = _coarsened(texts, level)
        of_text = merged[of_text]
        groups = np.concatenate((np.array(numbers, dtype=np.int64), of_text + len(single)))
        found.append(_sorted_groups([*single, *map(str.encode, texts)], groups, token_ids))
    return found[::-1]


def _coarsened(texts: list[str], level: tuple[CoarseClass, ...]) -> tuple[list[str], NDArray[np.int64]]:
    """The distinct coarse texts, and for each text the index of its coarse text."""
    points = np.frombuffer("".join(texts).encode("utf-32-le"), dtype=np.uint32).copy()
    ascii_table = np.arange(128, dtype=np.uint32)
    is_beyond = points >= 128
    beyond = points[is_beyond]
    new = beyond.copy()
    for coarse in level:
        for first, last in coarse.ranges:
            if first < 128:
                ascii_table[first : last + 1] = coarse.example
            else:
                new[(beyond >= first) & (beyond <= last)] = coarse.example
    points[~is_beyond] = ascii_table[points[~is_beyond]]
    points[is_beyond] = new
    joined = points.tobytes().decode("utf-32-le")
    found: dict[str, int] = {}
    numbers = []
    at = 0
    for text in texts:
        end = at + len(text)
        numbers.append(found.setdefault(joined[at:end], len(found)))
        at = end
    return list(found), np.array(numbers, dtype=np.int64)


def _sorted_groups(texts: list[bytes], groups: NDArray[np.int64], token_ids: NDArray[np.int32]) -> _Groups:
    """The tokens grouped by text, in the order of the texts. `groups`: for each token, the index of its text."""
    order = sorted(range(len(texts)), key=texts.__getitem__)
    rank = np.empty(len(texts), dtype=np.int64)
    rank[order] = np.arange(len(texts))
    texts, groups = [texts[i] for i in order], rank[groups]
    offsets = np.zeros(len(texts) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=offsets[1:])
    nodes = build(np.frombuffer(b"".join(texts), dtype=np.uint8), offsets, np.arange(len(texts), dtype=np.int32))
    members = token_ids[np.argsort(groups, kind="stable")]
    ends = np.zeros(len(texts) + 1, dtype=np.int64)
    np.cumsum(np.bincount(groups, minlength=len(texts)), out=ends[1:])
    return nodes, ends, members


def _with_masks(
    nodes: NDArray[np.int64], ends: NDArray[np.int64], members: NDArray[np.int32], num_words: int
) -> CoarseTokenTrie:
    num_groups = len(ends) - 1
    wide = np.flatnonzero(np.diff(ends) > _LARGE_GROUP).astype(np.int32)
    large = np.full(num_groups, -1, dtype=np.int32)
    masks = np.zeros((len(wide), num_words), dtype=np.uint32)
    for at, group in enumerate(wide):
        masks[at] = mask_of_ids(members[ends[group] : ends[group + 1]], num_words)
    large[wide] = np.arange(len(wide))
    firsts = range(0, num_groups, 1 << _BLOCK_BITS)
    blocks = np.zeros((len(firsts), num_words), dtype=np.uint32)
    for at, first in enumerate(firsts):
        blocks[at] = mask_of_ids(members[ends[first] : ends[min(first + (1 << _BLOCK_BITS), num_groups)]], num_words)
    return CoarseTokenTrie(nodes, ends, members, large, masks, blocks)
