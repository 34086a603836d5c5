"""Arrays on disk, for tables that take longer to compute from a vocabulary than to read; entries of a `DiskCache`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.storage.disk_cache import KEY_BYTES, DiskCache

MAX_BYTES = 512 << 20
"""Limit for all files together: some 40 vocabularies of 152,000 tokens."""
_CACHE_VARIABLE = "RTLANG_CACHE_DIR"
Array = NDArray[np.int32] | NDArray[np.int64]


class ArrayFiles:
    """Arrays by name in one directory. Safe to use from several threads and processes. No method raises.

    Attributes:
        directory: where the files are.
    """

    __slots__ = ("_cache", "directory")

    def __init__(self, directory: Path | None = None) -> None:
        """`directory`: None means $RTLANG_CACHE_DIR, else rtlang/ in the user's cache directory."""
        self.directory = directory or default_cache_dir()
        self._cache = DiskCache(self.directory, MAX_BYTES)

    def read(self, name: str, magic: bytes) -> list[NDArray[Any]] | None:
        """The arrays under a name; None if they are missing, damaged or were written with another `magic`."""
        entry = self._cache.get(_key(name, magic))
        if entry is None:
            return None
        plain, arrays = entry
        # Copies: numba would compile every function again for read-only arrays.
        return [each.view(kind).copy() for kind, each in zip(plain["kinds"], arrays, strict=True)]

    def write(self, name: str, magic: bytes, arrays: Sequence[Array]) -> None:
        """Write flat int32 or int64 arrays; no effect if the directory cannot be written to."""
        plain = {"kinds": [each.dtype.name for each in arrays]}
        self._cache.put(_key(name, magic), plain, [each.view(np.int32) for each in arrays])


def default_cache_dir() -> Path:
    """$RTLANG_CACHE_DIR, else rtlang/ in the user's cache directory."""
    given = os.environ.get(_CACHE_VARIABLE)
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path(os.path.expanduser("~")) / ".cache") / "rtlang"


def _key(name: str, magic: bytes) -> bytes:
    return hashlib.blake2b(magic + name.encode(), digest_size=KEY_BYTES).digest()
