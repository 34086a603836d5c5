"""A simulated fleet: replicas that serve calls in the order of their arrival, each with a cache that evicts the least recently used.

The unit of time is that in which a replica computes one token. What a replica caches is the prefix of its calls: the template, the
document, and the context of a program, each as a whole.
"""

from __future__ import annotations

import heapq
import math
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rtlang_bench.fleet.simulated_load import OUTPUT_WEIGHT, SimulatedLoad

MAX_BACKLOG = 60.0
"""Work of a mean replica, in programs of mean size alone, at which a rule counts as saturated and the simulation ends."""


class Rule(Protocol):
    """A rule that chooses replicas.

    Attributes:
        is_per_program: whether one choice is made for all calls of a program.
    """

    name: str
    is_per_program: bool

    def choose(self, fleet: SimulatedFleet, program: int, call: int) -> int:
        """The replica for a call, given as its number within the program; for the whole program if the rule is of that kind."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Figures of one rule at one load.

    Attributes:
        hit_rate: share of prompt tokens that were cached.
        balance: work of the busiest replica over the mean.
        used: share of the fleet's time in which it computed.
        mean, p99: time from arrival to the end of a program, in units of `SimulatedLoad.alone`.
        decision_us: mean processor time of a choice, in microseconds.
        num_programs: programs that ended.
        is_saturated: whether the simulation ended early because work piled up.
    """

    rule: str
    hit_rate: float
    balance: float
    used: float
    mean: float
    p99: float
    decision_us: float
    num_programs: int
    is_saturated: bool


class SimulatedFleet:
    """The state of the replicas.

    Attributes:
        now: the present time.
        busy_until: by replica, when it will have computed all calls that it has.
        num_calls: by replica, calls that it has.
        num_programs: by replica, programs that were sent there whole and run.
        later: by replica, tokens of calls that its programs will make later; known to it for programs that were sent there whole.
        holders: by document, the replicas that cache it.
        visited: by running program, the replicas that have computed a call of it.
    """

    def __init__(self, load: SimulatedLoad) -> None:
        self.load = load
        count = load.shape.num_replicas
        self.now = 0.0
        self.busy_until = [0.0] * count
        self.num_calls = np.zeros(count, np.int64)
        self.num_programs = [0] * count
        self.later = [0.0] * count
        self.work = [0.0] * count
        self.inserted = np.zeros(count, np.int64)  # tokens of templates and documents that were computed
        self.caches: list[OrderedDict[int, int]] = [OrderedDict() for _ in range(count)]
        self.holders: dict[int, dict[int, None]] = {}
        self.visited: dict[int, list[int]] = {}
        self.num_prompt = self.num_hit = 0
        self._cached = [0] * count
        self._num_documents = load.shape.num_documents

    def waiting(self, replica: int) -> float:
        """Tokens of the calls that a replica has."""
        return max(0.0, self.busy_until[replica] - self.now)

    def num_cached(self, replica: int, program: int) -> int:
        """Tokens of a program's prompt that a replica caches."""
        load, cache = self.load, self.caches[replica]
        document = load.documents[program]
        template = load.templates[document]
        found = load.template_tokens[template] if self._num_documents + template in cache else 0
        if document in cache:
            found += load.document_tokens[document] + cache.get(~program, 0)
        return found

    def serve(self, replica: int, program: int, context: int, index: int) -> float:
        """Compute a call after those that the replica has; returns the time of its end.

        Args:
            context: tokens of the program's earlier calls.
            index: of the call among all calls.
        """
        load, cache = self.load, self.caches[replica]
        document = load.documents[program]
        template = load.templates[document]
        prefix = load.template_tokens[template] + load.document_tokens[document]
        prompt = prefix + context + load.message_tokens[index]
        cached = self.num_cached(replica, program)
        self.num_prompt += prompt
        self.num_hit += cached
        if cached < prefix:
            self.inserted[replica] += prefix - cached
        work = prompt - cached + OUTPUT_WEIGHT * load.output_tokens[index]
        self.work[replica] += work
        self.num_calls[replica] += 1
        end = self.busy_until[replica] = max(self.now, self.busy_until[replica]) + work
        self._insert(replica, ~program, prompt - prefix + load.output_tokens[index])
        if document not in cache:
            self.holders.setdefault(document, {})[replica] = None
        self._insert(replica, document, load.document_tokens[document])
        self._insert(replica, self._num_documents + template, load.template_tokens[template])
        while self._cached[replica] > load.shape.cache_tokens:
            key, num_tokens = cache.popitem(last=False)
            self._cached[replica] -= num_tokens
            if 0 <= key < self._num_documents:
                del self.holders[key][replica]
        return end

    def _insert(self, replica: int, key: int, num_tokens: int) -> None:
        cache = self.caches[replica]
        self._cached[replica] += num_tokens - cache.get(key, 0)
        cache[key] = num_tokens
        cache.move_to_end(key)


def simulate(load: SimulatedLoad, arrivals: list[float], rule: Rule) -> Outcome:
    """Run all programs under one rule."""
    fleet = SimulatedFleet(load)
    first_calls, messages, outputs = load.first_calls, load.message_tokens, load.output_tokens
    home: dict[int, int] = {}
    contexts: dict[int, int] = {}
    running: list[tuple[float, int, int, int]] = []  # end of a call, program, number of the next call, replica
    latencies: list[float] = []
    decision_ns = num_decisions = next_arrival = num_checked = 0
    is_saturated, last = False, 0.0
    while running or next_arrival < len(arrivals):
        if next_arrival < len(arrivals) and (not running or arrivals[next_arrival] <= running[0][0]):
            program, call, fleet.now = next_arrival, 0, arrivals[next_arrival]
            next_arrival += 1
            contexts[program] = 0
            fleet.visited[program] = []
        else:
            fleet.now, program, call, replica = heapq.heappop(running)
            fleet.num_calls[replica] -= 1
            if first_calls[program] + call == first_calls[program + 1]:
                latencies.append(fleet.now - arrivals[program])
                last = fleet.now
                del contexts[program], fleet.visited[program]
                if rule.is_per_program:
                    fleet.num_programs[home.pop(program)] -= 1
                continue
        index = first_calls[program] + call
        work = messages[index] + OUTPUT_WEIGHT * outputs[index]
        if call == 0 or not rule.is_per_program:
            before = time.thread_time_ns()
            replica = rule.choose(fleet, program, call)
            decision_ns += time.thread_time_ns() - before
            num_decisions += 1
            if rule.is_per_program:
                home[program] = replica
                fleet.num_programs[replica] += 1
                end = first_calls[program + 1]
                fleet.later[replica] += sum(messages[index:end]) + OUTPUT_WEIGHT * sum(outputs[index:end])
        else:
            replica = home[program]
        if rule.is_per_program:
            fleet.later[replica] -= work
        end_s = fleet.serve(replica, program, contexts[program], index)
        contexts[program] += messages[index] + outputs[index]
        if replica not in fleet.visited[program]:
            fleet.visited[program].append(replica)
        heapq.heappush(running, (end_s, program, call + 1, replica))
        if next_arrival >= num_checked + 1000:
            num_checked = next_arrival
            backlog = sum(map(fleet.waiting, range(load.shape.num_replicas))) / load.shape.num_replicas
            if backlog > MAX_BACKLOG * load.alone:
                is_saturated = True
                break
    total = sum(fleet.work)
    return Outcome(
        rule.name,
        fleet.num_hit / max(1, fleet.num_prompt),
        max(fleet.work) * load.shape.num_replicas / total,
        (total - sum(map(fleet.waiting, range(load.shape.num_replicas)))) / (load.shape.num_replicas * max(last, 1.0)),
        float(np.mean(latencies)) / load.alone if latencies else math.inf,
        float(np.percentile(latencies, 99)) / load.alone if latencies else math.inf,
        decision_ns / max(1, num_decisions) / 1e3,
        len(latencies),
        is_saturated,
    )
