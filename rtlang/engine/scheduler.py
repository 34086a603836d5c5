"""Which tokens of which requests are computed next.

A step lets every request's computed tokens catch up with its tokens, within one token budget: running requests first (those that only
need one token before those still in their prompt), then waiting ones in policy order. Three rules keep the cache honest and useful:

- whole pages enter the tree when they are *scheduled*, so requests of the same step already share them (a layer appends before it
  attends), and `commit` or `discard_pending` tells the cache how the step went;
- a waiting request whose next page is just being computed by a running one waits for it instead of computing it again;
- when no page is left, unlocked cache goes first, then the policy's victim, whose pages stay in the tree until they are needed.

The scheduler knows no tensors, no clock and no text.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Iterable, Sequence

from rtlang.cache.prefix_cache import PrefixCache
from rtlang.contract.step import Row, Step
from rtlang.engine import policy
from rtlang.engine.request import Request, RequestStatus

logger = logging.getLogger(__name__)

MAX_SKIPPED = 256
"""How many requests that wait for a neighbour's prefix are passed over in one step."""

_Entry = tuple[policy.Key, int, Request]


class Scheduler:
    """Queue of waiting requests and set of running ones. Owner of every request's pages.

    Args:
        cache: the account of the pool's pages.
        policy_name: a key of `policy.KEYS`.
        max_rows, max_step_tokens: limits of one step.
    """

    def __init__(self, cache: PrefixCache, *, policy_name: str, max_rows: int, max_step_tokens: int) -> None:
        self.cache = cache
        self.running: list[Request] = []
        self.num_preemptions = 0
        self._key = policy.KEYS[policy_name]
        self._reorders = policy_name == "longest_prefix"
        self._max_rows, self._max_step_tokens = max_rows, max_step_tokens
        self._page_size = cache.page_size
        self._waiting: list[_Entry] = []
        self._num_added = 0
        self._num_waiting = 0
        self._step_id = 0
        self._scheduled: dict[Request, int] = {}  # request -> tokens in the step being built or computed
        self._copies: list[tuple[int, int]] = []
        self._order: list[Request] = []  # running requests in tree order
        self._shared: dict[Request, int] = {}
        self._is_order_stale = True
        self._by_id: dict[int, Request] = {}  # the requests of the step being computed

    @property
    def num_waiting(self) -> int:
        """Requests in the queue, preempted ones included."""
        return self._num_waiting

    def add(self, request: Request) -> None:
        """Put a request into the queue."""
        if request.status is not RequestStatus.PREEMPTED:
            request.status = RequestStatus.WAITING
        self._num_added += 1
        heapq.heappush(self._waiting, (self._key(request), self._num_added, request))
        self._num_waiting += 1

    def remove(self, request: Request) -> None:
        """Forget a request, wherever it is, and give its pages back; what it computed stays in the cache."""
        if request.status in (RequestStatus.WAITING, RequestStatus.PREEMPTED):
            self._num_waiting -= 1  # its heap entry is skipped when it comes up
        elif request.status is RequestStatus.RUNNING:
            self._leave(request)
        request.status = RequestStatus.FINISHED

    def schedule(self, now: float) -> Step | None:
        """Build the next step; None where nothing can be computed."""
        self._scheduled.clear()
        self._copies.clear()
        budget = self._schedule_running(self._max_step_tokens)
        self._schedule_waiting(budget, now)
        if not self._scheduled:
            return None
        self._step_id += 1
        rows, num_masks = self._rows()
        return Step(self._step_id, rows, tuple(self._copies), num_masks)

    def computed(self, step: Step) -> list[Request]:
        """The step went well: account for it. Returns its requests in row order."""
        self.cache.commit()
        requests = [self._by_id[row.request_id] for row in step.rows]
        for request, row in zip(requests, step.rows, strict=True):
            request.num_computed_tokens += len(row.token_ids)
        return requests

    def launched(self, step: Step) -> list[Request]:
        """The step is on its way, and whatever comes after it finds its pages written. Returns its requests in row order."""
        requests = self.computed(step)
        for request, row in zip(requests, step.rows, strict=True):
            request.num_in_flight_tokens += len(row.token_ids)
            request.num_pending_tokens += row.samples
            request.num_pending_scores += len(row.score_token_ids)
        return requests

    def fail_step(self, step: Step) -> list[Request]:
        """The step raised: its requests leave without a trace in the cache. Returns them."""
        return self.fail([self._by_id[row.request_id] for row in step.rows])

    def fail(self, requests: list[Request]) -> list[Request]:
        """What these requests computed is lost: they leave, and what they began in the cache. Returns them."""
        self.cache.discard_pending()
        for request in requests:
            if request.status is RequestStatus.RUNNING:
                assert request.node is not None
                self.running.remove(request)
                self.cache.abandon(request.node, request.page_ids[request.num_tree_tokens // self._page_size :])
                self._reset(request)
                request.status = RequestStatus.FINISHED
        self._is_order_stale = True
        return requests

    def check(self) -> None:
        """Verify the accounting of pages and locks; for tests and RTLANG_DEBUG."""
        self.cache.check()
        for request in self.running:
            assert request.num_computed_tokens <= len(request.token_ids) + request.num_pending_tokens
            assert request.num_tree_tokens <= len(request.page_ids) * self._page_size
            assert request.num_preemptions or request.num_cached_tokens <= request.num_computed_tokens
        assert self._num_waiting == sum(
            request.status in (RequestStatus.WAITING, RequestStatus.PREEMPTED) for *_, request in self._waiting
        )

    # -- running requests

    def _schedule_running(self, budget: int) -> int:
        ordered = sorted(self.running, key=lambda r: (r.num_target_tokens - r.num_computed_tokens > 1, self._key(r)))
        for request in ordered:
            if request.status is not RequestStatus.RUNNING or request.is_ending:  # preempted for one before it
                continue
            if request.is_held:
                continue
            num_tokens = min(request.num_target_tokens - request.num_computed_tokens, budget)
            if num_tokens <= 0 or not self._reserve(request, request.num_computed_tokens + num_tokens):
                continue
            self._take(request, num_tokens)
            budget -= num_tokens
        return budget

    def _reserve(self, request: Request, num_tokens: int) -> bool:
        """Give the request pages for its first `num_tokens` tokens, preempting others if need be; False if it was preempted itself."""
        missing = -(-num_tokens // self._page_size) - len(request.page_ids)
        if missing <= 0:
            return True
        while (pages := self.cache.allocate(missing)) is None:
            candidates = [other for other in self.running if other not in self._scheduled]
            chosen = policy.victim(candidates, self._key)
            self._preempt(chosen)
            if chosen is request:
                return False
        request.page_ids += pages
        return True

    def _preempt(self, request: Request) -> None:
        logger.debug("request %d is preempted after %d tokens", request.request_id, request.num_computed_tokens)
        self._leave(request)
        request.status = RequestStatus.PREEMPTED
        request.num_preemptions += 1
        self.num_preemptions += 1
        self.add(request)

    # -- waiting requests

    def _schedule_waiting(self, budget: int, now: float) -> None:
        skipped: list[_Entry] = []
        held: list[_Entry] = []
        prefills = self._prefill_frontiers()
        if self._reorders:
            self._reorder_head()
        while budget > 0 and len(self.running) < self._max_rows and self._waiting and len(skipped) < MAX_SKIPPED:
            entry = heapq.heappop(self._waiting)
            request = entry[-1]
            if request.status not in (RequestStatus.WAITING, RequestStatus.PREEMPTED):
                continue
            if request.is_held:
                held.append(entry)
                continue
            # Waited for: the token it drew in a launched step, or another request that is computing what it needs.
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
                request.num_cached_tokens = request.num_computed_tokens
            num_tokens = min(request.num_target_tokens - request.num_computed_tokens, budget)
            self._take(request, num_tokens)
            budget -= num_tokens
            if request.num_computed_tokens + num_tokens < request.num_target_tokens:
                prefills.setdefault(id(request.node), []).append(request)
        for entry in (*skipped, *held):
            heapq.heappush(self._waiting, entry)

    def _admit(self, request: Request, prefills: dict[int, list[Request]]) -> bool | None:
        """Match, lock and reserve. True: running; False: no pages now; None: better wait for a running neighbour."""
        match = self.cache.match(request.token_ids, request.match_limit)
        if self._is_being_computed(request, match.num_tokens, prefills.get(id(match.node), ())):
            return None
        self.cache.lock(match.node)
        needed = -(-request.num_target_tokens // self._page_size) - len(match.page_ids)
        spare = len(self.running)  # a page of growth for each running request
        pages = self.cache.allocate(needed) if needed + spare <= self.cache.num_available else None
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
        self._is_order_stale = True
        return True

    def _prefill_frontiers(self) -> dict[int, list[Request]]:
        """Requests that will still be computing their prompt after this step, by the tree node their computed pages end in."""
        frontiers: dict[int, list[Request]] = {}
        for request in self.running:
            after = request.num_computed_tokens + self._scheduled.get(request, 0)
            if after < request.num_target_tokens:
                frontiers.setdefault(id(request.node), []).append(request)
        return frontiers

    def _is_being_computed(self, request: Request, start: int, others: Iterable[Request]) -> bool:
        """Whether a running request is about to compute the page of this one that begins at token `start`."""
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
        """Schedule tokens of a running request; the whole pages they fill enter the tree."""
        self._scheduled[request] = num_tokens
        if not self.cache.sharing:
            return
        # A token that the host has not seen has no place in the tree: its page enters it a step later.
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
        """Stop running: what is computed stays in the cache, the pages are given back."""
        assert request.node is not None
        self.running.remove(request)
        # What a step in flight computes may be for another token than the one that was kept: a constraint replaces drawn ones.
        known = request.num_computed_tokens - request.num_in_flight_tokens
        start = request.num_tree_tokens
        end = max(start, min(known, len(request.token_ids)))
        self.cache.finish(request.node, request.token_ids[start:end], request.page_ids[start // self._page_size :])
        self._reset(request)

    def _reset(self, request: Request) -> None:
        request.node, request.page_ids, request.num_tree_tokens, request.num_computed_tokens = None, [], 0, 0
        self._scheduled.pop(request, None)
        self._is_order_stale = True

    # -- rows

    def _rows(self) -> tuple[tuple[Row, ...], int]:
        if self._is_order_stale:
            self._order_running()
        rows: list[Row] = []
        self._by_id = {}
        num_masks, num_skipped_shared = 0, None
        for request in self._order:
            shared = self._shared[request]
            num_tokens = self._scheduled.get(request)
            if num_tokens is None:
                # Not in this step: the next row shares with the one before at most what both share with it.
                num_skipped_shared = shared if num_skipped_shared is None else min(num_skipped_shared, shared)
                continue
            if num_skipped_shared is not None:
                shared, num_skipped_shared = min(shared, num_skipped_shared), None
            row = self._row(request, num_tokens, shared if rows else 0, num_masks)
            num_masks += row.mask_row is not None
            rows.append(row)
            self._by_id[request.request_id] = request
        return tuple(rows), num_masks

    def _row(self, request: Request, num_tokens: int, num_shared: int, num_masks: int) -> Row:
        start = request.num_computed_tokens
        end = start + num_tokens
        samples = request.generates and end == request.num_target_tokens
        input_is_pending = end > len(request.token_ids)
        score_offset, score_ids = 0, tuple[int, ...]()
        if (index := request.next_score) is not None and end >= index:
            score_offset = index - 1 - start
            score_ids = tuple(request.token_ids[index : min(end + 1, request.num_prompt_tokens)])
        has_history = samples and request.needs_history
        return Row(
            request_id=request.request_id,
            token_ids=[0] if input_is_pending else request.token_ids[start:end],
            num_computed_tokens=start,
            page_ids=request.page_ids,
            num_shared_tokens=num_shared,
            samples=samples,
            params=request.params,
            seed=request.seed,
            choice=request.choice,
            num_output_tokens=request.num_output_tokens + request.num_pending_tokens,
            mask_row=num_masks if samples and request.session is not None else None,
            banned_token_ids=request.banned_token_ids if samples else (),
            prompt_token_ids=request.token_ids[: request.num_prompt_tokens] if has_history else (),
            output_token_ids=request.output_token_ids if has_history else (),
            score_offset=score_offset,
            score_token_ids=score_ids,
            num_score_top=request.params.prompt_logprobs or 0,
            input_is_pending=input_is_pending,
        )

    def _order_running(self) -> None:
        """Sort by page ids, which is a depth-first order of the tree, and note what neighbours share.

        Redone only when requests join or leave: pages that were shared stay shared while both run.
        """
        self._order = sorted(self.running, key=lambda request: request.page_ids)
        self._shared = {}
        before: Sequence[int] = ()
        for request in self._order:
            pages = request.page_ids[: request.num_tree_tokens // self._page_size]
            self._shared[request] = _num_common(before, pages) * self._page_size
            before = pages
        self._is_order_stale = False


def _num_common(a: Sequence[int], b: Sequence[int]) -> int:
    low, high = 0, min(len(a), len(b))
    while low < high:  # longest equal prefix by bisection on slices, which compare at C speed
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
