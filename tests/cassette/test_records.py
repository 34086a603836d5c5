"""Records that are appended: what is complete is read, an incomplete end is dropped, and damage is an error."""

from __future__ import annotations

import errno
import itertools
import os
import resource
import struct
import zlib
from pathlib import Path
from typing import Any

import msgpack
import pytest

from rtlang.cassette.records import RecordFile, decode_records, encode_record
from rtlang.contract.errors import CassetteError

MAGIC = b"some records 1\n"
BODIES: list[Any] = [{"a": 1}, ["x" * 300, b"\0"], 7]


def error(reason: str) -> CassetteError:
    return CassetteError("records", reason)


def opened(path: Path, *, is_written: bool = True) -> RecordFile:
    return RecordFile(path, MAGIC, is_written=is_written, maker="a test", user="another test writes", new_error=error)


def written(body: Any) -> bytes:
    """A record by the description in records.py."""
    packed = msgpack.packb(body)
    return struct.pack(">II", len(packed), zlib.crc32(packed)) + packed


def test_records_have_the_described_form() -> None:
    data = MAGIC + b"".join(map(written, BODIES))
    assert b"".join(map(encode_record, BODIES)) == data[len(MAGIC) :]
    found = list(decode_records(data, MAGIC, "a test", error))
    assert [body for body, _ in found] == BODIES
    assert [at for _, at in found][-1] == len(data)


def test_whatever_a_killed_process_left_is_continued(tmp_path: Path) -> None:
    whole = MAGIC + b"".join(map(written, BODIES))
    ends = [len(MAGIC)]
    for body in BODIES:
        ends.append(ends[-1] + len(written(body)))
    for length, num_zeros in [*((length, 0) for length in range(len(whole) + 1)), *((end, 5000) for end in ends)]:
        path = tmp_path / f"{length} {num_zeros}"
        path.write_bytes(whole[:length] + bytes(num_zeros))
        num_complete = sum(end <= length for end in ends) - 1
        file = opened(path)
        assert [body for body, _ in file.read()] == BODIES[: max(0, num_complete)]
        file.append("new")
        file.sync()
        file.close()
        file.close()
        kept = whole[: ends[max(0, num_complete)]]
        assert path.read_bytes() == kept + written("new")


def test_a_damaged_length_is_no_incomplete_end() -> None:
    whole = MAGIC + b"".join(map(written, BODIES))
    starts = [len(MAGIC), len(MAGIC) + len(written(BODIES[0]))]
    for start, place, flip in itertools.product(starts, range(4), (1, 2, 0x80)):
        damaged = bytearray(whole)
        damaged[start + place] ^= flip
        with pytest.raises(CassetteError, match=f"the record at byte {start} is damaged"):
            list(decode_records(bytes(damaged), MAGIC, "a test", error))


def test_texts_with_surrogates_come_back_and_what_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    file = opened(tmp_path / "records")
    list(file.read())
    file.append(["x\ud800", {"\udcff": 1}])
    for body in (["x", object()], 1 << 64):
        with pytest.raises(CassetteError, match="it cannot hold a value"):
            file.append(body)
    file.append("after")
    file.close()
    reader = opened(tmp_path / "records", is_written=False)
    assert [body for body, _ in reader.read()] == [["x\ud800", {"\udcff": 1}], "after"]
    reader.close()


def test_damage_other_files_and_other_writers_are_errors(tmp_path: Path) -> None:
    data = MAGIC + written(1) + written(2)
    damaged = bytearray(data)
    damaged[len(MAGIC) + 8] ^= 1
    with pytest.raises(CassetteError, match=f"the record at byte {len(MAGIC)} is damaged"):
        list(decode_records(bytes(damaged), MAGIC, "a test", error))
    with pytest.raises(CassetteError, match="expected a file that a test made"):
        list(decode_records(b"something", MAGIC, "a test", error))
    path = tmp_path / "records"
    path.write_bytes(data)
    file = opened(path)
    with pytest.raises(CassetteError, match="another test writes to it"):
        opened(path)
    reader = opened(path, is_written=False)
    assert [body for body, _ in reader.read()] == [1, 2]
    reader.close()
    file.close()
    with pytest.raises(CassetteError, match="it is closed"):
        file.append(3)


def test_pipes_and_devices_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/null"), Path("/dev/full")):
        with pytest.raises(CassetteError, match="expected a regular file"):
            opened(path)


def test_a_full_disk_is_an_error_and_the_file_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "records"
    file = opened(path)
    assert list(file.read()) == []
    file.append("first")
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, limits[1]))
    try:
        with pytest.raises(CassetteError, match="it cannot be written"):
            file.append("x" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    file.append("second")
    file.close()
    assert path.read_bytes() == before + written("second")


def test_an_error_of_the_disk_while_closing_releases_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    path = tmp_path / "records"
    file = opened(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fails)
        with pytest.raises(CassetteError, match=r"it cannot be written: .*Input/output error"):
            file.close()
    file.close()
    opened(path).close()
