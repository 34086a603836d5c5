"""Ranks as threads of one process: as real as processes to torch's groups, and without their start.

Kernels are compiled by one thread at a time only, so a test first computes the same in a single process.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from rtlang.model.parallel.group import RankGroup

T = TypeVar("T")
TIMEOUT_S = 60.0


class RankThreads:
    """Connected groups, one per thread."""

    def __init__(self, size: int, directory: Path) -> None:
        self.size = size
        self._pool = ThreadPoolExecutor(size)
        self.groups = self._on_all(
            lambda rank: RankGroup.connect(directory / "store", rank, size, timeout_s=TIMEOUT_S), range(size)
        )

    def run(self, work: Callable[[RankGroup], T]) -> list[T]:
        """Call a function on every rank at once; returns the results in the order of ranks."""
        return self._on_all(work, self.groups)

    def _on_all(self, work: Callable[..., T], arguments: object) -> list[T]:
        futures = [self._pool.submit(work, each) for each in arguments]  # type: ignore[attr-defined]
        return [future.result(TIMEOUT_S) for future in futures]

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()


@contextmanager
def rank_threads(size: int) -> Iterator[RankThreads]:
    """Threads for the time of a `with`."""
    with tempfile.TemporaryDirectory() as directory:
        threads = RankThreads(size, Path(directory))
        try:
            yield threads
        finally:
            threads.close()
