"""Compiled kernels on several threads: chunks of one call, without spinning.

numba's own parallel loops are not used: their compilation takes several times as long, and their default pool may not be entered by two
threads at once. Handing a chunk to a sleeping thread costs some 30 us, so callers only split what takes longer than that.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache


@cache
def _pool(num_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(num_threads, thread_name_prefix="rtlang-kernels")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork


def run_chunks(function: Callable[..., None], chunks: Sequence[tuple[object, ...]]) -> None:
    """Call function(*chunk) for every chunk, the first in this thread; returns when all are done, raises what any raised."""
    if len(chunks) == 1:
        function(*chunks[0])
        return
    pool = _pool(len(chunks) - 1)
    futures = [pool.submit(function, *chunk) for chunk in chunks[1:]]
    try:
        function(*chunks[0])
    finally:
        for future in futures:
            future.exception()  # waits: nobody may still write to the caller's memory
    for future in futures:
        future.result()
