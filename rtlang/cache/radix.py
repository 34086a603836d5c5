"""A radix tree over token ids whose edges are runs of whole KV pages.

A node holds the tokens of its pages and their page ids; the path from the root spells a prefix of some sequence. Children are
looked up by the bytes of their first page and compared as bytes, so a long prompt takes a few comparisons instead of a loop over tokens.
Follows RadixAttention (Zheng et al. 2024), but splits nodes at page boundaries only.

Invariants:
- A node's key has len(page_ids) * page_size tokens. The exception is a *partial leaf*: one page with fewer tokens, the end of a
  finished sequence. It is never locked and never has children; it exists so that its tokens can be copied. It may be held.
- lock_count of a node is the number of locks on it and below it. A lock covers the whole path to the end of its node, so after a
  split the existing object is the deeper part, and a node that others have locked never grows.
- A hold covers a path like a lock, so a held node never grows either. Held nodes are not evicted, but whoever needs their pages may
  release the holds (`retention.py`), so they count as evictable.
- Pages whose content a step has yet to write are *pending*. They are the last pages of their node, and everything below them is
  pending too. They can be matched as whole pages but not be the source of a copy, and they are not evicted.
- A node cut off while locked (its content is garbage after a failed step) is *detached*: no match reaches it, and its pages are freed
  with its last lock.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from rtlang.cache.eviction import EvictionQueue, Order, recent
from rtlang.cache.node import MAX_TAIL_PROBES, TOKEN_BYTES, RadixNode, common_pages, common_tokens
from rtlang.cache.node_states import NodeStates
from rtlang.cache.states import Checkpoint, StatePool

__all__ = ["RadixNode", "RadixTree"]


class RadixTree:
    """Matches, appends, splits, locks and evicts. Pages are only ids here: the caller must free those that a method returns as freed.

    Attributes:
        tracks_new_pages: whether `new_pages` is filled.
        new_pages: nodes with written pages behind their `num_offloaded_pages`, oldest first.
        on_evict: called with a node and the number of pages that it keeps, before `evict` takes the others.
        states: the checkpoints in the nodes.
    """

    def __init__(
        self, page_size: int, order: Order = recent, num_pages: int = 0, states: StatePool | None = None
    ) -> None:
        """Create an empty tree, whose pages are evicted in an order of `eviction.py`. Raises ValueError if page_size is below 1."""
        if page_size < 1:
            raise ValueError(f"page_size = {page_size}: expected at least 1")
        self.page_size = page_size
        self.root = RadixNode(array("q"), [], None)
        self.num_nodes = 0  # attached nodes, without the root
        self.num_pages = 0  # in attached and detached nodes
        self.num_unlocked_pages = 0  # in attached nodes with lock_count 0
        self.num_held_pages = 0  # in attached nodes with a hold
        self.detached: dict[RadixNode, None] = {}
        self.pending: dict[RadixNode, None] = {}
        self.tracks_new_pages = False
        self.new_pages: dict[RadixNode, None] = {}
        self.on_evict: Callable[[RadixNode, int], None] | None = None
        self.states = NodeStates(states or StatePool(0), page_size)
        self._page_bytes = page_size * TOKEN_BYTES
        self._queue = EvictionQueue(order, num_pages)
        self._clock = 0

    @property
    def num_evictable_pages(self) -> int:
        """Number of pages that `evict` could free now if there were no holds."""
        return self.num_evictable_outside(())

    def num_evictable_outside(self, spared: Collection[RadixNode]) -> int:
        """`num_evictable_pages` without those of the nodes `spared`, which contain the path to each of them."""
        blocked: dict[RadixNode, None] = {}  # unlocked nodes with pending pages, and the unlocked nodes above them
        for pending in self.pending:
            for node in pending.path():
                if node.lock_count or node in blocked:
                    break
                blocked[node] = None
        num_spared = sum(len(node.page_ids) for node in spared if not node.lock_count and node not in blocked)
        return self.num_unlocked_pages - sum(len(node.page_ids) for node in blocked) - num_spared

    def find(self, data: bytes, limit: int) -> tuple[RadixNode, int | None, int]:
        """Find the longest stored prefix of `data`, of at most `limit` bytes; splits the node in which it ends, and marks the path as used.

        Returns:
            The node at which the match of whole pages ends, the page that matches some more tokens (None if there is none), and the
            number of these tokens.
        """
        node, position, child, num_pages = self._follow(self.root, data, 0, limit)
        tail = self._tail(node, data, position, limit, child, num_pages)
        if child is not None:
            node = self.split(child, num_pages)
        self._mark_used(node)
        if tail is None:
            return node, None, 0
        tail[0].last_access = self._clock
        return node, *tail[1:]

    def find_state(self, data: bytes, limit: int) -> tuple[RadixNode, Checkpoint | None, int]:
        """Like `find`, for a sequence that can go on from a checkpoint only.

        Returns:
            The node at which the match of whole pages ends, the deepest checkpoint of the sequence, on the path to this node or in the
            first page of a node below it, and the number of tokens that a page below the node has in common with the sequence.
        """
        node, position, child, num_pages = self._follow(self.root, data, 0, limit)
        found = self.states.deepest(node, child, num_pages, self._next_page(data, position, limit))
        tail = self._tail(node, data, position, limit, child, num_pages)
        if child is not None:
            node = self.split(child, num_pages)
        self._mark_used(node)
        if found is not None:
            found.node.last_access = self._clock
        return node, found, 0 if tail is None else tail[2]

    def peek_state(self, data: bytes, limit: int) -> tuple[int, Checkpoint | None, list[int]]:
        """The tokens in whole pages and the checkpoint that `find_state` would find, and the positions of all checkpoints there."""
        node, position, child, num_pages = self._follow(self.root, data, 0, limit)
        found = self.states.deepest(node, child, num_pages, self._next_page(data, position, limit))
        return position // TOKEN_BYTES, found, self.states.positions(node, child, num_pages)

    def peek(self, data: bytes, limit: int) -> int:
        """Number of tokens that `find` would match, including the tail. Changes nothing."""
        node, position, child, num_pages = self._follow(self.root, data, 0, limit)
        tail = self._tail(node, data, position, limit, child, num_pages)
        return position // TOKEN_BYTES + (0 if tail is None else tail[2])

    def num_in_pages(self, data: bytes) -> int:
        """Number of tokens of `data` in whole stored pages. Changes nothing."""
        return self._follow(self.root, data, 0, len(data))[1] // TOKEN_BYTES

    def stored_next(
        self,
        data: bytes,
        limit: int,
        num_tokens: int,
        is_shown: Callable[[int, int], bool] = lambda position, key: True,
    ) -> tuple[int, Sequence[int]]:
        """The length in tokens of the longest stored prefix of `data`, pending pages included, and stored tokens behind it, if any.

        Changes nothing.

        Args:
            is_shown: whether a continuation may be returned that has this token at this position, the first one behind the prefix.
        """
        node, position, child, num_pages = self._follow(self.root, data, 0, limit)
        query = self._next_page(data, position, limit)
        start = num_pages * self.page_size
        if child is None:  # the nearest in order agree longest
            start, middle = 0, bisect_left(node.child_keys, query)
            near = node.child_keys[max(0, middle - MAX_TAIL_PROBES) : middle + MAX_TAIL_PROBES]
            first = position // TOKEN_BYTES

            def rank(key: bytes) -> tuple[int, bool, int]:
                num_common = common_tokens(key, query)
                page = node.children[key].key
                is_candidate = len(key) > num_common * TOKEN_BYTES and is_shown(first + num_common, page[num_common])
                return num_common, is_candidate, node.children[key].last_access

            child = node.children[max(near, key=rank)] if near else None
        if child is None:
            return position // TOKEN_BYTES, ()
        num_common = common_tokens(child.key[start : start + self.page_size].tobytes(), query)
        start += num_common
        return position // TOKEN_BYTES + num_common, child.key[start : start + num_tokens]

    def descend(self, node: RadixNode, data: bytes) -> tuple[RadixNode, list[int]]:
        """Follow whole pages of `data` below `node` as far as they are stored; splits the node in which they end.

        Returns:
            The node reached, and the page ids on the way, without those of `node`.
        """
        top = node
        node, _, child, num_pages = self._follow(node, data, 0, len(data))
        if child is not None:
            node = self.split(child, num_pages)
        return node, self.page_ids(node, top)

    def page_ids(self, node: RadixNode, top: RadixNode | None = None) -> list[int]:
        """Page ids on the path from below `top` (default: the root) down to `node`."""
        parts = [passed.page_ids for passed in node.path(top)]
        return [page_id for part in reversed(parts) for page_id in part]

    def append(self, node: RadixNode, data: bytes, page_ids: list[int], *, held: int, is_pending: bool) -> RadixNode:
        """Store new whole pages after `node`, for which `descend` found no child.

        Args:
            held: number of locks on `node` held by the caller (0 or 1); a new child gets the same number.
            is_pending: whether the pages are yet to be written.
        Returns:
            The node that ends with the new pages: `node` itself, extended, if nothing else depends on where it ends.
        """
        assert node.is_attached
        key = array("q", data)
        is_pending = is_pending or node.num_pending_pages > 0
        if node is not self.root and not node.children and node.lock_count == held and not node.hold_count:
            node.key.extend(key)
            node.page_ids.extend(page_ids)
        else:
            node.note_branch(data[: self._page_bytes])
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
        elif self.tracks_new_pages:
            self.new_pages[node] = None
        self._enqueue(node)
        return node

    def append_partial(self, node: RadixNode, data: bytes, page_id: int) -> RadixNode | None:
        """Store the last, partly filled page of a sequence after `node`; None if its tokens are already stored."""
        assert node.is_attached
        assert 0 < len(data) < self._page_bytes
        self._clock += 1
        start = bisect_left(node.child_keys, data)
        for key in node.child_keys[start : start + MAX_TAIL_PROBES]:
            if not key.startswith(data):
                break
            if key == data or node.children[key].has_written_start:
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
        """Drop partial leaves whose tokens the first page of their sibling `node` repeats, if that is written. Returns the freed pages."""
        parent = node.parent
        if parent is None or not node.is_attached or not node.has_written_start:
            return []
        first = self._first_page(node)
        freed: list[int] = []
        for end in range(TOKEN_BYTES, len(first), TOKEN_BYTES):
            leaf = parent.children.get(first[:end])
            if leaf is not None and leaf is not node:
                freed += self._remove(leaf)
        return freed

    def split(self, node: RadixNode, num_pages: int) -> RadixNode:
        """Split `node` after its first `num_pages` pages. `node` becomes the deeper part; returns the new node above it."""
        assert 0 < num_pages < len(node.page_ids)
        assert node.parent is not None
        cut = num_pages * self.page_size
        first = self._first_page(node)
        upper = RadixNode(node.key[:cut], node.page_ids[:num_pages], node.parent)
        upper.lock_count, upper.hold_count, upper.last_access = node.lock_count, node.hold_count, node.last_access
        upper.num_uses = node.num_uses
        upper.note_branch(node.key[cut : cut + self.page_size].tobytes())
        upper.num_offloaded_pages = min(node.num_offloaded_pages, num_pages)
        node.num_offloaded_pages -= upper.num_offloaded_pages
        upper.digests, node.digests = node.digests[:num_pages], node.digests[num_pages:]
        if node in self.new_pages and upper.num_offloaded_pages < num_pages:
            self.new_pages[upper] = None
        node.parent.children[first] = upper
        node.key, node.page_ids, node.parent = node.key[cut:], node.page_ids[num_pages:], upper
        node.depth += num_pages
        upper.num_pending_pages = max(0, node.num_pending_pages - len(node.page_ids))
        node.num_pending_pages -= upper.num_pending_pages
        if upper.num_pending_pages:
            self.pending[upper] = None
        upper.link(self._first_page(node), node)
        self.num_nodes += 1
        self.states.note_split(upper, node)
        return upper

    def lock(self, node: RadixNode, top: RadixNode | None = None) -> None:
        """Add a lock to the path from below `top` (default: the root) down to `node`."""
        assert node.is_attached, "lock after the node was dropped"
        self._clock += 1
        for passed in node.path(top):
            if passed.lock_count == 0:
                self.num_unlocked_pages -= len(passed.page_ids)
            passed.lock_count += 1
            passed.last_access = self._clock

    def unlock(self, node: RadixNode) -> list[int]:
        """Remove a lock from the path down to `node`.

        Returns:
            Freed pages: those of detached nodes whose last lock this was.
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

    def end_of(self, data: bytes) -> tuple[RadixNode, RadixNode | None]:
        """The end of a stored sequence: the node that its whole pages end with, and the partial leaf with most of its other tokens.

        Splits the node in which the whole pages end. The sequence may have more tokens than are stored.
        """
        node, position, child, num_pages = self._follow(self.root, data, 0, len(data))
        if child is not None:
            return self.split(child, num_pages), None
        rest = data[position : position + self._page_bytes]
        for end in range(min(len(rest), self._page_bytes - TOKEN_BYTES), 0, -TOKEN_BYTES):
            leaf = node.children.get(rest[:end])
            if leaf is not None:
                return node, leaf
        return node, None

    def hold(self, nodes: Iterable[RadixNode]) -> None:
        """Add a hold to these attached nodes: a path to the root, and a partial leaf below it if that is held too."""
        for node in nodes:
            if node.hold_count == 0:
                self.num_held_pages += len(node.page_ids)
            node.hold_count += 1

    def release(self, nodes: Iterable[RadixNode]) -> None:
        """Remove a hold from these nodes, some of which may have been cut off or dropped since."""
        for node in nodes:
            assert node.hold_count > 0, "release without hold"
            node.hold_count -= 1
            if node.hold_count == 0 and node.is_attached:
                self.num_held_pages -= len(node.page_ids)
                self._enqueue(node)

    def demote(self, node: RadixNode, num_pages: int) -> None:
        """Let the path down to `node` be evicted before all else, from its page `num_pages` on, as far as nothing else needs it.

        A node is needed if it is locked, held or pending, or if a node below it is.
        """
        path = list(node.path(self.root))
        end = sum(len(passed.page_ids) for passed in path)
        for passed in path:
            start = end - len(passed.page_ids)
            if (
                end <= num_pages
                or not passed.is_attached
                or passed.lock_count
                or passed.hold_count
                or passed.num_pending_pages
                or any(child.last_access for child in passed.children.values())
            ):
                break
            if start < num_pages:
                self.split(passed, num_pages - start)
            passed.last_access = 0
            self.states.demote(passed)
            if passed.queue_entry is not None:
                self._queue.push(passed)
            else:
                self._enqueue(passed)
            end = start

    def commit(self) -> list[int]:
        """Mark pending pages as written. Returns pages freed because a new page made them redundant."""
        nodes, self.pending = list(self.pending), {}
        for node in nodes:
            node.num_pending_pages = 0
        if self.tracks_new_pages:
            self.new_pages.update((node, None) for node in nodes if len(node.key) >= self.page_size)
        freed: list[int] = []
        for node in nodes:
            freed += self.supersede(node)
            self._enqueue(node)
        return freed

    def discard(self) -> list[int]:
        """Cut off pending pages, which will never be written. Returns freed pages; locked ones are freed by `unlock`."""
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
        """Free up to `num_pages` pages: least recently used leaves first, each from its end. Returns the freed pages."""
        freed: list[int] = []
        while len(freed) < num_pages and (node := self._queue.pop()) is not None:
            if not self._is_candidate(node):
                continue
            num_taken = num_pages - len(freed)
            if self.on_evict is not None:
                self.on_evict(node, max(0, len(node.page_ids) - num_taken))
            if num_taken >= len(node.page_ids):
                freed += self._remove(node)
                continue
            freed += node.page_ids[-num_taken:]
            del node.page_ids[-num_taken:], node.key[-num_taken * self.page_size :]
            del node.digests[len(node.page_ids) :]
            self.states.note_cut(node)
            node.is_cut = True
            node.num_offloaded_pages = min(node.num_offloaded_pages, len(node.page_ids))
            self.num_pages -= num_taken
            self.num_unlocked_pages -= num_taken
            self._queue.push(node)
        return freed

    def nodes(self) -> Iterator[RadixNode]:
        """The root, all nodes below it, and detached nodes."""
        yield from self.root.subtree()
        yield from self.detached

    def _follow(
        self, node: RadixNode, data: bytes, position: int, limit: int
    ) -> tuple[RadixNode, int, RadixNode | None, int]:
        """Follow whole pages of data[position:limit] down the tree. Changes nothing.

        Returns:
            The last node passed completely, the position reached, the child in the middle of which the walk ended, and the number of
            its pages that matched (None and 0 if the walk ended at the end of a node).
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
            num_pages = common_pages(child, data, position, limit, page_bytes)
            return node, position + num_pages * page_bytes, child, num_pages
        return node, position, None, 0

    def _tail(
        self, node: RadixNode, data: bytes, position: int, limit: int, child: RadixNode | None, num_pages: int
    ) -> tuple[RadixNode, int, int] | None:
        """After `_follow`: the written page that matches the most of the next tokens, as (its node, page id, number of tokens)."""
        query = self._next_page(data, position, limit)
        if not query:
            return None
        if child is not None:
            if num_pages >= len(child.page_ids) - child.num_pending_pages:
                return None
            page = child.key[num_pages * self.page_size : (num_pages + 1) * self.page_size].tobytes()
            num_tokens = common_tokens(page, query)
            return (child, child.page_ids[num_pages], num_tokens) if num_tokens else None
        closest = node.closest_child(query)
        return None if closest is None else (closest[0], closest[0].page_ids[0], closest[1])

    def _mark_used(self, node: RadixNode) -> None:
        self._clock += 1
        for passed in node.path():
            passed.last_access = self._clock
            passed.num_uses += 1

    def _next_page(self, data: bytes, position: int, limit: int) -> bytes:
        """The tokens after a position, at most a page."""
        return data[position : min(limit, position + self._page_bytes)]

    def _first_page(self, node: RadixNode) -> bytes:
        """The key under which the parent stores the node."""
        return node.key[: self.page_size].tobytes()

    def _unlink(self, child: RadixNode) -> None:
        assert child.parent is not None
        child.parent.unlink(self._first_page(child))
        self._enqueue(child.parent)

    def _add_child(self, parent: RadixNode, key: array[int], page_ids: list[int]) -> RadixNode:
        child = RadixNode(key, list(page_ids), parent)
        parent.link(self._first_page(child), child)
        self.num_nodes += 1
        return child

    def _remove(self, leaf: RadixNode) -> list[int]:
        """Drop an unlocked leaf; returns its pages."""
        assert not leaf.children
        assert leaf.lock_count == 0
        self.states.note_removal(leaf)
        self._unlink(leaf)
        self.num_unlocked_pages -= len(leaf.page_ids)
        if leaf.hold_count:  # a partial leaf whose tokens another page has now
            self.num_held_pages -= len(leaf.page_ids)
        self.num_nodes -= 1
        self.pending.pop(leaf, None)
        leaf.is_attached = False
        return self._forget(leaf)

    def _forget(self, node: RadixNode) -> list[int]:
        """Forget an unlocked node that is no longer in the tree; returns its pages."""
        self.detached.pop(node, None)
        self.new_pages.pop(node, None)
        freed, node.page_ids, node.key = node.page_ids, [], array("q")
        self.num_pages -= len(freed)
        return freed

    def _detach(self, top: RadixNode) -> list[int]:
        """Cut off `top` and all nodes below it. Returns the pages of unlocked ones; locked ones keep theirs until unlocked."""
        self._unlink(top)
        freed: list[int] = []
        for node in list(top.subtree()):
            self.states.drop(node)
            node.children, node.child_keys = {}, []
            node.is_attached = False
            node.num_pending_pages = 0
            self.new_pages.pop(node, None)
            self.num_nodes -= 1
            if node.hold_count:
                self.num_held_pages -= len(node.page_ids)
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
            and node.hold_count == 0
            and node.num_pending_pages == 0
        )

    def _enqueue(self, node: RadixNode) -> None:
        if self._is_candidate(node):
            if len(self._queue) > 2 * self.num_nodes + 64:
                self._queue.drop_detached()
            self._queue.push(node)

    def check(self) -> None:
        """Verify structure, locks, pending pages and counts."""
        nodes = [node for node in self.root.subtree() if node is not self.root]
        for node in self.root.subtree():
            assert node.is_attached
            assert sorted(node.children) == node.child_keys
            locks_below = sum(child.lock_count for child in node.children.values())
            locks_below += sum(detached.lock_count for detached in self.detached if detached.parent is node)
            assert node.lock_count >= locks_below
            assert node is self.root or node.hold_count >= max(
                (c.hold_count for c in node.children.values()), default=0
            )
            for first, child in node.children.items():
                assert child.parent is node
                assert first == self._first_page(child)
                assert not node.num_pending_pages or child.num_pending_pages == len(child.page_ids)
        for node in nodes:
            self._check_node(node)
        for node in self.detached:
            assert not node.is_attached
            assert node.lock_count > 0
        page_ids = [page_id for node in (*nodes, *self.detached) for page_id in node.page_ids]
        assert len(page_ids) == len(set(page_ids)) == self.num_pages, "a page is in two places"
        assert sum(len(node.page_ids) for node in nodes if node.lock_count == 0) == self.num_unlocked_pages
        assert sum(len(node.page_ids) for node in nodes if node.hold_count) == self.num_held_pages
        assert len(nodes) == self.num_nodes
        assert {node for node in nodes if node.num_pending_pages} == set(self.pending)
        assert self.new_pages.keys() <= set(nodes)
        self._queue.check()
        self.states.check(self.root)
        assert not any(node.states or node.page_states for node in self.detached)

    def _check_node(self, node: RadixNode) -> None:
        num_tokens, num_pages = len(node.key), len(node.page_ids)
        assert num_pages > 0
        if num_tokens != num_pages * self.page_size:
            assert num_pages == 1
            assert 0 < num_tokens < self.page_size
            assert not node.children
            assert node.lock_count == 0
        assert 0 <= node.num_pending_pages <= num_pages
        num_written = num_pages - node.num_pending_pages if len(node.key) >= self.page_size else 0
        assert len(node.digests) <= num_pages
        assert 0 <= node.num_offloaded_pages <= num_written
        assert not self.tracks_new_pages or node.num_offloaded_pages == num_written or node in self.new_pages
        assert node.lock_count >= 0
        if self._is_candidate(node):
            assert node.queue_entry is not None, "an evictable leaf is not in the eviction queue"
