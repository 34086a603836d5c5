"""A node of the radix tree, and packed token ids that can be compared as bytes."""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence

TOKEN_BYTES = 8  # tokens are packed as int64
# Maximum number of children tried on each side of a key to find one whose page may be copied; pending ones are skipped.
MAX_TAIL_PROBES = 32
MAX_BRANCHES = 16


def pack(token_ids: Sequence[int]) -> bytes:
    """Token ids as the bytes of native int64 values; fastest for an array('q')."""
    packed = token_ids if isinstance(token_ids, array) and token_ids.typecode == "q" else array("q", token_ids)
    return packed.tobytes()


class RadixNode:
    """An edge of the tree together with the node it leads to. Owned by its `RadixTree`, which alone changes it.

    Attributes:
        key: the tokens of this node's pages, array('q').
        page_ids: its pages in order.
        children: keyed by the packed tokens of the child's first page; child_keys lists these keys in order.
        lock_count: number of locks on this node and on nodes below it.
        hold_count: the same for the holds of `retention.py`; those on a partial leaf count here too.
        last_access: logical time of the last use; 0 if nothing is expected to use the node any more.
        num_uses: number of sequences that were looked up and go through this node.
        branches: a number for each continuation that was stored below, at most MAX_BRANCHES, those that are gone included.
        is_cut: whether pages were evicted from its end, and nothing was stored behind it since.
        depth: number of pages above it.
        num_pending_pages: number of pages, at the end of the node, that are yet to be written.
        queue_entry: the entry of the node in the eviction queue, if there is one.
        is_attached: False once no match can reach the node, because it was dropped or was cut off after a failed step.
        digests: of its first pages, as far as they were needed; see `tiers/digest.py`.
        num_offloaded_pages: number of pages, from the start, that were handed to the tiers below.
        states: the slots of its checkpoints, by the number of its tokens, from 1 on, that they are the states after.
        page_states: for the checkpoints of its children that lie inside their first pages, the child by the tokens up to there.
    """

    __slots__ = (
        "branches",
        "child_keys",
        "children",
        "depth",
        "digests",
        "hold_count",
        "is_attached",
        "is_cut",
        "key",
        "last_access",
        "lock_count",
        "num_offloaded_pages",
        "num_pending_pages",
        "num_uses",
        "page_ids",
        "page_states",
        "parent",
        "queue_entry",
        "states",
    )

    def __init__(self, key: array[int], page_ids: list[int], parent: RadixNode | None) -> None:
        self.key, self.page_ids, self.parent = key, page_ids, parent
        self.children: dict[bytes, RadixNode] = {}
        self.child_keys: list[bytes] = []
        self.lock_count = self.hold_count = 0
        self.last_access = 0
        self.num_pending_pages = self.num_offloaded_pages = 0
        self.digests: list[bytes] = []
        self.is_attached = True
        self.queue_entry: tuple[tuple[float, float], int, RadixNode] | None = None
        self.num_uses = 0
        self.is_cut = False
        self.branches: tuple[int, ...] = ()
        self.states: dict[int, int] = {}
        self.page_states: dict[bytes, RadixNode] = {}
        self.depth: int = 0 if parent is None else parent.depth + len(parent.page_ids)

    def path(self, top: RadixNode | None = None) -> Iterator[RadixNode]:
        """This node and its ancestors, from the bottom up, ending below `top` if given."""
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

    def note_branch(self, first_page: bytes) -> None:
        """A continuation that begins with this page is stored below."""
        number, is_cut = hash(first_page), self.is_cut
        self.is_cut = False
        if is_cut:
            return  # it has most likely been there before
        if number not in self.branches and len(self.branches) < MAX_BRANCHES:
            self.branches += (number,)

    @property
    def has_written_start(self) -> bool:
        """Whether the content of the first page has been written."""
        return self.num_pending_pages < len(self.page_ids)

    def link(self, first_page: bytes, child: RadixNode) -> None:
        """Add a child, keyed by the tokens of its first page; no other child may have the same key."""
        assert first_page not in self.children
        self.children[first_page] = child
        insort(self.child_keys, first_page)

    def unlink(self, first_page: bytes) -> None:
        """Remove a child."""
        del self.children[first_page]
        del self.child_keys[bisect_left(self.child_keys, first_page)]

    def child_beginning(self, data: bytes, *, other_than: RadixNode | None = None) -> RadixNode | None:
        """A child whose first page is written and begins with `data`, among the first `MAX_TAIL_PROBES` of them."""
        start = bisect_left(self.child_keys, data)
        for key in self.child_keys[start : start + MAX_TAIL_PROBES]:
            if not key.startswith(data):
                break
            child = self.children[key]
            if child is not other_than and child.has_written_start:
                return child
        return None

    def closest_child(self, query: bytes) -> tuple[RadixNode, int] | None:
        """The child with a written first page that shares the most leading tokens with `query`, and the number of these tokens.

        In sorted order, the farther a key is from the query's position, the less it shares with the query, so the nearest written
        child on each side is the best of that side.
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
    """Number of leading pages of `node` that match data[position:limit]. The first page is known to match."""
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
    """Length in tokens of the common prefix of two packed token sequences."""
    size = min(len(a), len(b))
    difference = int.from_bytes(a[:size], "little") ^ int.from_bytes(b[:size], "little")
    if difference == 0:
        return size // TOKEN_BYTES
    return ((difference & -difference).bit_length() - 1) // (8 * TOKEN_BYTES)
