"""A queue of jobs that is fair between parties and between the clients of each, and takes small jobs first.

An owner of jobs is a client of a party. The next job is one of the party with the fewest running jobs, and among those of the party that
has used the least time so far; within the party, of the client chosen in the same way. So a client with no running job comes before every
client with one, however many jobs the other has queued. A party or client that comes back after a pause begins where the others are, so
that nobody saves up time. Among the jobs of one client the smallest comes first, but every fourth time the oldest, so that none waits
forever.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

_OLDEST_EVERY = 4

Job = tuple[Future[Any], Callable[[], None]]
Owner = tuple[str, str]
"""A party and its client; see `Principal.client_id`."""


@dataclass(slots=True)
class _Share:
    """Work of a party or a client.

    Attributes:
        used_s: time used, on a clock that begins where those served at its arrival are.
    """

    used_s: float
    num_waiting: int = 0
    num_running: int = 0

    @property
    def is_idle(self) -> bool:
        return not self.num_waiting and not self.num_running


@dataclass(slots=True)
class _Client(_Share):
    """The jobs of one client: a heap by size and age, and by age; a job taken from one heap is skipped in the other."""

    by_size: list[tuple[int, int]] = field(default_factory=list)
    by_age: list[int] = field(default_factory=list)
    jobs: dict[int, Job] = field(default_factory=dict)
    num_taken: int = 0

    def take(self) -> Job:
        self.num_taken += 1
        is_oldest = self.num_taken % _OLDEST_EVERY == 0
        number = -1
        while number not in self.jobs:
            number = heapq.heappop(self.by_age) if is_oldest else heapq.heappop(self.by_size)[1]
        job = self.jobs.pop(number)
        if not self.jobs:
            self.by_size.clear()
            self.by_age.clear()
        return job


@dataclass(slots=True)
class _Party(_Share):
    clients: dict[str, _Client] = field(default_factory=dict)
    least_s: float = 0.0  # as of the queue, for the clients


_S = TypeVar("_S", bound=_Share)


class FairQueue:
    """Jobs that wait. Not thread-safe: its pool calls it under a lock."""

    def __init__(self) -> None:
        self._parties: dict[str, _Party] = {}
        self._num_added = 0
        self._num_waiting = 0
        self._least_s = 0.0  # time used by the party that was served last, at that moment

    def __len__(self) -> int:
        return self._num_waiting

    def put(self, job: Job, owner: Owner, size: int) -> None:
        """Add a job."""
        party = self._parties.get(owner[0])
        if party is None:
            party = self._parties[owner[0]] = _Party(self._least_s)
        elif party.is_idle:
            party.used_s = max(party.used_s, self._least_s)
        client = party.clients.get(owner[1])
        if client is None:
            client = party.clients[owner[1]] = _Client(party.least_s)
        elif client.is_idle:
            client.used_s = max(client.used_s, party.least_s)
        self._num_added += 1
        client.jobs[self._num_added] = job
        heapq.heappush(client.by_size, (size, self._num_added))
        heapq.heappush(client.by_age, self._num_added)
        self._num_waiting += 1
        party.num_waiting += 1
        client.num_waiting += 1

    def take(self) -> tuple[Job, Owner]:
        """Remove and return the next job and its owner. There must be one."""
        party_name, party = _next(self._parties.items())
        self._least_s = max(self._least_s, party.used_s)
        client_name, client = _next(party.clients.items())
        party.least_s = max(party.least_s, client.used_s)
        job = client.take()
        self._num_waiting -= 1
        for share in (party, client):
            share.num_waiting -= 1
            share.num_running += 1
        return job, (party_name, client_name)

    def charge(self, owner: Owner, seconds: float) -> None:
        """A job of an owner has ended after `seconds` of work."""
        party = self._parties[owner[0]]
        client = party.clients[owner[1]]
        for share in (party, client):
            share.used_s += seconds
            share.num_running -= 1
        if client.is_idle and client.used_s <= party.least_s:
            del party.clients[owner[1]]  # it would begin again at the same place
        if party.is_idle and party.used_s <= self._least_s:
            del self._parties[owner[0]]

    def clear(self) -> list[Job]:
        """Remove and return all jobs."""
        dropped: list[Job] = []
        for party in self._parties.values():
            party.num_waiting = 0
            for client in party.clients.values():
                dropped.extend(client.jobs.values())
                client.num_waiting = 0
                for jobs in (client.jobs, client.by_size, client.by_age):
                    jobs.clear()
        self._num_waiting = 0
        return dropped


def _next(shares: Iterable[tuple[str, _S]]) -> tuple[str, _S]:
    """The share to serve next, with its name."""
    return min((each for each in shares if each[1].num_waiting), key=lambda each: (each[1].num_running, each[1].used_s))
