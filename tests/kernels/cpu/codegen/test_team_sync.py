"""Barriers of threads in compiled code."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any

import numpy as np
import pytest
from numba import njit

from rtlang_kernels.cpu.codegen.team_sync import barrier, fetch_add, yield_address

ROUNDS = 2000


@njit(nogil=True)  # type: ignore[untyped-decorator]
def _worker(shared: Any, values: Any, thread: Any, num_threads: Any, rounds: Any, yield_function: Any) -> Any:
    """Write a value, wait, read those of all, wait; returns how many were not of this round."""
    wrong, expected, address = 0, 0, shared.ctypes.data
    for turn in range(rounds):
        values[8 * thread] = turn
        fetch_add(address + 64, 1)
        expected = barrier(address, expected, num_threads, yield_function)
        for other in range(num_threads):
            wrong += values[8 * other] != turn
        expected = barrier(address, expected, num_threads, yield_function)
    return wrong


def _run(num_threads: int, make: Callable[[int], Any]) -> list[int]:
    found: list[int] = []
    threads = [Thread(target=lambda i=i: found.append(make(i)), daemon=True) for i in range(num_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive()
    return found


@pytest.mark.parametrize("yields", [True, False])
def test_all_see_what_all_wrote_before_the_barrier(yields: bool) -> None:
    num_threads = 3
    rounds = ROUNDS if yields else 3  # without it, a waiting thread may use up its whole turn
    shared, values = np.zeros(16, np.int64), np.full(8 * num_threads, -1, np.int64)
    yield_function = yield_address() if yields else 0
    assert (
        _run(num_threads, lambda i: _worker(shared, values, i, num_threads, rounds, yield_function))
        == [0] * num_threads
    )
    assert shared[0] == 2 * rounds * num_threads
    assert shared[8] == rounds * num_threads


def test_waiting_ends_when_the_counter_is_raised() -> None:
    shared, values = np.zeros(16, np.int64), np.zeros(16, np.int64)
    _worker(shared, values, 0, 1, 1, yield_address())  # compiled before it is timed out
    shared[:] = 0
    thread = Thread(target=lambda: _worker(shared, values, 0, 2, 1, yield_address()), daemon=True)
    thread.start()
    thread.join(timeout=0.05)
    assert thread.is_alive()
    shared[0] = 1 << 40
    thread.join(timeout=60)
    assert not thread.is_alive()
