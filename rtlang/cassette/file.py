"""The file of a recording: records that are appended one by one.

    b"rtlang-cassette 1\n"  record  record  ...
    record = length (4 bytes, big-endian)  CRC-32 of the body (4 bytes)  body (MessagePack)

The body of the first record is a map with `model` (the identity of the model), `seed` (32 bytes) and `tool_format` (the name of its format
of tool calls, or nil); those of the others are pairs of a key (16 bytes) and a value. A record is written by one call and is never changed.
An incomplete record at the end is what a killed process left; it is dropped. One process at a time writes: it holds a lock on the file.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import struct
import threading
import zlib
from collections.abc import Iterator
from typing import Any

import msgpack

from rtlang.contract.errors import CassetteError

MAGIC = b"rtlang-cassette 1\n"
MAX_RECORD_BYTES = 1 << 30
_HEAD = struct.Struct(">II")


def encode_record(body: Any) -> bytes:
    """One record."""
    packed: bytes = msgpack.packb(body)
    return _HEAD.pack(len(packed), zlib.crc32(packed)) + packed


def read_records(path: str, data: bytes) -> Iterator[tuple[Any, int]]:
    """The bodies of the complete records, each with the offset of its end.

    Raises:
        CassetteError: the file is not a recording, or a record other than the last one is damaged.
    """
    if not data.startswith(MAGIC):
        if MAGIC.startswith(data):  # killed while it was created
            return
        raise CassetteError(path, "expected a file that rt.record made; use another path")
    at = len(MAGIC)
    while at + _HEAD.size <= len(data):
        length, checksum = _HEAD.unpack_from(data, at)
        end = at + _HEAD.size + length
        if end > len(data):
            return
        packed = data[at + _HEAD.size : end]
        if zlib.crc32(packed) != checksum:
            if end == len(data):
                return
            raise CassetteError(path, f"the record at byte {at} is damaged")
        try:
            yield msgpack.unpackb(packed), end
        except (ValueError, msgpack.UnpackException) as error:
            raise CassetteError(path, f"the record at byte {at} is damaged: {error}") from None
        at = end


class CassetteFile:
    """An open recording: the records that it holds, and an end to which more are written. Thread-safe.

    Args:
        path: the file; created if it does not exist.
        is_written: whether records are added. Without, the file must exist and is only read.
    Raises:
        CassetteError: another process writes to the file, or it is damaged.
        OSError: it cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str], *, is_written: bool) -> None:
        self.path = os.fspath(path)
        self.model: str | None = None
        self.seed = b""
        self.tool_format: str | None = None
        self._values: dict[bytes, Any] = {}
        self._lock = threading.Lock()
        self._is_written = is_written
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND if is_written else os.O_RDONLY
        self._descriptor: int | None = os.open(self.path, flags | os.O_CLOEXEC, 0o644)
        try:
            if is_written:
                self._take()
            self._read()
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: bytes) -> Any:
        """The value of a key, or None."""
        return self._values.get(key)

    def begin(self, model: str, tool_format: str | None) -> None:
        """Write the first record of a new recording, or check that the existing one was made with this model.

        Raises:
            CassetteError: the recording was made with another model.
        """
        with self._lock:
            if self.model is None:
                seed = secrets.token_bytes(32)
                self._append(encode_record({"model": model, "seed": seed, "tool_format": tool_format}))
                self.model, self.seed, self.tool_format = model, seed, tool_format
            elif self.model != model:
                raise CassetteError(
                    self.path, f"it was made with the model {self.model}, not {model}; use a file for each model"
                )

    def put(self, key: bytes, value: Any) -> bool:
        """Add a record, unless there is one with this key; returns whether there was none.

        Raises:
            CassetteError: the file cannot be written; what was written stays.
        """
        with self._lock:
            if key in self._values:
                return False
            self._append(encode_record([key, value]))
            self._values[key] = value
            return True

    def close(self) -> None:
        """Store what was written on the disk, and release the file. Idempotent."""
        with self._lock:
            descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            try:
                if self._is_written:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def _take(self) -> None:
        assert self._descriptor is not None
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CassetteError(
                self.path, "another process or runtime records to it; wait for its end, or use another file"
            ) from None

    def _read(self) -> None:
        assert self._descriptor is not None
        with open(self._descriptor, "rb", closefd=False) as file:
            file.seek(0)
            data = file.read()
        end = len(MAGIC) if data.startswith(MAGIC) else 0
        for body, at in read_records(self.path, data):
            match body:
                case {"model": str(model), "seed": bytes(seed)} if self.model is None:
                    self.model, self.seed = model, seed
                    found = body.get("tool_format")
                    self.tool_format = found if isinstance(found, str) else None
                case [bytes(key), value] if self.model is not None:
                    self._values.setdefault(key, value)
                case _:
                    raise CassetteError(self.path, f"the record that ends at byte {at} has an unknown form")
            end = at
        if self._is_written:
            if end < len(data):
                os.ftruncate(self._descriptor, end)
            if end == 0:
                self._append(MAGIC)

    def _append(self, data: bytes) -> None:
        if self._descriptor is None:
            raise CassetteError(self.path, "it is closed")
        start = os.fstat(self._descriptor).st_size
        try:
            written = os.write(self._descriptor, data)
            if written < len(data):
                raise OSError(f"only {written} of {len(data)} bytes were written")
        except OSError as error:
            os.ftruncate(self._descriptor, start)
            raise CassetteError(self.path, f"it cannot be written: {error}") from error
