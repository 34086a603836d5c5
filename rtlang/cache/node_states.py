"""The checkpoints in the nodes of a radix tree: where they are kept, how they are found, and what happens to them when nodes change.

The identity of a checkpoint is the prefix that it is the state of. A prefix that ends inside a page may begin several sibling pages; its
checkpoint is kept with one of them. Each node has an index of these, `RadixNode.page_states`, so that the checkpoint is found from all
siblings, however many there are, and never kept twice. When the page that has it leaves the tree, a sibling takes it over.

A checkpoint in a pending page is pending, too: no match returns it before the step is committed, and it is dropped with its page.

Invariants:
- A checkpoint has an offset from 1 to the number of tokens of its node, which is attached.
- parent.page_states contains child.key[:offset] exactly for the checkpoints of children whose offset is below the page size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rtlang.cache.node import TOKEN_BYTES, RadixNode
from rtlang.cache.states import Checkpoint, StatePool


class NodeStates:
    """Attaches, finds and moves checkpoints. Owned by one `RadixTree`, which calls it whenever it changes a node."""

    def __init__(self, pool: StatePool, page_size: int) -> None:
        self.pool, self._page_size = pool, page_size
        pool.on_drop, pool.count_spared = self._unlink, self._count_spared

    def position(self, checkpoint: Checkpoint) -> int:
        """The number of tokens that a checkpoint is the state after."""
        return checkpoint.node.depth * self._page_size + checkpoint.offset

    def keep(self, node: RadixNode, position: int, slot: int) -> Checkpoint | None:
        """Make a private slot the checkpoint at a position on the path down to `node`.

        Returns:
            The checkpoint; None if there is one already, which counts as used, and the slot is freed.
        """
        while node.parent is not None and position <= node.depth * self._page_size:
            node = node.parent
        offset = position - node.depth * self._page_size
        assert node.is_attached, "keep after the node was dropped"
        assert 0 < offset <= len(node.key), f"no token {position} on the path"
        stored = self._at(node, offset)
        if stored is not None and self.is_written(stored):
            self.pool.touch(stored)
            self.pool.free(slot)
            return None
        if stored is not None:  # its step may fail
            self.pool.drop(stored)
        checkpoint = self.pool.keep(slot, node, offset)
        self._link(checkpoint)
        return checkpoint

    def deepest(
        self, node: RadixNode, child: RadixNode | None = None, num_pages: int = 0, query: bytes = b""
    ) -> Checkpoint | None:
        """The deepest written checkpoint of a sequence.

        Args:
            node, child, num_pages: where its whole pages end; see `RadixTree._follow`.
            query: its next tokens, at most a page.
        """
        if child is not None:
            end = num_pages * self._page_size
            for token in memoryview(query).cast("q"):
                if end == len(child.key) or child.key[end] != token:
                    break
                end += 1
            found = self._within(child, end)
        else:
            found = self._in_page(node, query)
        for passed in node.path():
            if found is not None:
                break
            found = self._within(passed, len(passed.key))
        return found

    def positions(self, node: RadixNode, child: RadixNode | None = None, num_pages: int = 0) -> list[int]:
        """The positions of the written checkpoints on a path of whole pages, ascending; see `RadixTree._follow`."""
        ends = [] if child is None else [(child, num_pages * self._page_size)]
        ends += [(passed, len(passed.key)) for passed in node.path()]
        return sorted(
            each.depth * self._page_size + checkpoint.offset
            for each, end in ends
            for checkpoint in self._all(each, end)
        )

    def note_split(self, upper: RadixNode, node: RadixNode) -> None:
        """`node` was split; `upper` has its first tokens."""
        cut = len(upper.key)
        states, node.states = node.states, {}
        for offset, slot in states.items():
            checkpoint = self.pool.checkpoint(slot)
            if offset > cut:
                checkpoint.offset -= cut
            else:
                checkpoint.node = upper
            self._link(checkpoint)

    def note_cut(self, node: RadixNode) -> None:
        """`node` lost pages from its end."""
        for offset in [offset for offset in node.states if offset > len(node.key)]:
            self.pool.drop(self.pool.checkpoint(node.states[offset]))

    def note_removal(self, node: RadixNode) -> None:
        """`node` is about to be removed from its parent. A sibling that begins with the same tokens takes over a checkpoint."""
        for slot in list(node.states.values()):
            checkpoint = self.pool.checkpoint(slot)
            sibling = self._sibling(checkpoint)
            if sibling is None:
                self.pool.drop(checkpoint)
                continue
            self._unlink(checkpoint)
            checkpoint.node = sibling
            self._link(checkpoint)

    def drop(self, node: RadixNode) -> None:
        """`node` is about to be cut off, its content will never be written."""
        for slot in list(node.states.values()):
            self.pool.drop(self.pool.checkpoint(slot))

    def demote(self, node: RadixNode) -> None:
        """Nothing is expected to use `node` any more; a checkpoint of a prefix that a sibling has as well stays as it is."""
        for slot in node.states.values():
            checkpoint = self.pool.checkpoint(slot)
            if self._sibling(checkpoint) is None:
                self.pool.demote(checkpoint)

    def deepest_of(self, nodes: Iterable[RadixNode]) -> Checkpoint | None:
        """The deepest checkpoint that is kept with one of these nodes of a path, given from the bottom up."""
        for node in nodes:
            if node.states:
                return self.pool.checkpoint(node.states[max(node.states)])
        return None

    def check(self, root: RadixNode) -> None:
        """Verify that the tree and the pool have the same checkpoints, and the index of each node."""
        self.pool.check()
        num_found = 0
        for node in root.subtree():
            for offset, slot in node.states.items():
                checkpoint = self.pool.checkpoint(slot)
                assert checkpoint.node is node
                assert checkpoint.offset == offset
                assert 0 < offset <= len(node.key)
                num_found += 1
            in_pages = {
                child.key[:offset].tobytes(): child
                for child in node.children.values()
                for offset in child.states
                if offset < self._page_size
            }
            assert in_pages == node.page_states
            num_in_pages = sum(offset < self._page_size for child in node.children.values() for offset in child.states)
            assert len(in_pages) == num_in_pages, "a prefix has two checkpoints"
        assert num_found == self.pool.num_kept

    def _count_spared(self, checkpoint: Checkpoint) -> int:
        """Tokens between the deepest checkpoint above this one, or the start, and this one."""
        node, end = checkpoint.node, checkpoint.offset - 1
        while node.parent is not None:
            above = self._within(node, end)
            if above is not None:
                return self.position(checkpoint) - self.position(above)
            node = node.parent
            end = len(node.key)
        return self.position(checkpoint)

    def is_written(self, checkpoint: Checkpoint) -> bool:
        """Whether the pages up to a checkpoint are written."""
        node = checkpoint.node
        return checkpoint.offset <= (len(node.page_ids) - node.num_pending_pages) * self._page_size

    def _at(self, node: RadixNode, offset: int) -> Checkpoint | None:
        """The checkpoint of the prefix that ends after `offset` tokens of `node`."""
        owner: RadixNode | None = node
        if offset < self._page_size:
            assert node.parent is not None
            owner = node.parent.page_states.get(node.key[:offset].tobytes())
        slot = None if owner is None else owner.states.get(offset)
        return None if slot is None else self.pool.checkpoint(slot)

    def _within(self, node: RadixNode, end: int) -> Checkpoint | None:
        """The deepest written checkpoint after 1 to `end` tokens of `node`."""
        return max(self._all(node, end), key=lambda each: each.offset, default=None)

    def _all(self, node: RadixNode, end: int) -> Iterator[Checkpoint]:
        """The written checkpoints after 1 to `end` tokens of `node`, those that siblings keep included."""
        found = [self.pool.checkpoint(slot) for offset, slot in node.states.items() if offset <= end]
        if node.parent is not None and node.parent.page_states:
            for offset in range(1, min(end + 1, self._page_size)):
                if offset not in node.states and (checkpoint := self._at(node, offset)) is not None:
                    found.append(checkpoint)
        return filter(self.is_written, found)

    def _in_page(self, node: RadixNode, query: bytes) -> Checkpoint | None:
        """The written checkpoint inside a page after `node` with the most of the tokens `query`."""
        for end in range(len(query) if node.page_states else 0, 0, -TOKEN_BYTES):
            owner = node.page_states.get(query[:end])
            if owner is not None:
                checkpoint = self.pool.checkpoint(owner.states[end // TOKEN_BYTES])
                if self.is_written(checkpoint):
                    return checkpoint
        return None

    def num_since_stored(self, checkpoint: Checkpoint) -> int:
        """Tokens between the deepest checkpoint above this one that the tiers below have, or the start, and this one."""
        node, end = checkpoint.node, checkpoint.offset - 1
        while node.parent is not None:
            stored = [each.offset for each in self._all(node, end) if each.digest]
            if stored:
                return self.position(checkpoint) - node.depth * self._page_size - max(stored)
            node = node.parent
            end = len(node.key)
        return self.position(checkpoint)

    def _sibling(self, checkpoint: Checkpoint) -> RadixNode | None:
        """Another written page that begins with the same tokens as the page inside which a checkpoint lies."""
        node, parent = checkpoint.node, checkpoint.node.parent
        assert parent is not None
        if checkpoint.offset >= self._page_size:
            return None
        return parent.child_beginning(node.key[: checkpoint.offset].tobytes(), other_than=node)

    def _link(self, checkpoint: Checkpoint) -> None:
        node, offset = checkpoint.node, checkpoint.offset
        node.states[offset] = checkpoint.slot
        if offset < self._page_size:
            assert node.parent is not None
            node.parent.page_states[node.key[:offset].tobytes()] = node

    def _unlink(self, checkpoint: Checkpoint) -> None:
        node, offset = checkpoint.node, checkpoint.offset
        del node.states[offset]
        if offset < self._page_size:
            assert node.parent is not None
            del node.parent.page_states[node.key[:offset].tobytes()]
