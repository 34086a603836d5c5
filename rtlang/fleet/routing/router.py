"""The choice of a replica for a whole program: the one with the least waiting work and tokens to compute together, those of the program's
prefix counted twice.

Considered are the replicas that were sent a part of the program's prefix, those with the longest parts first, and a few others at random.
The prefixes of all that was sent are remembered, within the capacity of each replica's cache; no replica has to say what it holds. The
waiting work of a replica is the last that it reported and the estimates of what was sent to it since.

No input or output, no threads and no clock: the same calls with the same seed give the same choices.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, KeysView
from dataclasses import dataclass
from random import Random

from rtlang.fleet.routing.sent_index import SentIndex, SentMatch

NUM_OTHERS = 4
"""Replicas that are considered at random, besides those that hold a part of the prefix."""

MAX_HOLDERS = 32
"""Replicas with a part of the prefix that are considered at most."""

NUM_SAMPLED = 8
"""Replicas that are considered, at random, of those with one part of the prefix if they are too many to consider all."""

MISS_WEIGHT = 2.0
"""Tokens of waiting that one token of a prefix is worth. Computing a prefix where it is not held also evicts as much there, a part of which
is computed again. 2 against 1 at the heavy load of `rtlang_bench.fleet --simulate` with 100 replicas: hit rate .961 for .952, mean
latency 1.56 for 2.42; 3 gains little more, and moves less work to idle replicas."""

CAPACITY_TOKENS = 400_000
"""Capacity of a replica's cache if nobody knows it."""


@dataclass(frozen=True, slots=True)
class ProgramWork:
    """The estimated work of a program; see `program_prefix`.

    Attributes:
        digests: chained digests of the blocks of its constant prefix, from 0 to 2**64 - 1. Equal digests mean that all blocks up to
            there are equal.
        tokens_per_block: tokens of one block.
        compute: tokens to compute where nothing of it is cached, the prefix included; an output token counts `output_weight` times.
        num_output_tokens: the expected output tokens among them.
    """

    digests: tuple[int, ...]
    tokens_per_block: float
    compute: float
    num_output_tokens: float = 0.0
    output_weight: float = 1.0

    @property
    def prefix_tokens(self) -> float:
        """Tokens of the prefix."""
        return len(self.digests) * self.tokens_per_block

    def compute_at(self, output_weight: float) -> float:
        """`compute` by another weight of output tokens, which was measured since."""
        return self.compute + (output_weight - self.output_weight) * self.num_output_tokens

    def remaining(self, num_held: int) -> float:
        """Tokens to compute where the first `num_held` blocks are cached."""
        return max(0.0, self.compute - num_held * self.tokens_per_block)


class _Replica:
    """State of one replica.

    Attributes:
        position: its place in the list of names.
        waiting: tokens that wait or run.
        estimates: of the works that were sent since its last report, by the identity of the work; the works themselves keep the
            identities from being used again.
    """

    __slots__ = ("estimates", "position", "waiting")

    def __init__(self, position: int) -> None:
        self.position, self.waiting = position, 0.0
        self.estimates: dict[int, tuple[ProgramWork, list[float]]] = {}


class Router:
    """Chooses replicas for programs. Not thread-safe.

    Args:
        seed: of the random choices.
        num_others: replicas that are considered at random; a fleet of at most so many is considered whole.
        capacity_tokens: of the cache of each replica that is added without its own.
        max_holders: replicas with a part of the prefix that are considered at most.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        num_others: int = NUM_OTHERS,
        capacity_tokens: int | None = None,
        max_holders: int = MAX_HOLDERS,
    ) -> None:
        if num_others < 1:
            raise ValueError(f"num_others = {num_others}: expected at least 1")
        self._random, self._num_others, self._max_holders = Random(seed), num_others, max_holders
        self._capacity = CAPACITY_TOKENS if capacity_tokens is None else capacity_tokens
        self._replicas: dict[str, _Replica] = {}
        self._names: list[str] = []
        self._index = SentIndex()

    @property
    def names(self) -> KeysView[str]:
        """The names of the replicas."""
        return self._replicas.keys()

    def add(self, name: str, capacity_tokens: int | None = None) -> None:
        """Add a replica, which has no work and holds nothing.

        Raises:
            ValueError: there is one of this name.
        """
        if name in self._replicas:
            raise ValueError(f"name = {name!r}: there is a replica of this name")
        self._replicas[name] = _Replica(len(self._names))
        self._names.append(name)
        self._index.add(name, self._capacity if capacity_tokens is None else capacity_tokens)

    def remove(self, name: str) -> None:
        """Forget a replica and all that it was sent; to keep a replica that starts again with an empty cache, remove and add it.

        Raises:
            LookupError: there is none of this name.
        """
        replica = self._replica(name)
        last = self._names.pop()
        if last != name:
            self._names[replica.position] = last
            self._replicas[last].position = replica.position
        del self._replicas[name]
        self._index.remove(name)

    def report(self, name: str, waiting: float, on_their_way: Iterable[ProgramWork] = ()) -> None:
        """Take a replica's own word for its waiting work, in tokens; it replaces the estimates of what was sent before.

        A number that is negative or not finite says nothing about the work, and changes nothing.

        Args:
            on_their_way: works that it had not received when it counted; their estimates stay.
        Raises:
            LookupError: there is none of this name.
        """
        replica = self._replica(name)
        if not (math.isfinite(waiting) and waiting >= 0):
            return
        before, replica.estimates = replica.estimates, {}
        for work in on_their_way:
            if id(work) in before:
                replica.estimates[id(work)] = before[id(work)]
        replica.waiting = waiting + sum([sum(estimates) for _, estimates in replica.estimates.values()])

    def waiting(self, name: str) -> float:
        """The work that is taken to wait at a replica, in tokens.

        Raises:
            LookupError: there is none of this name.
        """
        return self._replica(name).waiting

    def cost(self, name: str, work: ProgramWork) -> float:
        """The cost of sending a program to a replica, in tokens: those that wait, and those to compute, missing blocks by `MISS_WEIGHT`.

        Raises:
            LookupError: there is none of this name.
        """
        num_held = _num_held(self._index.match(work.digests), name)
        missing = (len(work.digests) - num_held) * work.tokens_per_block
        return self._replica(name).waiting + work.compute - work.prefix_tokens + MISS_WEIGHT * missing

    def num_held_tokens(self, name: str, work: ProgramWork) -> float:
        """Tokens of a program's prefix that a replica is taken to have."""
        return _num_held(self._index.match(work.digests), name) * work.tokens_per_block

    def choose(self, work: ProgramWork, among: Collection[str] | None = None) -> str:
        """Choose a replica for a program, and note that the program is sent there.

        Args:
            among: the replicas that may be chosen; names of others are ignored. None for all.
        Raises:
            LookupError: there is no replica to choose from.
        """
        path = self._index.match(work.digests)
        name, num_held = self._least(work, path, among)
        self._send(name, work, num_held)
        return name

    def ended(self, name: str, work: ProgramWork) -> None:
        """Take the estimate of a program that has ended out of the waiting work, unless a report has replaced it already.

        Args:
            work: the object that was given to `choose`.
        """
        replica = self._replicas.get(name)
        sent = None if replica is None else replica.estimates.get(id(work))
        if replica is None or sent is None:
            return
        estimates = sent[1]
        replica.waiting = max(0.0, replica.waiting - estimates.pop())
        if not estimates:
            del replica.estimates[id(work)]

    def _replica(self, name: str) -> _Replica:
        try:
            return self._replicas[name]
        except KeyError:
            raise LookupError(f"name = {name!r}: there is no such replica") from None

    def _send(self, name: str, work: ProgramWork, num_held: int) -> None:
        estimate = work.remaining(num_held)
        replica = self._replicas[name]
        replica.waiting += estimate
        sent = replica.estimates.get(id(work))
        if sent is None:
            replica.estimates[id(work)] = (work, [estimate])
        else:
            sent[1].append(estimate)
        self._index.note(name, work.digests, work.tokens_per_block)

    def _least(self, work: ProgramWork, path: list[SentMatch], among: Collection[str] | None) -> tuple[str, int]:
        """The replica of the least cost, of those that are considered, and the number of blocks that it holds.

        What is the same for all replicas is left out of the costs.
        """
        replicas, block_cost = self._replicas, MISS_WEIGHT * work.tokens_per_block
        least: tuple[str, int] | None = None
        least_cost = 0.0
        seen: set[str] = set()
        for match in reversed(path):
            room = self._max_holders - len(seen)
            if room <= 0:
                break
            start, num_matched, holds = match.segment.start, match.num_blocks, match.segment.holds
            for name in self._some_of(holds, room, among):
                if name in seen:
                    continue
                seen.add(name)
                num_held = start + min(holds[name].num_blocks, num_matched)
                cost = replicas[name].waiting - num_held * block_cost
                if least is None or cost < least_cost:
                    least, least_cost = (name, num_held), cost
        for name in self._others(among):
            if name in seen:
                continue
            num_held = _num_held(path, name)
            cost = replicas[name].waiting - num_held * block_cost
            if least is None or cost < least_cost:
                least, least_cost = (name, num_held), cost
        if least is None:
            raise LookupError("there is no replica to choose from")
        return least

    def _some_of(self, names: Collection[str], num_wanted: int, among: Collection[str] | None) -> Iterable[str]:
        """The names, or a few at random if they are more than wanted."""
        if len(names) > num_wanted:
            drawn = self._drawn(list(names), min(num_wanted, NUM_SAMPLED))
            found = drawn if among is None else [name for name in drawn if name in among]
            if found:
                return found
        if among is not None:
            names = [name for name in names if name in among]
        return names if len(names) <= num_wanted else self._drawn(list(names), min(num_wanted, NUM_SAMPLED))

    def _drawn(self, names: list[str], count: int) -> list[str]:
        draw, num_names = self._random.random, len(names)
        return [names[int(draw() * num_names)] for _ in range(count)]

    def _others(self, among: Collection[str] | None) -> Iterable[str]:
        """A few replicas at random; all if they are few."""
        names, num_wanted = self._names, self._num_others
        if among is not None and len(names) > num_wanted:
            # Most replicas are ready as a rule, so that a few attempts find some; else they are listed.
            found = [name for name in self._drawn(names, 2 * num_wanted) if name in among]
            if len(found) >= num_wanted:
                return found[:num_wanted]
        if among is not None:
            names = [name for name in names if name in among]
        if len(names) <= num_wanted:
            return names
        return self._drawn(names, num_wanted)


def _num_held(path: list[SentMatch], name: str) -> int:
    """Number of blocks of a prefix that a replica holds."""
    for match in reversed(path):
        num_held = match.held_by(name)
        if num_held:
            return num_held
    return 0
