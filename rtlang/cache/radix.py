"""A radix tree over token ids whose edges are runs of whole KV pages.

A node holds the tokens of its pages and their page ids; the path from the root spells a prefix of some sequence. Children are found
by the bytes of their first page, and compared as memory, so a long prompt costs a few comparisons and not a loop over tokens.
After RadixAttention (Zheng et al. 2024), with nodes cut at page borders only.

What must stay true:
- A node's key has len(page_ids) * page_size tokens. Only a *partial leaf* differs: one page with fewer tokens, the end of a finished
  sequence. It is never locked and never has children; it serves to copy its tokens from.
- lock_count of a node is the number of locks on it and below it. A lock stands for the whole path to the end of its node, so a
  split leaves the existing object as the deeper part, and a node with foreign locks never grows.
- Pages whose content a step has yet to write are *pending*. They are the last pages of their node, and all that lies below them
  is pending too. They are matched as whole pages, never as the source of a copy, and are not evicted.
- A node cut off while locked (its content is garbage after a failed step) is *detached*: no match reaches it, and its pages are freed
  with its last lock.
"""

from __future__ import annotations

import heapq
from array import array
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from itertools import count

TOKEN_BYTES = 8  # tokens are packed as int64
# Children looked at on each side of a key for one whose page may be copied; only pending ones are passed over.
_MAX_TAIL_PROBES = 32


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
        self.is_queued = False  # has an entry in the eviction queue

    def path(self, top: RadixNode | None = None) -> Iterator[RadixNode]:
        """This node and its ancestors upwards, `top` (if given) left out."""
        node: RadixNode | None = self
        while node is not None and node is not top:
            yield node
            node = node.parent


class RadixTree:
    """Match, append, split, lock and evict. Page ids are opaque here: what a method returns as freed is the caller's again."""

    def __init__(self, page_size: int) -> None:
        """An empty tree. Raises ValueError where page_size is below 1."""
        if page_size < 1:
            raise ValueError(f"page_size = {page_size}: at least 1 is needed")
        self.page_size = page_size
        self.root = RadixNode(array("q"), [], None)
        self.num_nodes = 0  # attached ones, without the root
        self.num_pages = 0  # attached and detached
        self.num_unlocked_pages = 0  # in attached nodes with lock_count 0
        self.detached: dict[RadixNode, None] = {}
        self.pending: dict[RadixNode, None] = {}
        self._page_bytes = page_size * TOKEN_BYTES
        self._queue: list[tuple[int, int, RadixNode]] = []  # heap of (last_access when queued, serial, leaf)
        self._serial = count()
        self._clock = 0

    @property
    def num_evictable_pages(self) -> int:
        """Pages that `evict` could free now."""
        blocked: dict[RadixNode, None] = {}  # unlocked nodes with pending pages, and the unlocked nodes above them
        for pending in self.pending:
            for node in pending.path():
                if node.lock_count or node in blocked:
                    break
                blocked[node] = None
        return self.num_unlocked_pages - sum(len(node.page_ids) for node in blocked)

    def find(self, data: bytes, limit: int) -> tuple[RadixNode, int | None, int]:
        """The longest stored prefix of `data` of at most `limit` bytes; splits where it ends inside a node, and marks the path as used.

        Returns:
            The node at whose end the whole-page part stops; and the page in which matching goes on for some more tokens (None:
            there is none) with their number.
        """
        node, position, child, num_pages = self._follow(self.root, data, 0, limit)
        tail = self._tail(node, data, position, limit, child, num_pages)
        if child is not None:
            node = self.split(child, num_pages)
        self._clock += 1
        for passed in node.path():
            passed.last_access = self._clock
        if tail is None:
            return node, None, 0
        owner, page_id, num_tokens = tail
        owner.last_access = self._clock
        return node, page_id, num_tokens

    def peek(self, data: bytes, limit: int) -> int:
        """How many tokens `find` would match, tail included, without any change."""
        node, position, child, num_pages = self._follow(self.root, data, 0, limit)
        tail = self._tail(node, data, position, limit, child, num_pages)
        return position // TOKEN_BYTES + (0 if tail is None else tail[2])

    def descend(self, node: RadixNode, data: bytes) -> tuple[RadixNode, list[int]]:
        """Follow whole pages of `data` below `node` as far as they are stored, splitting where they end inside a node.

        Returns:
            The node reached and the page ids passed, `node`'s own left out.
        """
        top = node
        node, _, child, num_pages = self._follow(node, data, 0, len(data))
        if child is not None:
            node = self.split(child, num_pages)
        return node, self.page_ids(node, top)

    def page_ids(self, node: RadixNode, top: RadixNode | None = None) -> list[int]:
        """Pages of the path down to `node`, from below `top`."""
        parts = [passed.page_ids for passed in node.path(top)]
        return [page_id for part in reversed(parts) for page_id in part]

    def append(self, node: RadixNode, data: bytes, page_ids: list[int], *, held: int, is_pending: bool) -> RadixNode:
        """Store new whole pages after `node`, where `descend` found no child for them.

        Args:
            held: how many of `node`'s locks are the caller's own (0 or 1); a new child gets as many.
            is_pending: whether their content is yet to be written.
        Returns:
            The node that ends with the new pages: `node` itself, grown, if nothing else depends on where it ends.
        """
        assert node.is_attached
        key = array("q", data)
        is_pending = is_pending or node.num_pending_pages > 0
        if node is not self.root and not node.children and node.lock_count == held:
            node.key.extend(key)
            node.page_ids.extend(page_ids)
        else:
            node = self._add_child(node, key, page_ids)
            node.lock_count = held
        self.num_pages += len(page_ids)
        if node.lock_count == 0:
            self.num_unlocked_pages += len(page_ids)
        self._clock += 1
        node.last_access = self._clock
        if is_pending:
            node.num_pending_pages += len(page_ids)
            self.pending[node] = None
        self._enqueue(node)
        return node

    def append_partial(self, node: RadixNode, data: bytes, page_id: int) -> RadixNode | None:
        """Store the last, partly filled page of a sequence after `node`. None where its tokens are stored already."""
        assert node.is_attached
        assert 0 < len(data) < self._page_bytes
        self._clock += 1
        start = bisect_left(node.child_keys, data)
        for key in node.child_keys[start : start + _MAX_TAIL_PROBES]:
            if not key.startswith(data):
                break
            if key == data or _has_written_start(node.children[key]):
                node.children[key].last_access = self._clock
                return None
        leaf = self._add_child(node, array("q", data), [page_id])
        self.num_pages += 1
        self.num_unlocked_pages += 1
        leaf.last_access = self._clock
        if node.num_pending_pages:
            leaf.num_pending_pages = 1
            self.pending[leaf] = None
        self._enqueue(leaf)
        return leaf

    def supersede(self, node: RadixNode) -> list[int]:
        """Drop the partial leaves beside `node` whose tokens its first page repeats, unless that page is pending.

        Returns:
            Freed page ids.
        """
        parent = node.parent
        if parent is None or not node.is_attached or not _has_written_start(node):
            return []
        first = node.key[: self.page_size].tobytes()
        freed: list[int] = []
        for end in range(TOKEN_BYTES, len(first), TOKEN_BYTES):
            leaf = parent.children.get(first[:end])
            if leaf is not None and leaf is not node:
                freed += self._remove(leaf)
        return freed

    def split(self, node: RadixNode, num_pages: int) -> RadixNode:
        """Cut `node` after its first `num_pages` pages. It stays the deeper part; returns the new node above it."""
        assert 0 < num_pages < len(node.page_ids)
        assert node.parent is not None
        cut = num_pages * self.page_size
        first = self._child_key(node)
        upper = RadixNode(node.key[:cut], node.page_ids[:num_pages], node.parent)
        upper.lock_count, upper.last_access = node.lock_count, node.last_access
        node.parent.children[first] = upper
        node.key, node.page_ids, node.parent = node.key[cut:], node.page_ids[num_pages:], upper
        upper.num_pending_pages = max(0, node.num_pending_pages - len(node.page_ids))
        node.num_pending_pages -= upper.num_pending_pages
        if upper.num_pending_pages:
            self.pending[upper] = None
        self._link(upper, node)
        self.num_nodes += 1
        return upper

    def lock(self, node: RadixNode, top: RadixNode | None = None) -> None:
        """Add a lock to the path down to `node`, from below `top`."""
        self._clock += 1
        for passed in node.path(top):
            if passed.lock_count == 0 and passed.is_attached:
                self.num_unlocked_pages -= len(passed.page_ids)
            passed.lock_count += 1
            passed.last_access = self._clock

    def unlock(self, node: RadixNode) -> list[int]:
        """Take a lock from the path down to `node`.

        Returns:
            Pages freed because they were detached and this was their last lock.
        """
        freed: list[int] = []
        self._clock += 1
        for passed in node.path():
            assert passed.lock_count > 0, "unlock without lock"
            passed.lock_count -= 1
            passed.last_access = self._clock
            if passed.lock_count == 0:
                if passed.is_attached:
                    self.num_unlocked_pages += len(passed.page_ids)
                    self._enqueue(passed)
                else:
                    freed += self._forget(passed)
        return freed

    def commit(self) -> list[int]:
        """Pending pages now hold their content. Returns pages freed because a new page made them superfluous."""
        nodes, self.pending = list(self.pending), {}
        for node in nodes:
            node.num_pending_pages = 0
        freed: list[int] = []
        for node in nodes:
            freed += self.supersede(node)
            self._enqueue(node)
        return freed

    def discard(self) -> list[int]:
        """Pending pages will never hold their content: cut them off. Returns freed pages; those still locked follow with `unlock`."""
        nodes, self.pending = list(self.pending), {}
        freed: list[int] = []
        for node in nodes:
            num_written = len(node.page_ids) - node.num_pending_pages
            if node.is_attached and num_written:
                self.split(node, num_written)
            node.num_pending_pages = 0
            if node.is_attached:
                freed += self._detach(node)
        return freed

    def evict(self, num_pages: int) -> list[int]:
        """Free up to `num_pages` pages, least recently used leaves first, a long leaf from its end. Returns the freed pages."""
        freed: list[int] = []
        while len(freed) < num_pages and self._queue:
            queued_access, _, node = heapq.heappop(self._queue)
            node.is_queued = False
            if node.last_access != queued_access:  # used since it was queued
                self._enqueue(node)
            elif self._is_candidate(node):
                keep = len(node.page_ids) - (num_pages - len(freed))
                if keep <= 0:
                    freed += self._remove(node)
                    continue
                freed += node.page_ids[keep:]
                self.num_pages -= len(node.page_ids) - keep
                self.num_unlocked_pages -= len(node.page_ids) - keep
                del node.page_ids[keep:], node.key[keep * self.page_size :]
                self._enqueue(node)
        return freed

    def nodes(self) -> Iterator[RadixNode]:
        """Every node that has pages: those in the tree, in no particular order, and detached ones."""
        yield from self._attached()
        yield from self.detached

    def _follow(
        self, node: RadixNode, data: bytes, position: int, limit: int
    ) -> tuple[RadixNode, int, RadixNode | None, int]:
        """Walk down whole pages of data[position:limit], changing nothing.

        Returns:
            The last node passed completely, the position reached, and the child in whose middle the walk ended with how many of
            its pages matched (None and 0: at the end of a node).
        """
        page_bytes = self._page_bytes
        while limit - position >= page_bytes:
            child = node.children.get(data[position : position + page_bytes])
            if child is None:
                break
            size = len(child.page_ids) * page_bytes
            if size <= limit - position and data.startswith(child.key, position):
                node, position = child, position + size
                continue
            num_pages = _common_pages(child, data, position, limit, page_bytes)
            return node, position + num_pages * page_bytes, child, num_pages
        return node, position, None, 0

    def _tail(
        self, node: RadixNode, data: bytes, position: int, limit: int, child: RadixNode | None, num_pages: int
    ) -> tuple[RadixNode, int, int] | None:
        """After `_follow`: the written page that shares the most next tokens, as (its node, page id, number of tokens)."""
        query = data[position : min(limit, position + self._page_bytes)]
        if not query:
            return None
        if child is not None:
            if num_pages >= len(child.page_ids) - child.num_pending_pages:
                return None
            page = child.key[num_pages * self.page_size : (num_pages + 1) * self.page_size].tobytes()
            num_tokens = _common_tokens(page, query)
            return (child, child.page_ids[num_pages], num_tokens) if num_tokens else None
        # In sorted order a key shares less with the query the further it is from where the query would stand, so the nearest
        # written page on either side is the best of that side.
        best: tuple[RadixNode, int, int] | None = None
        middle = bisect_left(node.child_keys, query)
        above = range(middle, min(middle + _MAX_TAIL_PROBES, len(node.child_keys)))
        below = range(middle - 1, max(middle - 1 - _MAX_TAIL_PROBES, -1), -1)
        for side in (above, below):
            for index in side:
                key = node.child_keys[index]
                num_tokens = _common_tokens(key, query)
                if num_tokens <= (best[2] if best else 0):
                    break
                candidate = node.children[key]
                if _has_written_start(candidate):
                    best = candidate, candidate.page_ids[0], num_tokens
                    break
        return best

    def _child_key(self, node: RadixNode) -> bytes:
        return node.key[: self.page_size].tobytes()

    def _link(self, parent: RadixNode, child: RadixNode) -> None:
        first = self._child_key(child)
        assert first not in parent.children
        parent.children[first] = child
        insort(parent.child_keys, first)

    def _unlink(self, child: RadixNode) -> None:
        parent, first = child.parent, self._child_key(child)
        assert parent is not None
        del parent.children[first]
        del parent.child_keys[bisect_left(parent.child_keys, first)]
        self._enqueue(parent)

    def _add_child(self, parent: RadixNode, key: array[int], page_ids: list[int]) -> RadixNode:
        child = RadixNode(key, list(page_ids), parent)
        self._link(parent, child)
        self.num_nodes += 1
        return child

    def _remove(self, leaf: RadixNode) -> list[int]:
        """Drop an unlocked leaf; returns its pages."""
        assert not leaf.children
        assert leaf.lock_count == 0
        self._unlink(leaf)
        self.num_unlocked_pages -= len(leaf.page_ids)
        self.num_nodes -= 1
        self.pending.pop(leaf, None)
        leaf.is_attached = False
        return self._forget(leaf)

    def _forget(self, node: RadixNode) -> list[int]:
        """The pages of a node that is out of the tree and unlocked."""
        self.detached.pop(node, None)
        freed, node.page_ids, node.key = node.page_ids, [], array("q")
        self.num_pages -= len(freed)
        return freed

    def _detach(self, top: RadixNode) -> list[int]:
        """Cut `top` and all below it off. Returns the pages of unlocked ones; locked ones keep theirs until unlocked."""
        self._unlink(top)
        freed: list[int] = []
        stack = [top]
        while stack:
            node = stack.pop()
            stack.extend(node.children.values())
            node.children, node.child_keys = {}, []
            node.is_attached = False
            node.num_pending_pages = 0
            self.num_nodes -= 1
            if node.lock_count:
                self.detached[node] = None
            else:
                self.num_unlocked_pages -= len(node.page_ids)
                freed += self._forget(node)
        return freed

    def _is_candidate(self, node: RadixNode) -> bool:
        """Whether `evict` may take pages from the end of this node."""
        return (
            node.is_attached
            and node is not self.root
            and not node.children
            and node.lock_count == 0
            and node.num_pending_pages == 0
        )

    def _enqueue(self, node: RadixNode) -> None:
        if node.is_queued or not self._is_candidate(node):
            return
        if len(self._queue) > 2 * self.num_nodes + 64:  # mostly entries of nodes that are gone
            self._queue = [entry for entry in self._queue if entry[2].is_attached]
            heapq.heapify(self._queue)
        node.is_queued = True
        heapq.heappush(self._queue, (node.last_access, next(self._serial), node))

    def check(self) -> None:
        """Verify structure, locks, pending pages and counts."""
        nodes = self._attached()
        for node in (self.root, *nodes):
            assert node.is_attached
            assert sorted(node.children) == node.child_keys
            locks_below = sum(child.lock_count for child in node.children.values())
            locks_below += sum(detached.lock_count for detached in self.detached if detached.parent is node)
            assert node.lock_count >= locks_below
            for first, child in node.children.items():
                assert child.parent is node
                assert first == self._child_key(child)
                assert not node.num_pending_pages or child.num_pending_pages == len(child.page_ids)
        for node in nodes:
            self._check_node(node)
        for node in self.detached:
            assert not node.is_attached
            assert node.lock_count > 0
        page_ids = [page_id for node in (*nodes, *self.detached) for page_id in node.page_ids]
        assert len(page_ids) == len(set(page_ids)) == self.num_pages, "a page is in two places"
        assert sum(len(node.page_ids) for node in nodes if node.lock_count == 0) == self.num_unlocked_pages
        assert len(nodes) == self.num_nodes
        assert {node for node in nodes if node.num_pending_pages} == set(self.pending)
        queued = [entry[2] for entry in self._queue]
        assert len(queued) == len(set(queued))
        assert all(node.is_queued for node in queued)

    def _attached(self) -> list[RadixNode]:
        """Every node that a match can reach, the root left out."""
        nodes: list[RadixNode] = []
        stack = list(self.root.children.values())
        while stack:
            node = stack.pop()
            nodes.append(node)
            stack.extend(node.children.values())
        return nodes

    def _check_node(self, node: RadixNode) -> None:
        num_tokens, num_pages = len(node.key), len(node.page_ids)
        assert num_pages > 0
        if num_tokens != num_pages * self.page_size:
            assert num_pages == 1
            assert 0 < num_tokens < self.page_size
            assert not node.children
            assert node.lock_count == 0
        assert 0 <= node.num_pending_pages <= num_pages
        assert node.lock_count >= 0
        if self._is_candidate(node):
            assert node.is_queued, "an evictable leaf is not in the eviction queue"


def _has_written_start(node: RadixNode) -> bool:
    """Whether the node's first page holds its content."""
    return node.num_pending_pages < len(node.page_ids)


def _common_pages(node: RadixNode, data: bytes, position: int, limit: int, page_bytes: int) -> int:
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


def _common_tokens(a: bytes, b: bytes) -> int:
    """Length in tokens of the common prefix of two packed runs."""
    size = min(len(a), len(b))
    difference = int.from_bytes(a[:size], "little") ^ int.from_bytes(b[:size], "little")
    if difference == 0:
        return size // TOKEN_BYTES
    return ((difference & -difference).bit_length() - 1) // (8 * TOKEN_BYTES)
