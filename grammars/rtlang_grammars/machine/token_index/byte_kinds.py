"""The token trie with what bytes stand below each record, so that walks can pass a whole subtree that a state reads in a loop.

Bytes fall into kinds that the classes of grammars rarely divide. Beyond ASCII there are two: HIGH, characters that are well formed and end
within their token, and BROKEN, all other bytes. So a state that reads every character beyond ASCII need not look at their bytes.
"""

from __future__ import annotations

import string

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.machine.native.array_types import INT, INT64, INT64_TABLE
from rtlang_grammars.machine.native.native_code import compiled
from rtlang_grammars.machine.token_index.token_trie import TokenTrie


def _groups() -> list[bytes]:
    """The kinds of ASCII bytes."""
    alone = [bytes([byte]) for byte in (string.punctuation + " \t\n").encode() if byte not in b"`~"]
    parts = ["`~", "01", "234567", "89", "abcdef", string.ascii_lowercase[6:], "ABCDEF", string.ascii_uppercase[6:]]
    controls = bytes(byte for byte in (*range(32), 127) if byte not in b"\t\n")
    return [*alone, *(part.encode() for part in parts), controls]


ASCII_KINDS = _groups()
HIGH = len(ASCII_KINDS)
BROKEN = HIGH + 1


DEPTH_SHIFT, TOKEN_SHIFT, RANK_SHIFT, SKIP_SHIFT = 8, 18, 19, 39
"""Fields of a record: byte (8 bits), depth (10, the root's children have 1), whether a token ends here (1), how many tokens end at earlier
records (20), next record (23). The tokens of a subtree are a range of `TokenTrie.order`."""

COUNT_SHIFT = 44
"""Fields of what stands below a record: the kinds of its byte and of all bytes below, as bits (44), and the tokens of its subtree."""

assert BROKEN < COUNT_SHIFT


RECORD, BELOW = range(2)
"""Columns: a record, and what stands below it. They lie side by side because walks jump, and a jump is a cache miss."""


def byte_kinds(trie: TokenTrie) -> NDArray[np.int64]:
    """The records of a trie, and the kinds and numbers of tokens of their subtrees, int64 [num_nodes, 2]."""
    of_byte = np.zeros(256, dtype=np.int64)
    for kind, members in enumerate(ASCII_KINDS):
        of_byte[list(members)] = 1 << kind
    records = np.zeros((len(trie.nodes), 2), dtype=np.int64)
    path = np.zeros((trie.max_depth + 2, 4), dtype=np.int64)
    _fill(trie.nodes, of_byte, records, path, 1 << HIGH, 1 << BROKEN)
    return records


@compiled(INT64, INT64, INT64_TABLE, INT64_TABLE, INT, INT)
def _fill(nodes, of_byte, records, path, high, broken):  # type: ignore[no-untyped-def] # pragma: no cover
    """Write all rows. path: by depth the record, the bytes that a character still needs (-1: broken) and the next one's bounds."""
    num_tokens = reached = 0
    for at in range(nodes.size):
        record = nodes[at]
        byte, depth = record & 0xFF, (record >> 8) & 0xFFF
        while reached >= depth:  # the subtree there is complete
            if reached > 1:
                records[path[reached - 1, 0], BELOW] |= records[path[reached, 0], BELOW]
            reached -= 1
        reached = depth
        needed, low, stop = path[depth - 1, 1], path[depth - 1, 2], path[depth - 1, 3]
        kind = of_byte[byte]
        if needed < 0:
            kind = kind if byte < 0x80 else broken
        elif needed > 0:
            kind |= high
            needed -= 1
            if byte < low or byte > stop:
                needed = -1
                kind |= broken
            low, stop = 0x80, 0xBF
        elif byte >= 0x80:
            kind = high
            low, stop = 0x80, 0xBF
            if 0xC2 <= byte <= 0xDF:
                needed = 1
            elif 0xE0 <= byte <= 0xEF:
                needed = 2
                if byte == 0xE0:
                    low = 0xA0
                elif byte == 0xED:
                    stop = 0x9F
            elif 0xF0 <= byte <= 0xF4:
                needed = 3
                if byte == 0xF0:
                    low = 0x90
                elif byte == 0xF4:
                    stop = 0x8F
            else:
                needed, kind = -1, broken
        path[depth, 0], path[depth, 1], path[depth, 2], path[depth, 3] = at, needed, low, stop
        records[at, RECORD] = (
            byte | (depth << DEPTH_SHIFT) | (np.int64(num_tokens) << RANK_SHIFT) | ((record >> 40) << SKIP_SHIFT)
        )
        if (record >> 20) & 0xFFFFF:
            records[at, RECORD] |= 1 << TOKEN_SHIFT
            num_tokens += 1
            if needed > 0:
                kind |= broken
        records[at, BELOW] = kind
    while reached > 1:
        records[path[reached - 1, 0], BELOW] |= records[path[reached, 0], BELOW]
        reached -= 1
    rank_mask = (1 << (SKIP_SHIFT - RANK_SHIFT)) - 1
    for at in range(nodes.size):
        below = nodes[at] >> 40
        after = num_tokens if below >= nodes.size else (records[below, RECORD] >> RANK_SHIFT) & rank_mask
        records[at, BELOW] |= (after - ((records[at, RECORD] >> RANK_SHIFT) & rank_mask)) << COUNT_SHIFT
    return num_tokens
