"""A queue of jobs that is fair between parties and between the clients of each, and takes small jobs first.

An owner of jobs is a client of a party. The next job is one of the party with the fewest running jobs for its weight, and among those of
the party that has used the least time for its weight so far; within the party, of the client chosen in the same way. So a client with no
running job comes before every client with one, however many jobs the other has queued. A party or client that comes back after a pause
begins where the others are, so that nobody saves up time. Among the jobs of one client the cheapest comes first, but every fourth time the
oldest, so that none waits forever.

Jobs above a price may be limited in number, all together and for each party, so that cheap jobs of anyone, and the first expensive job of
another party, find a thread. The waiting jobs of an owner may be limited as well, in number and in price; no other owner counts for that.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from rtlang.contract.errors import OverloadError
from rtlang.contract.runs.principal import LOCAL, Principal

_OLDEST_EVERY = 4
_LEAST_RETRY_S, _MOST_RETRY_S = 1.0, 60.0
_MAX_SHARES = 1024  # parties, or clients of one, before those with no job are forgotten

Job = tuple[Future[Any], Callable[[], None]]


class Owner(NamedTuple):
    """A party, one client of it, and the weight of the party."""

    party: str
    client: str = ""
    weight: float = 1.0


def owner_of(principal: Principal | None) -> Owner:
    """The owner of the work of a principal's client; without one, of programs in this process."""
    found = LOCAL if principal is None else principal
    return Owner(found.name, found.client, found.weight)


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """Limits of a queue.

    Attributes:
        max_waiting: jobs of one owner that wait.
        max_waiting_price: the sum of their prices; a single one may be of any price.
        max_each: jobs of one party that run at one time, whatever their prices, which may be wrong.
        cheap_price: jobs up to this price are cheap.
        max_expensive: other jobs that run at one time.
        max_expensive_each: of them, jobs of one party.
    """

    max_waiting: int | None = None
    max_waiting_price: float = math.inf
    max_each: int | None = None
    cheap_price: float = math.inf
    max_expensive: int | None = None
    max_expensive_each: int | None = None


class Ticket(NamedTuple):
    """A job in the queue, or one that runs."""

    owner: Owner
    number: int
    price: float


@dataclass(slots=True)
class _Jobs:
    """The cheap or the expensive jobs of one client: heaps by price and by age; a job taken from one heap is skipped in the other."""

    by_price: list[tuple[float, int]] = field(default_factory=list)
    by_age: list[int] = field(default_factory=list)
    jobs: dict[int, tuple[Job, float]] = field(default_factory=dict)

    def put(self, number: int, job: Job, price: float) -> None:
        self.jobs[number] = job, price
        heapq.heappush(self.by_price, (price, number))
        heapq.heappush(self.by_age, number)

    def oldest(self) -> int:
        while self.by_age[0] not in self.jobs:
            heapq.heappop(self.by_age)
        return self.by_age[0]

    def cheapest(self) -> int:
        while self.by_price[0][1] not in self.jobs:
            heapq.heappop(self.by_price)
        return self.by_price[0][1]

    def pop(self, number: int) -> tuple[Job, float]:
        job = self.jobs.pop(number)
        if not self.jobs:
            self.clear()
        elif len(self.by_age) > 2 * len(self.jobs) + 16:  # many were cancelled
            self.by_age = sorted(self.jobs)
            self.by_price = sorted((price, number) for number, (_, price) in self.jobs.items())
        return job

    def clear(self) -> None:
        self.by_price.clear()
        self.by_age.clear()
        self.jobs.clear()


@dataclass(slots=True)
class _Share:
    """Work of a party or a client.

    Attributes:
        used_s: time used for its weight, on a clock that begins where those served at its arrival are.
    """

    used_s: float
    weight: float = 1.0
    num_waiting: list[int] = field(default_factory=lambda: [0, 0])  # cheap, expensive
    num_running: list[int] = field(default_factory=lambda: [0, 0])

    @property
    def is_idle(self) -> bool:
        return not any(self.num_waiting) and not any(self.num_running)


@dataclass(slots=True)
class _Client(_Share):
    jobs: tuple[_Jobs, _Jobs] = field(default_factory=lambda: (_Jobs(), _Jobs()))  # cheap, expensive
    waiting_price: float = 0.0
    num_taken: int = 0

    def choose(self, kinds: Iterable[int]) -> tuple[int, int]:
        """The kind and the number of the next job among those of some kinds."""
        self.num_taken += 1
        found = [kind for kind in kinds if self.jobs[kind].jobs]
        if self.num_taken % _OLDEST_EVERY == 0:
            return min(((kind, self.jobs[kind].oldest()) for kind in found), key=lambda each: each[1])
        return found[0], self.jobs[found[0]].cheapest()


@dataclass(slots=True)
class _Party(_Share):
    clients: dict[str, _Client] = field(default_factory=dict)
    least_s: float = 0.0  # as of the queue, for the clients


_S = TypeVar("_S", bound=_Share)
_CHEAP, _EXPENSIVE = 0, 1
_ALL = (_CHEAP, _EXPENSIVE)


class FairQueue:
    """Jobs that wait. Not thread-safe: its pool calls it under a lock."""

    def __init__(self, limits: QueueLimits | None = None) -> None:
        self.limits = limits or QueueLimits()
        self._parties: dict[str, _Party] = {}
        self._num_added = 0
        self._num_waiting = 0
        self._num_expensive = 0  # running
        self._least_s = 0.0  # time used by the party that was served last, at that moment

    def __len__(self) -> int:
        return self._num_waiting

    @property
    def has_next(self) -> bool:
        """Whether a job may begin now."""
        return self._num_waiting > 0 and any(self._kinds_of(party) for party in self._parties.values())

    def put(self, job: Job, owner: Owner, price: float, *, is_bounded: bool = False) -> Ticket:
        """Add a job.

        Args:
            is_bounded: refuse it if too much of its owner waits.
        Raises:
            OverloadError: too much of its owner waits.
        """
        party, client = self._share_of(owner)
        if is_bounded:
            self._check_room(owner, client, price)
        self._num_added += 1
        kind = self._kind(price)
        client.jobs[kind].put(self._num_added, job, price)
        client.waiting_price += price
        self._num_waiting += 1
        party.num_waiting[kind] += 1
        client.num_waiting[kind] += 1
        return Ticket(owner, self._num_added, price)

    def take(self) -> tuple[Job, Ticket]:
        """Remove and return the next job. There must be one that may begin (`has_next`)."""
        parties = ((name, party) for name, party in self._parties.items() if self._kinds_of(party))
        party_name, party = _next(parties)
        kinds = self._kinds_of(party)
        self._least_s = max(self._least_s, party.used_s)
        waiting = (
            (name, each) for name, each in party.clients.items() if any(each.num_waiting[kind] for kind in kinds)
        )
        client_name, client = _next(waiting)
        party.least_s = max(party.least_s, client.used_s)
        kind, number = client.choose(kinds)
        job, price = client.jobs[kind].pop(number)
        self._forget_waiting(party, client, kind, price)
        for share in (party, client):
            share.num_running[kind] += 1
        self._num_expensive += kind
        return job, Ticket(Owner(party_name, client_name, party.weight), number, price)

    def remove(self, ticket: Ticket) -> bool:
        """Take a job out that nobody waits for any more; False if it is not in the queue."""
        party = self._parties.get(ticket.owner.party)
        client = None if party is None else party.clients.get(ticket.owner.client)
        kind = self._kind(ticket.price)
        if party is None or client is None or ticket.number not in client.jobs[kind].jobs:
            return False
        client.jobs[kind].pop(ticket.number)
        self._forget_waiting(party, client, kind, ticket.price)
        self._tidy(ticket.owner, party, client)
        return True

    def charge(self, ticket: Ticket, seconds: float) -> None:
        """A job has ended after `seconds` of work."""
        party = self._parties[ticket.owner.party]
        client = party.clients[ticket.owner.client]
        kind = self._kind(ticket.price)
        self._num_expensive -= kind
        for share in (party, client):
            share.used_s += seconds / share.weight
            share.num_running[kind] -= 1
        self._tidy(ticket.owner, party, client)

    def clear(self) -> list[Job]:
        """Remove and return all jobs."""
        dropped: list[Job] = []
        for party in self._parties.values():
            party.num_waiting = [0, 0]
            for client in party.clients.values():
                client.num_waiting, client.waiting_price = [0, 0], 0.0
                for jobs in client.jobs:
                    dropped.extend(job for job, _ in jobs.jobs.values())
                    jobs.clear()
        self._num_waiting = 0
        return dropped

    def _kind(self, price: float) -> int:
        return _CHEAP if price <= self.limits.cheap_price else _EXPENSIVE

    def _kinds_of(self, party: _Party) -> tuple[int, ...]:
        """The kinds of the party's jobs that may begin now."""
        limits = self.limits
        if limits.max_each is not None and sum(party.num_running) >= limits.max_each:
            return ()
        most, most_each = limits.max_expensive, limits.max_expensive_each
        is_full = (most is not None and self._num_expensive >= most) or (
            most_each is not None and party.num_running[_EXPENSIVE] >= most_each
        )
        return tuple(kind for kind in _ALL if party.num_waiting[kind] and not (kind == _EXPENSIVE and is_full))

    def _share_of(self, owner: Owner) -> tuple[_Party, _Client]:
        party = self._parties.get(owner.party)
        if party is None:
            _forget_idle(self._parties)
            party = self._parties[owner.party] = _Party(self._least_s)
        elif party.is_idle:
            party.used_s = max(party.used_s, self._least_s)
        party.weight = owner.weight
        client = party.clients.get(owner.client)
        if client is None:
            _forget_idle(party.clients)
            client = party.clients[owner.client] = _Client(party.least_s)
        elif client.is_idle:
            client.used_s = max(client.used_s, party.least_s)
        return party, client

    def _check_room(self, owner: Owner, client: _Client, price: float) -> None:
        limits, num_waiting = self.limits, sum(client.num_waiting)
        has_room = limits.max_waiting is None or num_waiting < limits.max_waiting
        if has_room and (not num_waiting or client.waiting_price + price <= limits.max_waiting_price):
            return
        retry_s = min(max(client.waiting_price / 2, _LEAST_RETRY_S), _MOST_RETRY_S)
        raise OverloadError(f"{num_waiting} jobs of {owner.party} are already waiting for a thread", round(retry_s, 1))

    def _forget_waiting(self, party: _Party, client: _Client, kind: int, price: float) -> None:
        self._num_waiting -= 1
        party.num_waiting[kind] -= 1
        client.num_waiting[kind] -= 1
        client.waiting_price = client.waiting_price - price if any(client.num_waiting) else 0.0

    def _tidy(self, owner: Owner, party: _Party, client: _Client) -> None:
        """Forget an owner that would begin again at the same place."""
        if client.is_idle and client.used_s <= party.least_s:
            del party.clients[owner.client]
        if party.is_idle and party.used_s <= self._least_s:
            del self._parties[owner.party]


def _forget_idle(shares: dict[str, _S]) -> None:
    """Forget shares with no job if there are many shares: clients come and go."""
    if len(shares) >= _MAX_SHARES:
        for name in [name for name, share in shares.items() if share.is_idle]:
            del shares[name]


def _next(shares: Iterable[tuple[str, _S]]) -> tuple[str, _S]:
    """The share to serve next, with its name."""
    return min(shares, key=lambda each: (sum(each[1].num_running) / each[1].weight, each[1].used_s))
