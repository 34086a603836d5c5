"""The rates of the machine are those of work that can be counted."""

from __future__ import annotations

import numpy as np

from rtlang_kernels.cpu.codegen.tile_vectors import AMX, EMULATED
from rtlang_kernels.cpu.linear_tuning import usable_tiles
from rtlang_kernels_bench.machine_rates import machine_rates, multiply_operations, read, tile_multiplier


def test_all_memory_is_read() -> None:
    words = np.arange(1000, dtype=np.int64)
    assert read(words) == 1000 * 999 // 2


def test_the_rates_are_positive_and_ordered() -> None:
    rates = machine_rates(2, rounds=1)
    assert (
        rates.operations_s > rates.read_bytes_s > 0
    )  # every processor multiplies more than a number for each byte it reads
    assert multiply_operations() > 0


def test_a_small_memory_is_read_as_well() -> None:
    assert machine_rates(1, rounds=1, read_bytes=1 << 20).read_bytes_s > 0


def test_tiles_are_multiplied_as_often_as_asked() -> None:
    assert tile_multiplier(EMULATED)(3) == 3
    if usable_tiles() == AMX:
        assert multiply_operations() == 4 * 2 * 16 * 16 * 32 * 200_000
