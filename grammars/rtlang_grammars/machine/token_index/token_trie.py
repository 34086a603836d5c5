"""The token trie: all tokens of a vocabulary as one flat array, depth first, with links over whole subtrees.

Special tokens stand in it with their spelling (`spec.tokens`), after all others; tokens with a byte that UTF-8 has not are left out.
One record of 8 bytes per node, in the order of a depth-first walk: a walk that rejects a node continues after its subtree, otherwise with
the next record. Tokens with equal bytes are adjacent nodes. Built by compiled code from the sorted tokens, and cached on disk, since
sorting a large vocabulary takes longer than reading the result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.machine.native.array_types import INT32, INT64, TEXT
from rtlang_grammars.machine.native.native_code import compiled
from rtlang_grammars.spec.tokens import SPELLING_BYTES, TOKEN_LEAD
from rtlang_grammars.spec.vocabulary import Vocabulary

MAX_TOKEN_BYTES = 1023
"""Longer tokens are never allowed in constrained text."""

DEPTH_SHIFT, TOKEN_SHIFT, SKIP_SHIFT = 8, 20, 40
"""Fields of a record: byte (8 bits), depth (12, the root's children have 1), token id + 1 (20, 0: none), next record (23)."""

_MAGIC = b"rtlang-trie-3\n"


class ArrayCache(Protocol):
    """Where arrays are looked up before they are computed; see `storage.array_file.ArrayFiles`."""

    def read(self, name: str, magic: bytes) -> list[NDArray[Any]] | None:
        """The arrays of an entry; None if there is none."""

    def write(self, name: str, magic: bytes, arrays: Sequence[NDArray[np.int32] | NDArray[np.int64]]) -> None:
        """Store flat arrays."""


@dataclass(frozen=True, slots=True, eq=False)
class TokenTrie:
    """A vocabulary prepared for walks. Immutable.

    Attributes:
        nodes: int64 [num_nodes], the records.
        data: uint8, the bytes of all tokens, concatenated.
        offsets: int64 [num_tokens + 1], token i is data[offsets[i]:offsets[i + 1]]; empty if the id is never allowed.
        order: int32, the ids of tokens, sorted by their bytes.
        num_texts: how many of them are text; special tokens come last.
        max_depth: bytes of the longest token, at least those of a spelling.
        name: name of its cache entry, a digest of the tokens.
    """

    nodes: NDArray[np.int64]
    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    order: NDArray[np.int32]
    num_texts: int
    max_depth: int
    name: str

    def part(self, token_ids: NDArray[np.int32]) -> NDArray[np.int64]:
        """The records of a trie of some tokens only.

        Args:
            token_ids: in the order of `order`.
        """
        return build(self.data, self.offsets, token_ids)


def token_trie(vocabulary: Vocabulary, cache: ArrayCache | None = None) -> TokenTrie:
    """The trie of a vocabulary; read from the cache if present."""
    texts = spelled_tokens(vocabulary)
    data = np.frombuffer(b"".join(texts), dtype=np.uint8)
    offsets = np.zeros(len(texts) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=offsets[1:])
    name = _file_name(data, offsets)
    stored = None if cache is None else cache.read(name, _MAGIC)
    if stored is None:
        order = np.array(sorted((i for i, text in enumerate(texts) if text), key=texts.__getitem__), dtype=np.int32)
        nodes = build(data, offsets, order)
        if cache is not None:
            cache.write(name, _MAGIC, (order, nodes))
    else:
        order, nodes = stored
    num_texts = len(order) - len(vocabulary.silent_ids)
    return TokenTrie(nodes, data, offsets, order, num_texts, int(np.diff(offsets).max(initial=SPELLING_BYTES)), name)


def spelled_tokens(vocabulary: Vocabulary) -> list[bytes]:
    """What each token adds to a text of the machine; b"" for a token that is never allowed."""
    texts = [
        b"" if len(text) > MAX_TOKEN_BYTES or TOKEN_LEAD in text else text
        for text in (*vocabulary.token_bytes, *[b""] * (vocabulary.tokens.num_ids - len(vocabulary.token_bytes)))
    ]
    for token_id in vocabulary.silent_ids:
        texts[token_id] = vocabulary.spelled(token_id)
    return texts


def build(data: NDArray[np.uint8], offsets: NDArray[np.int64], order: NDArray[np.int32]) -> NDArray[np.int64]:
    """The records of a trie over the tokens in `order`, which is sorted by their bytes."""
    path = np.zeros(MAX_TOKEN_BYTES + 2, dtype=np.int64)
    capacity = int((offsets[order + 1] - offsets[order]).sum())
    if capacity >= 1 << 23:
        capacity = int(_build(data, offsets, order, np.zeros(0, dtype=np.int64), path))
        if capacity >= 1 << 23:
            raise ValueError(f"the vocabulary needs {capacity} trie nodes, at most {(1 << 23) - 1} are supported")
    nodes = np.zeros(capacity, dtype=np.int64)
    return nodes[: _build(data, offsets, order, nodes, path)].copy()


@compiled(TEXT, INT64, INT32, INT64, INT64, nogil=True)  # type: ignore[misc, unused-ignore]
def _build(data, offsets, order, nodes, path):  # type: ignore[no-untyped-def] # pragma: no cover
    """Write the records into `nodes` (only count them if it is empty); returns their number. `path`: the record on every depth."""
    writes = nodes.shape[0] > 0
    depth = 0
    count = 0
    previous = -1
    for index in range(order.shape[0]):
        token = order[index]
        start, end = offsets[token], offsets[token + 1]
        length = end - start
        common = 0
        if previous >= 0:
            begin, stop = offsets[previous], offsets[previous + 1]
            while common < length and common < stop - begin and data[start + common] == data[begin + common]:
                common += 1
            if common == length:  # equal bytes
                common = length - 1
        while depth > common:
            if writes:
                nodes[path[depth]] |= np.int64(count) << np.int64(40)
            depth -= 1
        while depth < length:
            depth += 1
            path[depth] = count
            if writes:
                nodes[count] = np.int64(data[start + depth - 1]) | (np.int64(depth) << np.int64(8))
            count += 1
        if writes:
            nodes[count - 1] |= (np.int64(token) + 1) << np.int64(20)
        previous = token
    while depth > 0:
        if writes:
            nodes[path[depth]] |= np.int64(count) << np.int64(40)
        depth -= 1
    return count


def _file_name(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> str:
    digest = hashlib.blake2b(_MAGIC, digest_size=16)
    digest.update(offsets.tobytes())
    digest.update(data.tobytes())
    return f"trie-{digest.hexdigest()}.bin"
