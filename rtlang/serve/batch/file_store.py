"""The files of clients on the disk: uploads, outputs of batches, and the records of batches.

Each principal has a folder of its own, named by a digest of its name:

    <folder>/<digest>/owner             the name of the principal
    <folder>/<digest>/<id>.json, .data  a file: its description and its bytes
    <folder>/<digest>/<id>.open         the output of a batch that runs; `publish` makes it a file
    <folder>/<digest>/<id>.part         an upload that has not ended; removed when the store opens
    <folder>/<digest>/<id>.batch        the record of a batch

A `.json` is written last and replaced whole, so a killed server leaves no half of a file. One process at a time uses a folder, and holds a
lock on the file `lock` in it. A temporary folder whose lock nobody holds was left by a killed server; the next one with files deletes it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

from rtlang.contract.errors import ConfigError, ParameterError

MAX_FILES = 10_000
"""Files of one principal."""
MAX_FILE_BYTES = 200 << 20
"""Bytes of an uploaded file, as in the OpenAI API."""
MAX_FILENAME = 255
_OWNER_DIGITS = 32
_TEMPORARY, _LOCK = "rtlang-files-", "lock"

Purpose = Literal["batch", "batch_output"]


class FileQuotaError(ParameterError):
    """The files of a principal would take more of the disk than they may."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a principal.

    Attributes:
        num_bytes: its size.
        created_at, expires_at: seconds since 1970; None: it is kept until it is deleted.
    """

    file_id: str
    filename: str
    purpose: Purpose
    num_bytes: int
    created_at: int
    expires_at: int | None = None

    def to_object(self) -> dict[str, Any]:
        """The file as clients of the OpenAI API see it."""
        return {
            "id": self.file_id,
            "object": "file",
            "bytes": self.num_bytes,
            "created_at": self.created_at,
            "expires_at": self.expires_at,
            "filename": self.filename,
            "purpose": self.purpose,
            "status": "processed",
            "status_details": None,
        }

    @classmethod
    def from_object(cls, plain: Mapping[str, Any]) -> StoredFile:
        """The file of a map made by `to_object`."""
        return cls(
            plain["id"],
            plain["filename"],
            plain["purpose"],
            int(plain["bytes"]),
            int(plain["created_at"]),
            plain["expires_at"],
        )


class _Folder:
    """The folder of one principal, and the descriptions of its files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files: dict[str, StoredFile] = {}
        self.open_bytes: dict[str, int] = {}  # of uploads and outputs that have not ended

    @property
    def num_bytes(self) -> int:
        return sum(each.num_bytes for each in self.files.values()) + sum(self.open_bytes.values())


class FileStore:
    """The files of all principals. Thread-safe; its methods wait for the disk, so servers call them on threads.

    Args:
        folder: where the files are kept; None for a temporary folder, which is deleted with the store.
        max_bytes: bound of the files of one principal together, outputs included.
        now: seconds since 1970.
    Raises:
        ConfigError: the folder cannot be used, or another process uses it; names files_dir.
    """

    def __init__(self, folder: str | None, max_bytes: int, *, now: Callable[[], float] = time.time) -> None:
        self._max_bytes, self._now = max_bytes, now
        self._lock = threading.RLock()
        self._owners: dict[str, _Folder] = {}
        self._given, self._root, self._lock_file = folder, None if folder is None else Path(folder), -1
        if self._root is not None:
            self._open(self._root)

    @property
    def is_durable(self) -> bool:
        """Whether files outlive the store."""
        return self._given is not None

    def close(self) -> None:
        """Release the folder; a temporary one is deleted. Idempotent."""
        with self._lock:
            if self._lock_file >= 0:
                os.close(self._lock_file)
                self._lock_file = -1
            if self._given is None and self._root is not None:
                shutil.rmtree(self._root, ignore_errors=True)
                self._root = None
            self._owners.clear()

    def owners(self) -> list[str]:
        """The names of the principals that have files."""
        with self._lock:
            return list(self._owners)

    def begin(self, owner: str, file_id: str | None = None) -> FileWriter:
        """Begin a file. With the id of an output, go on after the last whole line of its bytes, if there are any.

        Raises:
            FileQuotaError: the principal has too many files.
            OSError: the disk refuses it.
        """
        with self._lock:
            folder = self._folder(owner)
            if len(folder.files) + len(folder.open_bytes) >= MAX_FILES:
                raise FileQuotaError("file", MAX_FILES, f"expected at most {MAX_FILES} files of one principal")
            is_output = file_id is not None
            found = new_file_id() if file_id is None else file_id
            path = folder.path / f"{found}.{'open' if is_output else 'part'}"
            if found in folder.files:  # published by a process that was killed before it noted so
                os.replace(folder.path / f"{found}.data", path)
                (folder.path / f"{found}.json").unlink(missing_ok=True)
                del folder.files[found]
            file = open(path, "a+b" if is_output else "w+b")  # noqa: SIM115  # the writer closes it
            folder.open_bytes[found] = cut_to_lines(file) if is_output else 0
        return FileWriter(self, owner, found, path, file, folder.open_bytes[found])

    def publish(
        self, owner: str, writer: FileWriter, filename: str, purpose: Purpose, expires_after_s: int | None
    ) -> StoredFile:
        """Close the writer and make a file of its bytes."""
        writer.sync()
        writer.release()
        now = int(self._now())
        expires_at = None if expires_after_s is None else now + expires_after_s
        stored = StoredFile(writer.file_id, filename[:MAX_FILENAME], purpose, writer.num_bytes, now, expires_at)
        with self._lock:
            folder = self._folder(owner)
            os.replace(writer.path, folder.path / f"{stored.file_id}.data")
            _write_json(folder.path / f"{stored.file_id}.json", stored.to_object())
            folder.open_bytes.pop(stored.file_id, None)
            folder.files[stored.file_id] = stored
        return stored

    def get(self, owner: str, file_id: str) -> StoredFile | None:
        """A file; None if it is unknown, has expired, or belongs to another principal."""
        with self._lock:
            self._forget_expired(owner)
            folder = self._owners.get(owner)
            return None if folder is None else folder.files.get(file_id)

    def files(self, owner: str) -> list[StoredFile]:
        """The files of a principal, oldest first."""
        with self._lock:
            self._forget_expired(owner)
            folder = self._owners.get(owner)
            return [] if folder is None else sorted(folder.files.values(), key=lambda each: each.created_at)

    def read(self, owner: str, file_id: str) -> BinaryIO | None:
        """The bytes of a file, opened; None if there is none. They can be read to the end even if the file is deleted meanwhile."""
        with self._lock:
            if self.get(owner, file_id) is None:
                return None
            return open(self._owners[owner].path / f"{file_id}.data", "rb")

    def delete(self, owner: str, file_id: str) -> bool:
        """Delete a file; whether there was one."""
        with self._lock:
            folder = self._owners.get(owner)
            if folder is None or folder.files.pop(file_id, None) is None:
                return False
            for ending in ("json", "data"):
                (folder.path / f"{file_id}.{ending}").unlink(missing_ok=True)
            return True

    def put_record(self, owner: str, name: str, plain: Mapping[str, Any]) -> None:
        """Keep the record of a batch, in place of an earlier one."""
        with self._lock:
            _write_json(self._folder(owner).path / f"{name}.batch", plain)

    def drop_record(self, owner: str, name: str) -> None:
        """Forget the record of a batch."""
        with self._lock:
            (self._folder(owner).path / f"{name}.batch").unlink(missing_ok=True)

    def records(self, owner: str) -> Iterator[dict[str, Any]]:
        """The records of the batches of a principal."""
        with self._lock:
            folder = self._owners.get(owner)
        for path in [] if folder is None else sorted(folder.path.glob("*.batch")):
            plain = _read_json(path)
            if plain is not None:
                yield plain

    def take(self, owner: str, file_id: str, num_bytes: int) -> None:
        """Count bytes that are about to be written.

        Raises:
            FileQuotaError: they are too many.
            OSError: the file has ended.
        """
        with self._lock:
            folder = self._folder(owner)
            if file_id not in folder.open_bytes:  # dropped while a thread still wrote for a client that has left
                raise OSError(errno.EBADF, f"the file {file_id} has ended")
            total = folder.num_bytes + num_bytes
            if total > self._max_bytes:
                self._forget_expired(owner)
                total = folder.num_bytes + num_bytes
            if total > self._max_bytes:
                raise FileQuotaError(
                    "file",
                    total,
                    f"expected at most {self._max_bytes} bytes in all files of one principal (files_bytes); delete some",
                )
            folder.open_bytes[file_id] += num_bytes

    def drop_open(self, owner: str, file_id: str, path: Path) -> None:
        """Delete the bytes of an unfinished file."""
        with self._lock:
            self._folder(owner).open_bytes.pop(file_id, None)
            path.unlink(missing_ok=True)

    def _forget_expired(self, owner: str) -> None:
        folder, now = self._owners.get(owner), self._now()
        for each in [] if folder is None else list(folder.files.values()):
            if each.expires_at is not None and each.expires_at <= now:
                self.delete(owner, each.file_id)

    def _folder(self, owner: str) -> _Folder:
        if owner not in self._owners:
            if self._root is None:
                _delete_stale(Path(tempfile.gettempdir()))
                while self._root is None or not self._take_lock(self._root):  # another server may take it for stale
                    self._root = Path(tempfile.mkdtemp(prefix=_TEMPORARY))
            path = self._root / hashlib.sha256(owner.encode()).hexdigest()[:_OWNER_DIGITS]
            path.mkdir(mode=0o700, exist_ok=True)
            _write_json(path / "owner", {"owner": owner})
            self._owners[owner] = _Folder(path)
        return self._owners[owner]

    def _open(self, root: Path) -> None:
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._take_lock(root):
                raise ConfigError("files_dir", str(root), "another server uses this folder; use another one")
            for path in root.iterdir():
                plain = _read_json(path / "owner") if path.is_dir() else None
                if plain is not None:
                    self._owners[str(plain["owner"])] = _opened(path)
        except OSError as error:
            raise ConfigError("files_dir", str(root), f"cannot be used: {error.strerror or error}") from None

    def _take_lock(self, root: Path) -> bool:
        """Whether no other process uses a folder, which is this one's until the store is closed."""
        try:
            self._lock_file = os.open(root / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_there = os.path.samestat(os.fstat(self._lock_file), os.stat(root / _LOCK))
        except (
            BlockingIOError,
            FileNotFoundError,
        ):  # FileNotFoundError: taken for stale and deleted before it was locked
            is_there = False
        if not is_there and self._lock_file >= 0:
            os.close(self._lock_file)
            self._lock_file = -1
        return is_there


class FileWriter:
    """The bytes of a file that has not ended. Used by one thread at a time.

    Attributes:
        file_id: of the file.
        num_bytes: its size so far.
    """

    def __init__(self, store: FileStore, owner: str, file_id: str, path: Path, file: BinaryIO, num_bytes: int) -> None:
        self.file_id, self.path, self.num_bytes = file_id, path, num_bytes
        self._store, self._owner, self._file = store, owner, file

    def write(self, data: bytes) -> None:
        """Add bytes; they survive a crash of the process at once.

        Raises:
            FileQuotaError: they are too many.
            OSError: the disk is full.
        """
        self._store.take(self._owner, self.file_id, len(data))
        self._file.write(data)
        self._file.flush()
        self.num_bytes += len(data)

    def lines(self) -> Iterator[bytes]:
        """The lines so far."""
        self._file.seek(0)
        yield from self._file
        self._file.seek(0, os.SEEK_END)

    def sync(self) -> None:
        """Wait until the bytes are on the disk."""
        os.fsync(self._file.fileno())

    def release(self) -> None:
        """Close the file and keep its bytes. Idempotent."""
        self._file.close()

    def drop(self) -> None:
        """Close the file, and delete it. Idempotent."""
        self._file.close()
        self._store.drop_open(self._owner, self.file_id, self.path)


def new_file_id() -> str:
    """A random id."""
    return f"file-{secrets.token_hex(16)}"


def new_batch_id() -> str:
    """A random id."""
    return f"batch_{secrets.token_hex(16)}"


def cut_to_lines(file: BinaryIO) -> int:
    """Cut off a last line that has no end, which a killed process may leave; returns the length."""
    size = file.seek(0, os.SEEK_END)
    end = size
    while end > 0:
        start = max(0, end - (1 << 16))
        file.seek(start)
        at = file.read(end - start).rfind(b"\n")
        if at >= 0:
            end = start + at + 1
            break
        end = start
    if end < size:
        file.truncate(end)
    file.seek(0, os.SEEK_END)
    return end


def _delete_stale(folder: Path) -> None:
    """Delete the temporary folders that killed servers of this user left."""
    for path in folder.glob(f"{_TEMPORARY}*"):
        with contextlib.suppress(OSError):  # another server deletes it, or uses it
            lock = os.open(path / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if path.lstat().st_uid == os.getuid() and not path.is_symlink():
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(lock)


def _opened(path: Path) -> _Folder:
    """The folder of a principal as an earlier process has left it."""
    folder = _Folder(path)
    for each in path.iterdir():
        if each.suffix in (".part", ".new"):
            each.unlink(missing_ok=True)
        elif each.suffix == ".open":
            folder.open_bytes[each.stem] = each.stat().st_size
        elif each.suffix == ".json" and (plain := _read_json(each)) is not None:
            with contextlib.suppress(KeyError, ValueError, TypeError):
                stored = StoredFile.from_object(plain)
                folder.files[stored.file_id] = stored
    return folder


def _write_json(path: Path, plain: Mapping[str, Any]) -> None:
    """Replace a file whole: a reader, also after a crash, finds the old text or the new one."""
    temporary = path.with_name(path.name + ".new")
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(plain, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return plain if isinstance(plain, dict) else None
