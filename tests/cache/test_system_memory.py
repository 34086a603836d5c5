"""Memory that is given back reads as zeros, and only within the range."""

from __future__ import annotations

import mmap
import sys

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


def test_the_heap_can_be_trimmed_anywhere() -> None:
    system_memory.trim_heap()
