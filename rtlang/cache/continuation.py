"""Finds the tokens that follow a sequence in the radix tree."""

from __future__ import annotations

from bisect import bisect_left

from rtlang.cache.node import MAX_TAIL_PROBES, TOKEN_BYTES, RadixNode
from rtlang.cache.scope import unpacked


def continuation(node: RadixNode, data: bytes, limit: int) -> list[int]:
    """Up to `limit` token ids that are stored behind `data` below `node`; of several ways the one that was used last. Changes nothing.

    Args:
        data: tokens behind `node` as the tree compares them, fewer than a page.
    """
    found: list[int] = []
    while len(found) < limit:
        child = _last_used(node, data)
        if child is None:
            break
        start = len(data) // TOKEN_BYTES
        found += [unpacked(key)[1] for key in child.key[start : start + limit - len(found)]]
        node, data = child, b""
    return found


def _last_used(node: RadixNode, data: bytes) -> RadixNode | None:
    """The child whose first page begins with `data` and goes on, used last; among the first `MAX_TAIL_PROBES` of them."""
    best: RadixNode | None = None
    keys = node.child_keys
    start = bisect_left(keys, data)
    for key in keys[start : start + MAX_TAIL_PROBES]:
        if not key.startswith(data):
            break
        child = node.children[key]
        if len(key) > len(data) and (best is None or child.last_access > best.last_access):
            best = child
    return best
