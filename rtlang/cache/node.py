"""One node of the radix tree, and how token ids are packed to be compared as memory."""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence

TOKEN_BYTES = 8  # tokens are packed as int64
# Children looked at on each side of a key for one whose page may be copied; only pending ones are passed over.
MAX_TAIL_PROBES = 32


def pack(token_ids: Sequence[int]) -> bytes:
    """Token ids as native int64 memory; cheapest from an array('q')."""
    packed = token_ids if isinstance(token_ids, array) and token_ids.typecode == "q" else array("q", token_ids)
    return packed.tobytes()


class RadixNode:
    """One edge of the tree together with the point it leads to. Owned and changed by its `RadixTree` alone.

    Attributes:
        key: the tokens of this node's pages, array('q').
        page_ids: its pages in order.
        children: by the packed tokens of the child's first page; child_keys are the same keys, sorted.
        lock_count: locks on this node and below.
        last_access: logical time of the last use.
        num_pending_pages: how many of the last pages are yet to be written.
        is_queued: has an entry in the eviction queue.
        is_attached: False once no match can reach the node: it was dropped, or cut off after a failed step.
    """

    __slots__ = (
        "child_keys",
        "children",
        "is_attached",
        "is_queued",
        "key",
        "last_access",
        "lock_count",
        "num_pending_pages",
        "page_ids",
        "parent",
    )

    def __init__(self, key: array[int], page_ids: list[int], parent: RadixNode | None) -> None:
        self.key, self.page_ids, self.parent = key, page_ids, parent
        self.children: dict[bytes, RadixNode] = {}
        self.child_keys: list[bytes] = []
        self.lock_count = 0
        self.last_access = 0
        self.num_pending_pages = 0
        self.is_attached = True
        self.is_queued = False

    def path(self, top: RadixNode | None = None) -> Iterator[RadixNode]:
        """This node and its ancestors upwards, `top` (if given) left out."""
        node: RadixNode | None = self
        while node is not None and node is not top:
            yield node
            node = node.parent

    def subtree(self) -> Iterator[RadixNode]:
        """This node and all below it, parents first."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(node.children.values())

    @property
    def has_written_start(self) -> bool:
        """Whether the first page holds its content."""
        return self.num_pending_pages < len(self.page_ids)

    def link(self, first_page: bytes, child: RadixNode) -> None:
        """Add a child under the tokens of its first page, which no other child has."""
        assert first_page not in self.children
        self.children[first_page] = child
        insort(self.child_keys, first_page)

    def unlink(self, first_page: bytes) -> None:
        """Take a child out."""
        del self.children[first_page]
        del self.child_keys[bisect_left(self.child_keys, first_page)]

    def closest_child(self, query: bytes) -> tuple[RadixNode, int] | None:
        """The child whose first page is written and shares the most leading tokens with `query`, with their number.

        In sorted order a key shares less with the query the further it is from where the query would stand, so the nearest written
        one on either side is the best of its side.
        """
        best: tuple[RadixNode, int] | None = None
        middle = bisect_left(self.child_keys, query)
        above = range(middle, min(middle + MAX_TAIL_PROBES, len(self.child_keys)))
        below = range(middle - 1, max(middle - 1 - MAX_TAIL_PROBES, -1), -1)
        for side in (above, below):
            for index in side:
                key = self.child_keys[index]
                num_tokens = common_tokens(key, query)
                if num_tokens <= (best[1] if best else 0):
                    break
                if self.children[key].has_written_start:
                    best = self.children[key], num_tokens
                    break
        return best


def common_pages(node: RadixNode, data: bytes, position: int, limit: int, page_bytes: int) -> int:
    """How many leading pages of `node` are data[position:limit]'s; the first is known to be."""
    key = memoryview(node.key).cast("B")
    low, high = 1, min(len(node.page_ids), (limit - position) // page_bytes)
    while low < high:
        middle = (low + high + 1) // 2
        if data.startswith(key[: middle * page_bytes], position):
            low = middle
        else:
            high = middle - 1
    return low


def common_tokens(a: bytes, b: bytes) -> int:
    """Length in tokens of the common prefix of two packed runs."""
    size = min(len(a), len(b))
    difference = int.from_bytes(a[:size], "little") ^ int.from_bytes(b[:size], "little")
    if difference == 0:
        return size // TOKEN_BYTES
    return ((difference & -difference).bit_length() - 1) // (8 * TOKEN_BYTES)
