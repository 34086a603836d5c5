"""Arrays in files under a checksum, for tables that take longer to compute from a vocabulary than to read.

A file that is missing, truncated or of another kind counts as absent, and a directory that cannot be written to is not an error: the arrays
are computed again.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_DIGEST_BYTES = 32
_KINDS = (np.dtype("<i4"), np.dtype("<i8"))
_CACHE_VARIABLE = "RTLANG_CACHE_DIR"
Array = NDArray[np.int32] | NDArray[np.int64]


class ArrayFiles:
    """Array files in one directory. Safe to use from several threads and processes.

    Attributes:
        directory: where the files are; created on the first write.
    """

    __slots__ = ("directory",)

    def __init__(self, directory: Path | None = None) -> None:
        """`directory`: None means $RTLANG_CACHE_DIR, else rtlang/ in the user's cache directory."""
        self.directory = directory or default_cache_dir()

    def read(self, name: str, magic: bytes) -> list[NDArray[Any]] | None:
        """The arrays of a file; None if it is missing, damaged or begins with another `magic`."""
        return read(self.directory / name, magic)

    def write(self, name: str, magic: bytes, arrays: Sequence[Array]) -> None:
        """Write flat int32 or int64 arrays; no effect if the directory cannot be written to."""
        write(self.directory / name, magic, arrays)


def default_cache_dir() -> Path:
    """$RTLANG_CACHE_DIR, else rtlang/ in the user's cache directory."""
    given = os.environ.get(_CACHE_VARIABLE)
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path(os.path.expanduser("~")) / ".cache") / "rtlang"


def read(path: Path, magic: bytes) -> list[NDArray[Any]] | None:
    """The arrays of a file; None if it is missing, damaged or begins with another `magic`."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    begin = len(magic) + _DIGEST_BYTES
    payload = memoryview(content)[begin:]
    if not content.startswith(magic) or len(payload) < 8:
        return None
    if hashlib.blake2b(payload, digest_size=_DIGEST_BYTES).digest() != content[len(magic) : begin]:
        return None
    count = int.from_bytes(payload[:8], "little")
    head = np.frombuffer(payload, dtype="<i8", count=2 * count, offset=8).tolist()
    arrays: list[NDArray[Any]] = []
    at = 8 * (1 + 2 * count)
    for kind, length in zip(head[::2], head[1::2], strict=True):
        dtype = _KINDS[kind]
        # Copies: numba would compile every function again for read-only arrays.
        arrays.append(np.frombuffer(payload, dtype, length, at).astype(dtype.newbyteorder("=")))
        at += -(-length * dtype.itemsize // 8) * 8
    return arrays


def write(path: Path, magic: bytes, arrays: Sequence[Array]) -> None:
    """Write flat int32 or int64 arrays to a temporary file and rename it."""
    kinds = [_KINDS.index(each.dtype.newbyteorder("<")) for each in arrays]
    head = [len(arrays), *(x for kind, each in zip(kinds, arrays, strict=True) for x in (kind, len(each)))]
    parts = [np.array(head, dtype="<i8").tobytes()]
    for kind, each in zip(kinds, arrays, strict=True):
        text = each.astype(_KINDS[kind], copy=False).tobytes()
        parts.append(text + bytes(-len(text) % 8))
    payload = b"".join(parts)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = tempfile.NamedTemporaryFile(dir=path.parent, prefix=".arrays-", delete=False)  # noqa: SIM115
    except OSError:
        return
    try:
        with file:
            file.write(magic + hashlib.blake2b(payload, digest_size=_DIGEST_BYTES).digest() + payload)
        os.replace(file.name, path)
    except BaseException as error:  # a full disk, or an interrupt
        with suppress(OSError):
            os.unlink(file.name)
        if not isinstance(error, OSError):
            raise
