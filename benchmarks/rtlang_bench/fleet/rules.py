"""Rules that choose replicas in the simulation: this project's, and those of others as they are published, written anew.

Rules "per call" choose for each call of a program, those "per program" once. The rules of others know their own index of prefixes; here
they know what the replicas really cache, which is to their advantage.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable
from random import Random

from rtlang.fleet.routing.router import ProgramWork, Router
from rtlang_bench.fleet.simulated_fleet import Rule, SimulatedFleet
from rtlang_bench.fleet.simulated_load import CALLS, MESSAGE_TOKENS, OUTPUT_TOKENS, OUTPUT_WEIGHT, LoadShape

REPORT_EVERY = 1_000.0
"""Time between reports of load: 100 ms of a replica that computes 10,000 tokens a second."""

TOKENS_PER_BLOCK = 64
VIRTUAL_NODES = 100
MEAN_CALLS = sum(CALLS) / 2
MEAN_CALL_TOKENS = (sum(MESSAGE_TOKENS) + OUTPUT_WEIGHT * sum(OUTPUT_TOKENS)) / 2


class Uniform:
    """Any replica, with equal probability."""

    name, is_per_program = "random, per call", False

    def __init__(self, shape: LoadShape, random: Random) -> None:
        self._count, self._random = shape.num_replicas, random

    def choose(self, fleet: SimulatedFleet, program: int, call: int) -> int:
        return self._random.randrange(self._count)


class PowerOfTwo:
    """The one of two replicas that has fewer calls: the default of Ray Serve."""

    name, is_per_program = "power of two, per call", False

    def __init__(self, shape: LoadShape, random: Random) -> None:
        self._count, self._random = shape.num_replicas, random

    def choose(self, fleet: SimulatedFleet, program: int, call: int) -> int:
        first, second = self._random.randrange(self._count), self._random.randrange(self._count)
        return first if fleet.num_calls[first] <= fleet.num_calls[second] else second


class CacheAware:
    """The rule of SGLang's gateway: the replica with the longest part of the prompt if it is more than 0.3 of it, else the one to which the
    fewest tokens were sent; the one with the fewest calls while the numbers of calls differ by more than 64 and a factor of 1.5."""

    name, is_per_program = "cache_aware, per call", False

    def __init__(self, shape: LoadShape, random: Random) -> None:
        self._random = random

    def choose(self, fleet: SimulatedFleet, program: int, call: int) -> int:
        most, fewest = int(fleet.num_calls.max()), int(fleet.num_calls.min())
        if most - fewest > 64 and most > 1.5 * fewest:
            return int(fleet.num_calls.argmin())
        holders = fleet.visited[program][-1:] or list(fleet.holders.get(fleet.load.documents[program], ()))
        if holders:
            replica = self._random.choice(holders)
            prompt = prefix_tokens(fleet, program)
            if fleet.num_cached(replica, program) > 0.3 * prompt:
                return replica
        return int(fleet.inserted.argmin())


class PrefixAffinity:
    """Ray Serve's prefix affinity: the one of two holders of the longest part of the prompt that has fewer calls if the part is at least
    0.1 of it, else the replica to which the fewest tokens were sent; power of two while the numbers of calls differ by more than 10."""

    name, is_per_program = "prefix affinity of Ray Serve, per call", False

    def __init__(self, shape: LoadShape, random: Random) -> None:
        self._random, self._power_of_two = random, PowerOfTwo(shape, random)

    def choose(self, fleet: SimulatedFleet, program: int, call: int) -> int:
        calls = fleet.num_calls
        if int(calls.max()) - int(calls.min()) > 10:
            return self._power_of_two.choose(fleet, program, call)
        holders = fleet.visited[program][-1:] or list(fleet.holders.get(fleet.load.documents[program], ()))
        if holders:
            first, second = self._random.choice(holders), self._random.choice(holders)
            chosen = first if calls[first] <= calls[second] else second
            if fleet.num_cached(chosen, program) >= 0.1 * prefix_tokens(fleet, program):
                return chosen
        return int(fleet.inserted.argmin())


class BoundedHashing:
    """Consistent hashing of the document over virtual nodes. Replicas that would have more than 1.25 times the mean number of programs are
    passed over."""

    name, is_per_program = "consistent hashing with bounded load, per program", True

    def __init__(self, shape: LoadShape, random: Random) -> None:
        self._count, self._num_running = shape.num_replicas, 0
        ring = [(random.random(), replica) for replica in range(self._count) for _ in range(VIRTUAL_NODES)]
        ring.sort()
        self._places, self._replicas = [place for place, _ in ring], [replica for _, replica in ring]

    def choose(self, fleet: SimulatedFleet, program: int, call: int) -> int:
        document = fleet.load.documents[program]
        at = bisect.bisect(self._places, Random(document).random())
        most = 1.25 * (len(fleet.visited) / self._count) + 1
        for step in range(len(self._replicas)):
            replica = self._replicas[(at + step) % len(self._replicas)]
            if fleet.num_programs[replica] + 1 <= most:
                return replica
        return self._replicas[at % len(self._replicas)]


class CostPerCall:
    """The least waiting work and tokens to compute together, for each call; caches and loads are known exactly."""

    name, is_per_program = "cost, per call, true caches", False

    def __init__(self, shape: LoadShape, random: Random) -> None:
        self._count, self._random = shape.num_replicas, random

    def choose(self, fleet: SimulatedFleet, program: int, call: int) -> int:
        now, busy_until = fleet.now, fleet.busy_until
        candidates: list[int] = [*fleet.visited[program], *fleet.holders.get(fleet.load.documents[program], ())]
        candidates += [int(self._random.random() * self._count) for _ in range(4)]
        return min(candidates, key=lambda each: max(0.0, busy_until[each] - now) - fleet.num_cached(each, program))


class CostPerProgram:
    """The same for whole programs; the waiting work of a replica includes the later calls of its programs, whose graphs it has."""

    name, is_per_program = "cost, per program, true caches", True

    def __init__(self, shape: LoadShape, random: Random) -> None:
        self._count, self._random = shape.num_replicas, random

    def choose(self, fleet: SimulatedFleet, program: int, call: int) -> int:
        now, busy_until, later = fleet.now, fleet.busy_until, fleet.later
        candidates = list(fleet.holders.get(fleet.load.documents[program], ()))
        candidates += [int(self._random.random() * self._count) for _ in range(4)]
        return min(
            candidates,
            key=lambda each: max(0.0, busy_until[each] - now) + later[each] - fleet.num_cached(each, program),
        )


class Routed:
    """`rtlang.fleet.routing.router.Router`: an index of what was sent, and loads that are up to `REPORT_EVERY` old."""

    name, is_per_program = "cost, per program, index of what was sent, reports every 100 ms (rtlang)", True

    def __init__(self, shape: LoadShape, random: Random) -> None:
        self._router = Router(seed=random.randrange(2**32), capacity_tokens=shape.cache_tokens)
        self._names = [f"replica-{number}" for number in range(shape.num_replicas)]
        self._numbers = {name: number for number, name in enumerate(self._names)}
        for name in self._names:
            self._router.add(name)
        self._next_report = 0.0

    def choose(self, fleet: SimulatedFleet, program: int, call: int) -> int:
        if fleet.now >= self._next_report:
            self._next_report = fleet.now + REPORT_EVERY
            for number, name in enumerate(self._names):
                self._router.report(name, fleet.waiting(number) + fleet.later[number])
        document = fleet.load.documents[program]
        template = fleet.load.templates[document]
        num_template = fleet.load.template_tokens[template] // TOKENS_PER_BLOCK
        num_document = fleet.load.document_tokens[document] // TOKENS_PER_BLOCK
        digests = (*_block_numbers(2 * template, num_template), *_block_numbers(2 * document + 1, num_document))
        compute = prefix_tokens(fleet, program) + MEAN_CALLS * MEAN_CALL_TOKENS
        return self._numbers[self._router.choose(ProgramWork(digests, float(TOKENS_PER_BLOCK), compute))]


RULES: tuple[Callable[[LoadShape, Random], Rule], ...] = (
    Uniform,
    PowerOfTwo,
    CacheAware,
    PrefixAffinity,
    BoundedHashing,
    CostPerCall,
    CostPerProgram,
    Routed,
)


def prefix_tokens(fleet: SimulatedFleet, program: int) -> int:
    """Tokens of a program's template and document."""
    load = fleet.load
    document = load.documents[program]
    return load.template_tokens[load.templates[document]] + load.document_tokens[document]


def _block_numbers(text: int, count: int) -> range:
    """Distinct numbers for the blocks of a text, as its digests."""
    return range(text << 16, (text << 16) + count)
