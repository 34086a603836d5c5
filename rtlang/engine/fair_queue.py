"""A queue of jobs that is fair between owners and takes small jobs first.

The next job is one of the owner that has used the least time so far. An owner that comes back after a pause begins where the others
are, so that nobody saves up time. Among the jobs of one owner the smallest comes first, but every fourth time the oldest, so that none
waits forever.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

_OLDEST_EVERY = 4

Job = tuple[Future[Any], Callable[[], None]]


@dataclass(slots=True)
class _Owner:
    """The jobs of one owner: a heap by size and age, and by age; a job taken from one heap is skipped in the other."""

    used_s: float
    by_size: list[tuple[int, int]] = field(default_factory=list)
    by_age: list[int] = field(default_factory=list)
    jobs: dict[int, Job] = field(default_factory=dict)
    num_taken: int = 0
    num_running: int = 0


class FairQueue:
    """Jobs that wait. Not thread-safe: its pool calls it under a lock."""

    def __init__(self) -> None:
        self._owners: dict[str, _Owner] = {}
        self._num_added = 0
        self._num_waiting = 0
        self._least_s = 0.0  # time used by the owner that was served last, at that moment

    def __len__(self) -> int:
        return self._num_waiting

    def put(self, job: Job, owner: str, size: int) -> None:
        """Add a job."""
        place = self._owners.get(owner)
        if place is None:
            place = self._owners[owner] = _Owner(self._least_s)
        elif not place.jobs and not place.num_running:
            place.used_s = max(place.used_s, self._least_s)
        self._num_added += 1
        place.jobs[self._num_added] = job
        heapq.heappush(place.by_size, (size, self._num_added))
        heapq.heappush(place.by_age, self._num_added)
        self._num_waiting += 1

    def take(self) -> tuple[Job, str]:
        """Remove and return the next job and its owner. There must be one."""
        name, place = min(
            ((name, place) for name, place in self._owners.items() if place.jobs), key=lambda each: each[1].used_s
        )
        self._least_s = max(self._least_s, place.used_s)
        place.num_taken += 1
        is_oldest = place.num_taken % _OLDEST_EVERY == 0
        number = -1
        while number not in place.jobs:
            number = heapq.heappop(place.by_age) if is_oldest else heapq.heappop(place.by_size)[1]
        job = place.jobs.pop(number)
        self._num_waiting -= 1
        place.num_running += 1
        if not place.jobs:
            place.by_size.clear()
            place.by_age.clear()
        return (job, name)

    def charge(self, owner: str, seconds: float) -> None:
        """A job of an owner has ended after `seconds` of work."""
        place = self._owners[owner]
        place.used_s += seconds
        place.num_running -= 1
        if not place.jobs and not place.num_running and place.used_s <= self._least_s:
            del self._owners[owner]  # it would begin again at the same place

    def clear(self) -> list[Job]:
        """Remove and return all jobs."""
        jobs = [job for place in self._owners.values() for job in place.jobs.values()]
        for place in self._owners.values():
            place.jobs.clear()
            place.by_size.clear()
            place.by_age.clear()
        self._num_waiting = 0
        return jobs
