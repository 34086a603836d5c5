"""The requests that hold pages: running ones, and parked ones until others need their pages.

A request that runs owns the pages after its place in the tree and locks that place. Full pages enter the tree when they are scheduled; the
others enter it when the request stops.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from rtlang.cache.prefix_cache import PrefixCache
from rtlang.engine.requests.flow import Flow
from rtlang.engine.requests.request import Request, RequestStatus
from rtlang.engine.scheduling.batch_layout import BatchLayout
from rtlang.engine.scheduling.fair_shares import FairShares
from rtlang.engine.scheduling.state_slots import StateSlots
from rtlang.engine.scheduling.step_plan import StepPlan
from rtlang.engine.scheduling.turns import Turn


class RunningRequests:
    """Starts and stops requests, and moves their pages to the tree. Owned by the scheduler.

    Attributes:
        running: in the order in which they started.
        parked: without credit, oldest first; their pages may be gone.
    """

    def __init__(
        self, cache: PrefixCache, shares: FairShares, layout: BatchLayout, states: StateSlots | None = None
    ) -> None:
        self.running: list[Request] = []
        self.parked: dict[Request, None] = {}
        self._with_pages: dict[Request, None] = {}  # the parked ones that have pages
        self._cache, self._shares, self._layout, self._states = cache, shares, layout, states
        self._page_size = cache.page_size

    def start(self, request: Request) -> None:
        """Let a request with pages run."""
        assert request.flow is not None
        request.enter(RequestStatus.RUNNING)
        self.running.append(request)
        self._shares.start(request.flow, request)
        self._layout.invalidate()

    def stop(self, request: Request) -> None:
        """Take a request from the running ones; it keeps its pages."""
        assert request.flow is not None
        self.running.remove(request)
        self._layout.invalidate()
        self._shares.stop(request.flow, request)

    def leave(self, request: Request) -> None:
        """Stop a running request and release its pages; computed ones stay cached."""
        self.stop(request)
        self._release(request)

    def abandon(self, request: Request) -> None:
        """Stop a running request whose last step was lost: its own pages are freed."""
        assert request.pages.node is not None
        self.stop(request)
        if self._states is not None:
            self._states.abandon(request)
        self._cache.abandon(
            request.pages.node, request.pages.page_ids[request.pages.num_tree_tokens // self._page_size :]
        )
        _reset(request)

    def store(self, request: Request, num_tokens: int) -> None:
        """Put the full pages of the first `num_tokens` tokens into the tree; the current step writes them."""
        end = num_tokens // self._page_size * self._page_size
        start = request.pages.num_tree_tokens
        if self._cache.sharing and end > start:
            first, last = start // self._page_size, end // self._page_size
            assert request.pages.node is not None
            request.pages.node, page_ids = self._cache.extend(
                request.pages.node,
                request.token_ids[start:end],
                request.pages.page_ids[first:last],
                request.scope,
                start,
            )
            request.pages.page_ids[first:last] = page_ids
            request.pages.num_tree_tokens = end

    def serve_decodes(
        self, plan: StepPlan, turn: Turn, limit: int, reserve: Callable[[StepPlan, Request, int], bool]
    ) -> int:
        """Schedule decodes of the only flow with work, which need not be chosen one at a time. Returns the number of tokens.

        Those that are left, from the first one on that may need more than one token or has a credit, are the scheduler's.

        Args:
            limit: tokens that may be scheduled.
            reserve: allocates pages for the first tokens of a request; False if it gets none.
        """
        limit = min(limit, plan.max_rows - len(plan.scheduled), plan.max_decode_rows - plan.num_decode_rows)
        scheduled, decodes, size, num_served = plan.scheduled, turn.decodes, self._page_size, 0
        while decodes and num_served < limit:
            request = decodes[-1]
            pages, end = request.pages, request.num_computed_tokens + 1
            if request.spec.credit is not None or request.num_target_tokens != end or request in scheduled:
                break
            decodes.pop()
            if request.status is not RequestStatus.RUNNING:  # preempted in this step
                continue
            if end > size * len(pages.page_ids) and not reserve(plan, request, end):
                continue
            scheduled[request] = 1
            if end - pages.num_tree_tokens >= size:
                self.store(request, min(end, len(request.token_ids)))
            num_served += 1
        plan.num_decode_rows += num_served
        if num_served:  # in two parts, so that a new flow begins where this one stood before its last token
            self._shares.serve(turn.flow, num_served - 1)
            self._shares.serve(turn.flow, 1)
        return num_served

    def park(self, request: Request) -> None:
        """Take a request without credit out of the steps; it keeps its pages."""
        if request.spec.credit is not None and request.spec.credit.is_spent:
            self.stop(request)
            self.parked[request] = self._with_pages[request] = request.spec.credit.parked[request] = None
            request.enter(RequestStatus.PARKED)

    def unpark(self, request: Request, *, may_run: bool) -> bool:
        """End the parking of a request: it runs again if it may and has pages, else it releases them. Returns whether it runs."""
        assert request.spec.credit is not None
        del self.parked[request], request.spec.credit.parked[request]
        if may_run and request.pages.node is not None:
            del self._with_pages[request]
            self.start(request)
            return True
        self._give_up_pages(request)
        return False

    def take_parked_pages(self) -> bool:
        """Release the pages of the request that was parked first; False if no parked request has any."""
        request = next(iter(self._with_pages), None)
        if request is not None:
            self._give_up_pages(request)
        return request is not None

    def pages_by_flow(self) -> Counter[Flow | None]:
        """Pages of running requests by flow; pages that several share count for each."""
        pages: Counter[Flow | None] = Counter()
        for request in self.running:
            pages[request.flow] += len(request.pages.page_ids)
        return pages

    def check(self) -> None:
        """Verify the accounting of pages and locks."""
        for request in self.running:
            assert request.num_computed_tokens <= len(request.token_ids) + request.pending.num_tokens
            assert request.pages.num_tree_tokens <= len(request.pages.page_ids) * self._page_size
            assert request.stats.num_preemptions or request.stats.num_cached_tokens <= request.num_computed_tokens
        assert list(self._with_pages) == [each for each in self.parked if each.pages.node is not None]
        if self._states is not None:
            self._states.check([*self.running, *self._with_pages])

    def _give_up_pages(self, request: Request) -> None:
        if request in self._with_pages:
            del self._with_pages[request]
            self._release(request)

    def _release(self, request: Request) -> None:
        assert request.pages.node is not None
        # A step in flight may have been computed from a token that the constraint replaces.
        known = request.num_kv_tokens - request.pending.num_computed_tokens
        start = request.pages.num_tree_tokens
        end = max(start, min(known, len(request.token_ids)))
        pages = request.pages.page_ids[start // self._page_size :]
        state = None
        if self._states is not None:
            num_known = request.num_computed_tokens - request.pending.num_computed_tokens
            state = self._states.release(request, min(num_known, end))
        self._cache.finish(request.pages.node, request.token_ids[start:end], pages, request.scope, start, state)
        _reset(request)


def _reset(request: Request) -> None:
    request.stats.num_reached_tokens = max(request.stats.num_reached_tokens, request.num_computed_tokens)
    request.pages.node, request.pages.page_ids, request.pages.num_tree_tokens, request.num_computed_tokens = (
        None,
        [],
        0,
        0,
    )
