"""The slots that hold states of recurrent layers, and which of them the radix tree keeps as checkpoints.

A state is all that the recurrent layers hold of one sequence at one position. The model runner owns the memory; here a state is the number
of its slot. A slot is free, private to a request, or a *checkpoint*: the state after the tokens on a path of the radix tree. Checkpoints
are evicted when slots are needed, and their pages may stay; a checkpoint whose pages are evicted goes with them (`node_states.py`).

The checkpoint to evict is the one whose loss costs least, by GreedyDual-Size-Frequency (Cherkasova 1998) with slots of one size: the tokens
that it spares beyond the checkpoint above it, times its uses. A clock that rises to the value of each evicted checkpoint ages the others.
docs/design/radix-cache.md compares this with the order of use.

A slot that a step reads is locked. A locked checkpoint is not evicted. If its pages leave the tree nevertheless, its slot is *dropped*: no
match returns it, and it is free after its last unlock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum

from rtlang.cache.eviction import EvictionQueue, Key
from rtlang.cache.node import RadixNode

MAX_COUNTED_USES = 8
"""Uses that count for the value of a checkpoint, so that one that was popular long ago does not stay for good."""


class SlotOwner(IntEnum):
    """The owner of a slot."""

    FREE = 0
    PRIVATE = 1
    TREE = 2
    DROPPED = 3


class Checkpoint:
    """A state in the radix tree. Owned by its `StatePool`.

    Attributes:
        slot: the slot that holds it.
        node, offset: it is the state after `offset` tokens of this node, 1 to len(node.key).
        num_holds: number of holds of `retention.py` that keep it.
        num_uses: number of its uses, the one that kept it included.
        num_spared: tokens between the checkpoint above it and itself, when it was used last or compared with others.
        last_access: time of the last use by the clock of the pool; 0 if nothing is expected to use it any more.
        is_attached: False once it left the tree.
        digest: names it in the tiers below; b"" before it was handed to them.
        queue_entry: its entry in the eviction queue.
    """

    __slots__ = (
        "digest",
        "is_attached",
        "last_access",
        "node",
        "num_holds",
        "num_spared",
        "num_uses",
        "offset",
        "queue_entry",
        "slot",
    )

    def __init__(self, slot: int, node: RadixNode, offset: int) -> None:
        self.slot, self.node, self.offset = slot, node, offset
        self.num_holds = self.num_uses = self.num_spared = self.last_access = 0
        self.is_attached = True
        self.digest = b""
        self.queue_entry: tuple[Key, int, Checkpoint] | None = None

    @property
    def value(self) -> int:
        """The checkpoint with the smallest value is evicted first."""
        return self.last_access + min(self.num_uses, MAX_COUNTED_USES) * self.num_spared


@dataclass(slots=True)
class StateStats:
    """Counters since the start. Owned by one `StatePool`.

    Attributes:
        num_kept: states that became checkpoints.
        num_evicted: checkpoints evicted to make room for other states.
        num_dropped: checkpoints that left the tree with their pages.
        num_hits: matches that returned a state.
        num_misses: matches that found stored pages but no state.
        num_replayed_tokens: tokens in matched pages behind the returned state, which must be computed again.
    """

    num_kept: int = 0
    num_evicted: int = 0
    num_dropped: int = 0
    num_hits: int = 0
    num_misses: int = 0
    num_replayed_tokens: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """The counters by the names under which metrics give them out."""
        return {
            "cache_kept_states": self.num_kept,
            "cache_evicted_states": self.num_evicted,
            "cache_state_hits": self.num_hits,
            "cache_state_misses": self.num_misses,
            "cache_replayed_tokens": self.num_replayed_tokens,
        }


def by_value(checkpoint: Checkpoint, num_slots: int) -> Key:
    """The order of eviction: checkpoints under holds last, else the least valuable first."""
    return (float(checkpoint.num_holds > 0), float(checkpoint.value))


class StatePool:
    """Slots 0 .. num_slots-1, each with exactly one owner. Owned by one `PrefixCache`; not thread-safe.

    Attributes:
        stats: counters.
        on_drop: called with each checkpoint that leaves the tree, which must be unlinked from its node.
        count_spared: the number of tokens between the checkpoint above a checkpoint and itself.
        tracks_new: whether `new` is filled.
        new: checkpoints that were kept or used and are not in the tiers below, the oldest first.
        num_loading: number of private slots that no request holds: a tier below fills them.
    """

    def __init__(self, num_slots: int) -> None:
        """Create a pool whose slots are all free.

        Raises:
            ValueError: num_slots is negative.
        """
        if num_slots < 0:
            raise ValueError(f"num_slots = {num_slots}: expected at least 0")
        self.num_slots = num_slots
        self.stats = StateStats()
        self.on_drop: Callable[[Checkpoint], None] = lambda checkpoint: None
        self.count_spared: Callable[[Checkpoint], int] = lambda checkpoint: checkpoint.offset
        self._free = list(range(num_slots))[::-1]
        self._owners = bytearray(num_slots)
        self._checkpoints: dict[int, Checkpoint] = {}
        self._locks = Counter[int]()
        self._num_dropped = 0
        self._queue: EvictionQueue[Checkpoint] = EvictionQueue(by_value)
        self._clock = 1
        self._epochs = [0] * num_slots
        self.tracks_new = False
        self.new: dict[Checkpoint, None] = {}
        self.num_loading = 0

    @property
    def num_free(self) -> int:
        """Number of free slots."""
        return len(self._free)

    @property
    def num_kept(self) -> int:
        """Number of checkpoints."""
        return len(self._checkpoints)

    @property
    def num_private(self) -> int:
        """Number of slots that requests hold."""
        return self.num_slots - self.num_free - self.num_kept - self._num_dropped

    @property
    def num_dropped(self) -> int:
        """Number of slots that are free after their last unlock."""
        return self._num_dropped

    @property
    def num_available(self) -> int:
        """Number of slots that `allocate` can hand out now: free ones and unlocked checkpoints."""
        return self.num_free + self.num_kept - sum(slot in self._checkpoints for slot in self._locks)

    def epoch(self, slot: int) -> int:
        """The number of times that a slot was freed: while it is the same, a checkpoint in the slot is the same."""
        return self._epochs[slot]

    def owner(self, slot: int) -> SlotOwner:
        """The owner of a slot."""
        return SlotOwner(self._owners[slot])

    def checkpoint(self, slot: int) -> Checkpoint:
        """The checkpoint in a slot of the tree."""
        return self._checkpoints[slot]

    def checkpoints(self) -> Iterable[Checkpoint]:
        """All checkpoints."""
        return self._checkpoints.values()

    def allocate(self) -> int | None:
        """Make a slot private: a free one, else that of the least valuable unlocked checkpoint.

        Demoted checkpoints are evicted first, then those of the smallest value, those under holds last.

        Returns:
            The slot; None if all are private or locked.
        """
        if not self._free and not self._evict():
            return None
        slot = self._free.pop()
        self._owners[slot] = SlotOwner.PRIVATE
        return slot

    def may_keep(self) -> bool:
        """Whether a slot can be allocated without the loss of a checkpoint under a hold."""
        return self.num_free > 0 or (
            self.num_available > 0 and any(not each.num_holds for each in self._checkpoints.values())
        )

    def free(self, slot: int) -> None:
        """Free a private slot. A locked one is free after its last unlock."""
        assert self._owners[slot] == SlotOwner.PRIVATE, f"slot {slot} is {self.owner(slot).name}, expected PRIVATE"
        self._free_or_drop(slot)

    def lock(self, slot: int) -> None:
        """Keep the content of a slot until `unlock`: a step that is being built or runs reads it."""
        assert self._owners[slot] in (SlotOwner.PRIVATE, SlotOwner.TREE), f"lock of a {self.owner(slot).name} slot"
        self._locks[slot] += 1

    def unlock(self, slot: int) -> None:
        """Release one lock."""
        assert self._locks[slot] > 0, "unlock without lock"
        self._locks[slot] -= 1
        if self._locks[slot]:
            return
        del self._locks[slot]
        if self._owners[slot] == SlotOwner.DROPPED:
            self._num_dropped -= 1
            self._release(slot)

    def keep(self, slot: int, node: RadixNode, offset: int) -> Checkpoint:
        """A private slot becomes a checkpoint. The caller links it to the node."""
        assert self._owners[slot] == SlotOwner.PRIVATE, f"slot {slot} is {self.owner(slot).name}, expected PRIVATE"
        self._owners[slot] = SlotOwner.TREE
        checkpoint = self._checkpoints[slot] = Checkpoint(slot, node, offset)
        self.stats.num_kept += 1
        if len(self._queue) > 2 * self.num_slots + 64:
            self._queue.drop_detached()
        self.touch(checkpoint)
        return checkpoint

    def drop(self, checkpoint: Checkpoint) -> None:
        """A checkpoint leaves the tree with its pages."""
        self.stats.num_dropped += 1
        self._detach(checkpoint)

    def drop_all(self, *, spares_held: bool = False) -> None:
        """Drop all checkpoints that no step reads, or those of them that no hold keeps."""
        for checkpoint in list(self._checkpoints.values()):
            if checkpoint.slot not in self._locks and not (spares_held and checkpoint.num_holds):
                self.drop(checkpoint)

    def touch(self, checkpoint: Checkpoint) -> None:
        """Mark a checkpoint as used."""
        checkpoint.last_access = self._clock
        checkpoint.num_uses += 1
        checkpoint.num_spared = self.count_spared(checkpoint)
        self._queue.push(checkpoint)
        if self.tracks_new and not checkpoint.digest:
            self.new[checkpoint] = None

    def demote(self, checkpoint: Checkpoint) -> None:
        """Let a checkpoint be evicted before all others, unless a hold keeps it."""
        if not checkpoint.num_holds:
            checkpoint.last_access = 0
            self._queue.push(checkpoint)

    def hold(self, checkpoint: Checkpoint) -> None:
        """Add a hold. A demoted checkpoint is no longer demoted."""
        checkpoint.num_holds += 1
        checkpoint.last_access = checkpoint.last_access or self._clock

    def release(self, checkpoint: Checkpoint) -> None:
        """Remove a hold; the checkpoint may have left the tree since."""
        assert checkpoint.num_holds > 0, "release without hold"
        checkpoint.num_holds -= 1
        if checkpoint.is_attached:
            self._queue.push(checkpoint)

    def check(self) -> None:
        """Verify that each slot has one owner, and the counts."""
        owners = Counter(self._owners)
        assert owners[SlotOwner.FREE] == self.num_free == len(set(self._free))
        assert all(self._owners[slot] == SlotOwner.FREE for slot in self._free)
        assert owners[SlotOwner.PRIVATE] == self.num_private >= self.num_loading >= 0
        assert owners[SlotOwner.TREE] == self.num_kept
        assert owners[SlotOwner.DROPPED] == self._num_dropped
        assert all(count > 0 for count in self._locks.values())
        assert not any(self._owners[slot] == SlotOwner.FREE for slot in self._locks), "a free slot is locked"
        for slot, owner in enumerate(self._owners):
            assert owner != SlotOwner.DROPPED or slot in self._locks, "a dropped slot is never freed"
        assert all(checkpoint.is_attached and not checkpoint.digest for checkpoint in self.new)
        for slot, checkpoint in self._checkpoints.items():
            assert self._owners[slot] == SlotOwner.TREE
            assert checkpoint.slot == slot
            assert checkpoint.is_attached
            assert checkpoint.queue_entry is not None, "a checkpoint is not in the eviction queue"
        self._queue.check()

    def _evict(self) -> bool:
        """Evict one checkpoint; False if all are locked."""
        locked: list[Checkpoint] = []
        victim = None
        while (checkpoint := self._queue.pop()) is not None:
            if checkpoint.slot in self._locks:
                locked.append(checkpoint)
                continue
            num_spared = self.count_spared(checkpoint)
            if num_spared > checkpoint.num_spared and checkpoint.last_access:  # the one above it was evicted
                checkpoint.num_spared = num_spared
                self._queue.push(checkpoint)
                continue
            victim = checkpoint
            break
        for checkpoint in locked:
            self._queue.push(checkpoint)
        if victim is None:
            return False
        self.stats.num_evicted += 1
        if victim.last_access:
            self._clock = max(self._clock, victim.value)
        self._detach(victim)
        return True

    def _detach(self, checkpoint: Checkpoint) -> None:
        self.on_drop(checkpoint)
        checkpoint.is_attached, checkpoint.queue_entry = False, None
        self.new.pop(checkpoint, None)
        del self._checkpoints[checkpoint.slot]
        self._free_or_drop(checkpoint.slot)

    def _free_or_drop(self, slot: int) -> None:
        if slot in self._locks:
            self._owners[slot] = SlotOwner.DROPPED
            self._num_dropped += 1
        else:
            self._release(slot)

    def _release(self, slot: int) -> None:
        self._owners[slot] = SlotOwner.FREE
        self._epochs[slot] += 1
        self._free.append(slot)
