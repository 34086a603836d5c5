"""The file: kills in the middle of a write, damage, and writers in other processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rtlang.cassette.file import MAGIC, CassetteFile
from rtlang.contract.errors import CassetteError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.cassette"
    file = CassetteFile(path, is_written=True)
    file.begin("model", "hermes")
    for number in range(5):
        file.put(bytes([number]) * 16, ["value", number])
    file.close()
    return path


def test_records_are_read_back(path: Path) -> None:
    file = CassetteFile(path, is_written=False)
    assert len(file) == 5
    assert file.model == "model"
    assert file.get(b"\3" * 16) == ["value", 3]
    assert file.get(b"\7" * 16) is None
    file.close()


def test_every_torn_end_is_dropped_and_written_over(path: Path) -> None:
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        file = CassetteFile(path, is_written=True)
        assert len(file) <= 4
        file.begin("model", "hermes")
        file.put(b"new key" + bytes(9), size)
        file.close()
        again = CassetteFile(path, is_written=False)
        assert again.get(b"new key" + bytes(9)) == size
        assert len(again) == len(file)
        again.close()


def test_damage_before_the_end_is_an_error(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    whole[len(MAGIC) + 30] ^= 1
    path.write_bytes(whole)
    with pytest.raises(CassetteError, match=rf"the record at byte {len(MAGIC)} is damaged"):
        CassetteFile(path, is_written=True)
    assert path.read_bytes() == whole  # nothing was cut off


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("something else, which is kept")
    with pytest.raises(CassetteError, match=r"expected a file that rt\.record made"):
        CassetteFile(path, is_written=True)
    assert path.read_text() == "something else, which is kept"


def test_a_second_writer_is_refused_and_a_reader_is_not(path: Path) -> None:
    code = f"""
from rtlang.cassette.file import *
try:
    CassetteFile({str(path)!r}, is_written=True)
except CassetteError as error:
    print(error.reason)
"""
    writer = CassetteFile(path, is_written=True)
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "records to it" in other.stdout, other.stderr
    CassetteFile(path, is_written=False).close()
    writer.close()
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert other.stdout == "", other.stdout
