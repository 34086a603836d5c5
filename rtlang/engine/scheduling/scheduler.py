"""The scheduler: decides how many tokens of which requests each step computes.

Each step computes tokens of requests that are not computed yet, within one token budget. The budget goes to the flow (a client of a
principal) that has had the least for its weight; see `fair_shares.py`. Within a flow, running requests go first (decoding before prefill),
then waiting ones in policy order. A flow with less than its share of the rows or pages preempts one that has more. Background flows have
what live ones leave of a step, within the bounds of `StepPlanner.num_background_tokens`. For the cache:

- Full pages enter the tree when they are scheduled, so requests of the same step already share them (a layer writes K and V before it
  attends). `commit` or `discard_pending` tells the cache whether the step succeeded.
- A waiting request whose next page a running request is about to compute waits for it instead of computing it again.
- When no page is free, unlocked cached pages are evicted first, then those under holds of programs with a larger rank, then the policy's
  victim is preempted; its pages stay in the tree until they are needed. A request that has no other beside it may take the pages of all
  holds, so it always goes on.
- Rows that sample may have drafts (`drafts/drafter.py`), which are computed in free pages after the known tokens and enter the tree only
  once they are sampled.
- A request of a model with states starts from the deepest checkpoint of its prefix and replays the stored tokens after it. It waits for a
  running request that will keep a deeper one. See `state_slots.py`.
- A request without credit is parked: it takes no row, and keeps its pages until another needs them. `resume` brings it back.

The scheduler does not deal with tensors, clocks or text.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence

from rtlang.cache.prefix_cache import PrefixCache, PrefixMatch
from rtlang.contract.step import Step
from rtlang.engine.drafts.drafter import Drafter
from rtlang.engine.drafts.step_drafts import add_drafts, held_back
from rtlang.engine.requests.credit import Credit
from rtlang.engine.requests.request import HeldPages, Pending, Request, RequestStatus
from rtlang.engine.scheduling import policy
from rtlang.engine.scheduling.batch_layout import BatchLayout
from rtlang.engine.scheduling.fair_shares import FairShares
from rtlang.engine.scheduling.policy import REORDER_WINDOW
from rtlang.engine.scheduling.preemption import Preemption
from rtlang.engine.scheduling.running_requests import RunningRequests
from rtlang.engine.scheduling.state_slots import StateSlots
from rtlang.engine.scheduling.step_plan import StepPlan
from rtlang.engine.scheduling.step_planner import StepPlanner
from rtlang.engine.scheduling.turns import Turn, next_prompts, order_turns, reorder_head, turns_of
from rtlang.engine.scheduling.waiting_requests import WaitingRequests
from rtlang.engine.sessions.engine_sessions import EngineSessions

MAX_LOOKED_UP = 200_000
"""Work of looking for the prompts of waiting requests in the cache, in one step: about 4 ms. More requests wait for the next step."""
LOOK_UP = 1000
"""Work of a look-up, besides its tokens and the requests that may compute its prefix: 20 us, 0.02 us and 0.06 us, when measured."""

ASK_SESSION = 400
"""Work of asking whether the session of a request has its turn."""

IDLE_COSTS = 3.0
"""A session that waits for room starts once the engine was idle for this many times the cost of its prompt: it takes another's room."""

MAX_BLOCKED = 8
"""Maximum number of requests in one step that find no pages; no other waiting request starts in this step then."""

MAX_PASSED = 256
"""Number of requests of others that may start before one that finds no pages; then none does until it has started."""

MAX_STEPS_WITHOUT_BACKGROUND = 32
"""Steps that live work may fill alone while background work waits; the next step begins with at most QUANTUM background tokens."""

QUANTUM = 64
"""Maximum number of tokens of one flow in a row, while others have work, in the choice of a step's tokens."""


class Scheduler:
    """The queue of waiting requests and the set of running ones. Owns the pages of every request.

    Attributes:
        waits_for_room: whether requests of sessions that are not worked on were left out of the last step.

    Args:
        cache: the prefix cache, which accounts for all pages.
        planner: decides the number of tokens of each step.
        policy_name: a key of `policy.KEYS`.
        max_rows: maximum number of rows of one step.
        max_running: maximum number of running requests, which have pages; if there are more than rows, they take turns.
        drafter: chooses tokens that are computed with the last known one of a request; None: every row is of known tokens.
        states: gives slots to requests; None for a model without states.
        sessions: decides which sessions are worked on; None: all.
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
        states: StateSlots | None = None,
        sessions: EngineSessions | None = None,
    ) -> None:
        self.cache, self.planner = cache, planner
        self.most_pages_in_use = 0
        self.waits_for_room = False
        self._idle_since: float | None = None  # when there was nothing to compute but for sessions that wait for room
        self._policy_name, self._key = policy_name, policy.KEYS[policy_name]
        self._reorders = policy_name == "longest_prefix"
        self._max_rows = max_rows
        self._page_size = cache.page_size
        self._max_running = max(max_rows, max_running or 0)
        if states is not None:
            self._max_running = min(self._max_running, states.max_running)
        self._drafter, self._states, self._sessions = drafter, states, sessions
        self._shares = FairShares()
        self._layout = BatchLayout(cache.page_size, states)
        self._requests = RunningRequests(cache, self._shares, self._layout, states)
        self._waiting = WaitingRequests(self._shares, self._key)
        self._preemption = Preemption(
            cache, self._requests, self._shares, self._key, self._rank, self.add, self._max_running
        )
        self.running, self.parked = self._requests.running, self._requests.parked
        self._step_id = self._num_without_background = 0
        self._step_requests: tuple[Request, ...] = ()  # of the step scheduled last, in row order
        self._step: Step | None = None  # the step scheduled last, None if there was nothing to compute

    @property
    def num_waiting(self) -> int:
        """Number of queued requests, including preempted ones."""
        return self._waiting.num

    @property
    def num_preemptions(self) -> int:
        """Number of preempted requests so far."""
        return self._preemption.num_preemptions

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

    def _rank(self, request: Request) -> float:
        return self.rank(request.program.arrival_time, request.spec.priority)

    def rank(self, program_time: float, priority: int) -> float:
        """The place of a program among others; see `policy.program_rank`."""
        return policy.program_rank(self._policy_name, program_time, priority)

    def add(self, request: Request) -> None:
        """Add a request to the queue."""
        self._estimate(request)
        self._waiting.add(request)

    def remove(self, request: Request) -> None:
        """Remove a request in any state and release its pages; computed pages stay cached."""
        if request.status is RequestStatus.RUNNING:
            self._requests.leave(request)
        elif request.status is RequestStatus.PARKED:
            self._requests.unpark(request, may_run=False)
        else:
            self._waiting.remove(request)
        self._end(request)

    def _estimate(self, request: Request) -> None:
        """Set the expected time of the rest of the prompt. Short ones are not looked up in the cache: their time counts as nothing."""
        num_tokens, token_s = request.num_target_tokens - request.num_computed_tokens, self.planner.token_s
        if request.pages.node is None and num_tokens * token_s >= policy.SERVICE_QUANTUM_S:
            num_tokens -= self.cache.peek(request.token_ids, request.scope)
        request.prompt_s = num_tokens * token_s

    def _end(self, request: Request) -> None:
        request.enter(RequestStatus.FINISHED)
        if self._drafter is not None:
            self._drafter.forget(request)
        if request.flow is not None:
            self._shares.leave(request.flow)
            request.flow = None

    def resume(self, credit: Credit) -> None:
        """Continue the parked requests of a graph that got credit: at once if a row is free, else as preempted ones."""
        for request in tuple(credit.parked):
            if not self._requests.unpark(request, may_run=len(self.running) < self._max_running):
                request.enter(RequestStatus.PREEMPTED)
                request.stats.num_preemptions += 1
                self.add(request)

    def schedule(
        self, now: float, only: Collection[Request] | None = None, max_step_tokens: int | None = None
    ) -> Step | None:
        """Build the next step; None if there is nothing to compute, or the results of a launched step should come first.

        Args:
            only: the requests that may be in it; None for all.
            max_step_tokens: a lower limit than the usual one.
        """
        plan, num_pending = StepPlan(), 0
        for request in self.running:
            num_pending += request.pending.num_tokens
            credit = request.spec.credit
            if credit is not None:
                left = plan.allowances.get(credit, credit.num_tokens)
                plan.allowances[credit] = left - request.pending.num_tokens - request.pending.num_drafts
        drafts: Mapping[Request, Sequence[int]] = {}
        self._step = None
        if only is None:
            plan.is_limited = self._shares.has_background and self._shares.has_live
            if len(self.running) >= self._max_running:
                self._preemption.for_priority()
            running = self._running_now(plan) if num_pending and self._drafter is not None else self.running
            if running is None:
                return None
            room = self._fill_step(plan, running, now, max_step_tokens)
            if self._drafter is not None:
                drafts = add_drafts(
                    self._drafter,
                    self.cache,
                    plan.scheduled,
                    plan.allowances,
                    len(self.running),
                    room,
                    only_live=plan.is_limited,
                )
        else:
            running = [request for request in self.running if request in only]
            with self._waiting.restricted_to(only):
                self._fill_step(plan, running, now, max_step_tokens)
        self.waits_for_room = bool(plan.refused)
        is_idle = self.waits_for_room and not (plan.scheduled or self.running)
        self._idle_since = (now if self._idle_since is None else self._idle_since) if is_idle else None
        if not plan.scheduled:
            return None
        self._step_id += 1
        for request in plan.scheduled:
            request.last_step_id = self._step_id
        self.most_pages_in_use = max(self.most_pages_in_use, self.cache.num_in_use)
        layout = self._layout.lay_out(self.running, plan.scheduled, drafts)
        self._step_requests = layout.requests
        self._step = Step(self._step_id, layout.rows, tuple(plan.copies), layout.num_mask_rows)
        return self._step

    def _running_now(self, plan: StepPlan) -> Sequence[Request] | None:
        """The running requests, without those that wait for the results of a launched step; None if all should."""
        assert self._drafter is not None
        num_free = max(0, self.cache.num_free - len(self.running))
        running = self.running
        if plan.is_limited:
            running = [request for request in running if not request.spec.principal.is_background]
        held = held_back(self._drafter, running, plan.allowances, self._page_size, num_free, max_rows=self._max_rows)
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
            if self._states is not None:
                self._states.computed(request, row)
            request.program.service_s += num_tokens * token_s
            if request.turn is not None:
                request.turn.session.service_s += num_tokens * token_s
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
            request.pending = Pending()
            if request.status is RequestStatus.RUNNING:
                self._requests.abandon(request)
                self._preemption.put_back(request)

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
        self._waiting.check()
        flows = self._shares.active
        assert sum(flow.num_running for flow in flows) == len(self.running)
        assert sum(flow.num_open for flow in flows) == len(self.running) + self._waiting.num + len(self.parked)

    # -- the work of a step

    def _fill_step(self, plan: StepPlan, running: Sequence[Request], now: float, max_step_tokens: int | None) -> int:
        """Choose the rows of a step. Returns the number of tokens that it may still have."""
        if self._reorders:
            for flow in self._shares.active:
                reorder_head(flow, lambda request: self.cache.peek(request.token_ids, request.scope))
        turns = turns_of(running, self._shares.active)
        background = [turn for turn in turns if turn.flow.is_background] if plan.is_limited else []
        live = [turn for turn in turns if not turn.flow.is_background] if background else turns
        limit = self.planner.limit(live)
        limit = min(limit, max_step_tokens or limit)
        if background and self._num_without_background >= MAX_STEPS_WITHOUT_BACKGROUND:
            limit -= self._serve_background(plan, background, max(1, min(limit // 2, QUANTUM)), now)
            plan.num_blocked = 0  # a request without pages stops its own kind only
        num_before = len(plan.scheduled)
        room = self._serve_turns(plan, live, limit, self._max_rows, now)
        if background and not num_before:
            most = self.planner.num_background_tokens(plan.scheduled, background)
            room -= self._serve_background(plan, background, min(room, most), now)
        for flow, entry in plan.passed_over:
            self._waiting.push(flow, entry)
        return room

    def _serve_background(self, plan: StepPlan, turns: Sequence[Turn], limit: int, now: float) -> int:
        """Choose rows of background work for a step with live work. Returns the number of tokens."""
        max_rows = min(self._max_rows, len(plan.scheduled) + self.planner.max_background_rows)
        num_before = sum(plan.scheduled.values())
        if limit > 0:
            self._serve_turns(plan, turns, limit, max_rows, now)
        num_tokens = sum(plan.scheduled.values()) - num_before
        self._num_without_background = 0 if num_tokens else self._num_without_background + 1
        return num_tokens

    def _serve_turns(self, plan: StepPlan, turns: Sequence[Turn], limit: int, max_rows: int, now: float) -> int:
        """Choose rows: of the flows with work, the one with the smallest virtual time goes next.

        Args:
            limit: tokens of these rows together.
            max_rows: rows of the step, those that are chosen already included.
        Returns:
            Number of tokens that the rows may still have.
        """
        plan.max_rows = max_rows
        plan.max_decode_rows = plan.num_decode_rows + order_turns(
            turns,
            self._key,
            min(max_rows - len(plan.scheduled), limit),
            may_start=len(self.running) < self._max_running,
            is_plentiful=not plan.allowances and self.cache.num_free > len(self.running),
        )
        prompts = next_prompts(turns, self._key)
        budget = min(limit, self.planner.num_tokens(turns, prompts)) if prompts else limit
        most = min(budget, QUANTUM) if len(turns) > 1 else budget
        num_waiting_flows = 0
        heap: list[tuple[float, int, int, Turn]] = []
        for turn in turns:
            num_waiting_flows += bool(turn.flow.waiting)
            heap.append((turn.flow.virtual_time, turn.size, turn.flow.number, turn))
        plan.max_looked_up = MAX_LOOKED_UP // max(1, num_waiting_flows)
        if len(turns) == 1:
            budget -= self._requests.serve_decodes(plan, turns[0], budget, self._reserve)
        heapq.heapify(heap)
        while heap and budget > 0:
            turn = heap[0][-1]
            num_tokens = self._serve(plan, turn, min(budget, most), now) if turn.has_work else 0
            if not num_tokens:
                heapq.heappop(heap)
                continue
            budget -= num_tokens
            self._shares.serve(turn.flow, num_tokens)
            heapq.heapreplace(heap, (turn.flow.virtual_time, turn.size, turn.flow.number, turn))
        return budget

    def note_drafted(self, request: Request, num_tokens: int) -> None:
        """A request has got so many tokens from its draft: its flow pays for them like for those of further steps."""
        if request.flow is not None:
            self._shares.serve(request.flow, num_tokens)

    def _serve(self, plan: StepPlan, turn: Turn, limit: int, now: float) -> int:
        """Schedule the next work of a flow, at most `limit` tokens. Returns the number of tokens; 0 if nothing is left for this step."""
        while True:
            takes_decodes = turn.has_started_all or plan.num_decode_rows < plan.max_decode_rows
            if turn.is_decode_served and takes_decodes:
                turn.decodes.pop()
                turn.is_decode_served = False
            requests = turn.decodes if turn.decodes and takes_decodes else turn.prefills
            if not requests or (requests is turn.prefills and self._is_waiting_next(turn)):
                if num_tokens := self._start_next(plan, turn, limit, now):
                    return num_tokens
                if turn.has_started_all:
                    return 0
                turn.has_started_all = True
                continue
            request = requests[-1]
            already = plan.scheduled.get(request, 0)
            is_running = request.status is RequestStatus.RUNNING  # else preempted in this step
            if not is_running or (not already and len(plan.scheduled) >= plan.max_rows):
                requests.pop()
                continue
            num_tokens = plan.num_next(request, already, limit)
            if num_tokens <= 0:
                requests.pop()
                if num_tokens == 0 and not already and request.pending.num_computed_tokens == 0:
                    self._requests.park(request)
                continue
            if not self._reserve(plan, request, request.num_computed_tokens + already + num_tokens):
                requests.pop()
                continue
            self._take(plan, request, already + num_tokens)
            if requests is turn.decodes:
                turn.is_decode_served = True
                plan.num_decode_rows += 1
            return num_tokens

    def _is_waiting_next(self, turn: Turn) -> bool:
        """Whether the first waiting request of a flow goes before its next running prompt."""
        waiting = turn.flow.waiting
        return bool(waiting) and not turn.has_started_all and waiting[0][0] < self._key(turn.prefills[-1])

    def _reserve(self, plan: StepPlan, request: Request, num_tokens: int) -> bool:
        """Allocate pages for the first `num_tokens` tokens, preempting other requests if needed; False if it gets none."""
        missing = -(-num_tokens // self._page_size) - len(request.pages.page_ids)
        if missing > 0:
            page_ids = self._preemption.allocate_next(request, missing, plan)
            if page_ids is None:
                return False
            request.pages.page_ids += page_ids
        return True

    # -- waiting requests

    def _start_next(self, plan: StepPlan, turn: Turn, limit: int, now: float) -> int:
        """Admit the next waiting request of a flow and schedule at most `limit` of its tokens; 0 if none can start in this step."""
        flow = turn.flow
        while flow.waiting and not turn.has_started_all and turn.num_looked_up < plan.max_looked_up:
            if len(plan.scheduled) >= plan.max_rows or plan.num_blocked >= MAX_BLOCKED:
                return 0
            entry = self._waiting.pop(flow)
            if entry is None:
                return 0
            request = entry[-1]
            # Its constraint works outside the steps, or a launched step computes its token.
            if request.is_awaiting_mask or request.pending.num_computed_tokens:
                plan.passed_over.append((flow, entry))
                continue
            if not self._has_turn(plan, request, now):
                turn.num_looked_up += ASK_SESSION
                plan.passed_over.append((flow, entry))
                continue
            is_allowed = self._preemption.make_allowance(flow, request, plan)
            if not is_allowed or not self._preemption.make_row(flow, plan):
                self._waiting.push(flow, entry)
                return 0
            turn.num_looked_up += LOOK_UP + len(request.token_ids) + 3 * len(plan.unfinished or ())
            verdict = self._admit(plan, request)
            if verdict is None:  # another request computes its prefix
                plan.passed_over.append((flow, entry))
                continue
            if not verdict:
                self._waiting.push(flow, entry)
                plan.blocked.append(request)
                # Requests of others may pass it for a while, so that a large one neither stops them nor starves.
                plan.num_blocked += 1 if request.num_passed < MAX_PASSED else MAX_BLOCKED
                return 0
            for blocked in plan.blocked:
                blocked.num_passed += 1
            self._waiting.started()
            if self._sessions is not None and request.turn is not None:
                self._sessions.start(request.turn)
            num_tokens = plan.num_next(request, 0, limit)
            if not num_tokens and request.num_computed_tokens > request.pages.num_tree_tokens:
                plan.copies.pop()  # a step without rows would not make the copy, so these few tokens are computed
                self._start_without_tail(request)
                num_tokens = plan.num_next(request, 0, limit)
            if request.stats.first_step_time is None:
                request.stats.first_step_time = now
                request.stats.num_cached_tokens = min(request.num_computed_tokens, request.num_prompt_tokens)
                if self._states is not None:
                    num_stored = min(request.num_kv_tokens, request.num_prompt_tokens)
                    request.stats.num_replayed_tokens = num_stored - request.stats.num_cached_tokens
            if num_tokens == 0:
                self._requests.park(request)
                continue
            self._take(plan, request, num_tokens)
            is_unfinished = request.num_computed_tokens + num_tokens < request.num_target_tokens
            if is_unfinished:
                turn.prefills.append(request)
            if plan.unfinished is not None and (is_unfinished or self._states is not None):
                plan.unfinished.append(request)
            return num_tokens
        return 0

    def _has_turn(self, plan: StepPlan, request: Request, now: float) -> bool:
        """Whether the session of a request is resident, may become so, or need not wait."""
        turn = request.turn
        if self._sessions is None or turn is None or request.spec.priority < 0:
            return True
        token_s = self.planner.token_s
        if self._sessions.may_start(turn, now - request.arrival_time, token_s, now, plan.refused):
            return True
        if self._idle_since is not None and not (self.running or plan.scheduled):
            return now - self._idle_since >= IDLE_COSTS * len(request.token_ids) * token_s
        return False

    def _admit(self, plan: StepPlan, request: Request) -> bool | None:
        """Match, lock and reserve pages. True: running; False: no free pages; None: wait for another request's prefix."""
        match = self.cache.match(request.token_ids, request.match_limit, request.scope)
        if self._is_being_computed(plan, request, match):
            return None
        self.cache.lock(match.node)
        if self._states is not None:
            queued = self._waiting.first(REORDER_WINDOW)
            if not self._states.start(request, match, queued, self._requests.take_parked_pages):
                self.cache.unlock(match.node)
                return False
        needed = -(-request.num_target_tokens // self._page_size) - len(match.page_ids)
        page_ids = self._preemption.allocate_first(request, needed, plan)
        if page_ids is None:
            self.cache.unlock(match.node)
            if self._states is not None:
                self._states.abandon(request)
                request.num_computed_tokens = 0
            return False
        request.pages = HeldPages([*match.page_ids, *page_ids], match.node, match.num_tokens)
        if self._states is None:
            request.num_computed_tokens = match.num_tokens + (match.num_tail_tokens if page_ids else 0)
        if request.num_computed_tokens > match.num_tokens:
            assert match.tail_page_id is not None
            plan.copies.append((match.tail_page_id, page_ids[0]))
        self._requests.start(request)
        return True

    def _start_without_tail(self, request: Request) -> None:
        """Let an admitted request go on from what is stored in whole pages."""
        num_tokens = request.pages.num_tree_tokens
        if self._states is None:
            request.num_computed_tokens = num_tokens
        else:
            self._states.restart(request, self.cache.match(request.token_ids, num_tokens, request.scope))

    def _is_being_computed(self, plan: StepPlan, request: Request, match: PrefixMatch) -> bool:
        """Whether a running request is about to compute the page of this request after the match, or to keep a deeper state.

        Live work does not wait for background work, which may be about to do so for long.
        """
        start, node = match.num_tokens, match.node
        end = start + self._page_size
        waits_for_all = request.spec.principal.is_background or not self._shares.has_background
        if self._states is not None:
            if plan.unfinished is None:
                running = self.running
                plan.unfinished = [each for each in running if each.num_target_tokens - each.num_computed_tokens > 1]
            unfinished = plan.unfinished
            if not waits_for_all:
                unfinished = [each for each in unfinished if not each.spec.principal.is_background]
            request.awaited = self._states.awaited(request, match, unfinished)
            return request.awaited is not None
        if not self.cache.sharing or end > request.match_limit:
            return False
        if plan.unfinished is None:
            plan.unfinished = [
                each
                for each in self.running
                if each.num_computed_tokens + plan.scheduled.get(each, 0) < each.num_target_tokens
            ]
        wanted = request.token_ids[start:end]
        return any(
            other.pages.node is node
            and other.pages.num_tree_tokens == start
            and other.num_computed_tokens + plan.scheduled.get(other, 0) < other.num_target_tokens
            and end <= len(other.token_ids)
            and other.token_ids[start:end] == wanted
            and other.scope == request.scope
            and (waits_for_all or not other.spec.principal.is_background)
            for other in plan.unfinished
        )

    def _take(self, plan: StepPlan, request: Request, num_tokens: int) -> None:
        """Schedule tokens of a running request; the pages they fill enter the tree."""
        plan.scheduled[request] = num_tokens
        # A token the host has not seen cannot enter the tree; its page enters one step later.
        self._requests.store(request, min(request.num_computed_tokens + num_tokens, len(request.token_ids)))
