"""The scheduler: decides how many tokens of which requests each step computes.

Each step computes tokens of requests that are not computed yet, within one token budget: running requests first (decoding before
prefill), then waiting ones in policy order. Three rules govern the cache:

- Full pages enter the tree when they are scheduled, so requests of the same step already share them (a layer writes K and V before it
  attends). `commit` or `discard_pending` tells the cache whether the step succeeded.
- A waiting request whose next page a running request is about to compute waits for it instead of computing it again.
- When no page is free, unlocked cached pages are evicted first, then those under holds of programs with a larger rank, then the policy's
  victim is preempted; its pages stay in the tree until they are needed. A request that has no other beside it may take the pages of all
  holds, so it always goes on.
- A request whose graph has no credit is parked once only its next token is left: it takes no row and keeps its pages until a request that
  has none needs them. `resume` brings it back.

The scheduler does not deal with tensors, clocks or text.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Collection, Iterable

from rtlang.cache.prefix_cache import PrefixCache
from rtlang.contract.step import Step
from rtlang.engine import policy
from rtlang.engine.batch_layout import BatchLayout
from rtlang.engine.credit import Credit
from rtlang.engine.request import Request, RequestStatus

logger = logging.getLogger(__name__)

MAX_SKIPPED = 256
"""Maximum number of requests skipped in one step because they wait for a prefix that another request computes."""

_Entry = tuple[policy.Key, int, Request]


class Scheduler:
    """The queue of waiting requests and the set of running ones. Owns the pages of every request.

    Args:
        cache: the prefix cache, which accounts for all pages.
        policy_name: a key of `policy.KEYS`.
        max_rows, max_step_tokens: limits of one step.
    """

    def __init__(self, cache: PrefixCache, *, policy_name: str, max_rows: int, max_step_tokens: int) -> None:
        self.cache = cache
        self.running: list[Request] = []
        self.parked: dict[Request, None] = {}  # without credit, oldest first; their pages may be gone
        self.num_preemptions = 0
        self.most_pages_in_use = 0
        self._policy_name, self._key = policy_name, policy.KEYS[policy_name]
        self._reorders = policy_name == "longest_prefix"
        self._max_rows, self._max_step_tokens = max_rows, max_step_tokens
        self._page_size = cache.page_size
        self._waiting: list[_Entry] = []
        self._num_added = 0
        self._num_waiting = 0
        self._step_id = 0
        self._scheduled: dict[Request, int] = {}  # number of tokens in the current step, by request
        self._allowances: dict[Credit, int] = {}  # tokens that the current step may sample
        self._copies: list[tuple[int, int]] = []
        self._layout = BatchLayout(cache.page_size)
        self._step_requests: tuple[Request, ...] = ()  # of the step scheduled last, in row order
        self._step: Step | None = None  # the step scheduled last, None if there was nothing to compute

    @property
    def num_waiting(self) -> int:
        """Number of queued requests, including preempted ones."""
        return self._num_waiting

    @property
    def max_rows(self) -> int:
        """Maximum number of rows of a step."""
        return self._max_rows

    @property
    def last_rows(self) -> list[tuple[Request, int, int]]:
        """Each row of the last step as (request, tokens of the step, tokens computed before it); empty if nothing was computed."""
        rows = () if self._step is None else self._step.rows
        return [
            (request, len(row.token_ids), row.num_computed_tokens)
            for request, row in zip(self._step_requests, rows, strict=False)
        ]

    def rank(self, program_time: float, priority: int) -> float:
        """The place of a program among others; see `policy.program_rank`."""
        return policy.program_rank(self._policy_name, program_time, priority)

    def add(self, request: Request) -> None:
        """Add a request to the queue."""
        if request.status is not RequestStatus.PREEMPTED:
            request.status = RequestStatus.WAITING
        self._num_added += 1
        heapq.heappush(self._waiting, (self._key(request), self._num_added, request))
        self._num_waiting += 1

    def remove(self, request: Request) -> None:
        """Remove a request in any state and release its pages; computed pages stay cached."""
        if request.status in (RequestStatus.WAITING, RequestStatus.PREEMPTED):
            self._num_waiting -= 1  # its heap entry is skipped when popped
        elif request.status is RequestStatus.RUNNING:
            self._leave(request)
        elif request.status is RequestStatus.PARKED:
            self._give_up_pages(request)
            del self.parked[request]
        request.status = RequestStatus.FINISHED

    def resume(self, credit: Credit) -> None:
        """Continue the parked requests of a graph that got credit: at once if a row is free, else as preempted ones."""
        for request in [each for each in self.parked if each.credit is credit]:
            del self.parked[request]
            if request.node is not None and len(self.running) < self._max_rows:
                request.status = RequestStatus.RUNNING
                self.running.append(request)
                self._layout.invalidate()
            else:
                self._give_up_pages(request)
                request.status = RequestStatus.PREEMPTED
                self.add(request)

    def schedule(
        self, now: float, only: Collection[Request] | None = None, max_step_tokens: int | None = None
    ) -> Step | None:
        """Build the next step; None if there is nothing to compute.

        Args:
            only: the requests that may be in it; None for all.
            max_step_tokens: a lower limit than the usual one.
        """
        self._scheduled.clear()
        self._copies.clear()
        self._allowances.clear()
        for request in self.running:
            if request.credit is not None:
                left = self._allowances.get(request.credit, request.credit.num_tokens)
                self._allowances[request.credit] = left - request.num_pending_tokens
        budget = self._schedule_running(max_step_tokens or self._max_step_tokens, only)
        if only is None:
            self._schedule_waiting(budget, now)
        else:
            others = [entry for entry in self._waiting if entry[-1] not in only]
            self._waiting = [entry for entry in self._waiting if entry[-1] in only]
            heapq.heapify(self._waiting)
            self._schedule_waiting(budget, now)
            self._waiting += others
            heapq.heapify(self._waiting)
        self._step = None
        if not self._scheduled:
            return None
        self._step_id += 1
        self.most_pages_in_use = max(self.most_pages_in_use, self.cache.num_in_use)
        layout = self._layout.lay_out(self.running, self._scheduled)
        self._step_requests = layout.requests
        self._step = Step(self._step_id, layout.rows, tuple(self._copies), layout.num_mask_rows)
        return self._step

    def requests_of(self, step: Step) -> list[Request]:
        """Requests of the step scheduled last, in row order."""
        assert len(step.rows) == len(self._step_requests)
        return list(self._step_requests)

    def computed(self, step: Step) -> list[Request]:
        """Account for a computed step. Returns its requests in row order."""
        self.cache.commit()
        requests = self.requests_of(step)
        for request, row in zip(requests, step.rows, strict=True):
            request.num_computed_tokens += len(row.token_ids)
        return requests

    def launched(self, step: Step) -> list[Request]:
        """Account for a launched step: later steps find its pages written. Returns its requests in row order."""
        requests = self.computed(step)
        for request, row in zip(requests, step.rows, strict=True):
            request.num_in_flight_tokens += len(row.token_ids)
            request.num_pending_tokens += row.needs_sample
            request.num_pending_scores += len(row.score_token_ids)
        return requests

    def put_back(self, requests: Iterable[Request]) -> None:
        """Queue requests again whose results were lost, without what the lost step computed; its pages leave the cache."""
        self.cache.discard_pending()
        for request in requests:
            request.num_pending_tokens = request.num_pending_scores = request.num_in_flight_tokens = 0
            if request.status is not RequestStatus.RUNNING:
                continue
            assert request.node is not None
            self.running.remove(request)
            self.cache.abandon(request.node, request.page_ids[request.num_tree_tokens // self._page_size :])
            self._reset(request)
            request.status = RequestStatus.PREEMPTED
            request.num_preemptions += 1
            self.add(request)
        self._layout.invalidate()

    def forget_pages(self) -> None:
        """Put all requests back and empty the cache: the pages hold nothing any more."""
        while self._take_parked_pages():
            pass
        self.put_back(list(self.running))
        self.cache.clear()

    def check(self) -> None:
        """Verify the accounting of pages and locks; for tests and RTLANG_DEBUG=1."""
        self.cache.check()
        for request in self.running:
            assert request.num_computed_tokens <= len(request.token_ids) + request.num_pending_tokens
            assert request.num_tree_tokens <= len(request.page_ids) * self._page_size
            assert request.num_preemptions or request.num_cached_tokens <= request.num_computed_tokens
        assert self._num_waiting == sum(
            request.status in (RequestStatus.WAITING, RequestStatus.PREEMPTED) for *_, request in self._waiting
        )

    # -- running requests

    def _schedule_running(self, budget: int, only: Collection[Request] | None) -> int:
        ordered = sorted(self.running, key=lambda r: (r.num_target_tokens - r.num_computed_tokens > 1, self._key(r)))
        for request in ordered:
            if request.status is not RequestStatus.RUNNING or request.is_ending:  # preempted by an earlier one
                continue
            if request.is_awaiting_mask or (only is not None and request not in only):
                continue
            num_tokens = self._num_next(request, budget)
            if num_tokens == 0 and budget > 0 and request.num_in_flight_tokens == 0:
                self._park(request)
            if num_tokens <= 0 or not self._reserve(request, request.num_computed_tokens + num_tokens):
                continue
            self._take(request, num_tokens)
            budget -= num_tokens
        return budget

    def _num_next(self, request: Request, budget: int) -> int:
        """Number of tokens to compute next; without credit, all but the one that samples."""
        num_missing = request.num_target_tokens - request.num_computed_tokens
        if request.credit is not None and not request.score_only and num_missing <= budget:
            left = self._allowances.setdefault(request.credit, request.credit.num_tokens)
            if left <= 0:
                return num_missing - 1
            self._allowances[request.credit] = left - 1
        return min(num_missing, budget)

    def _park(self, request: Request) -> None:
        """Take a request without credit out of the steps; it keeps its pages."""
        if request.credit is not None and request.credit.is_spent:
            self.running.remove(request)
            self.parked[request] = None
            request.status = RequestStatus.PARKED
            self._layout.invalidate()

    def _give_up_pages(self, request: Request) -> None:
        """Release the pages of a parked request; computed ones stay cached."""
        if request.node is not None:
            self._release(request)

    def _take_parked_pages(self) -> bool:
        """Release the pages of the request that was parked first; False if no parked request has any."""
        request = next((each for each in self.parked if each.node is not None), None)
        if request is not None:
            self._give_up_pages(request)
        return request is not None

    def _reserve(self, request: Request, num_tokens: int) -> bool:
        """Allocate pages for the first `num_tokens` tokens, preempting other requests if needed; False if it was preempted itself."""
        missing = -(-num_tokens // self._page_size) - len(request.page_ids)
        if missing <= 0:
            return True
        while (pages := self.cache.allocate(missing, rank=self._revokes_behind(request, 1))) is None:
            if self._take_parked_pages():
                continue
            candidates = [other for other in self.running if other not in self._scheduled]
            chosen = policy.victim(candidates, self._key)
            self._preempt(chosen)
            if chosen is request:
                return False
        request.page_ids += pages
        return True

    def _preempt(self, request: Request) -> None:
        logger.debug("preempting request %d after %d tokens", request.request_id, request.num_computed_tokens)
        self._leave(request)
        request.status = RequestStatus.PREEMPTED
        request.num_preemptions += 1
        self.num_preemptions += 1
        self.add(request)

    def _revokes_behind(self, request: Request, num_alone: int) -> float | None:
        """Holds of programs with a larger rank may be revoked for a request; all (None) if only `num_alone` requests run."""
        return None if len(self.running) <= num_alone else self.rank(request.program_time, request.priority)

    # -- waiting requests

    def _schedule_waiting(self, budget: int, now: float) -> None:
        skipped: list[_Entry] = []
        awaiting_mask: list[_Entry] = []
        prefills = self._prefill_frontiers()
        if self._reorders:
            self._reorder_head()
        while budget > 0 and len(self.running) < self._max_rows and self._waiting and len(skipped) < MAX_SKIPPED:
            entry = heapq.heappop(self._waiting)
            request = entry[-1]
            if request.status not in (RequestStatus.WAITING, RequestStatus.PREEMPTED):
                continue
            if request.is_awaiting_mask:
                awaiting_mask.append(entry)
                continue
            # Skip it while a launched step computes its token, or another request computes its prefix.
            verdict = None if request.num_in_flight_tokens else self._admit(request, prefills)
            if verdict is None:
                skipped.append(entry)
                continue
            if not verdict:
                skipped.append(entry)
                break
            self._num_waiting -= 1
            if request.first_step_time is None:
                request.first_step_time = now
                request.num_cached_tokens = min(request.num_computed_tokens, request.num_prompt_tokens)
            num_tokens = self._num_next(request, budget)
            if num_tokens == 0:
                self._park(request)
                continue
            self._take(request, num_tokens)
            budget -= num_tokens
            if request.num_computed_tokens + num_tokens < request.num_target_tokens:
                prefills.setdefault(id(request.node), []).append(request)
        for entry in (*skipped, *awaiting_mask):
            heapq.heappush(self._waiting, entry)

    def _admit(self, request: Request, prefills: dict[int, list[Request]]) -> bool | None:
        """Match, lock and reserve pages. True: running; False: no free pages; None: wait for another request's prefix."""
        match = self.cache.match(request.token_ids, request.match_limit)
        if self._is_being_computed(request, match.num_tokens, prefills.get(id(match.node), ())):
            return None
        self.cache.lock(match.node)
        needed = -(-request.num_target_tokens // self._page_size) - len(match.page_ids)
        spare = len(self.running)  # one page of growth per running request
        rank = self._revokes_behind(request, 0)
        pages = None
        while not self.cache.can_allocate(needed + spare, rank) and self._take_parked_pages():
            pass
        if self.cache.can_allocate(needed + spare, rank):
            pages = self.cache.allocate(needed, rank=rank)
        if pages is None:
            self.cache.unlock(match.node)
            return False
        request.page_ids = [*match.page_ids, *pages]
        request.node, request.num_tree_tokens = match.node, match.num_tokens
        request.num_computed_tokens = match.num_tokens
        if match.tail_page_id is not None and pages:
            self._copies.append((match.tail_page_id, pages[0]))
            request.num_computed_tokens += match.num_tail_tokens
        request.status = RequestStatus.RUNNING
        self.running.append(request)
        self._layout.invalidate()
        return True

    def _prefill_frontiers(self) -> dict[int, list[Request]]:
        """Requests still in prefill after this step, by the tree node that ends their computed pages."""
        frontiers: dict[int, list[Request]] = {}
        for request in self.running:
            after = request.num_computed_tokens + self._scheduled.get(request, 0)
            if after < request.num_target_tokens:
                frontiers.setdefault(id(request.node), []).append(request)
        return frontiers

    def _is_being_computed(self, request: Request, start: int, others: Iterable[Request]) -> bool:
        """Whether a running request is about to compute the page of this request that begins at token `start`."""
        end = start + self._page_size
        wanted = request.token_ids[start:end]
        if not self.cache.sharing or end > request.match_limit:
            return False
        return any(
            other.num_tree_tokens == start and end <= len(other.token_ids) and other.token_ids[start:end] == wanted
            for other in others
        )

    def _reorder_head(self) -> None:
        live = [entry for entry in self._waiting if entry[-1].status is not RequestStatus.FINISHED]
        head = heapq.nsmallest(policy.REORDER_WINDOW, live)
        moved = {entry[1] for entry in head}
        ordered = policy.by_longest_prefix([e[-1] for e in head], lambda request: self.cache.peek(request.token_ids))
        self._waiting = [entry for entry in live if entry[1] not in moved]
        self._waiting += [(key, number, request) for (key, number, _), request in zip(head, ordered, strict=True)]
        heapq.heapify(self._waiting)

    # -- pages

    def _take(self, request: Request, num_tokens: int) -> None:
        """Schedule tokens of a running request; the pages they fill enter the tree."""
        self._scheduled[request] = num_tokens
        if not self.cache.sharing:
            return
        # A token the host has not seen cannot enter the tree; its page enters one step later.
        end = min(request.num_computed_tokens + num_tokens, len(request.token_ids))
        end = end // self._page_size * self._page_size
        start = request.num_tree_tokens
        if end > start:
            first, last = start // self._page_size, end // self._page_size
            assert request.node is not None
            request.node, page_ids = self.cache.extend(
                request.node, request.token_ids[start:end], request.page_ids[first:last]
            )
            request.page_ids[first:last] = page_ids
            request.num_tree_tokens = end

    def _leave(self, request: Request) -> None:
        """Stop running: release the pages; computed ones stay cached."""
        self.running.remove(request)
        self._release(request)

    def _release(self, request: Request) -> None:
        assert request.node is not None
        # A step in flight may have been computed from a token that the constraint replaces.
        known = request.num_computed_tokens - request.num_in_flight_tokens
        start = request.num_tree_tokens
        end = max(start, min(known, len(request.token_ids)))
        self.cache.finish(request.node, request.token_ids[start:end], request.page_ids[start // self._page_size :])
        self._reset(request)

    def _reset(self, request: Request) -> None:
        request.node, request.page_ids, request.num_tree_tokens, request.num_computed_tokens = None, [], 0, 0
        self._scheduled.pop(request, None)
        self._layout.invalidate()
