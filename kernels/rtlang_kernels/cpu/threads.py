"""A thread pool for compiled kernels: chunks of one call on several threads, without spinning.

numba's own parallel loops are not used: their compilation takes several times as long, and two threads must not enter their default pool
at once. Waking a sleeping thread costs some 30 us, so callers only split calls that take longer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Lock

_STARTING = Lock()  # held while the threads of one team are requested, so that no two teams get a part each


@cache
def _pool(num_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(num_threads, thread_name_prefix="rtlang-kernels")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork


def run_chunks(function: Callable[..., None], chunks: Sequence[tuple[object, ...]]) -> None:
    """Call function(*chunk) for every chunk, the first in this thread. Returns when all are done; re-raises the first exception."""
    if len(chunks) == 1:
        function(*chunks[0])
        return
    pool = _pool(len(chunks) - 1)
    futures = [pool.submit(function, *chunk) for chunk in chunks[1:]]
    try:
        function(*chunks[0])
    finally:
        for future in futures:
            future.exception()  # waits: no thread may write to the caller's memory after this
    for future in futures:
        future.result()


def run_team(
    function: Callable[..., None], calls: Sequence[tuple[object, ...]], end_waiting: Callable[[], None]
) -> None:
    """Call function(*call) for every call, all at the same time, since they wait for each other; the first in this thread.

    Args:
        end_waiting: makes the calls return without waiting; called if not all of them could be started.
    """
    if len(calls) == 1:
        function(*calls[0])
        return
    pool, futures = _pool(len(calls) - 1), []
    try:
        with _STARTING:
            for call in calls[1:]:
                futures.append(pool.submit(function, *call))
    except BaseException:
        end_waiting()
        raise
    try:
        function(*calls[0])
    finally:
        for future in futures:
            future.exception()
    for future in futures:
        future.result()
