"""The token trie: rebuilt from its records, from the cache on disk, and from a damaged one."""

from __future__ import annotations

from pathlib import Path

from rtlang_grammars.machine.token_index.token_trie import TokenTrie, token_trie
from rtlang_grammars.spec.vocabulary import Vocabulary
from rtlang_grammars.storage.array_file import ArrayFiles
from tests.support.grammars.vocabularies import small_vocabulary


def tokens_of(trie: TokenTrie) -> dict[int, bytes]:
    """Token ids and bytes as a walk over the records meets them; checks the links on the way."""
    found: dict[int, bytes] = {}
    path = bytearray()
    ends: list[int] = []
    for at, record in enumerate(trie.nodes.tolist()):
        byte, depth, token, skip = record & 255, record >> 8 & 4095, (record >> 20 & 0xFFFFF) - 1, record >> 40
        while len(ends) >= depth:
            assert ends.pop() == at
        assert skip > at
        ends.append(skip)
        path[depth - 1 :] = bytes([byte])
        if token >= 0:
            found[token] = bytes(path)
    assert all(end == len(trie.nodes) for end in ends)
    return found


def test_the_records_hold_every_token_of_the_text(tmp_path: Path) -> None:
    vocabulary = small_vocabulary()
    texts = {i: text for i, text in enumerate(vocabulary.token_bytes) if text and i not in vocabulary.silent_ids}
    del texts[255]  # the byte that no text has: it begins the spellings of special tokens
    special = {i: bytes([255, 128, 128, 128 + i // 64, 128 + i % 64]) for i in vocabulary.silent_ids}
    trie = token_trie(vocabulary, ArrayFiles(tmp_path))
    assert tokens_of(trie) == texts | special
    assert set(trie.order[trie.num_texts :].tolist()) == special.keys()


def test_the_cache_is_read_and_a_damaged_one_is_made_again(tmp_path: Path) -> None:
    vocabulary = Vocabulary((b"ab", b"a", b"", b"ab", b"b\xfe"), frozenset(), frozenset(), 5)
    first = token_trie(vocabulary, ArrayFiles(tmp_path))
    (path,) = tmp_path.iterdir()
    content = path.read_bytes()
    assert (
        tokens_of(token_trie(vocabulary, ArrayFiles(tmp_path)))
        == tokens_of(first)
        == {0: b"ab", 1: b"a", 3: b"ab", 4: b"b\xfe"}
    )
    for damaged in (b"", content[:-1], content[:40] + b"\x00" + content[41:], b"x" * len(content)):
        path.write_bytes(damaged)
        assert tokens_of(token_trie(vocabulary, ArrayFiles(tmp_path))) == tokens_of(first)
        assert path.read_bytes() == content


def test_a_directory_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert len(token_trie(small_vocabulary(), ArrayFiles(tmp_path / "file" / "below")).nodes) > 256
