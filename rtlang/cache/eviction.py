"""The order of eviction: leaves of the radix tree, least recently used first."""

from __future__ import annotations

import heapq
from itertools import count

from rtlang.cache.node import RadixNode


class EvictionQueue:
    """A heap of nodes by the time of their last use. Owned by one `RadixTree`.

    Using a node does not touch the heap: when an entry is popped whose node has been used since, it is reinserted. The tree
    decides whether a popped node may be evicted.
    """

    def __init__(self) -> None:
        self._entries: list[tuple[int, int, RadixNode]] = []  # last_access when queued, serial, node
        self._serial = count()

    def __len__(self) -> int:
        return len(self._entries)

    def push(self, node: RadixNode) -> None:
        """Add a node unless it is already queued. O(log n)."""
        if not node.is_queued:
            node.is_queued = True
            heapq.heappush(self._entries, (node.last_access, next(self._serial), node))

    def pop(self) -> RadixNode | None:
        """Remove and return the least recently used node; None if the queue is empty. O(log n), amortized over uses."""
        while self._entries:
            queued_access, _, node = heapq.heappop(self._entries)
            node.is_queued = False
            if node.last_access == queued_access:
                return node
            self.push(node)
        return None

    def drop_detached(self) -> None:
        """Remove nodes that are no longer in the tree. O(n)."""
        self._entries = [entry for entry in self._entries if entry[2].is_attached]
        heapq.heapify(self._entries)

    def check(self) -> None:
        """Verify that every queued node is in the heap exactly once and is marked as queued."""
        nodes = [node for _, _, node in self._entries]
        assert len(nodes) == len(set(nodes))
        assert all(node.is_queued for node in nodes)
