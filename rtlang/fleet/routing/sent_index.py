"""Prefixes that were sent to each replica, as a guess of what its cache holds.

A radix tree over chained digests of blocks: equal digests at one place mean equal prefixes, so a segment is compared by its last digest.
For each replica the blocks are in the order of their last use, the end of a prefix before its start, and the least recently used are
forgotten first. Thus a replica that holds a block holds all blocks before it.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


class SentSegment:
    """Consecutive blocks that were sent together.

    Attributes:
        start: number of blocks before it.
        digests: of its blocks, 64 bits each.
        holds: by replica, the part of the segment that it holds.
    """

    __slots__ = ("children", "digests", "holds", "parent", "start", "tokens_per_block")

    def __init__(
        self, parent: SentSegment | None, start: int, digests: array[int], tokens_per_block: float = 1.0
    ) -> None:
        self.parent, self.start, self.digests, self.tokens_per_block = parent, start, digests, tokens_per_block
        self.children: dict[int, SentSegment] = {}  # by their first digest
        self.holds: dict[str, _Hold] = {}


class _Hold:
    """The first `num_blocks` of a segment, held by one replica; a link of the list of its holds by last use."""

    __slots__ = ("newer", "num_blocks", "older", "segment")

    def __init__(self, segment: SentSegment | None, num_blocks: int) -> None:
        self.segment, self.num_blocks = segment, num_blocks
        self.older = self.newer = self

    def unlink(self) -> None:
        self.older.newer, self.newer.older = self.newer, self.older

    def link_before(self, newer: _Hold) -> None:
        self.older, self.newer = newer.older, newer
        newer.older.newer = newer.older = self


class _Held:
    """All holds of one replica. `ends` closes the list: the oldest hold follows it, the newest precedes it."""

    __slots__ = ("capacity", "ends", "num_tokens")

    def __init__(self, capacity: float) -> None:
        self.capacity, self.num_tokens, self.ends = capacity, 0.0, _Hold(None, 0)


@dataclass(frozen=True, slots=True)
class SentMatch:
    """A segment on the path of a prefix, and the number of its blocks that are on it."""

    segment: SentSegment
    num_blocks: int

    def held_by(self, name: str) -> int:
        """Number of blocks of the prefix, from its start, that a replica holds; 0 if it holds none of this segment."""
        hold = self.segment.holds.get(name)
        return 0 if hold is None else self.segment.start + min(hold.num_blocks, self.num_blocks)


class SentIndex:
    """The index; see the module. Not thread-safe."""

    def __init__(self) -> None:
        self._root = SentSegment(None, 0, array("Q"))
        self._held: dict[str, _Held] = {}

    def add(self, name: str, capacity_tokens: float) -> None:
        """Add a replica that holds nothing."""
        assert name not in self._held
        self._held[name] = _Held(capacity_tokens)

    def remove(self, name: str) -> None:
        """Forget a replica. Takes time for each segment that it holds."""
        ends = self._held.pop(name).ends
        hold = ends.newer  # the oldest first, so that the end of a prefix goes before its start
        while hold is not ends:
            _forget(hold, name)
            hold = hold.newer

    def match(self, digests: Sequence[int]) -> list[SentMatch]:
        """The path of a prefix, from its start, as far as any replica was sent it."""
        path: list[SentMatch] = []
        at, segment, num_digests = 0, self._root, len(digests)
        while at < num_digests:
            child = segment.children.get(digests[at])
            if child is None:
                break
            num_common = _num_common(child.digests, digests, at)
            path.append(SentMatch(child, num_common))
            if num_common < len(child.digests):
                break
            at, segment = at + num_common, child
        return path

    def note(self, name: str, digests: Sequence[int], tokens_per_block: float) -> None:
        """Note that a replica was sent a prefix; what it used least recently is forgotten when it holds more than its capacity."""
        path = self.match(digests)
        segments = [match.segment for match in path]
        at = sum(match.num_blocks for match in path)
        if path and path[-1].num_blocks < len(path[-1].segment.digests):
            self._split(path[-1].segment, path[-1].num_blocks)
        if at < len(digests):
            parent = segments[-1] if segments else self._root
            added = SentSegment(parent, at, array("Q", digests[at:]), tokens_per_block)
            parent.children[digests[at]] = added
            segments.append(added)
        held = self._held[name]
        for segment in reversed(segments):
            hold = segment.holds.get(name)
            if hold is None:
                hold = segment.holds[name] = _Hold(segment, 0)
            else:
                hold.unlink()
            held.num_tokens += (len(segment.digests) - hold.num_blocks) * segment.tokens_per_block
            hold.num_blocks = len(segment.digests)
            hold.link_before(held.ends)
        while held.num_tokens > held.capacity and held.ends.newer is not held.ends:
            _shorten(held, name)

    def num_tokens(self, name: str) -> float:
        """Tokens of the blocks that a replica is taken to hold."""
        return self._held[name].num_tokens

    def segments(self) -> Iterator[SentSegment]:
        """All segments, parents first."""
        left = list(self._root.children.values())
        while left:
            segment = left.pop()
            yield segment
            left.extend(segment.children.values())

    def check(self) -> None:
        """Check the invariants: replicas hold prefixes, the lists and the tree agree, and no segment is held by nobody."""
        tokens: dict[str, float] = dict.fromkeys(self._held, 0.0)
        for segment in self.segments():
            assert segment.holds, "a segment is held by nobody"
            assert segment.digests
            parent = segment.parent
            assert parent is not None
            assert parent.children[segment.digests[0]] is segment
            assert segment.start == parent.start + len(parent.digests)
            for name, hold in segment.holds.items():
                assert hold.segment is segment
                assert 0 < hold.num_blocks <= len(segment.digests)
                tokens[name] += hold.num_blocks * segment.tokens_per_block
                if parent is not self._root:
                    assert parent.holds[name].num_blocks == len(parent.digests), "a block is held without its prefix"
        for name, held in self._held.items():
            assert math.isclose(held.num_tokens, tokens[name], abs_tol=1e-6)
            assert held.num_tokens <= held.capacity
            hold, listed = held.ends.newer, 0.0
            while hold is not held.ends:
                assert hold.segment is not None
                assert hold.segment.holds[name] is hold
                listed += hold.num_blocks * hold.segment.tokens_per_block
                hold = hold.newer
            assert math.isclose(listed, tokens[name], abs_tol=1e-6)

    def _split(self, upper: SentSegment, num_blocks: int) -> None:
        """Cut a segment after its first `num_blocks`; `upper` stays the first part."""
        lower = SentSegment(upper, upper.start + num_blocks, upper.digests[num_blocks:], upper.tokens_per_block)
        lower.children, upper.children = upper.children, {upper.digests[num_blocks]: lower}
        for child in lower.children.values():
            child.parent = lower
        upper.digests = upper.digests[:num_blocks]
        for name, hold in upper.holds.items():
            if hold.num_blocks > num_blocks:
                rest = lower.holds[name] = _Hold(lower, hold.num_blocks - num_blocks)
                rest.link_before(hold)
                hold.num_blocks = num_blocks
        if not lower.holds:
            upper.children = {}


def _shorten(held: _Held, name: str) -> None:
    """Take blocks from the hold that was used least recently: as many as the capacity needs, or all."""
    hold = held.ends.newer
    assert hold.segment is not None
    tokens_per_block = hold.segment.tokens_per_block
    num_taken = math.ceil((held.num_tokens - held.capacity) / tokens_per_block)
    if num_taken < hold.num_blocks:
        hold.num_blocks -= num_taken
        held.num_tokens -= num_taken * tokens_per_block
        return
    held.num_tokens -= hold.num_blocks * tokens_per_block
    hold.unlink()
    if held.ends.newer is held.ends:
        held.num_tokens = 0.0  # no rounding stays
    _forget(hold, name)


def _forget(hold: _Hold, name: str) -> None:
    """Take a hold out of its segment, and the segment out of the tree when it was the last."""
    segment = hold.segment
    assert segment is not None
    del segment.holds[name]
    if not segment.holds:
        assert segment.parent is not None
        del segment.parent.children[segment.digests[0]]


def _num_common(run: Sequence[int], digests: Sequence[int], at: int) -> int:
    """Number of blocks of `run` that equal the blocks of `digests` from `at` on. The first one does."""
    size = min(len(run), len(digests) - at)
    if run[size - 1] == digests[at + size - 1]:
        return size
    low, high = 1, size - 1  # `low` blocks are equal, the one after `high` is not
    while low < high:
        middle = (low + high + 1) // 2
        if run[middle - 1] == digests[at + middle - 1]:
            low = middle
        else:
            high = middle - 1
    return low
