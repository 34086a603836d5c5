"""The rates of the machine are those of work that can be counted."""

from __future__ import annotations

import numpy as np

from rtlang_kernels_bench.machine_rates import machine_rates, multiply_operations, read


def test_all_memory_is_read() -> None:
    words = np.arange(1000, dtype=np.int64)
    assert read(words) == 1000 * 999 // 2


def test_the_rates_are_positive_and_ordered() -> None:
    rates = machine_rates(2, rounds=1)
    assert (
        rates.operations_s > rates.read_bytes_s > 0
    )  # every processor multiplies more than a number for each byte it reads
    assert multiply_operations() > 0
