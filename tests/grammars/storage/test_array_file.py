"""Arrays on disk: read as they were written, and nothing from a file that is damaged or of another kind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rtlang_grammars.machine.token_index.vocabulary_index import VocabularyIndex
from rtlang_grammars.storage.array_file import ArrayFiles
from tests.support.grammars.vocabularies import small_vocabulary

MAGIC = b"arrays of a test\n"
ARRAYS = [
    np.array([1, -2, 3], dtype=np.int32),
    np.array([], dtype=np.int64),
    np.arange(1 << 40, (1 << 40) + 5, dtype=np.int64),
]


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    ArrayFiles(tmp_path / "below").write("name", MAGIC, ARRAYS)
    found = ArrayFiles(tmp_path / "below").read("name", MAGIC)
    assert found is not None
    for one, other in zip(found, ARRAYS, strict=True):
        assert one.dtype == other.dtype
        assert one.tolist() == other.tolist()
        assert one.flags.writeable
    assert len(list((tmp_path / "below").iterdir())) == 1


def test_other_names_and_kinds_are_missing(tmp_path: Path) -> None:
    files = ArrayFiles(tmp_path)
    files.write("name", MAGIC, ARRAYS)
    assert files.read("other", MAGIC) is None
    assert files.read("name", b"another kind.....\n") is None


@pytest.mark.parametrize("change", [lambda c: b"", lambda c: c[:-1], lambda c: c[:60] + b"\x07" + c[61:]])
def test_a_damaged_file_is_missing(tmp_path: Path, change) -> None:  # type: ignore[no-untyped-def]
    files = ArrayFiles(tmp_path)
    files.write("name", MAGIC, ARRAYS)
    (path,) = tmp_path.iterdir()
    path.write_bytes(change(path.read_bytes()))
    assert files.read("name", MAGIC) is None


def test_a_directory_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    files = ArrayFiles(tmp_path / "file" / "arrays")
    files.write("name", MAGIC, ARRAYS)
    assert files.read("name", MAGIC) is None


def test_a_vocabulary_index_from_files_is_the_same(tmp_path: Path) -> None:
    first, second = (VocabularyIndex(small_vocabulary(), ArrayFiles(tmp_path)) for _ in range(2))
    assert len(list(tmp_path.iterdir())) == 2
    assert np.array_equal(first.trie.nodes, second.trie.nodes)
    for one, other in zip(first.coarse_tries, second.coarse_tries, strict=True):
        for name in ("nodes", "offsets", "members", "large", "masks", "blocks"):
            assert np.array_equal(getattr(one, name), getattr(other, name)), name
            assert getattr(one, name).dtype == getattr(other, name).dtype
