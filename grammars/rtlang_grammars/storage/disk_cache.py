"""Entries of plain data and flat arrays in the files of one directory: keyed, checksummed, bounded in bytes, without pickle.

A failing cache only costs time: damaged files, files of other versions, a full disk or a read-only directory are counted, logged once, and
count as missing entries. Files are written under a temporary name and renamed, so processes may share a directory. Entries contain no code
and no types.

Compiled code reads the arrays without bounds checks. So it reads only files that no other user could have written: files of this user or of
root, in a directory that is not writable by everyone.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import queue
import stat
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

logger = logging.getLogger(__name__)

Entry = tuple[dict[str, Any], Sequence[NDArray[np.int32]]]
"""JSON data and flat arrays."""

MAGIC = b"rtlang-grammar1\n"
MAX_BYTES = 256 << 20
KEY_BYTES = 32
_DIGEST_BYTES = 32
_MAX_WAITING = 16
_MAX_FAILURES = 3
_IDLE_S = 5.0
_STALE_SECONDS = 3600.0
_NO_WAITING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""Flags for opening a file that may be a pipe without a writer."""


@dataclass(slots=True)
class CacheCounts:
    """Counts of lookups and writes in this process.

    Attributes:
        hits, misses: entries found and not found.
        stored, unfit, dropped: entries that were written; that cannot be represented; that were offered faster than they could be written.
        evicted: files removed to stay within the bound.
        damaged: files that were truncated, altered or invalid.
        failures: reads and writes that the system refused.
    """

    hits: int = 0
    misses: int = 0
    stored: int = 0
    unfit: int = 0
    dropped: int = 0
    evicted: int = 0
    damaged: int = 0
    failures: int = 0


class DiskCache:
    """The entries of one directory, under keys of KEY_BYTES. Safe to use from several threads and processes. No method raises.

    Attributes:
        counts: see `CacheCounts`.
    """

    def __init__(self, directory: Path, max_bytes: int = MAX_BYTES) -> None:
        """Create the directory if it is missing.

        Args:
            max_bytes: limit for all files together; the least recently used are removed. Each other process may exceed it by a sixteenth.
        """
        self.counts = CacheCounts()
        self._directory, self._max_bytes = directory, max_bytes
        self._pid = os.getpid()
        self._warned: set[str] = set()
        self._num_failures = 0
        self._num_bytes = max_bytes  # an upper bound until the first sweep
        self._num_written = 0  # bytes since the last sweep
        self._queue: queue.Queue[tuple[bytes, Callable[[], Entry | None], bool]] = queue.Queue(_MAX_WAITING)
        self._lock = threading.Lock()
        self._writer: threading.Thread | None = None
        self._is_usable = self._can_be_trusted()

    def get(self, key: bytes) -> Entry | None:
        """The entry under a key; None if it is missing or damaged."""
        entry = self._read(key) if self._is_usable else None
        if entry is None:
            self.counts.misses += 1
        else:
            self.counts.hits += 1
        return entry

    def offer(self, key: bytes, make: Callable[[], Entry | None], *, replaces: bool = False) -> None:
        """Store an entry, on a thread of the cache.

        Args:
            make: creates the entry, on that thread; returns None if it cannot.
            replaces: False: an entry with this key is left as it is, and nothing is made.
        """
        if not self._is_usable:
            return
        self._reset_after_fork()
        with self._lock:
            try:
                if self._writer is None:
                    writer = threading.Thread(target=self._write_all, name="grammar-cache", daemon=True)
                    writer.start()
                    self._writer = writer
                self._queue.put_nowait((key, make, replaces))
            except (queue.Full, RuntimeError):  # RuntimeError: there are too many threads, or the interpreter ends
                self.counts.dropped += 1

    def put(self, key: bytes, plain: dict[str, Any], arrays: Sequence[NDArray[np.int32]]) -> None:
        """Store an entry before returning."""
        if self._is_usable:
            self._make_and_write(key, lambda: (plain, arrays))

    def flush(self) -> None:
        """Wait until all offered entries are written or given up."""
        self._reset_after_fork()
        self._queue.join()

    def _reset_after_fork(self) -> None:
        """In a forked child, replace the writer and its queue, which belong to the parent."""
        if self._pid != os.getpid():
            self._lock, self._writer, self._queue = threading.Lock(), None, queue.Queue(_MAX_WAITING)
            self._pid = os.getpid()  # last: from here on, other threads use the new queue

    def reject(self, key: bytes, reason: str) -> None:
        """Remove an intact entry that turned out to be invalid."""
        self.counts.damaged += 1
        self._warn_once("damaged", f"{self._path(key)} is ignored: {reason}")
        self._remove(self._path(key))

    def _can_be_trusted(self) -> bool:
        try:
            self._directory = self._directory.absolute()
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = self._directory.stat()
        except (OSError, ValueError) as error:  # ValueError: not a possible file name
            reason = error.strerror if isinstance(error, OSError) else error
            self._fail("directory", f"{str(self._directory)!r} cannot be used: {reason}")
            return False
        if not _is_own(status):
            self._fail("directory", f"{self._directory} is not used: other users may write to it")
            return False
        return True

    # Reading

    def _read(self, key: bytes) -> Entry | None:
        path = self._path(key)
        try:
            with open(path, "rb", opener=lambda name, flags: os.open(name, flags | _NO_WAITING)) as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    self._fail("read", f"{path} is not a regular file")
                    return None
                if not _is_own(status):
                    self._fail("owner", f"{path} is ignored: another user may have written it")
                    return None
                content = file.read(self._max_bytes + 1) if status.st_size <= self._max_bytes else b""
        except FileNotFoundError:
            return None
        except OSError as error:
            self._fail("read", f"{path} cannot be read: {error.strerror}")
            return None
        except MemoryError:
            self._fail("read", f"{path} cannot be read: not enough memory")
            return None
        entry = unpacked(content, key)
        if entry is None:
            self.reject(key, "it is damaged, too large or from another version")
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # the time of the last use decides which file is removed first
        return entry

    # Writing, on the thread of the cache

    def _write_all(self) -> None:
        """Write offered entries; ends after a while without any."""
        while True:
            try:
                key, make, replaces = self._queue.get(timeout=_IDLE_S)
            except queue.Empty:
                with self._lock:
                    if self._queue.empty():
                        self._writer = None
                        return
                continue
            try:
                self._make_and_write(key, make, replaces=replaces)
            except Exception as error:
                self.counts.unfit += 1
                self._warn_once("make", f"a grammar could not be stored: {type(error).__name__}: {error}")
            finally:
                del make
                self._queue.task_done()

    def _make_and_write(self, key: bytes, make: Callable[[], Entry | None], *, replaces: bool = False) -> None:
        if self._num_failures >= _MAX_FAILURES or (self._path(key).exists() and not replaces):
            return
        entry = make()
        content = None if entry is None else packed(key, *entry)
        if content is None or len(content) > self._max_bytes // 2:
            self.counts.unfit += 1
            return
        is_full = self._num_bytes + len(content) > self._max_bytes
        if is_full or self._num_written >= self._max_bytes // 16:  # other processes also write and remove files
            self._num_bytes, self._num_written = self._sweep(len(content)), 0
        try:
            try:
                self._write(self._path(key), content)
            except FileNotFoundError:  # the directory has been removed
                if not self._can_be_trusted():
                    raise
                self._write(self._path(key), content)
        except OSError as error:
            self._num_failures += 1
            self._fail("write", f"{self._directory} cannot be written: {error.strerror}")
            return
        self._num_failures = 0
        self._num_bytes += len(content)
        self._num_written += len(content)
        self.counts.stored += 1

    def _write(self, path: Path, content: bytes) -> None:
        handle, name = tempfile.mkstemp(prefix=".grammar-", dir=self._directory)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise

    def _sweep(self, num_needed: int) -> int:
        """Remove abandoned temporary files, and the least recently used entries if room is needed; returns the bytes in use.

        Files with a time in the future, left by a clock that was set back, count as the oldest, and so do files too large to be entries.
        """
        found: list[tuple[int, int, Path]] = []
        now = time.time()
        with contextlib.suppress(OSError):
            for each in os.scandir(self._directory):
                with contextlib.suppress(OSError):
                    status = each.stat(follow_symlinks=False)
                    is_ours = stat.S_ISREG(status.st_mode)
                    if is_ours and each.name.startswith(".grammar-") and abs(now - status.st_mtime) > _STALE_SECONDS:
                        self._remove(Path(each.path))
                    elif is_ours and each.name.startswith("grammar-") and each.name.endswith(".bin"):
                        is_odd = status.st_mtime > now + _STALE_SECONDS or status.st_size > self._max_bytes
                        found.append((0 if is_odd else status.st_mtime_ns, status.st_size, Path(each.path)))
        total = sum(size for _, size, _ in found)
        if total + num_needed > self._max_bytes:
            for _, size, path in sorted(found):
                if total + num_needed <= self._max_bytes - self._max_bytes // 8:
                    break
                if self._remove(path):
                    self.counts.evicted += 1
                    total -= size
        return total

    def _remove(self, path: Path) -> bool:
        try:
            path.unlink()
        except FileNotFoundError:  # another process removed it first
            return True
        except OSError:
            return False
        return True

    def _path(self, key: bytes) -> Path:
        return self._directory / f"grammar-{key.hex()}.bin"

    def _fail(self, kind: str, message: str) -> None:
        self.counts.failures += 1
        self._warn_once(kind, message)

    def _warn_once(self, kind: str, message: str) -> None:
        """Log the first message of each kind."""
        if kind not in self._warned:
            self._warned.add(kind)
            logger.warning("grammar cache: %s", message)


def packed(key: bytes, plain: dict[str, Any], arrays: Sequence[NDArray[np.int32]]) -> bytes:
    """An entry as the bytes of its file: magic, digest of the rest, then lengths, key, plain data and arrays."""
    text = json.dumps(plain, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)
    parts = [each.astype("<i4").tobytes() for each in arrays]
    lengths = struct.pack(f"<{2 + len(parts)}I", len(text), len(parts), *map(len, parts))
    payload = b"".join((key, lengths, text, *parts))
    return MAGIC + hashlib.blake2b(payload, digest_size=_DIGEST_BYTES).digest() + payload


def unpacked(content: bytes, key: bytes) -> Entry | None:
    """The entry in the bytes of a file; None if it is damaged, of another version, or under another key."""
    begin = len(MAGIC) + _DIGEST_BYTES
    payload = memoryview(content)[begin:]
    if not content.startswith(MAGIC) or bytes(payload[:KEY_BYTES]) != key:
        return None
    if hashlib.blake2b(payload, digest_size=_DIGEST_BYTES).digest() != content[len(MAGIC) : begin]:
        return None
    text_length, count = struct.unpack_from("<2I", payload, KEY_BYTES)
    at = KEY_BYTES + 8 + 4 * count
    lengths = struct.unpack_from(f"<{count}I", payload, KEY_BYTES + 8)
    plain = json.loads(bytes(payload[at : at + text_length]))
    at += text_length
    arrays = []
    for length in lengths:
        arrays.append(np.frombuffer(payload, dtype="<i4", count=length // 4, offset=at).astype(np.int32, copy=False))
        at += length
    return plain, arrays


def _is_own(status: os.stat_result) -> bool:
    """Whether only this user or root can have written the file."""
    if os.name != "posix":
        return True
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & 0o002
