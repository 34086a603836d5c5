"""The memory of a backend: what its process is given, and that it tells its peak."""

from __future__ import annotations

from pathlib import Path

from rtlang_grammars_bench import memory
from tests.support.grammars.vocabularies import small_vocabulary


def test_the_vocabulary_is_read_back_as_it_was(tmp_path: Path) -> None:
    vocabulary = small_vocabulary()
    memory.store(tmp_path, vocabulary, [])
    read = memory.load(tmp_path)
    assert read.token_bytes == vocabulary.token_bytes
    assert read.eos_token_ids == vocabulary.eos_token_ids
    assert read.special_token_ids == vocabulary.special_token_ids
    assert (read.vocab_size, read.tokenizer_json) == (vocabulary.vocab_size, vocabulary.tokenizer_json)


def test_a_process_of_its_own_tells_its_peak() -> None:
    vocabulary = small_vocabulary()
    token_of = {text: i for i, text in enumerate(vocabulary.token_bytes)}
    rows: memory.Encoded = [({"type": "integer"}, [[token_of[b"1"]]]), ({"type": "x"}, [])]
    assert 20 < memory.peak_megabytes("rtlang", vocabulary, rows) < 400
