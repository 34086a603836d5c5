"""The scheduler: decides how many tokens of which requests each step computes.

Each step computes tokens of requests that are not computed yet, within one token budget. The budget goes to the flow (a client of a
principal) that has had the least for its weight; see `fair_shares.py`. Within a flow, running requests go first (decoding before prefill),
then waiting ones in policy order. A flow with less than its share of the rows or pages preempts one that has more. For the cache:

- Full pages enter the tree when they are scheduled, so requests of the same step already share them (a layer writes K and V before it
  attends). `commit` or `discard_pending` tells the cache whether the step succeeded.
- A waiting request whose next page a running request is about to compute waits for it instead of computing it again.
- When no page is free, unlocked cached pages are evicted first, then those under holds of programs with a larger rank, then the policy's
  victim is preempted; its pages stay in the tree until they are needed. A request that has no other beside it may take the pages of all
  holds, so it always goes on.
- Rows that sample may have drafts (`drafts/drafter.py`), which are computed in free pages behind the known tokens and enter the tree only
  once they are sampled.
- A request without credit is parked: it takes no row, and keeps its pages until another needs them. `resume` brings it back.

The scheduler does not deal with tensors, clocks or text.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence

from rtlang.cache.node import RadixNode
from rtlang.cache.prefix_cache import PrefixCache
from rtlang.contract.step import Step
from rtlang.engine import policy
from rtlang.engine.batch_layout import BatchLayout
from rtlang.engine.credit import Credit
from rtlang.engine.drafts.drafter import Drafter
from rtlang.engine.drafts.step_drafts import add_drafts, held_back
from rtlang.engine.planning.step_planner import StepPlanner
from rtlang.engine.request import Request, RequestStatus
from rtlang.engine.scheduling.running_requests import RunningRequests
from rtlang.engine.shares.fair_shares import FairShares
from rtlang.engine.shares.flow import Entry, Flow
from rtlang.engine.shares.turns import Turn, next_prompts, order_turns, reorder_head, turns_of

logger = logging.getLogger(__name__)

MAX_LOOKED_UP = 200_000
"""Work of looking for the prompts of waiting requests in the cache, in one step: about 4 ms. More requests wait for the next step."""
LOOK_UP = 1000
"""Work of a look-up, besides its tokens and the requests that may compute its prefix: 20 us, 0.02 us and 0.06 us, when measured."""

MAX_BLOCKED = 8
"""Maximum number of requests in one step that find no pages; no other waiting request starts in this step then."""

MAX_PASSED = 256
"""Number of requests of others that may start before one that finds no pages; then none does until it has started."""

QUANTUM = 64
"""Maximum number of tokens of one flow in a row, while others have work, in the choice of a step's tokens."""


class Scheduler:
    """The queue of waiting requests and the set of running ones. Owns the pages of every request.

    Args:
        cache: the prefix cache, which accounts for all pages.
        planner: decides the number of tokens of each step.
        policy_name: a key of `policy.KEYS`.
        max_rows: maximum number of rows of one step.
        max_running: maximum number of running requests, which have pages; if there are more than rows, they take turns.
        drafter: chooses tokens that are computed with the last known one of a request; None: every row is of known tokens.
    """

    def __init__(
        self,
        cache: PrefixCache,
        planner: StepPlanner,
        *,
        policy_name: str,
        max_rows: int,
        max_running: int | None = None,
        drafter: Drafter | None = None,
    ) -> None:
        self.cache, self.planner = cache, planner
        self.num_preemptions = 0
        self.most_pages_in_use = 0
        self._policy_name, self._key = policy_name, policy.KEYS[policy_name]
        self._reorders = policy_name == "longest_prefix"
        self._max_rows = max_rows
        self._page_size = cache.page_size
        self._max_running = max(max_rows, max_running or 0)
        self._shares = FairShares()
        self._drafter = drafter
        self._num_added = 0
        self._num_waiting = 0
        self._step_id = 0
        self._scheduled: dict[Request, int] = {}  # number of tokens in the current step, by request
        self._allowances: dict[Credit, int] = {}  # tokens that the current step may sample
        self._copies: list[tuple[int, int]] = []
        # Of the step that is being filled:
        self._skipped: list[tuple[Flow, Entry]] = []
        self._max_looked_up = 0  # by each flow
        self._awaiting_masks: list[tuple[Flow, Entry]] = []
        self._blocked: list[Request] = []
        self._num_blocked = self._num_decode_rows = self._max_decode_rows = 0
        self._unfinished: list[Request] | None = None  # running requests in prefill
        self._largest: Flow | None = None  # the flow with the most rows for its weight
        self._layout = BatchLayout(cache.page_size)
        self._requests = RunningRequests(cache, self._shares, self._layout)
        self.running, self.parked = self._requests.running, self._requests.parked
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
        if request.flow is None:
            request.flow = self._shares.enter(request.spec.principal)
        self._num_added += 1
        self._estimate(request)
        heapq.heappush(request.flow.waiting, (self._key(request), self._num_added, request))
        self._num_waiting += 1

    def remove(self, request: Request) -> None:
        """Remove a request in any state and release its pages; computed pages stay cached."""
        if request.status in (RequestStatus.WAITING, RequestStatus.PREEMPTED):
            self._num_waiting -= 1  # its heap entry is skipped when popped
        elif request.status is RequestStatus.RUNNING:
            self._requests.leave(request)
        elif request.status is RequestStatus.PARKED:
            self._requests.unpark(request, may_run=False)
        self._end(request)

    def _estimate(self, request: Request) -> None:
        """Set the expected time of the rest of the prompt. Short ones are not looked up in the cache: their time counts as nothing."""
        num_tokens, token_s = request.num_target_tokens - request.num_computed_tokens, self.planner.token_s
        if request.pages.node is None and num_tokens * token_s >= policy.SERVICE_QUANTUM_S:
            num_tokens -= self.cache.peek(request.token_ids, request.scope)
        request.prompt_s = num_tokens * token_s

    def _end(self, request: Request) -> None:
        request.status = RequestStatus.FINISHED
        if self._drafter is not None:
            self._drafter.forget(request)
        if request.flow is not None:
            self._shares.leave(request.flow)
            request.flow = None

    def resume(self, credit: Credit) -> None:
        """Continue the parked requests of a graph that got credit: at once if a row is free, else as preempted ones."""
        for request in tuple(credit.parked):
            if not self._requests.unpark(request, may_run=len(self.running) < self._max_running):
                request.status = RequestStatus.PREEMPTED
                self.add(request)

    def schedule(
        self, now: float, only: Collection[Request] | None = None, max_step_tokens: int | None = None
    ) -> Step | None:
        """Build the next step; None if there is nothing to compute, or the results of a launched step should come first.

        Args:
            only: the requests that may be in it; None for all.
            max_step_tokens: a lower limit than the usual one.
        """
        self._scheduled.clear()
        self._copies.clear()
        self._allowances.clear()
        num_pending = 0
        for request in self.running:
            num_pending += request.pending.num_tokens
            if request.spec.credit is not None:
                left = self._allowances.get(request.spec.credit, request.spec.credit.num_tokens)
                self._allowances[request.spec.credit] = left - request.pending.num_tokens - request.pending.num_drafts
        drafts: Mapping[Request, Sequence[int]] = {}
        if only is None:
            self._preempt_for_priority()
            running = self._running_now() if num_pending else self.running
            if running is None:
                self._step = None
                return None
            room = self._fill_step(running, now, max_step_tokens)
            if self._drafter is not None:
                drafts = add_drafts(
                    self._drafter, self.cache, self._scheduled, self._allowances, len(self.running), room
                )
        else:
            others = [
                (flow, [entry for entry in flow.waiting if entry[-1] not in only]) for flow in self._shares.active
            ]
            for flow, _ in others:
                flow.waiting = [entry for entry in flow.waiting if entry[-1] in only]
                heapq.heapify(flow.waiting)
            self._fill_step([request for request in self.running if request in only], now, max_step_tokens)
            for flow, entries in others:
                flow.waiting += entries
                heapq.heapify(flow.waiting)
        self._step = None
        if not self._scheduled:
            return None
        self._step_id += 1
        for request in self._scheduled:
            request.last_step_id = self._step_id
        self.most_pages_in_use = max(self.most_pages_in_use, self.cache.num_in_use)
        layout = self._layout.lay_out(self.running, self._scheduled, drafts)
        self._step_requests = layout.requests
        self._step = Step(self._step_id, layout.rows, tuple(self._copies), layout.num_mask_rows)
        return self._step

    def _running_now(self) -> Sequence[Request] | None:
        """The running requests, without those that wait for the results of a launched step; None if all should."""
        if self._drafter is None:
            return self.running
        num_free = max(0, self.cache.num_free - len(self.running))
        held = held_back(
            self._drafter, self.running, self._allowances, self._page_size, num_free, max_rows=self._max_rows
        )
        return None if held is None else [request for request in self.running if request not in held]

    def requests_of(self, step: Step) -> list[Request]:
        """Requests of the step scheduled last, in row order."""
        assert len(step.rows) == len(self._step_requests)
        return list(self._step_requests)

    def computed(self, step: Step) -> list[Request]:
        """Account for a computed step, without its drafts. Returns its requests in row order."""
        self.cache.commit()
        requests = self.requests_of(step)
        token_s = self.planner.token_s
        for request, row in zip(requests, step.rows, strict=True):
            num_tokens = len(row.token_ids) - row.num_draft_tokens
            request.num_computed_tokens += num_tokens
            request.program.service_s += num_tokens * token_s
            if num_tokens > 1:
                self._estimate(request)
        return requests

    def launched(self, step: Step) -> list[Request]:
        """Account for a launched step: later steps find its pages written. Returns its requests in row order."""
        requests = self.computed(step)
        for request, row in zip(requests, step.rows, strict=True):
            request.pending.num_computed_tokens += len(row.token_ids) - row.num_draft_tokens
            request.pending.num_tokens += row.needs_sample
            request.pending.num_drafts += row.num_draft_tokens
            request.pending.num_scores += len(row.score_token_ids)
        return requests

    def put_back(self, requests: Iterable[Request]) -> None:
        """Queue requests of a lost step again, as they were before it; the pages of the step leave the cache."""
        self.cache.discard_pending()
        for request in requests:
            request.pending.num_tokens = request.pending.num_scores = request.pending.num_computed_tokens = 0
            request.pending.num_drafts = 0
            if request.status is not RequestStatus.RUNNING:
                continue
            self._requests.abandon(request)
            request.status = RequestStatus.PREEMPTED
            request.stats.num_preemptions += 1
            self.add(request)

    def forget_pages(self) -> None:
        """Put all requests back and empty the cache: the pages hold nothing any more."""
        while self._requests.take_parked_pages():
            pass
        self.put_back(list(self.running))
        self.cache.clear()

    def check(self) -> None:
        """Verify the accounting of pages and locks; for tests and RTLANG_DEBUG=1."""
        self.cache.check()
        self._requests.check()
        flows = self._shares.active
        assert self._num_waiting == sum(
            request.status in (RequestStatus.WAITING, RequestStatus.PREEMPTED)
            for flow in flows
            for *_, request in flow.waiting
        )
        assert sum(flow.num_running for flow in flows) == len(self.running)
        assert sum(flow.num_open for flow in flows) == len(self.running) + self._num_waiting + len(self.parked)

    # -- the work of a step

    def _fill_step(self, running: Sequence[Request], now: float, max_step_tokens: int | None) -> int:
        """Choose the rows of a step: of the flows with work, the one with the smallest virtual time goes next.

        Returns:
            Number of tokens that the step may still have.
        """
        if self._reorders:
            for flow in self._shares.active:
                reorder_head(flow, lambda request: self.cache.peek(request.token_ids, request.scope))
        turns = turns_of(running, self._shares.active)
        is_shared = len(turns) > 1
        limit = self.planner.limit(turns)
        limit = min(limit, max_step_tokens or limit)
        may_start = len(self.running) < self._max_running
        is_plentiful = not self._allowances and self.cache.num_free > len(running)
        self._max_decode_rows = order_turns(
            turns, self._key, min(self._max_rows, limit), may_start=may_start, is_plentiful=is_plentiful
        )
        budget = min(limit, self.planner.num_tokens(turns, next_prompts(turns, self._key)))
        self._skipped.clear()
        self._max_looked_up = MAX_LOOKED_UP // max(1, sum(1 for turn in turns if turn.flow.waiting))
        self._awaiting_masks.clear()
        self._num_blocked = self._num_decode_rows = 0
        self._blocked.clear()
        self._unfinished = self._largest = None
        heap = [(turn.flow.virtual_time, turn.size, turn.flow.number, turn) for turn in turns]
        heapq.heapify(heap)
        while heap and budget > 0:
            turn = heap[0][-1]
            num_tokens = self._serve(turn, min(budget, QUANTUM) if is_shared else budget, now)
            if not num_tokens:
                heapq.heappop(heap)
                continue
            budget -= num_tokens
            self._shares.serve(turn.flow, num_tokens)
            heapq.heapreplace(heap, (turn.flow.virtual_time, turn.size, turn.flow.number, turn))
        for flow, entry in (*self._skipped, *self._awaiting_masks):
            heapq.heappush(flow.waiting, entry)
        return budget

    def note_drafted(self, request: Request, num_tokens: int) -> None:
        """A request has got so many tokens from its draft: its flow pays for them like for those of further steps."""
        if request.flow is not None:
            self._shares.serve(request.flow, num_tokens)

    def _serve(self, turn: Turn, limit: int, now: float) -> int:
        """Schedule the next work of a flow, at most `limit` tokens. Returns the number of tokens; 0 if nothing is left for this step."""
        while requests := self._running_work(turn):
            if requests is turn.prefills and self._is_waiting_next(turn):
                if num_tokens := self._start_next(turn, limit, now):
                    return num_tokens
                turn.has_started_all = True
                continue
            request = requests[-1]
            already = self._scheduled.get(request, 0)
            is_running = request.status is RequestStatus.RUNNING  # else preempted in this step
            if not is_running or (not already and len(self._scheduled) >= self._max_rows):
                requests.pop()
                continue
            num_tokens = self._num_next(request, already, limit)
            if num_tokens <= 0:
                requests.pop()
                if num_tokens == 0 and not already and request.pending.num_computed_tokens == 0:
                    self._requests.park(request)
                continue
            if not self._reserve(request, request.num_computed_tokens + already + num_tokens):
                requests.pop()
                continue
            self._take(request, already + num_tokens)
            self._num_decode_rows += requests is turn.decodes
            return num_tokens
        num_tokens = self._start_next(turn, limit, now)
        if num_tokens or turn.has_started_all:
            return num_tokens
        turn.has_started_all = True
        return self._serve(turn, limit, now)

    def _running_work(self, turn: Turn) -> list[Request]:
        """The running requests of a flow to serve next."""
        if turn.decodes and (turn.has_started_all or self._num_decode_rows < self._max_decode_rows):
            return turn.decodes
        return turn.prefills

    def _is_waiting_next(self, turn: Turn) -> bool:
        """Whether the first waiting request of a flow goes before its next running prompt."""
        waiting = turn.flow.waiting
        return bool(waiting) and not turn.has_started_all and waiting[0][0] < self._key(turn.prefills[-1])

    def _num_next(self, request: Request, already: int, limit: int) -> int:
        """Number of tokens to compute next, behind those that this step computes already; without credit, all but the one that samples."""
        num_missing = request.num_target_tokens - request.num_computed_tokens - already
        if request.spec.credit is not None and not request.spec.score_only and 0 < num_missing <= limit:
            left = self._allowances.setdefault(request.spec.credit, request.spec.credit.num_tokens)
            if left <= 0:
                return num_missing - 1
            self._allowances[request.spec.credit] = left - 1
        return min(num_missing, limit)

    def _reserve(self, request: Request, num_tokens: int) -> bool:
        """Allocate pages for the first `num_tokens` tokens, preempting other requests if needed; False if it gets none."""
        missing = -(-num_tokens // self._page_size) - len(request.pages.page_ids)
        if missing <= 0:
            return True
        while (pages := self.cache.allocate(missing, rank=self._revokes_behind(request, 1))) is None:
            if self._requests.take_parked_pages():
                continue
            candidates = [other for other in self.running if other not in self._scheduled]
            if not candidates:
                return False
            chosen = self._victim(candidates)
            self._preempt(chosen)
            if chosen is request:
                return False
        request.pages.page_ids += pages
        return True

    def _victim(self, candidates: list[Request]) -> Request:
        """The request to preempt: of the flow with the most pages for its weight, the one that the policy serves last."""
        flows = {request.flow for request in candidates}
        if len(flows) > 1:
            pages = self._requests.pages_by_flow()
            largest = max(flows, key=lambda flow: pages[flow] / self._shares.weight(flow) if flow is not None else 0.0)
            candidates = [request for request in candidates if request.flow is largest]
        return policy.victim(candidates, self._key)

    def _preempt(self, request: Request) -> None:
        logger.debug("preempting request %d after %d tokens", request.request_id, request.num_computed_tokens)
        self._requests.leave(request)
        request.status = RequestStatus.PREEMPTED
        request.stats.num_preemptions += 1
        self.num_preemptions += 1
        self.add(request)

    def _revokes_behind(self, request: Request, num_alone: int) -> float | None:
        """Holds of programs with a larger rank may be revoked for a request; all (None) if only `num_alone` requests run."""
        return (
            None if len(self.running) <= num_alone else self.rank(request.program.arrival_time, request.spec.priority)
        )

    # -- waiting requests

    def _start_next(self, turn: Turn, limit: int, now: float) -> int:
        """Admit the next waiting request of a flow and schedule at most `limit` of its tokens; 0 if none can start in this step."""
        flow = turn.flow
        while flow.waiting and not turn.has_started_all and turn.num_looked_up < self._max_looked_up:
            if len(self._scheduled) >= self._max_rows or self._num_blocked >= MAX_BLOCKED:
                return 0
            entry = heapq.heappop(flow.waiting)
            request = entry[-1]
            if request.status not in (RequestStatus.WAITING, RequestStatus.PREEMPTED):
                continue
            if request.is_awaiting_mask:
                self._awaiting_masks.append((flow, entry))
                continue
            if request.pending.num_computed_tokens:  # a launched step computes its token
                self._skipped.append((flow, entry))
                continue
            if not self._shares.may_start(flow, request) or not self._make_row(flow):
                heapq.heappush(flow.waiting, entry)
                return 0
            turn.num_looked_up += LOOK_UP + len(request.token_ids) + 3 * len(self._unfinished or ())
            verdict = self._admit(request)
            if verdict is None:  # another request computes its prefix
                self._skipped.append((flow, entry))
                continue
            if not verdict:
                heapq.heappush(flow.waiting, entry)
                self._blocked.append(request)
                # Requests of others may pass it for a while, so that a large one neither stops them nor starves.
                self._num_blocked += 1 if request.num_passed < MAX_PASSED else MAX_BLOCKED
                return 0
            for blocked in self._blocked:
                blocked.num_passed += 1
            self._num_waiting -= 1
            num_tokens = self._num_next(request, 0, limit)
            if not num_tokens and request.num_computed_tokens > request.pages.num_tree_tokens:
                self._copies.pop()  # a step without rows would not make the copy, so these few tokens are computed
                request.num_computed_tokens = request.pages.num_tree_tokens
                num_tokens = self._num_next(request, 0, limit)
            if request.stats.first_step_time is None:
                request.stats.first_step_time = now
                request.stats.num_cached_tokens = min(request.num_computed_tokens, request.num_prompt_tokens)
            if num_tokens == 0:
                self._requests.park(request)
                continue
            self._take(request, num_tokens)
            if request.num_computed_tokens + num_tokens < request.num_target_tokens:
                turn.prefills.append(request)
                if self._unfinished is not None:
                    self._unfinished.append(request)
            return num_tokens
        return 0

    def _preempt_for_priority(self) -> None:
        """While all rows are taken, preempt a request of each flow whose next waiting request has a higher priority."""
        is_full = len(self.running) >= self._max_running
        for flow in [flow for flow in self._shares.active if flow.waiting] if is_full else ():
            priority = flow.waiting[0][-1].spec.priority
            candidates = [each for each in self.running if each.flow is flow and each.spec.priority > priority]
            if candidates:
                self._preempt(policy.victim(candidates, self._key))

    def _make_row(self, flow: Flow) -> bool:
        """Whether one more request may run; if needed, preempts one of a flow that has more of the rows than its share."""
        if len(self.running) < self._max_running:
            return True
        shares = self._shares
        if self._largest is None:
            self._largest = max(shares.active, key=lambda each: each.num_running / shares.weight(each))
        largest, own = self._largest, (flow.num_running + 1) / shares.weight(flow)
        if largest is flow or largest.num_running / shares.weight(largest) <= own:
            return False
        candidates = [each for each in self.running if each.flow is largest and each not in self._scheduled]
        if not candidates:
            return False
        self._preempt(policy.victim(candidates, self._key))
        self._largest = None
        return True

    def _make_pages(self, flow: Flow, needed: int, spare: int, rank: float | None) -> bool:
        """Whether so many pages can be allocated; if needed, preempts requests of flows that have more of the pages than their share."""
        while not self.cache.can_allocate(needed + spare, rank):
            if not self._requests.take_parked_pages():
                break
        else:
            return True
        shares = self._shares
        if len(shares.active) < 2:
            return False
        pages = self._requests.pages_by_flow()
        own = (pages[flow] + needed) / shares.weight(flow)
        candidates = sorted(
            (each for each in self.running if each.flow is not flow and each not in self._scheduled), key=self._key
        )
        while candidates:
            request = candidates.pop()
            other = request.flow
            assert other is not None
            if pages[other] / shares.weight(other) <= own:
                continue
            pages[other] -= len(request.pages.page_ids)
            self._preempt(request)
            if self.cache.can_allocate(needed + min(spare, len(self.running)), rank):
                return True
        return False

    def _admit(self, request: Request) -> bool | None:
        """Match, lock and reserve pages. True: running; False: no free pages; None: wait for another request's prefix."""
        match = self.cache.match(request.token_ids, request.match_limit, request.scope)
        if self._is_being_computed(request, match.num_tokens, match.node):
            return None
        self.cache.lock(match.node)
        needed = -(-request.num_target_tokens // self._page_size) - len(match.page_ids)
        # Room for running requests to grow: a page each, and more of it the more there are.
        spare = len(self.running) + 3 * max(0, len(self.running) - 64)
        rank = self._revokes_behind(request, 0)
        pages = None
        assert request.flow is not None
        if self._make_pages(request.flow, needed, spare, rank):
            pages = self.cache.allocate(needed, rank=rank)
        if pages is None:
            self.cache.unlock(match.node)
            return False
        request.pages.page_ids = [*match.page_ids, *pages]
        request.pages.node, request.pages.num_tree_tokens = match.node, match.num_tokens
        request.num_computed_tokens = match.num_tokens
        if match.tail_page_id is not None and pages:
            self._copies.append((match.tail_page_id, pages[0]))
            request.num_computed_tokens += match.num_tail_tokens
        self._requests.start(request)
        return True

    def _is_being_computed(self, request: Request, start: int, node: RadixNode) -> bool:
        """Whether a running request is about to compute the page of this request that begins at token `start`."""
        end = start + self._page_size
        if not self.cache.sharing or end > request.match_limit:
            return False
        if self._unfinished is None:
            self._unfinished = [
                each
                for each in self.running
                if each.num_computed_tokens + self._scheduled.get(each, 0) < each.num_target_tokens
            ]
        wanted = request.token_ids[start:end]
        return any(
            other.pages.node is node
            and other.pages.num_tree_tokens == start
            and other.num_computed_tokens + self._scheduled.get(other, 0) < other.num_target_tokens
            and end <= len(other.token_ids)
            and other.token_ids[start:end] == wanted
            and other.scope == request.scope
            for other in self._unfinished
        )

    # -- pages

    def _take(self, request: Request, num_tokens: int) -> None:
        """Schedule tokens of a running request; the pages they fill enter the tree."""
        self._scheduled[request] = num_tokens
        # A token the host has not seen cannot enter the tree; its page enters one step later.
        self._requests.store(request, min(request.num_computed_tokens + num_tokens, len(request.token_ids)))
