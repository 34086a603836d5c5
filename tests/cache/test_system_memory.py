"""Memory that is given back reads as zeros, and only within the range; files are read again."""

from __future__ import annotations

import mmap
import sys
from pathlib import Path

import numpy as np
import pytest

from rtlang.cache import system_memory


@pytest.mark.skipif(sys.platform != "linux", reason="needs madvise")
def test_released_memory_is_zero_and_its_neighbours_are_as_before() -> None:
    size = mmap.PAGESIZE
    memory = np.zeros(64 << 20, dtype=np.uint8)
    memory[:] = 7
    start = -memory.ctypes.data % size + size // 2  # half a page behind a border
    assert system_memory.release(memory.ctypes.data + start, 10 * size) == 9 * size
    inside = slice(start + size // 2, start + size // 2 + 9 * size)
    assert not memory[inside].any()
    assert memory[: inside.start].all()
    assert memory[inside.stop :].all()
    assert system_memory.release(memory.ctypes.data + start, size // 4) == 0
    memory[inside] = 3
    assert memory[inside].min() == 3


@pytest.mark.skipif(sys.platform != "linux", reason="needs madvise")
def test_a_released_file_leaves_memory_and_is_read_again(tmp_path: Path) -> None:
    released, other = tmp_path / "a file", tmp_path / "other"
    mappings = []
    for path in (released, other):
        path.write_bytes(b"7" * (8 << 20))
        with path.open("rb") as file:
            mappings.append(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    link = tmp_path / "link"
    link.symlink_to(released)
    assert all(mapping[:].count(b"7") == 8 << 20 for mapping in mappings)
    assert [_resident(path) for path in (released, other)] == [8 << 20, 8 << 20]
    system_memory.release_files([link, tmp_path / "absent"])
    assert [_resident(path) for path in (released, other)] == [0, 8 << 20]
    assert mappings[0][:].count(b"7") == 8 << 20


def _resident(path: Path) -> int:
    """Bytes of a mapped file that are in the memory of this process."""
    lines = Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines()
    starts = [index for index, line in enumerate(lines) if line.endswith(f" {path}")]
    sizes = [next(line for line in lines[start:] if line.startswith("Rss:")) for start in starts]
    return sum(int(size.split()[1]) << 10 for size in sizes)


def test_the_heap_can_be_trimmed_anywhere() -> None:
    system_memory.trim_heap()
