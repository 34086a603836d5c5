"""Room for tables takes memory as far as it is written, also where the heap has pieces that were written before."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import pytest

from rtlang_bench.prompt_memory import sample
from rtlang_grammars.machine.automaton import room
from rtlang_grammars.machine.automaton.room import MIN_MAPPED_BYTES, empty_room


def test_unwritten_room_is_not_resident_after_others_have_written_the_heap() -> None:
    size = 2048
    used = [np.ones((size, 256), dtype=np.int32) for _ in range(20)]
    del used
    before = sample(0)
    found = [empty_room(size, 256) for _ in range(100)]  # 200 MiB
    for each in found:
        each[:100] = 7
    after = sample(0)
    assert all(each.shape == (size, 256) and each.flags.c_contiguous and each.flags.writeable for each in found)
    assert all(int(each[:100].sum()) == 7 * 100 * 256 for each in found)
    if before.resident:
        assert after.resident - before.resident < 60 << 20
        assert after.in_use - before.in_use < 20 << 20


def test_small_room_and_room_without_maps_come_from_the_heap(monkeypatch: pytest.MonkeyPatch) -> None:
    assert empty_room(3, 8).shape == (3, 8)

    def refuse(*args: Any, **options: Any) -> Any:
        raise OSError("no more maps")

    monkeypatch.setattr(room.mmap, "mmap", refuse)
    found = empty_room(MIN_MAPPED_BYTES, 1)
    found[:] = 5
    assert found.shape == (MIN_MAPPED_BYTES, 1)
    assert mmap.mmap is refuse
