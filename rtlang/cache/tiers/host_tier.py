"""Pages in the memory of this process, the least recently used evicted first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

from rtlang.cache.tiers.tier import TierStats


class HostTier:
    """See `CacheTier`.

    Args:
        max_bytes: of all pages.
    """

    name = "host"
    is_persistent = False

    def __init__(self, max_bytes: int) -> None:
        self.stats = TierStats()
        self._max_bytes = max_bytes
        self._pages: OrderedDict[bytes, bytes] = OrderedDict()  # least recently used first
        self._lock = threading.Lock()

    def open(self) -> None:
        """See `CacheTier.open`."""

    def has(self, digest: bytes) -> bool:
        """See `CacheTier.has`."""
        return digest in self._pages

    def put(self, digest: bytes, page: memoryview) -> None:
        """See `CacheTier.put`."""
        content = None if digest in self._pages else bytes(page)
        with self._lock:
            if digest in self._pages:
                self._pages.move_to_end(digest)
                return
            if content is None or len(content) > self._max_bytes:
                return
            self._pages[digest] = content
            stats = self.stats
            stats.num_stored += 1
            stats.num_bytes += len(content)
            while stats.num_bytes > self._max_bytes:
                _, dropped = self._pages.popitem(last=False)
                stats.num_bytes -= len(dropped)
                stats.num_evicted += 1
            stats.num_pages = len(self._pages)

    def get(self, digest: bytes) -> memoryview | None:
        """See `CacheTier.get`."""
        with self._lock:
            content = self._pages.get(digest)
            if content is None:
                return None
            self._pages.move_to_end(digest)
            self.stats.num_loaded += 1
        return memoryview(content)

    def touch(self, digests: Sequence[bytes]) -> None:
        """See `CacheTier.touch`."""
        with self._lock:
            for digest in digests:
                if digest in self._pages:
                    self._pages.move_to_end(digest)

    def clear(self) -> None:
        """See `CacheTier.clear`."""
        with self._lock:
            self._pages.clear()
            self.stats.num_pages = self.stats.num_bytes = 0

    def close(self) -> None:
        """See `CacheTier.close`."""
        self.clear()
