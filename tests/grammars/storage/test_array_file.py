"""Arrays in a file: read as they were written, and nothing from a file that is not whole or not theirs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rtlang_grammars.machine.token_index.vocabulary_index import VocabularyIndex
from rtlang_grammars.storage import array_file
from tests.support.vocabularies import small_vocabulary

MAGIC = b"arrays of a test\n"
ARRAYS = [
    np.array([1, -2, 3], dtype=np.int32),
    np.array([], dtype=np.int64),
    np.arange(1 << 40, (1 << 40) + 5, dtype=np.int64),
]


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "below" / "arrays"
    array_file.write(path, MAGIC, ARRAYS)
    found = array_file.read(path, MAGIC)
    assert found is not None
    for one, other in zip(found, ARRAYS, strict=True):
        assert one.dtype == other.dtype
        assert one.tolist() == other.tolist()
        assert one.flags.writeable
    assert [each.name for each in path.parent.iterdir()] == ["arrays"]


@pytest.mark.parametrize(
    "change", [lambda c: b"", lambda c: c[:-1], lambda c: c[:60] + b"\x07" + c[61:], lambda c: c[1:]]
)
def test_what_is_not_whole_is_not_there(tmp_path: Path, change) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "arrays"
    array_file.write(path, MAGIC, ARRAYS)
    assert array_file.read(path, b"another kind.....\n") is None
    path.write_bytes(change(path.read_bytes()))
    assert array_file.read(path, MAGIC) is None


def test_a_directory_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    array_file.write(tmp_path / "file" / "arrays", MAGIC, ARRAYS)
    assert array_file.read(tmp_path / "file" / "arrays", MAGIC) is None


def test_a_file_that_cannot_be_put_in_place_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "arrays"
    path.mkdir()
    array_file.write(path, MAGIC, ARRAYS)
    assert list(tmp_path.iterdir()) == [path]

    def interrupt(*paths: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(array_file.os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        array_file.write(tmp_path / "others", MAGIC, ARRAYS)
    assert list(tmp_path.iterdir()) == [path]


def test_a_vocabulary_index_from_files_is_the_same(tmp_path: Path) -> None:
    first, second = (VocabularyIndex(small_vocabulary(), array_file.ArrayFiles(tmp_path)) for _ in range(2))
    assert len(list(tmp_path.iterdir())) == 2
    assert np.array_equal(first.trie.nodes, second.trie.nodes)
    for one, other in zip(first.coarse_tries, second.coarse_tries, strict=True):
        for name in ("nodes", "offsets", "members", "large", "masks", "blocks"):
            assert np.array_equal(getattr(one, name), getattr(other, name)), name
            assert getattr(one, name).dtype == getattr(other, name).dtype
