"""The order of eviction of the leaves of a radix tree, and the queue that keeps it.

An order gives each node a key; the node with the smallest is evicted first. Using a node never lowers its key. Nodes that nothing is
expected to use any more (`last_access` 0) come first in every order.

`recent` is the last use. `frequent` is the number of uses, then the last use. `valuable` (the default) is the last use, moved into the
future by the work that the node is expected to save: it grows with the number of different continuations so far, which tells a document
with many questions from a conversation that only goes on, and with the work of computing a page at its depth. All pages have the same size,
so it is also the work per byte. docs/design/radix-cache.md compares the orders.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from itertools import count
from typing import Any, Generic, Protocol, TypeVar

from rtlang.cache.node import RadixNode

Key = tuple[float, float]
Order = Callable[[RadixNode, int], Key]
"""The key of a node, in a pool of so many pages."""


class Evictable(Protocol):
    """An entry of an `EvictionQueue`: a node, or a checkpoint of `states.py`."""

    last_access: int
    is_attached: bool
    queue_entry: tuple[Key, int, Any] | None


E = TypeVar("E", bound=Evictable)

_BRANCH_SHARE = 0.3
"""A doubling of the continuations of a node counts like a use that is so many uses per page of the pool more recent."""
_DEMOTED: Key = (-1.0, 0.0)
_DOUBLE_WORK_PAGES = 256
"""Depth in pages at which attention doubles the work of a page: about 4,000 tokens."""


def recent(node: RadixNode, num_pages: int) -> Key:
    """Least recently used first."""
    return (float(node.last_access), 0.0)


def frequent(node: RadixNode, num_pages: int) -> Key:
    """Least often used first, then least recently."""
    return (float(node.num_uses), float(node.last_access))


def valuable(node: RadixNode, num_pages: int) -> Key:
    """Least recently used first, where each doubling of the number of continuations counts like a more recent use."""
    work = 1.0 + node.depth / _DOUBLE_WORK_PAGES
    return (node.last_access + _BRANCH_SHARE * num_pages * math.log2(max(1, len(node.branches))) * work, 0.0)


ORDERS: dict[str, Order] = {"recent": recent, "frequent": frequent, "valuable": valuable}


class EvictionQueue(Generic[E]):
    """A heap of nodes by their keys. Owned by one `RadixTree`; or of checkpoints, owned by one `StatePool`.

    Using a node does not touch the heap: when an entry is popped whose node has been used since, it is reinserted. A node whose key was
    lowered must be pushed again; its older entry is skipped. The tree decides whether a popped node may be evicted.

    Args:
        order: gives the keys.
        num_pages: of the pool.
    """

    def __init__(self, order: Callable[[E, int], Key], num_pages: int = 0) -> None:
        self._order, self._num_pages = order, num_pages
        self._entries: list[tuple[Key, int, E]] = []  # key when queued, serial, node
        self._serial = count()

    def __len__(self) -> int:
        return len(self._entries)

    def _key(self, node: E) -> Key:
        return self._order(node, self._num_pages) if node.last_access else _DEMOTED

    def push(self, node: E) -> None:
        """Add a node unless it is already queued with its key or a smaller one. O(log n)."""
        key = self._key(node)
        if node.queue_entry is None or key < node.queue_entry[0]:
            node.queue_entry = (key, next(self._serial), node)
            heapq.heappush(self._entries, node.queue_entry)

    def pop(self) -> E | None:
        """Remove and return the node to evict next; None if the queue is empty. O(log n), amortized over uses."""
        while self._entries:
            entry = heapq.heappop(self._entries)
            node = entry[2]
            if node.queue_entry is not entry:
                continue
            node.queue_entry = None
            if self._key(node) == entry[0]:
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
        """Verify that every queued node is in the heap exactly once, with a key that is not larger than its present one."""
        nodes = [entry[2] for entry in self._entries if entry[2].queue_entry is entry]
        assert len(nodes) == len(set(nodes))
        assert all(node.queue_entry is not None and node.queue_entry[0] <= self._key(node) for node in nodes)
