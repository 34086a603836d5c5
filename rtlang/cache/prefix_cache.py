"""The prefix cache: a radix tree and a page allocator that together account for every page.

The engine asks it for the longest stored prefix of a sequence and for pages to hold the rest, and hands computed pages back so that
later sequences find them. Every page is free, cached (in the tree and unlocked) or in use (private to a request, or in the
tree and locked); the three always add up to num_pages. Follows RadixAttention (Zheng et al. 2024), with copy-on-write within pages
and a two-phase commit of pages that a running step is writing.

The calls for one request: `match`, immediately `lock`, `allocate`; then `extend` whenever whole pages are about to be filled, and
`commit` after the step; finally `finish`, or `abandon` if its content cannot be trusted.

What a program will continue later can be put under a `hold`, and what nothing continues can be `demote`d: the first is evicted last, the
second first.

A sequence of a model with recurrent layers goes on from a state only. With `num_states`, the tree has checkpoints (`states.py`), and a
match is the pages up to H and the deepest checkpoint C: tokens C to H are computed again, though their K and V are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rtlang.cache.continuation import continuation
from rtlang.cache.eviction import ORDERS
from rtlang.cache.node import TOKEN_BYTES, RadixNode
from rtlang.cache.outline import OutlineNode, outline, outline_of_namespace
from rtlang.cache.page_digests import EvictionHistory, PageDigests
from rtlang.cache.pages import PageAllocator, PageOwner
from rtlang.cache.radix import RadixTree
from rtlang.cache.retention import Hold, Retention
from rtlang.cache.scope import PUBLIC, CacheScope
from rtlang.cache.states import Checkpoint, StatePool


@dataclass(frozen=True, slots=True)
class PrefixMatch:
    """A stored prefix of a sequence. Valid until the cache changes, so `node` must be locked first.

    Attributes:
        num_tokens: number of tokens in whole pages, len(page_ids) * page_size.
        page_ids: those pages, shared and read-only.
        node: the node to lock, and to pass to `extend`.
        tail_page_id: a page whose first num_tail_tokens tokens continue the sequence, to be copied into one of the caller's pages in
            the step being built (copies come first in a step, so the source may be evicted after the match); None if there is none.
        num_tail_tokens: 0 if tail_page_id is None. With states there is a tail only if the checkpoint lies inside it, at its end.
        state_slot: the slot of the deepest checkpoint; None if there is none. `StatePool.lock` it before any page or slot is allocated,
            which may evict it, and unlock it after the step that reads it.
        num_state_tokens: number of tokens that it is the state after; 0 if state_slot is None.
        num_stored_tokens: number of tokens that are stored, those in the page that continues the whole ones included, with states or not.
            Another sequence branches off here, or the limit or the sequence ends.
    """

    num_tokens: int
    page_ids: list[int]
    node: RadixNode
    tail_page_id: int | None
    num_tail_tokens: int
    state_slot: int | None = None
    num_state_tokens: int = 0
    num_stored_tokens: int = 0


@dataclass(frozen=True, slots=True)
class NewPage:
    """A written page of the tree that the tiers below do not have yet; what is read of it is valid while `epoch` is that of the page."""

    page_id: int
    epoch: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class NewState:
    """A checkpoint that the tiers below do not have yet, valid like a `NewPage`; `tail` is the page inside which it lies, if it does."""

    slot: int
    epoch: int
    digest: bytes
    tail: NewPage | None


@dataclass(frozen=True, slots=True)
class Lookup:
    """The stored part of a sequence.

    Attributes:
        num_cached: number of tokens that need not be computed, if `match` had no limit: with states those up to the deepest checkpoint,
            else all that are stored, including the tail.
        position: length of the longest stored prefix, pages that are yet to be written included.
        next_keys: the first tokens that are stored behind it, as numbers of the tree (see scope.py), of any namespace. Of several
            continuations it is the one that agrees longest, else the one used last.
        num_in_pages: number of tokens in whole stored pages.
        state_positions: the positions of the checkpoints in these pages, ascending, and of a deeper one if num_cached is its position.
    """

    num_cached: int
    position: int
    next_keys: tuple[int, ...]
    num_in_pages: int = 0
    state_positions: tuple[int, ...] = ()


@dataclass(slots=True)
class CacheStats:
    """Counters since the start. Owned by one `PrefixCache`.

    Attributes:
        num_queried_tokens: tokens looked up by `match`, up to its limit.
        num_hit_tokens: number of these tokens that matched, including tails; with states those up to the deepest checkpoint.
        num_evicted_pages: cached pages evicted to make room.
    """

    num_queried_tokens: int = 0
    num_hit_tokens: int = 0
    num_evicted_pages: int = 0


class PrefixCache:
    """Pages 0 .. num_pages-1 and their contents. Owned by the scheduler; not thread-safe."""

    def __init__(
        self,
        num_pages: int,
        page_size: int,
        *,
        sharing: bool = True,
        retention_share: float = 0.5,
        eviction: str = "valuable",
        namespace_of: Callable[[int], str] = str,
        root_digest: bytes = b"",
        tracks_new_pages: bool = False,
        num_states: int = 0,
    ) -> None:
        """Create an empty cache.

        Args:
            num_pages, page_size: at least 1 each; ValueError otherwise.
            sharing: False keeps all pages private to their requests, so nothing is matched and nothing outlives its request.
            retention_share: maximum share of the pages under holds of programs, 0 to 1; soft holds have `SOFT_SHARE`.
            eviction: a key of `eviction.ORDERS`.
            namespace_of: the name of a namespace by its number.
            root_digest: the digest before the first page; see `tiers/digest.py`.
            tracks_new_pages: whether `take_new_pages` returns pages, and `take_new_states` checkpoints.
            num_states: slots for the states of recurrent layers; 0 for a model without them.
        """
        self.page_size, self.sharing = page_size, sharing
        self.stats = CacheStats()
        self._pages = PageAllocator(num_pages)
        self.states = StatePool(num_states) if num_states else None
        self._tree = RadixTree(page_size, ORDERS[eviction], num_pages, self.states)
        self.retention = Retention(self._tree, int(num_pages * retention_share), num_pages)
        self.digests = PageDigests(root_digest, page_size, namespace_of)
        self.evictions = EvictionHistory()
        self._tree.tracks_new_pages = tracks_new_pages
        self._tree.on_evict = self._note_eviction
        if self.states is not None:
            self.states.tracks_new = tracks_new_pages
            self._unlink_state, self.states.on_drop = self.states.on_drop, self._drop_state

    @property
    def num_pages(self) -> int:
        """Total number of pages."""
        return self._pages.num_pages

    @property
    def num_free(self) -> int:
        """Number of free pages."""
        return self._pages.num_free

    @property
    def num_cached(self) -> int:
        """Number of pages in the tree that no request holds."""
        return self._tree.num_unlocked_pages

    @property
    def num_in_use(self) -> int:
        """Number of pages that a request holds, privately or in the tree."""
        return self._pages.num_pages - self._pages.num_free - self._tree.num_unlocked_pages

    @property
    def num_held(self) -> int:
        """Number of pages under holds, those that a request locks included."""
        return self._tree.num_held_pages

    @property
    def num_available(self) -> int:
        """Number of pages that `allocate` can hand out now: free and evictable ones."""
        return self._pages.num_free + self._tree.num_evictable_pages

    @property
    def num_nodes(self) -> int:
        """Number of nodes in the tree."""
        return self._tree.num_nodes

    def outline(self, ends: Iterable[RadixNode], max_nodes: int) -> list[OutlineNode]:
        """A bounded outline of the tree, with the paths to the nodes `ends` first; see outline.py."""
        return outline(self._tree.root, ends, self.page_size, max_nodes)

    def outline_of_namespace(self, number: int, max_nodes: int) -> list[OutlineNode]:
        """A bounded outline of what one namespace has in the tree; see outline.py."""
        return outline_of_namespace(self._tree.root, number, self.page_size, max_nodes)

    def num_available_to(self, rank: float | None) -> int:
        """`num_available` without the pages that holds of programs keep whose rank is not above `rank`; None: with all."""
        kept = () if rank is None else self.retention.nodes(rank)
        return self._pages.num_free + self._tree.num_evictable_outside(kept)

    def can_allocate(self, num_pages: int, rank: float | None = None) -> bool:
        """Whether `allocate` could hand out so many pages; cheaper than `num_available_to` unless holds decide."""
        if (num_more := self.num_available - num_pages) < 0:
            return False
        return rank is None or num_more >= self.num_held or num_pages <= self.num_available_to(rank)

    def match(self, token_ids: Sequence[int], limit: int, scope: CacheScope = PUBLIC) -> PrefixMatch:
        """Find the longest stored prefix of `token_ids`, of at most `limit` tokens including the tail, and mark it as used.

        Whole pages may be pending, since a row may read what the same step writes; a tail page and a checkpoint never are.
        """
        limit = max(0, min(limit, len(token_ids)))
        self.stats.num_queried_tokens += limit
        if not self.sharing:
            return PrefixMatch(0, [], self._tree.root, None, 0)
        if self.states is not None:
            return self._match_state(scope.pack(token_ids), limit)
        node, tail_page_id, num_tail_tokens = self._tree.find(scope.pack(token_ids), limit * TOKEN_BYTES)
        page_ids = self._tree.page_ids(node)
        num_tokens = len(page_ids) * self.page_size
        num_stored = num_tokens + num_tail_tokens
        self.stats.num_hit_tokens += num_stored
        return PrefixMatch(num_tokens, page_ids, node, tail_page_id, num_tail_tokens, num_stored_tokens=num_stored)

    def peek(self, token_ids: Sequence[int], scope: CacheScope = PUBLIC) -> int:
        """Number of tokens that `match` would find without a limit, including the tail; with states those up to the deepest checkpoint.

        Changes nothing, not even recency.
        """
        if not self.sharing:
            return 0
        data = scope.pack(token_ids)
        return self._tree.peek(data, len(data)) if self.states is None else self._peek_state(data)[1]

    def num_in_pages(self, token_ids: Sequence[int], scope: CacheScope = PUBLIC) -> int:
        """Number of tokens at the start of a sequence that are in whole stored pages, whether there are states or not. Changes nothing."""
        return self._tree.num_in_pages(scope.pack(token_ids)) if self.sharing else 0

    def continuation(
        self, node: RadixNode, token_ids: Sequence[int], limit: int, scope: CacheScope = PUBLIC, start: int = 0
    ) -> list[int]:
        """Up to `limit` tokens that are stored behind a sequence: `node`, then `token_ids`, fewer than a page. Changes nothing.

        Args:
            scope, start: of the whole sequence, and the position of these tokens in it.
        """
        if not self.sharing or not node.is_attached or not node.children or len(token_ids) >= self.page_size:
            return []
        return continuation(node, scope.pack(token_ids, start), limit)

    def lookup(
        self, packed: bytes, num_next: int, is_shown: Callable[[int, int], bool] = lambda position, key: True
    ) -> Lookup:
        """What is stored of a sequence, which `CacheScope.pack` has packed. Changes nothing.

        Args:
            is_shown: see `RadixTree.stored_next`.
        """
        if not self.sharing:
            return Lookup(0, 0, ())
        position, found = self._tree.stored_next(packed, len(packed), num_next, is_shown)
        if self.states is None:
            num_in_pages = self._tree.num_in_pages(packed)
            return Lookup(self._tree.peek(packed, len(packed)), position, tuple(found), num_in_pages)
        num_in_pages, num_cached, positions = self._peek_state(packed)
        return Lookup(num_cached, position, tuple(found), num_in_pages, positions)

    def lock_prefix(self, token_ids: Sequence[int], limit: int, scope: CacheScope = PUBLIC) -> tuple[RadixNode, int]:
        """Lock the longest stored prefix of whole pages, of at most `limit` tokens, for a fetch of the pages behind it.

        Returns:
            The node, to be passed to `finish` or `abandon`, and the number of pages.
        """
        end = min(limit, len(token_ids)) // self.page_size * self.page_size
        node, page_ids = self._tree.descend(self._tree.root, scope.pack(token_ids[:end]))
        self._tree.lock(node)
        return node, len(page_ids)

    def take_new_pages(self, max_pages: int) -> list[NewPage]:
        """Written pages that no earlier call returned, the oldest first."""
        found: list[NewPage] = []
        new_pages = self._tree.new_pages
        while new_pages and len(found) < max_pages:
            node = next(iter(new_pages))
            first = node.num_offloaded_pages
            num_written = len(node.page_ids) - node.num_pending_pages
            end = min(num_written, first + max_pages - len(found))
            digests = self.digests.of(node, end)
            page_ids = node.page_ids
            found += [NewPage(page_ids[i], self._pages.epoch(page_ids[i]), digests[i]) for i in range(first, end)]
            node.num_offloaded_pages = max(first, end)
            if node.num_offloaded_pages >= num_written:
                del new_pages[node]
        return found

    def take_new_states(self, max_states: int, is_worthwhile: Callable[[int, int, int], bool]) -> list[NewState]:
        """Written checkpoints that no earlier call returned, the oldest first.

        Args:
            is_worthwhile: of a position, the number of tokens since the checkpoint above it that an earlier call returned, and the uses,
                keeping it included. A checkpoint that is not is looked at again when it is used.
        """
        found: list[NewState] = []
        if self.states is None:
            return found
        of_nodes, pool = self._tree.states, self.states
        for checkpoint in list(pool.new):
            if len(found) == max_states:
                break
            if not of_nodes.is_written(checkpoint):
                continue
            del pool.new[checkpoint]
            num_spared = of_nodes.num_since_stored(checkpoint)
            if not is_worthwhile(of_nodes.position(checkpoint), num_spared, checkpoint.num_uses):
                continue
            node, offset = checkpoint.node, checkpoint.offset
            checkpoint.digest, digest = self.digests.of_state(node, offset)
            tail = None
            if digest is not None:
                page_id = node.page_ids[offset // self.page_size]
                tail = NewPage(page_id, self._pages.epoch(page_id), digest)
            found.append(NewState(checkpoint.slot, pool.epoch(checkpoint.slot), checkpoint.digest, tail))
        return found

    def is_unchanged(self, page: NewPage | NewState) -> bool:
        """Whether the page or the slot was not freed since `take_new_pages` or `take_new_states` returned it."""
        if isinstance(page, NewPage):
            return self._pages.epoch(page.page_id) == page.epoch
        assert self.states is not None
        return self.states.epoch(page.slot) == page.epoch

    def lock(self, node: RadixNode) -> None:
        """Lock `node` and the path to it, so that their pages are not evicted until `unlock`."""
        self._tree.lock(node)

    def unlock(self, node: RadixNode) -> None:
        """Release one lock."""
        self._free_tree_pages(self._tree.unlock(node))

    def hold(self, token_ids: Sequence[int], rank: float, scope: CacheScope = PUBLIC) -> Hold | None:
        """Keep the stored part of a sequence from eviction, for a program of some rank; see `Retention.hold`."""
        return self.retention.hold(scope.pack(token_ids), rank) if self.sharing else None

    def release(self, hold: Hold) -> None:
        """End a hold; does nothing if it was revoked."""
        self.retention.release(hold)

    def demote(self, token_ids: Sequence[int], start: int, scope: CacheScope = PUBLIC) -> None:
        """Let the stored pages of a sequence be evicted before all others, from token `start` on, as far as nothing else needs them.

        A page that also has tokens before `start` stays as it is.
        """
        if self.sharing:
            node, leaf = self._tree.end_of(scope.pack(token_ids))
            self._tree.demote(node if leaf is None else leaf, -(-start // self.page_size))

    def end_of(self, token_ids: Sequence[int], scope: CacheScope = PUBLIC) -> Hold:
        """The end of the stored part of a sequence, for `demote_end`; keeps nothing."""
        return self.retention.end_of(scope.pack(token_ids))

    def demote_end(self, hold: Hold, start: int) -> None:
        """`demote` for the sequence of a hold that is not granted (any more), if it is still there."""
        node = hold.leaf if hold.leaf is not None and hold.leaf.is_attached else hold.node
        self._tree.demote(node, -(-start // self.page_size))

    def allocate(self, num_pages: int, *, rank: float | None = None) -> list[int] | None:
        """Allocate private pages, in contiguous runs if possible. If needed, evicts unlocked leaves, least recently used first.

        If what no hold covers is not enough, holds are revoked, those of the programs with the largest rank first.

        Args:
            rank: if given, only holds of programs with a larger rank may be revoked.
        Returns:
            Page ids in ascending order, or None (and nothing is evicted or revoked) if fewer than `num_pages` are available.
        """
        missing = num_pages - self._pages.num_free
        if missing > 0:
            if not self.can_allocate(num_pages, rank):
                return None
            evicted = self._tree.evict(missing)
            while len(evicted) < missing:
                is_revoked = self.retention.revoke_last()
                assert is_revoked, "fewer pages could be evicted than were counted"
                evicted += self._tree.evict(missing - len(evicted))
            self.stats.num_evicted_pages += len(evicted)
            self._free_tree_pages(evicted)
        return self._pages.allocate(num_pages)

    def free(self, page_ids: Sequence[int]) -> None:
        """Free private pages."""
        self._pages.free(page_ids)

    def extend(
        self,
        node: RadixNode,
        token_ids: Sequence[int],
        page_ids: Sequence[int],
        scope: CacheScope = PUBLIC,
        start: int = 0,
    ) -> tuple[RadixNode, list[int]]:
        """Add whole pages to the tree after `node`, so that others can match them.

        Args:
            node: on which the caller holds a lock; the lock moves to the returned node.
            token_ids: len(page_ids) * page_size tokens that the pages contain, or will contain after the step being built.
            page_ids: the caller's private pages.
            scope, start: of the whole sequence, and the position of these tokens in it.
        Returns:
            The node to continue from, and the pages to use from now on: if the tree already has a page with the same tokens, it replaces
            the given one, which is freed. New pages are pending until `commit`.
        """
        assert len(token_ids) == len(page_ids) * self.page_size, f"{len(token_ids)} tokens for {len(page_ids)} pages"
        assert node.is_attached, "extend after discard_pending cut the node off"
        if not self.sharing or not page_ids:
            return node, list(page_ids)
        data = scope.pack(token_ids, start)
        deepest, found = self._tree.descend(node, data)
        self._pages.free(page_ids[: len(found)])
        self._tree.lock(deepest, node)  # the caller's lock covers `node` and the path above it
        rest = list(page_ids[len(found) :])
        if not rest:
            return deepest, found
        self._pages.give_to_tree(rest)
        added = data[len(found) * self.page_size * TOKEN_BYTES :]
        return self._tree.append(deepest, added, rest, held=1, is_pending=True), found + rest

    def commit(self) -> None:
        """Mark pending pages as valid, because the step that writes them succeeded."""
        if self._tree.pending:
            self._free_tree_pages(self._tree.commit())

    def discard_pending(self) -> None:
        """Remove pending pages from the tree, because the step that should have written them failed.

        Unlocked ones are freed at once. Requests that hold such pages (their node's is_attached is False) must be ended with
        `abandon`, before or after this call; their pages are freed with the last lock.
        """
        self._free_tree_pages(self._tree.discard())

    def finish(
        self,
        node: RadixNode,
        token_ids: Sequence[int],
        page_ids: Sequence[int],
        scope: CacheScope = PUBLIC,
        start: int = 0,
        state: tuple[int, int] | None = None,
    ) -> None:
        """End a request: keep what it computed for others, free its other pages, and release its lock on `node`.

        Args:
            node: on which the caller holds a lock.
            token_ids: the computed tokens that follow `node`; the last page may be partly filled.
            page_ids: the caller's private pages that hold these tokens, in order; additional pages are freed.
            scope, start: of the whole sequence, and the position of these tokens in it.
            state: a position in the sequence, at most at the end of these tokens, and the private slot that holds the state after so many
                tokens; it becomes a checkpoint or is freed. At position 0 it is freed.
        """
        num_whole, num_rest = divmod(len(token_ids), self.page_size)
        assert num_whole + (num_rest > 0) <= len(page_ids), f"{len(token_ids)} tokens in {len(page_ids)} pages"
        if not self.sharing or not node.is_attached:
            self.abandon(node, page_ids, None if state is None else state[1])
            return
        data = scope.pack(token_ids, start)
        cut = num_whole * self.page_size * TOKEN_BYTES
        deepest, found = self._tree.descend(node, data[:cut])
        freed: list[int] = []
        if len(found) < num_whole:
            rest = list(page_ids[len(found) : num_whole])
            self._pages.give_to_tree(rest)
            added = data[len(found) * self.page_size * TOKEN_BYTES : cut]
            is_holder = deepest is node
            deepest = self._tree.append(deepest, added, rest, held=int(is_holder), is_pending=False)
            node = deepest if is_holder else node
            freed += self._tree.supersede(deepest)
        num_kept = num_whole
        if num_rest:
            leaf = self._tree.append_partial(deepest, data[cut:], page_ids[num_whole])
            if leaf is not None:
                self._pages.give_to_tree(page_ids[num_whole : num_whole + 1])
                freed += self._tree.supersede(leaf)
                num_kept += 1
        self._pages.free([*page_ids[: len(found)], *page_ids[num_kept:]])
        self._free_tree_pages(freed)
        if state is not None:
            position, slot = state
            assert position <= start + len(token_ids), f"a state at {position} of {start + len(token_ids)} tokens"
            owner: RadixNode | None = deepest
            if position > start + num_whole * self.page_size:
                owner = deepest.child_beginning(data[cut : (position - start) * TOKEN_BYTES])
            self._keep_state(owner, position, slot)
        self.unlock(node)

    def abandon(self, node: RadixNode, page_ids: Sequence[int], state_slot: int | None = None) -> None:
        """End a request whose results cannot be trusted: free its private pages and slot, and release its lock on `node`."""
        self._pages.free(page_ids)
        self.unlock(node)
        if state_slot is not None:
            assert self.states is not None
            self.states.free(state_slot)

    def keep_state(self, node: RadixNode, position: int, slot: int) -> bool:
        """Make a private slot a checkpoint, so that later sequences can go on from it.

        Call it after the step that wrote the slot. A checkpoint in a pending page is pending like the page: no match returns it before the
        commit, and it is dropped if the step fails.

        Args:
            node: the caller holds a lock on it. If it was cut off after a failed step, the slot is freed.
            position: the slot holds the state after so many tokens of the sequence; at most at the end of `node`.
        Returns:
            Whether the slot became a checkpoint. If there is one at this position already, that counts as used, and the slot is freed.
        """
        return self._keep_state(node, position, slot)

    def clear(self) -> None:
        """Drop all pages in the tree that no request locks and no step is about to write, and unlocked checkpoints; revokes all holds."""
        self.retention.revoke_all()
        self.clear_unheld()

    def clear_unheld(self) -> None:
        """Drop all pages in the tree that no request locks, no hold keeps and no step is about to write, and such checkpoints."""
        self._free_tree_pages(self._tree.evict(self.num_pages))
        if self.states is not None:
            self.states.drop_all(spares_held=True)

    @property
    def free_runs(self) -> list[tuple[int, int]]:
        """The maximal runs of free pages, as (first page, number of pages)."""
        return self._pages.free_runs

    def check(self) -> None:
        """Verify the tree, and that every page is accounted for."""
        self._pages.check()
        self._tree.check()
        self.retention.check()
        assert self._pages.num_in_tree == self._tree.num_pages
        assert self.num_free + self.num_cached + self.num_in_use == self.num_pages
        assert 0 <= self._tree.num_evictable_pages <= self.num_cached
        for node in self._tree.nodes():
            assert all(self._pages.owner(page_id) is PageOwner.TREE for page_id in node.page_ids)

    def _match_state(self, data: bytes, limit: int) -> PrefixMatch:
        states = self._tree.states
        node, found, num_common = self._tree.find_state(data, limit * TOKEN_BYTES)
        page_ids = self._tree.page_ids(node)
        num_tokens = len(page_ids) * self.page_size
        stats = states.pool.stats
        if found is None:
            stats.num_misses += num_tokens > 0
            stats.num_replayed_tokens += num_tokens
            return PrefixMatch(num_tokens, page_ids, node, None, 0, num_stored_tokens=num_tokens + num_common)
        states.pool.touch(found)
        position = states.position(found)
        stats.num_hits += 1
        stats.num_replayed_tokens += max(0, num_tokens - position)
        self.stats.num_hit_tokens += position
        num_tail = max(0, position - num_tokens)
        tail_page_id = found.node.page_ids[0] if num_tail else None
        num_stored = num_tokens + num_common
        return PrefixMatch(num_tokens, page_ids, node, tail_page_id, num_tail, found.slot, position, num_stored)

    def _peek_state(self, data: bytes) -> tuple[int, int, tuple[int, ...]]:
        """The tokens in whole pages, the position of the deepest checkpoint, and those of all checkpoints."""
        states = self._tree.states
        num_in_pages, found, positions = self._tree.peek_state(data, len(data))
        num_cached = 0 if found is None else states.position(found)
        if num_cached > num_in_pages:
            positions.append(num_cached)
        return num_in_pages, num_cached, tuple(positions)

    def _keep_state(self, node: RadixNode | None, position: int, slot: int) -> bool:
        assert self.states is not None
        if not self.sharing or node is None or not node.is_attached or position == 0:
            self.states.free(slot)
            return False
        checkpoint = self._tree.states.keep(node, position, slot)
        if checkpoint is not None:
            self.retention.note_state(checkpoint)
        return checkpoint is not None

    def _drop_state(self, checkpoint: Checkpoint) -> None:
        if checkpoint.digest:
            self.evictions.note([checkpoint.digest])
        self._unlink_state(checkpoint)

    def _note_eviction(self, node: RadixNode, num_kept: int) -> None:
        if len(node.key) >= self.page_size:  # else a partial leaf, which has no digest
            self.evictions.note(self.digests.of(node)[num_kept:])

    def _free_tree_pages(self, page_ids: Sequence[int]) -> None:
        if page_ids:
            self._pages.free(page_ids, PageOwner.TREE)
