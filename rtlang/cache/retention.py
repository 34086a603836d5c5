"""Holds on stored sequences that open programs will continue, within a share of the pool.

A hold keeps the pages of a sequence from eviction while no request uses them. It is a preference, not a lock: pages under holds count as
available, and whoever needs them revokes holds, those of the programs with the largest rank first. So a hold never blocks a request for
good. The rank of a program is the time of its arrival, changed by its priority if the policy is `program`.

A *soft* hold has a rank from `SOFT_RANK` on. It is revoked before every hold of a program and no request ever waits for its pages, so soft
holds have a share of their own, `SOFT_SHARE`.

A hold also keeps the deepest checkpoint on its path, which is evicted only if all others are held or locked.

Invariant: the hold_count of a node is the number of granted holds whose path contains it.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from math import nextafter

from rtlang.cache.node import RadixNode
from rtlang.cache.radix import RadixTree
from rtlang.cache.states import Checkpoint

SOFT_RANK = 1e12
"""Ranks of soft holds begin here; those of programs are times."""
SOFT_SHARE = 0.9
"""Maximum share of the pool under holds of both kinds."""


@dataclass(slots=True, eq=False)
class Hold:
    """A granted hold. Owned by its `Retention`.

    Attributes:
        order: the rank of the program, and a serial number; the largest is revoked first.
        node, leaf: the end of the sequence; see `RadixTree.end_of`.
        num_tokens: tokens of the stored part of the sequence.
        state: the checkpoint that it keeps; it may have left the tree since.
        is_granted: False once it was released or revoked.
    """

    order: tuple[float, int]
    node: RadixNode
    leaf: RadixNode | None
    num_tokens: int
    state: Checkpoint | None = None
    is_granted: bool = True

    @property
    def path(self) -> Iterable[RadixNode]:
        """The held nodes, without the root; all of them exist until the hold ends, though failed steps may cut them off."""
        if self.leaf is not None:
            yield self.leaf
        for node in self.node.path():
            if node.parent is not None:
                yield node


class Retention:
    """Grants, releases and revokes the holds on one tree. Owned by its `PrefixCache`.

    Args:
        max_pages: maximum number of pages under holds of programs; 0 grants no soft ones either.
        num_pages: of the pool.

    Attributes:
        num_granted, num_refused, num_revoked: counters of holds.
    """

    def __init__(self, tree: RadixTree, max_pages: int, num_pages: int = 0) -> None:
        self.max_pages = max_pages
        self._max_soft = max(max_pages, int(num_pages * SOFT_SHARE)) if max_pages else 0
        self.num_granted = self.num_refused = self.num_revoked = 0
        self._tree = tree
        self._holds: list[Hold] = []  # by order
        self._num_asked = 0

    def __len__(self) -> int:
        return len(self._holds)

    def hold(self, data: bytes, rank: float) -> Hold | None:
        """Hold the stored part of a sequence for a program. May revoke holds of programs with a larger rank.

        Returns:
            The hold; None if nothing is stored, or if the holds of this program and of those with a smaller rank leave too little of the
            share.
        """
        node, leaf = self._tree.end_of(data)
        self._num_asked += 1
        hold = Hold((rank, self._num_asked), node, leaf, 0)
        path = list(hold.path)
        if not path:
            return None
        hold.num_tokens = sum(len(each.key) for each in path)
        if not self._make_room(path, rank):
            self.num_refused += 1
            return None
        self._tree.hold(path)
        insort(self._holds, hold, key=_order)
        self.num_granted += 1
        self._keep(hold, self._tree.states.deepest_of(path))
        return hold

    def end_of(self, data: bytes) -> Hold:
        """The end of the stored part of a sequence, as a hold that is not granted."""
        node, leaf = self._tree.end_of(data)
        return Hold((0.0, 0), node, leaf, 0, is_granted=False)

    def note_state(self, checkpoint: Checkpoint) -> None:
        """There is a new checkpoint: holds keep it if it is the deepest on their paths."""
        states = self._tree.states
        if not checkpoint.node.hold_count:
            return
        for hold in self._holds:
            if hold.node is checkpoint.node or checkpoint.node in set(hold.path):
                before = hold.state
                is_deeper = before is None or not before.is_attached
                if is_deeper or (before is not None and states.position(before) < states.position(checkpoint)):
                    self._keep(hold, checkpoint)

    def release(self, hold: Hold) -> None:
        """End a hold; does nothing if it has ended."""
        if hold.is_granted:
            hold.is_granted = False
            self._holds.remove(hold)
            self._tree.release(hold.path)
            self._keep(hold, None)

    def revoke_last(self) -> bool:
        """Revoke the hold of the program with the largest rank; False if there is none."""
        if not self._holds:
            return False
        self.num_revoked += 1
        self.release(self._holds[-1])
        return True

    def revoke_all(self) -> None:
        """Revoke all holds."""
        while self.revoke_last():
            pass

    def nodes(self, rank: float) -> set[RadixNode]:
        """The nodes under holds of programs whose rank is not above `rank`."""
        if not self._tree.num_held_pages:
            return set()
        end = bisect_right(self._holds, rank, key=lambda hold: hold.order[0])
        return self._union(self._holds[:end])

    def num_pages_within(self, holds: Iterable[Hold], data: bytes, max_pages: int) -> int:
        """The number of pages at the start of a sequence that a further hold may keep, so that all together keep at most `max_pages`.

        Args:
            holds: earlier ones; those that have ended do not count.
        """
        held = self._union(hold for hold in holds if hold.is_granted)
        node, leaf = self._tree.end_of(data)
        shared = sum(len(each.page_ids) for each in Hold((0.0, 0), node, leaf, 0).path if each in held)
        return shared + max(0, max_pages - sum(len(each.page_ids) for each in held))

    def check(self) -> None:
        """Verify the counts of the nodes, and that the holds are within the share."""
        counts = Counter(node for hold in self._holds for node in hold.path)
        for node in (*self._tree.nodes(), *counts):
            assert node.hold_count == counts[node], f"{node.hold_count} holds are counted, there are {counts[node]}"
        assert sum(len(node.page_ids) for node in self.nodes(_FIRM)) <= self.max_pages
        assert self._tree.num_held_pages <= max(self.max_pages, self._max_soft)
        assert all(hold.is_granted for hold in self._holds)
        assert sorted(self._holds, key=_order) == self._holds
        holders = Counter(hold.state for hold in self._holds if hold.state is not None)
        assert all(checkpoint.num_holds == count for checkpoint, count in holders.items())
        assert all(holders[each] == each.num_holds for each in self._tree.states.pool.checkpoints())

    def _make_room(self, path: list[RadixNode], rank: float) -> bool:
        """Revoke holds of programs with a larger rank until `path` fits into the share; False, and nothing is revoked, if it cannot."""
        limit = self._max_soft if rank >= SOFT_RANK else self.max_pages
        if self._num_pages_with(path) <= limit:
            return True
        earlier = self.nodes(rank) | set(path)
        if sum(len(node.page_ids) for node in earlier) > limit:
            return False
        if rank < SOFT_RANK:  # soft holds have a limit of their own
            firm = self.nodes(_FIRM) | set(path)
            limit = self._max_soft if sum(len(node.page_ids) for node in firm) <= self.max_pages else limit
        while self._num_pages_with(path) > limit:
            self.revoke_last()
        return True

    def _keep(self, hold: Hold, checkpoint: Checkpoint | None) -> None:
        """Let a hold keep this checkpoint instead of the one that it keeps."""
        pool = self._tree.states.pool
        if checkpoint is not None:
            pool.hold(checkpoint)
        if hold.state is not None:
            pool.release(hold.state)
        hold.state = checkpoint

    def _num_pages_with(self, path: list[RadixNode]) -> int:
        return self._tree.num_held_pages + sum(len(node.page_ids) for node in path if not node.hold_count)

    @staticmethod
    def _union(holds: Iterable[Hold]) -> set[RadixNode]:
        found: set[RadixNode] = set()
        for hold in holds:
            for node in hold.path:
                if node in found:
                    break
                found.add(node)
        return found


_FIRM = nextafter(SOFT_RANK, 0.0)


def _order(hold: Hold) -> tuple[float, int]:
    return hold.order
