"""Arrays with room to grow, whose unwritten part takes no memory.

The heap cannot promise that: it hands out pieces that others have written before, so that thousands of grammars, each with megabytes of
room of which it writes a tenth, would come to hold all of it. Large arrays are therefore memory maps of their own.
"""

from __future__ import annotations

import mmap
import sys

import numpy as np
from numpy.typing import NDArray

MIN_MAPPED_BYTES = 1 << 20


def empty_room(num_rows: int, num_columns: int) -> NDArray[np.int32]:
    """An array [num_rows, num_columns] of any content, which takes memory as far as it is written."""
    num_bytes = 4 * num_rows * num_columns
    if num_bytes >= MIN_MAPPED_BYTES:
        try:
            memory = _private_map(num_bytes)
        except OSError:  # too many maps
            pass
        else:
            return np.frombuffer(memory, dtype=np.int32).reshape(num_rows, num_columns)
    return np.empty((num_rows, num_columns), dtype=np.int32)


def _private_map(num_bytes: int) -> mmap.mmap:
    """Memory that a forked process gets a copy of."""
    if sys.platform == "win32":
        return mmap.mmap(-1, num_bytes)
    return mmap.mmap(-1, num_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
