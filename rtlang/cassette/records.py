"""A file of records that are appended one by one.

    magic  record  record  ...
    record = length (4 bytes, big-endian)  CRC-32 of the body (4 bytes)  body (MessagePack)

A record is written by one call and is never changed. A killed process may leave an incomplete record at the end, and a loss of power
zeros; both are dropped. One process at a time writes: it holds a lock on the file.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import msgpack

from rtlang.contract.errors import RtlangError

_HEAD = struct.Struct(">II")
_UNICODE_ERRORS = "surrogatepass"

NewError = Callable[[str], RtlangError]
"""Makes the error of a file from a reason."""


def encode_record(body: Any) -> bytes:
    """One record. Texts may hold lone surrogates, as names of files do in messages of the operating system.

    Raises:
        ValueError, TypeError, OverflowError: MessagePack cannot hold the body.
    """
    packed: bytes = msgpack.packb(body, unicode_errors=_UNICODE_ERRORS)
    return _HEAD.pack(len(packed), zlib.crc32(packed)) + packed


def decode_records(data: bytes, magic: bytes, maker: str, new_error: NewError) -> Iterator[tuple[Any, int]]:
    """The bodies of the complete records, each with the offset of its end.

    Args:
        maker: the name of the writer of such files, for the error.
    Raises:
        RtlangError: made by `new_error`; the file is another one, or a record other than the last one is damaged.
    """
    if not data.startswith(magic):
        if magic.startswith(data):  # killed while it was created
            return
        raise new_error(f"expected a file that {maker} made; use another path")
    at = len(magic)
    while at + _HEAD.size <= len(data):
        length, checksum = _HEAD.unpack_from(data, at)
        end = at + _HEAD.size + length
        if length == 0 and not any(memoryview(data)[at:]):
            return
        if end > len(data):
            if _has_whole_body(data[at + _HEAD.size :]):
                raise new_error(f"the record at byte {at} is damaged")
            return
        packed = data[at + _HEAD.size : end]
        if zlib.crc32(packed) != checksum:
            if end == len(data):
                return
            raise new_error(f"the record at byte {at} is damaged")
        try:
            yield msgpack.unpackb(packed, strict_map_key=False, unicode_errors=_UNICODE_ERRORS), end
        except (ValueError, msgpack.UnpackException) as error:
            raise new_error(f"the record at byte {at} is damaged: {error}") from None
        at = end


def _has_whole_body(data: bytes) -> bool:
    """Whether data begins with a complete body, so that a length beyond the end of the file is wrong; a truncated body is not complete."""
    unpacker = msgpack.Unpacker(strict_map_key=False, unicode_errors=_UNICODE_ERRORS, max_buffer_size=0)
    unpacker.feed(data)
    try:
        return not isinstance(unpacker.unpack(), int)  # of zeros
    except msgpack.OutOfData:
        return False
    except (ValueError, msgpack.UnpackException):
        return True


class RecordFile:
    """An open file of records. Not thread-safe.

    Args:
        path: the file; created if it does not exist.
        is_written: whether records are added. Without, the file must exist and is only read.
        user: the other possible writer, for the error.
        new_error: makes the errors of the file.
    Raises:
        RtlangError: made by `new_error`; another process writes to the file, or it is a pipe or a device.
        OSError: it cannot be opened.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        magic: bytes,
        *,
        is_written: bool,
        maker: str,
        user: str,
        new_error: NewError,
    ) -> None:
        self._magic, self._maker, self._new_error = magic, maker, new_error
        self._is_written = is_written
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND if is_written else os.O_RDONLY
        # Without O_NONBLOCK, opening a pipe waits for its other end.
        self._descriptor: int | None = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
        if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            os.close(self._descriptor)
            raise new_error("expected a regular file; use another path")
        if is_written:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.close()
                raise new_error(f"{user} to it; wait for its end, or use another file") from None

    def read(self) -> Iterator[tuple[Any, int]]:
        """The bodies of all records, each with the offset of its end; then prepare to write after the last complete one.

        Raises:
            RtlangError: the file is another one, or damaged.
        """
        assert self._descriptor is not None
        with open(self._descriptor, "rb", closefd=False) as file:
            file.seek(0)
            data = file.read()
        end = len(self._magic) if data.startswith(self._magic) else 0
        for body, at in decode_records(data, self._magic, self._maker, self._new_error):
            yield body, at
            end = at
        if self._is_written:
            if end < len(data):
                os.ftruncate(self._descriptor, end)
            if end == 0:
                self._write(self._magic)

    def append(self, body: Any) -> None:
        """Write a record. It survives a crash of the process at once, and a crash of the machine after `sync` or `close`.

        Raises:
            RtlangError: it cannot be written; the record is not in the file.
        """
        try:
            record = encode_record(body)
        except (ValueError, TypeError, OverflowError) as error:
            raise self._new_error(f"it cannot hold a value: {error}") from error
        self._write(record)

    def sync(self) -> None:
        """Flush all records to the disk.

        Raises:
            RtlangError: the disk reports an error.
        """
        if self._descriptor is not None:
            try:
                os.fsync(self._descriptor)
            except OSError as error:
                raise self._new_error(f"it cannot be written: {error}") from error

    def close(self) -> None:
        """Flush the file to the disk and release it. Idempotent.

        Raises:
            RtlangError: the disk reports an error; the file is released.
        """
        try:
            if self._is_written:
                self.sync()
        finally:
            descriptor, self._descriptor = self._descriptor, None
            if descriptor is not None:
                os.close(descriptor)

    def _write(self, data: bytes) -> None:
        if self._descriptor is None:
            raise self._new_error("it is closed")
        start = os.fstat(self._descriptor).st_size
        try:
            written = os.write(self._descriptor, data)
            if written < len(data):
                raise OSError(f"only {written} of {len(data)} bytes were written")
        except OSError as error:
            with contextlib.suppress(OSError):  # the next reader drops an incomplete record
                os.ftruncate(self._descriptor, start)
            raise self._new_error(f"it cannot be written: {error}") from error
