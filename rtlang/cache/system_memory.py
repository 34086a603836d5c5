"""Gives memory back to the system: ranges of zeroed arrays, pages of mapped files, and freed memory that the C library keeps. Does nothing
where it cannot."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

_DONT_NEED = (
    4  # of madvise on Linux: private memory without a file reads as zeros afterwards, a mapped file is read again
)
_MAPPINGS = Path("/proc/self/maps")


def release(address: int, num_bytes: int) -> int:
    """Give back the whole memory pages of a range of private memory, which then reads as zeros. Returns the number of bytes."""
    library = _library()
    if library is None:
        return 0
    start = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE
    end = (address + num_bytes) // mmap.PAGESIZE * mmap.PAGESIZE
    if end <= start:
        return 0
    failed = library.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), ctypes.c_int(_DONT_NEED))
    return 0 if failed else end - start


def release_files(paths: Iterable[Path]) -> None:
    """Give back the memory of files that this process has mapped and does not write to; their pages are read again when they are used.

    Changes of a private mapping are lost.
    """
    names = {os.path.realpath(path) for path in paths}
    library = _library()
    if library is None or not names:
        return
    for line in _MAPPINGS.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        fields = line.split(None, 5)
        if len(fields) == 6 and fields[5] in names:
            start, _, end = fields[0].partition("-")
            release(int(start, 16), int(end, 16) - int(start, 16))


def trim_heap() -> None:
    """Let the C library give back freed memory, between used blocks as well: milliseconds for a large heap."""
    library = _library()
    if library is not None and hasattr(library, "malloc_trim"):  # glibc
        library.malloc_trim(ctypes.c_size_t(0))


@cache
def _library() -> Any:
    """The C library on Linux; None elsewhere."""
    return ctypes.CDLL(None) if sys.platform == "linux" else None
