"""The rates of the machine are those of work that can be counted."""

from __future__ import annotations

import numpy as np

from rtlang_kernels.cpu.codegen.tile_vectors import EMULATED, NO_TILES
from rtlang_kernels.cpu.linear_tuning import usable_tiles
from rtlang_kernels.cpu.machine_rates import machine_rates, multiply_operations, read, tile_multiplier


def test_all_memory_is_read() -> None:
    words = np.arange(1000, dtype=np.int64)
    assert read(words) == 1000 * 999 // 2


def test_the_rates_are_positive_and_ordered() -> None:
    rates = machine_rates(2, rounds=1)
    assert (
        rates.operations_s > rates.read_bytes_s > 0
    )  # every processor multiplies more than a number for each byte it reads
    assert multiply_operations(NO_TILES) > 0


def test_a_small_memory_is_read_as_well() -> None:
    assert machine_rates(1, rounds=1, read_bytes=1 << 20).read_bytes_s > 0


def test_the_multiplier_of_tiles_runs_and_its_operations_are_counted() -> None:
    assert tile_multiplier(EMULATED)(3) == 3
    assert multiply_operations(EMULATED) == 4 * 2 * 16 * 16 * 32 * 200_000
    rates = [
        machine_rates(1, rounds=1, read_bytes=1 << 20, tiles=kind).operations_s for kind in {NO_TILES, usable_tiles()}
    ]
    assert min(rates) > 0
