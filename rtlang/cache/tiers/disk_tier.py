"""Pages on disk, in one file each, which outlive the process; the states of recurrent layers are files of the same form.

A folder holds one subfolder for each identity of pages (model, number formats, page size, form of states), and files are named by the
digest of their page. A file is written under another name and renamed, so that it is whole or absent. Its header repeats identity and
digest and has a checksum of the content; a file that does not agree is reported, removed and never used. Several processes may share a
folder: each may find the files of the others, and a file that another one has removed is simply not stored.

The bound holds for the whole folder, so files of models that are no longer served make room. Files are removed in the order of their last
use, which is their time of modification.
"""

from __future__ import annotations

import logging
import os
import struct
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import count
from pathlib import Path

from rtlang.cache.tiers.digest import DIGEST_BYTES
from rtlang.cache.tiers.tier import TierStats

logger = logging.getLogger(__name__)

_HEADER = struct.Struct("<8s16s16sQ16s")  # magic, identity, digest, length of the content, checksum of all else
_MAGIC = b"rtlkv\0\0\1"
_SUFFIX, _TEMPORARY = ".page", ".tmp"
_RETRY_S = 60.0
"""Seconds without writing after a write failed."""
_STALE_S = 600.0
"""Age in seconds at which an unfinished file is removed."""
_MAX_WARNINGS = 5

_Key = tuple[str, bytes]  # subfolder, digest


class DiskTier:
    """See `CacheTier`.

    Args:
        folder: created if needed, for this user only.
        identity: names whatever determines the content of pages besides their digest; files of other identities are not used.
        page_bytes: size of every page.
        max_bytes: of all files in the folder.
        state_bytes: size of every state; 0 for a model without states.
    """

    name = "disk"
    is_persistent = True

    def __init__(self, folder: Path, identity: str, page_bytes: int, max_bytes: int, state_bytes: int = 0) -> None:
        self.stats = TierStats()
        self._folder, self._max_bytes = folder, max_bytes
        self._sizes = sorted({page_bytes, state_bytes} - {0})
        self._identity = blake2b(identity.encode(), digest_size=DIGEST_BYTES, person=b"rtlang tier").digest()
        self._own = self._identity.hex()
        self._files: OrderedDict[_Key, int] = OrderedDict()  # sizes, least recently used first
        self._lock = threading.Lock()
        self._writing = threading.Lock()  # held while a file is written
        self._is_closed = False
        self._serial = count()
        self._paused_until = 0.0
        self._num_warnings = 0

    def open(self) -> None:
        """See `CacheTier.open`; finds the files of earlier processes."""
        try:
            (self._folder / self._own).mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            self._warn("the cache directory %s cannot be used: %s", self._folder, error)
            self._paused_until = float("inf")
            return
        found = sorted(self._scan())
        with self._lock:
            for _, key, size in found:
                self._files.setdefault(key, size)
            self.stats.num_bytes = sum(self._files.values())
            self.stats.num_pages = sum(folder == self._own for folder, _ in self._files)
        self._evict()

    def has(self, digest: bytes) -> bool:
        """See `CacheTier.has`; looks for files of other processes as well."""
        return (self._own, digest) in self._files or self._path((self._own, digest)).exists()

    def put(self, digest: bytes, page: memoryview) -> None:
        """See `CacheTier.put`."""
        with self._writing:
            if not self._is_closed:
                self._put(digest, page)

    def _put(self, digest: bytes, page: memoryview) -> None:
        key = self._own, digest
        if self.has(digest):
            self.touch([digest])
            return
        size = _HEADER.size + page.nbytes
        if size > self._max_bytes or time.monotonic() < self._paused_until:
            return
        path = self._path(key)
        temporary = path.with_name(f"{path.stem}-{os.getpid()}-{next(self._serial)}{_TEMPORARY}")
        header = _HEADER.pack(_MAGIC, self._identity, digest, page.nbytes, self._checksum(digest, page))
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            try:
                with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb", buffering=0) as file:
                    for part in (header, page):
                        view = memoryview(part).cast("B")
                        while view:
                            view = view[file.write(view) :]
                temporary.replace(path)
            except BaseException:
                with suppress(OSError):
                    temporary.unlink()
                raise
        except OSError as error:
            self._paused_until = time.monotonic() + _RETRY_S
            self._warn("writing to the cache directory failed: %s; it is tried again in %d s", error, _RETRY_S)
            return
        with self._lock:
            self._files[key] = size
            self.stats.num_pages += 1
            self.stats.num_bytes += size
            self.stats.num_stored += 1
        self._evict()

    def get(self, digest: bytes) -> memoryview | None:
        """See `CacheTier.get`."""
        key = self._own, digest
        path = self._path(key)
        try:
            with open(path, "rb", buffering=0) as file:
                content = file.read(_HEADER.size + max(self._sizes) + 1)
        except FileNotFoundError:
            self._forget(key)
            return None
        except OSError as error:
            self._warn("the cache file %s cannot be read: %s", path, error)
            self._forget(key)
            return None
        problem = self._problem(digest, content)
        if problem is not None:
            self._warn("the cache file %s is not used and removed: %s", path, problem)
            self.stats.num_bad += 1
            self._remove(key)
            return None
        with suppress(OSError):
            os.utime(path)
        with self._lock:
            self.stats.num_loaded += 1
            if key not in self._files:  # of another process
                self._files[key] = len(content)
                self.stats.num_bytes += len(content)
                self.stats.num_pages += 1
            self._files.move_to_end(key)
        return memoryview(content)[_HEADER.size :]

    def touch(self, digests: Sequence[bytes]) -> None:
        """See `CacheTier.touch`."""
        with self._lock:
            for digest in digests:
                if (self._own, digest) in self._files:
                    self._files.move_to_end((self._own, digest))

    def clear(self) -> None:
        """See `CacheTier.clear`; files of other identities stay."""
        for key in [key for key in list(self._files) if key[0] == self._own]:
            self._remove(key)

    def close(self) -> None:
        """See `CacheTier.close`. Nothing is written to the directory afterwards."""
        with self._writing:
            self._is_closed = True

    def _path(self, key: _Key) -> Path:
        name = key[1].hex()
        return self._folder / key[0] / name[:2] / (name + _SUFFIX)

    def _checksum(self, digest: bytes, page: memoryview) -> bytes:
        found = blake2b(self._identity + digest, digest_size=16)
        found.update(page)
        return found.digest()

    def _problem(self, digest: bytes, content: bytes) -> str | None:
        """Why a file must not be used; None if it may."""
        num_bytes = len(content) - _HEADER.size
        if num_bytes not in self._sizes:
            return f"expected {' or '.join(str(_HEADER.size + size) for size in self._sizes)} bytes"
        magic, identity, named, length, checksum = _HEADER.unpack_from(content)
        if magic != _MAGIC:
            return "it has another format"
        if identity != self._identity:
            return "it belongs to another model"
        page = memoryview(content)[_HEADER.size :]
        if named != digest or length != num_bytes or checksum != self._checksum(digest, page):
            return "its checksum is wrong"
        return None

    def _scan(self) -> Iterator[tuple[float, _Key, int]]:
        """Time of modification, key and size of all files. Removes unfinished files."""
        for path in self._folder.glob("*/*/*"):
            with suppress(OSError, ValueError):
                status = path.stat()
                if path.suffix == _TEMPORARY:
                    if time.time() - status.st_mtime > _STALE_S:
                        path.unlink()
                elif path.suffix == _SUFFIX:
                    yield status.st_mtime, (path.parts[-3], bytes.fromhex(path.stem)), status.st_size

    def _evict(self) -> None:
        while True:
            with self._lock:
                if self.stats.num_bytes <= self._max_bytes or not self._files:
                    return
                key = next(iter(self._files))
                self.stats.num_evicted += 1
            self._remove(key)

    def _remove(self, key: _Key) -> None:
        self._forget(key)
        with suppress(OSError):
            self._path(key).unlink()

    def _forget(self, key: _Key) -> None:
        with self._lock:
            size = self._files.pop(key, None)
            if size is not None:
                self.stats.num_bytes -= size
                self.stats.num_pages -= key[0] == self._own

    def _warn(self, message: str, *args: object) -> None:
        self._num_warnings += 1
        if self._num_warnings <= _MAX_WARNINGS:
            logger.warning(message, *args)
        elif self._num_warnings == _MAX_WARNINGS + 1:
            logger.warning("more problems with the cache directory are not reported")
