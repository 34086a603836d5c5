"""The order of eviction: leaves of the radix tree, least recently used first."""

from __future__ import annotations

import heapq
from itertools import count

from rtlang.cache.node import RadixNode


class EvictionQueue:
    """A heap of nodes by the time of their last use. Owned by one `RadixTree`.

    Using a node does not touch the heap: when an entry is popped whose node has been used since, it is reinserted. A node whose time was
    lowered must be pushed again; its older entry is skipped. The tree decides whether a popped node may be evicted.
    """

    def __init__(self) -> None:
        self._entries: list[tuple[int, int, RadixNode]] = []  # last_access when queued, serial, node
        self._serial = count()

    def __len__(self) -> int:
        return len(self._entries)

    def push(self, node: RadixNode) -> None:
        """Add a node unless it is already queued with its time or an earlier one. O(log n)."""
        if node.queue_entry is None or node.last_access < node.queue_entry[0]:
            node.queue_entry = (node.last_access, next(self._serial), node)
            heapq.heappush(self._entries, node.queue_entry)

    def pop(self) -> RadixNode | None:
        """Remove and return the least recently used node; None if the queue is empty. O(log n), amortized over uses."""
        while self._entries:
            entry = heapq.heappop(self._entries)
            node = entry[2]
            if node.queue_entry is not entry:
                continue
            node.queue_entry = None
            if node.last_access == entry[0]:
                return node
            self.push(node)
        return None

    def drop_detached(self) -> None:
        """Remove entries of nodes that are no longer in the tree, and entries that were replaced. O(n)."""
        kept = []
        for entry in self._entries:
            node = entry[2]
            if node.queue_entry is not entry:
                continue
            if node.is_attached:
                kept.append(entry)
            else:
                node.queue_entry = None
        self._entries = kept
        heapq.heapify(self._entries)

    def check(self) -> None:
        """Verify that every queued node is in the heap exactly once, with a time not after its last use."""
        nodes = [entry[2] for entry in self._entries if entry[2].queue_entry is entry]
        assert len(nodes) == len(set(nodes))
        assert all(node.queue_entry is not None and node.queue_entry[0] <= node.last_access for node in nodes)
