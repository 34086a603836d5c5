"""Finds rows and pages for a request by taking them from others.

Parked requests give their pages up first. Then the flow that has the most for its weight gives up the request that the policy serves last;
for pages of a running request that may be itself. A preempted request is queued again, and its pages stay in the tree until they are
needed.

Background requests give up theirs before live ones, and take none from them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from rtlang.cache.prefix_cache import PrefixCache
from rtlang.engine.requests.flow import Flow
from rtlang.engine.requests.request import Request, RequestStatus
from rtlang.engine.scheduling import policy
from rtlang.engine.scheduling.fair_shares import FairShares
from rtlang.engine.scheduling.running_requests import RunningRequests
from rtlang.engine.scheduling.step_plan import StepPlan

logger = logging.getLogger(__name__)


class Preemption:
    """Makes room for requests. Owned by the scheduler; requests that the step in the making computes are never preempted.

    Args:
        key: of the policy; the largest is preempted first.
        rank: the place of a request among programs: holds of programs with a larger rank are revoked for it.
        queue: queues a preempted request.
        max_running: maximum number of running requests.

    Attributes:
        num_preemptions: number of preempted requests.
    """

    def __init__(
        self,
        cache: PrefixCache,
        requests: RunningRequests,
        shares: FairShares,
        key: Callable[[Request], policy.Key],
        rank: Callable[[Request], float],
        queue: Callable[[Request], None],
        max_running: int,
    ) -> None:
        self.num_preemptions = 0
        self._cache, self._requests, self._shares = cache, requests, shares
        self._key, self._rank, self._queue = key, rank, queue
        self._max_running = max_running

    def put_back(self, request: Request) -> None:
        """Queue a request that has left the running ones."""
        request.enter(RequestStatus.PREEMPTED)
        request.stats.num_preemptions += 1
        self._queue(request)

    def for_priority(self) -> None:
        """All rows are taken: preempt a request of each flow whose next waiting request has a higher priority and goes first.

        Not for one that could not start, since it waits for a state that a running request is about to keep.
        """
        running = self._requests.running
        for flow in [flow for flow in self._shares.active if flow.waiting]:
            key, _, first = flow.waiting[0]
            if first.is_awaiting_state:
                continue
            priority = first.spec.priority
            candidates = [each for each in running if each.flow is flow and each.spec.priority > priority]
            # One that goes first itself would start again at once, and never get on.
            candidates = [each for each in candidates if self._key(each) > key]
            if candidates:
                self._preempt(policy.victim(candidates, self._key))

    def make_allowance(self, flow: Flow, request: Request, plan: StepPlan) -> bool:
        """Whether the limits of its principal let a request start; if needed, preempts its background requests for a live one."""
        while not self._shares.may_start(flow, request):
            if flow.is_background:
                return False
            name = flow.principal.name
            candidates = [each for each in self._preemptible(plan) if each.spec.principal.name == name]
            candidates = [each for each in candidates if each.flow is not None and each.flow.is_background]
            if not candidates:
                return False
            self._preempt(policy.victim(candidates, self._key))
        return True

    def make_row(self, flow: Flow, plan: StepPlan) -> bool:
        """Whether one more request may run; if needed, preempts one of a flow that has more of the rows than its share."""
        running, shares = self._requests.running, self._shares
        if len(running) < self._max_running:
            return True
        if plan.largest is None:
            plan.largest = max(
                shares.active,
                key=lambda each: (each.is_background and each.num_running > 0, each.num_running / shares.weight(each)),
            )
        largest, own = plan.largest, (flow.num_running + 1) / shares.weight(flow)
        if largest is flow or (flow.is_background and not largest.is_background):
            return False
        if flow.is_background == largest.is_background and largest.num_running / shares.weight(largest) <= own:
            return False
        candidates = [each for each in self._preemptible(plan) if each.flow is largest]
        if not candidates:
            return False
        self._preempt(policy.victim(candidates, self._key))
        plan.largest = None
        return True

    def allocate_first(self, request: Request, num_pages: int, plan: StepPlan) -> list[int] | None:
        """Pages for a request that starts; None if there are none beside the room that running requests need to grow."""
        assert request.flow is not None
        # A page for each running request, and more the more there are.
        num_running = len(self._requests.running)
        spare = num_running + 3 * max(0, num_running - 64)
        rank = self._revokes_from(request, 0)
        if self._make_pages(request.flow, num_pages, spare, rank, plan):
            return self._cache.allocate(num_pages, rank=rank)
        return None

    def allocate_next(self, request: Request, num_pages: int, plan: StepPlan) -> list[int] | None:
        """Pages for a running request that grows; None if it gets none, and then it may have been preempted itself."""
        while (pages := self._cache.allocate(num_pages, rank=self._revokes_from(request, 1))) is None:
            if self._requests.take_parked_pages():
                continue
            candidates = self._preemptible(plan)
            if not candidates:
                return None
            chosen = self._victim(candidates)
            self._preempt(chosen)
            if chosen is request:
                return None
        return pages

    def _revokes_from(self, request: Request, num_alone: int) -> float | None:
        """The rank from which holds may be revoked for a request; None for all if only `num_alone` requests run."""
        return None if len(self._requests.running) <= num_alone else self._rank(request)

    def _make_pages(self, flow: Flow, needed: int, spare: int, rank: float | None, plan: StepPlan) -> bool:
        """Whether so many pages can be allocated; if needed, preempts requests of flows that have more of the pages than their share."""
        while not self._cache.can_allocate(needed + spare, rank):
            if not self._requests.take_parked_pages():
                break
        else:
            return True
        shares, running = self._shares, self._requests.running
        if len(shares.active) < 2:
            return False
        pages = self._requests.pages_by_flow()
        own = (pages[flow] + needed) / shares.weight(flow)
        candidates = sorted(
            (each for each in self._preemptible(plan) if each.flow is not flow),
            key=lambda each: (each.spec.principal.is_background, self._key(each)),
        )
        while candidates:
            request = candidates.pop()
            other = request.flow
            assert other is not None
            if flow.is_background and not other.is_background:
                continue
            if flow.is_background == other.is_background and pages[other] / shares.weight(other) <= own:
                continue
            pages[other] -= len(request.pages.page_ids)
            self._preempt(request)
            if self._cache.can_allocate(needed + min(spare, len(running)), rank):
                return True
        return False

    def _victim(self, candidates: list[Request]) -> Request:
        """The request to preempt: of the flow with the most pages for its weight, the one that the policy serves last; background first."""
        candidates = [each for each in candidates if each.spec.principal.is_background] or candidates
        flows = {request.flow for request in candidates}
        if len(flows) > 1:
            pages = self._requests.pages_by_flow()
            largest = max(flows, key=lambda flow: pages[flow] / self._shares.weight(flow) if flow is not None else 0.0)
            candidates = [request for request in candidates if request.flow is largest]
        return policy.victim(candidates, self._key)

    def _preemptible(self, plan: StepPlan) -> list[Request]:
        return [each for each in self._requests.running if each not in plan.scheduled]

    def _preempt(self, request: Request) -> None:
        logger.debug("preempting request %d after %d tokens", request.request_id, request.num_computed_tokens)
        self._requests.leave(request)
        self.num_preemptions += 1
        self.put_back(request)
