"""Kinds of bytes below the records of a token trie, against the tokens themselves."""

from __future__ import annotations

import random

from rtlang_grammars.machine.token_index.byte_kinds import (
    ASCII_KINDS,
    BROKEN,
    COUNT_SHIFT,
    DEPTH_SHIFT,
    HIGH,
    RANK_SHIFT,
    SKIP_SHIFT,
    TOKEN_SHIFT,
    byte_kinds,
)
from rtlang_grammars.machine.token_index.token_trie import token_trie
from rtlang_grammars.spec.vocabulary import Vocabulary


def test_a_subtree_without_broken_bytes_holds_whole_characters_of_the_kinds_named() -> None:
    rng = random.Random(3)
    pieces = [bytes([byte]) for byte in range(255)]  # tries leave tokens with 255 out
    pieces += [
        "é".encode(),
        "中".encode(),
        "😀".encode(),
        "\u0800".encode(),
        "\ud7ff".encode(),
        "中".encode()[:2],
        b" if",
    ]
    tokens = {bytes([byte]) for byte in range(255)}
    while len(tokens) < 3000:
        tokens.add(b"".join(rng.choice(pieces) for _ in range(rng.randint(1, 4))))
    ordered = sorted(tokens)
    vocabulary = Vocabulary((*ordered, b""), frozenset([len(ordered)]), frozenset([len(ordered)]), len(ordered) + 1)
    texts = [*ordered, vocabulary.spelled(len(ordered))]
    trie = token_trie(vocabulary)
    found = byte_kinds(trie).tolist()
    ranks = [record >> RANK_SHIFT & 0xFFFFF for record, _ in found]
    path: list[int] = []
    num_whole = 0
    for at, record in enumerate(trie.nodes.tolist()):
        depth, stop = record >> 8 & 0xFFF, record >> 40
        path[depth - 1 :] = [record & 0xFF]
        assert found[at][0] & 0x3FFFF == record & 0xFF | depth << DEPTH_SHIFT
        assert found[at][0] >> SKIP_SHIFT == stop
        assert found[at][0] >> TOKEN_SHIFT & 1 == (record >> 20 & 0xFFFFF > 0)
        below = [texts[i] for i in trie.order[ranks[at] : ranks[at] + (found[at][1] >> COUNT_SHIFT)].tolist()]
        assert below == [text for text in texts if text.startswith(bytes(path))]
        kinds = {kind for kind in range(BROKEN + 1) if found[at][1] >> kind & 1}
        ascii_kinds = {
            kind for text in below for kind, members in enumerate(ASCII_KINDS) if set(text[depth - 1 :]) & set(members)
        }
        assert kinds - {HIGH, BROKEN} == ascii_kinds
        if BROKEN in kinds:
            continue
        has_high = any(byte >= 0x80 for text in below for byte in text[depth - 1 :])
        assert (HIGH in kinds) == has_high
        if has_high:  # every token is well formed, at least from the start of its characters
            num_whole += 1
            for text in below:
                text.decode()
    assert num_whole > 100
