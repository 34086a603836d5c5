"""The requests that wait for a row: a heap for each flow, in policy order."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from itertools import chain, islice

from rtlang.engine.requests.flow import Entry, Flow
from rtlang.engine.requests.request import Request, RequestStatus
from rtlang.engine.scheduling.fair_shares import FairShares
from rtlang.engine.scheduling.policy import Key

_QUEUED = (RequestStatus.WAITING, RequestStatus.PREEMPTED)


class WaitingRequests:
    """The queues of waiting requests, preempted ones included. Owned by the scheduler.

    Args:
        key: of the policy; the smallest goes first. Constant while a request waits.

    Attributes:
        num: number of waiting requests.
    """

    def __init__(self, shares: FairShares, key: Callable[[Request], Key]) -> None:
        self.num = 0
        self._shares, self._key = shares, key
        self._num_added = 0

    def add(self, request: Request) -> None:
        """Queue a request in its flow."""
        if request.status is not RequestStatus.PREEMPTED:
            request.enter(RequestStatus.WAITING)
        if request.flow is None:
            request.flow = self._shares.enter(request.spec.principal)
        self._num_added += 1
        heapq.heappush(request.flow.waiting, (self._key(request), self._num_added, request))
        self.num += 1

    def remove(self, request: Request) -> None:
        """Take a request from its queue, if it waits. Its entry is skipped when popped, because its status changes."""
        self.num -= request.status in _QUEUED

    def pop(self, flow: Flow) -> Entry | None:
        """The first entry of a flow; `push` it again or note `started`."""
        while flow.waiting:
            entry = heapq.heappop(flow.waiting)
            if entry[-1].status in _QUEUED:
                return entry
        return None

    def push(self, flow: Flow, entry: Entry) -> None:
        """Put a popped entry back."""
        heapq.heappush(flow.waiting, entry)

    def started(self) -> None:
        """A popped request runs."""
        self.num -= 1

    def first(self, count: int) -> list[Request]:
        """Up to `count` waiting requests, those that go early among them."""
        entries = chain.from_iterable(flow.waiting for flow in self._shares.active)
        return [entry[-1] for entry in islice(entries, count) if entry[-1].status in _QUEUED]

    @contextmanager
    def restricted_to(self, requests: Collection[Request]) -> Iterator[None]:
        """Hide all other requests for a while."""
        others = [
            (flow, [entry for entry in flow.waiting if entry[-1] not in requests]) for flow in self._shares.active
        ]
        for flow, _ in others:
            flow.waiting = [entry for entry in flow.waiting if entry[-1] in requests]
            heapq.heapify(flow.waiting)
        try:
            yield
        finally:
            for flow, entries in others:
                flow.waiting += entries
                heapq.heapify(flow.waiting)

    def check(self) -> None:
        """Verify the number of waiting requests."""
        flows = self._shares.active
        assert self.num == sum(request.status in _QUEUED for flow in flows for *_, request in flow.waiting)
