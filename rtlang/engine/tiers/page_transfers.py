"""Moves pages between the pool and the tiers below it, while steps run.

Offloading: see offloading.py.

Fetching: a new request whose prompt is longer than its match in the tree waits while a thread looks for the next pages below. If there are
some, and loading them is expected to take less time than computing them (fetch_price.py), the engine thread locks the prefix and allocates
pages; a thread fills them from the uppermost tier that has each; then the engine thread adds them to the tree as if a request had computed
them. Missing and damaged pages are computed, and so is the rest of a load that takes longer than computing would. One request's pages are
loaded at a time, so requests for the same pages do not load them twice; the time until a load can begin counts as a part of its price.
Requests that need no pages from below do not wait. A request waits for FETCH_TIMEOUT_S at most: then it is computed, and until the tier has
answered no request waits for it.

Remote tiers are asked once for all pages that the others do not have, and only where computing these takes longer than an answer.

States of recurrent layers move in the same way (stored_states.py). Checkpoints that are worth it are offloaded beside pages. A request of a
model with states waits for the deepest state below that its pages reach, in the pool or below, and for the pages up to there and no others;
then it goes on as from a checkpoint that a request has kept. A state or a page that is missing loses the whole load.

The engine thread does bookkeeping only. Threads report by `_report`, and `poll` runs the reported functions between two steps.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import groupby

from rtlang.cache.node import RadixNode
from rtlang.cache.prefix_cache import PrefixCache
from rtlang.cache.tiers.digest import sequence_digests
from rtlang.engine.requests.request import Request, RequestStatus
from rtlang.engine.tiers.configured_tiers import CacheTiers
from rtlang.engine.tiers.fetch_price import FetchPrices, FetchRun, state_place
from rtlang.engine.tiers.offloading import Offloading
from rtlang.engine.tiers.page_load import Fetch, Loaded, PageLoad
from rtlang.engine.tiers.stored_states import possible_states
from rtlang.engine.tiers.tier_search import FoundState, TierSearch
from rtlang.model.runner import PageMemory, StateContent
from rtlang.work.fair_executor import FairExecutor

logger = logging.getLogger(__name__)

FETCH_TIMEOUT_S = 10.0
"""Seconds that a request waits for its pages."""
SETTLE_S = 0.5
"""Seconds that a peer's question waits for pages on their way to the tiers, which takes milliseconds as a rule."""
_LONG_PROMPT = 1024
FLUSH_S = 3.0
"""Seconds for storing pages when the engine ends."""


def _call_later(seconds: float, call: Callable[[], None]) -> None:
    """Call a function on a thread of its own after so many seconds."""
    timer = threading.Timer(seconds, call)
    timer.daemon = True
    timer.start()


@dataclass(frozen=True, slots=True)
class TransferTime:
    """The time of transfers: `clock` tells it in seconds, and `timer` calls a function from any thread after so many."""

    clock: Callable[[], float] = time.perf_counter
    timer: Callable[[float, Callable[[], None]], None] = _call_later


_REAL_TIME = TransferTime()


class PageTransfers:
    """The transfers of one engine. Methods are for the engine thread.

    Args:
        tiers: remote ones last; `open` of each is called on a thread. Their server runs while the transfers are open.
        rank_of: the place of a request among programs; see `PrefixCache.allocate`.
        wake: called from any thread when `poll` has something to do.
        states: the content of states; None for a model without them. Without access to the states of a model nothing is fetched.
        executor: runs all work of threads; for tests. Default: two threads for fetching, one for offloading.
        compute_s: seconds for computing so many tokens (second argument) after so many others; None if unknown.
        timing: measures loads, and bounds how long requests wait; another one than the real time is for tests.

    Attributes:
        num_fetched: pages loaded, by the name of the tier.
        num_fetched_states: states loaded, by the name of the tier.
        num_recomputed: pages that were in the tier when their prompt came and were computed, since that takes less time.
    """

    def __init__(
        self,
        cache: PrefixCache,
        memory: PageMemory,
        tiers: CacheTiers,
        rank_of: Callable[[Request], float],
        wake: Callable[[], None],
        executor: Executor | None = None,
        compute_s: Callable[[int, int], float | None] = lambda num_before, num_tokens: None,
        timing: TransferTime = _REAL_TIME,
        states: StateContent | None = None,
    ) -> None:
        self.tiers, self.server = tiers.tiers, tiers.server
        self._search = TierSearch(self.tiers, timing.clock)
        self._remote = self._search.remote
        self.prices = FetchPrices()
        self.num_fetched: Counter[str] = Counter()
        self.num_fetched_states: Counter[str] = Counter()
        self.num_recomputed: Counter[str] = Counter()
        self._cache, self._memory, self._states, self._rank_of, self._wake = cache, memory, states, rank_of, wake
        self._fetchers: Executor = executor or FairExecutor(2, "cache-fetch")
        self._storer: Executor = executor or FairExecutor(1, "cache-store")
        self._reports: deque[Callable[[], None]] = deque()  # filled by threads
        self._ready: list[Request] = []
        self._compute_s, self._clock, self._timer = compute_s, timing.clock, timing.timer
        self._waiting_since: dict[Request, float] = {}  # by request that waits, the time of `fetch`
        self._overdue: set[Request] = set()  # requests that waited too long, until the thread of each reports
        self._has_timer = False
        self._waiting: deque[Fetch] = deque()  # in order
        self._loading: PageLoad | None = None
        self._is_closed = False
        self.offloading = Offloading(
            cache, memory, states, self.tiers, self._search.stores, self._store, self._report, self.prices, compute_s
        )
        self._opened = self._fetchers.submit(self._open)

    @property
    def has_reports(self) -> bool:
        """Whether `poll` has something to do."""
        return bool(self._reports)

    @property
    def num_fetching(self) -> int:
        """Number of requests whose pages are to be loaded or are being loaded."""
        return len(self._waiting) + (self._loading is not None)

    def fetch(self, request: Request) -> bool:
        """Begin to look for the pages of a request below; False if it need not wait. Otherwise `poll` returns it once."""
        if self._is_closed or self._overdue:
            return False
        cache, limit = self._cache, request.match_limit
        num_pages = limit // cache.page_size
        num_found = min(cache.num_in_pages(request.token_ids, request.scope) // cache.page_size, num_pages)
        start = num_found * cache.page_size
        if cache.states is not None:
            start = cache.peek(request.token_ids[:limit], request.scope)
        if limit - start < cache.page_size or (cache.states is not None and self._states is None):
            return False
        asks = self._remote_is_worthwhile(start, limit // cache.page_size * cache.page_size)
        if not asks and self._opened.done() and not any(tier.stats.num_pages for tier in self._search.stores):
            return False
        request.enter(RequestStatus.FETCHING)
        token_ids, scope, namespace = (
            request.token_ids[: request.match_limit],
            request.scope,
            request.spec.principal.namespace,
        )
        root = cache.digests.root

        def look() -> None:
            self._opened.result()
            digests = sequence_digests(root, token_ids, cache.page_size, num_pages, namespace, scope.num_public)
            has_kv = self._memory.page_bytes > 0
            places, seconds = [""] * (num_pages - num_found), None
            if has_kv:
                places, seconds = self._search.pages(digests[num_found:], asks=asks)
            digests = digests[: num_found + len(places)]
            if cache.states is None:
                self._report(lambda: self._found(request, digests, places, seconds))
                return
            names = namespace, scope.num_public
            wanted = possible_states(root, digests, token_ids, cache.page_size, start, *names, has_kv=has_kv)
            states, more = self._search.states(list(wanted), asks=asks, has_kv=has_kv)
            seconds = more if seconds is None else seconds + (more or 0.0)
            self._report(lambda: self._found_states(request, digests, places, states, start, seconds))

        self._waiting_since[request] = self._clock()
        self._start_timer(FETCH_TIMEOUT_S)
        self._run(self._fetchers, look, lambda: self._give_up(request))
        return True

    def poll(self) -> list[Request]:
        """Continue the transfers whose threads are done. Returns requests that need not wait any more; some may have ended meanwhile."""
        while self._reports:
            self._reports.popleft()()
        found, self._ready = self._ready, []
        for request in found:
            self._waiting_since.pop(request, None)
        return found

    def settle(self) -> bool:
        """Wait a moment until all written pages are in the tiers; returns whether they are. Any thread but the engine's."""
        return self.offloading.settled.wait(SETTLE_S)

    def set_peers(self, peers: Sequence[tuple[str, int]]) -> None:
        """See `RemoteTier.set_peers`. Any thread."""
        for tier in self._remote:
            tier.set_peers(peers)

    @property
    def ns_per_token(self) -> tuple[int | None, int | None]:
        """Nanoseconds for computing a token of a long prompt, and for fetching it from a remote tier; None where that is unknown."""
        compute_s = self._compute_s(0, _LONG_PROMPT)
        price = next((self.prices.price(tier.name) for tier in self._remote), None)
        return (
            None if compute_s is None else int(compute_s * 1e9 / _LONG_PROMPT),
            None if price is None else int(price * 1e9 / self._cache.page_size),
        )

    def offload(self) -> None:
        """Begin to copy new pages and states, unless copies are under way."""
        if not self._is_closed:
            self.offloading.begin()

    def forget_memory(self, memory: PageMemory | None = None, states: StateContent | None = None) -> None:
        """The pages of the pool and the slots hold nothing any more; `memory` and `states` are those of the new runner, if there is one."""
        if self._loading is not None:
            load, self._loading = self._loading, None
            load.end(self._memory, self._states)
            self._cache.abandon(load.node, load.page_ids, self._end_loading(load))
            self._ready.append(load.fetch.request)
        if memory is not None:
            self._memory, self._states = memory, states
            self.offloading.use(memory, states)

    def close(self) -> None:
        """Store what the persistent tiers do not have yet, for a limited time, and close all tiers. Idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        self.offloading.settled.set()
        if self.server is not None:
            self.server.close()
        for pool in (self._fetchers, self._storer):
            if isinstance(pool, FairExecutor):
                pool.shutdown(wait=False, cancel_futures=True)
        tiers = [tier for tier in self.tiers if tier.is_persistent]
        if tiers and self._opened.done() and not self._opened.cancelled():
            end = time.monotonic() + FLUSH_S
            self.offloading.flush(tiers, end)
        for tier in self.tiers:
            tier.close()

    # -- engine thread: what the threads reported

    def _remote_is_worthwhile(self, start: int, end: int) -> bool:
        """Whether to ask the remote tiers for the pages of these tokens of a prompt."""
        if not any(tier.stats.num_connected for tier in self._remote):
            return False
        return self.prices.is_worth_asking(self._compute_s(start, end - start))

    def _found(
        self, request: Request, digests: list[bytes], places: Sequence[str], seconds: float | None = None
    ) -> None:
        """The last pages of `digests` are in these tiers.

        Args:
            seconds: that the answers of the remote tiers took; None if they were not asked.
        """
        self._overdue.discard(request)
        if seconds is not None:
            self.prices.observe_asking(seconds)
        size, num_before = self._cache.page_size, len(digests) - len(places)
        runs = _runs(self._unless_awaited(digests[num_before:], places))
        plan = self.prices.plan(
            runs, self._seconds_left(), lambda num_pages: self._compute_s(num_before * size, num_pages * size)
        )
        self.num_recomputed.update(plan.passed)
        if plan.num_pages:
            self._waiting.append(Fetch(request, digests[: num_before + plan.num_pages], plan.expected_s, plan.limit_s))
            self._load_next()
        else:
            self._ready.append(request)

    def _found_states(
        self,
        request: Request,
        digests: list[bytes],
        places: Sequence[str],
        states: Sequence[FoundState],
        start: int,
        seconds: float | None,
    ) -> None:
        """The last pages of `digests`, which is all that can be reached, and `states` are in these tiers; see `_found`.

        Args:
            states: the deepest first.
            start: position of the state that the pool has.
        """
        self._overdue.discard(request)
        if seconds is not None:
            self.prices.observe_asking(seconds)
        size, num_before = self._cache.page_size, len(digests) - len(places)
        named = self._unless_awaited(digests[num_before:], places)
        options: list[tuple[list[FetchRun], float | None]] = []
        for state, place, tail_place in states:
            tail = [] if tail_place is None else [tail_place]
            runs = _runs([*named[: max(0, state.num_pages(size) - num_before)], *tail])
            if self._unless_awaited([state.digest], [place])[0] is not None:
                runs.append(FetchRun(state_place(place), 1))
            options.append((runs, self._compute_s(start, state.position - start)))
        chosen, plan = self.prices.choose(options, self._seconds_left())
        names = {tier.name for tier in self.tiers}
        self.num_recomputed.update({tier: count for tier, count in plan.passed.items() if tier in names})
        if chosen is None:
            self._ready.append(request)
            return
        state = states[chosen].state
        self._waiting.append(Fetch(request, digests[: state.num_pages(size)], plan.expected_s, plan.limit_s, state))
        self._load_next()

    def _unless_awaited(self, digests: Sequence[bytes], places: Sequence[str]) -> list[str | None]:
        """The places of pages; None for those that another request is loading, or that have no content."""
        awaited = {digest for each in self._unfinished() for digest in each.wanted}
        return [None if digest in awaited else place or None for digest, place in zip(digests, places, strict=True)]

    def _unfinished(self) -> list[Fetch]:
        return [*self._waiting, *([] if self._loading is None else [self._loading.fetch])]

    def _seconds_left(self) -> float:
        """Expected time until all loads that were begun or wait are done."""
        seconds = sum(each.expected_s for each in self._waiting)
        if self._loading is not None:
            seconds += max(0.0, self._loading.fetch.expected_s - (self._clock() - self._loading.started))
        return seconds

    def _load_next(self) -> None:
        cache = self._cache
        while self._waiting and self._loading is None:
            fetch = self._waiting.popleft()
            request, digests = fetch.request, fetch.digests
            if request.status is not RequestStatus.FETCHING:
                self._waiting_since.pop(request, None)
                continue
            node, first = cache.lock_prefix(request.token_ids, len(digests) * cache.page_size, request.scope)
            load = self._begin_load(fetch, node, first)
            if load is None:
                cache.unlock(node)
                self._ready.append(request)
                continue
            self._loading = load
            self._run(self._fetchers, self._loader(self._loading), self._give_up_loading)

    def _begin_load(self, fetch: Fetch, node: RadixNode, first: int) -> PageLoad | None:
        """Allocate the pages of a fetch after the first ones, which end with the locked `node`, and the slot of its state.

        Returns:
            None if there is no room for it, or nothing left to load.
        """
        cache, request, state = self._cache, fetch.request, fetch.state
        rank, num_pages, slot = self._rank_of(request), len(fetch.digests) - first, None
        if state is None:
            num_pages = min(num_pages, cache.num_available_to(rank))
        else:
            assert cache.states is not None
            num_pages += state.tail_digest is not None
            if cache.peek(request.token_ids[: state.position], request.scope) >= state.position:
                return None
            if not cache.can_allocate(num_pages, rank) or not cache.states.may_keep():
                return None
            slot = cache.states.allocate()
            if slot is None:
                return None
            cache.states.num_loading += 1
        page_ids = cache.allocate(num_pages, rank=rank) if num_pages > 0 else []
        load = PageLoad(fetch, node, first, page_ids or [], self._clock(), slot)
        if page_ids or (slot is not None and num_pages == 0):
            return load
        if slot is not None and cache.states is not None:
            cache.states.free(self._end_loading(load) or slot)
        return None

    def _end_loading(self, load: PageLoad) -> int | None:
        """The slot of a load, which goes back to the cache now."""
        if load.slot is not None and self._cache.states is not None:
            self._cache.states.num_loading -= 1
        return load.slot

    def _loader(self, load: PageLoad) -> Callable[[], None]:
        memory, states = self._memory, self._states

        def work() -> None:
            if self._remote:
                absent = self._search.absent(load.all_digests)
                for remote in self._remote:
                    remote.expect(absent)
            found = load.run(self.tiers, memory, states, self._clock)
            for remote in self._remote:
                remote.expect(())
            self._report(lambda: self._loaded(load, found))

        return work

    def _loaded(self, load: PageLoad, loaded: Loaded) -> None:
        """A load is over."""
        found, state_tier = loaded.tiers, loaded.state_tier
        counts = Counter(tier for tier in found if tier)
        if state_tier is not None:
            self.prices.observe(state_place(state_tier), 1, loaded.state_s)
        for name, seconds in loaded.seconds.items():
            self.prices.observe(name, counts[name], seconds)
        self._overdue.discard(load.fetch.request)
        if self._loading is not load:  # the pool was emptied
            self._load_next()
            return
        self._loading = None
        request, size, wanted = load.fetch.request, self._cache.page_size, load.fetch.state
        start = load.num_before * size
        end = min(start + len(found) * size, len(load.fetch.digests) * size)
        slot, state = self._end_loading(load), None
        if wanted is not None and slot is not None:
            assert self._cache.states is not None
            if state_tier is not None and len(found) == len(load.page_ids):
                end, state = max(start, wanted.position), (wanted.position, slot)
                self.num_fetched_states[state_tier] += 1
            else:
                self._cache.states.free(slot)
        self._cache.finish(load.node, request.token_ids[start:end], load.page_ids, request.scope, start, state)
        self.num_fetched.update(counts)
        if loaded.is_slow and found:
            self.num_recomputed[found[-1]] += len(load.page_ids) - len(found)
        if request.status is RequestStatus.FETCHING and (wanted is None or state is not None):
            tokens = {name: count * size for name, count in counts.items()}
            if wanted is not None and wanted.tail_digest is not None and found[-1]:
                tokens[found[-1]] -= size - wanted.position % size
            request.stats.num_fetched_tokens = tokens
        self._ready.append(request)
        self._load_next()

    def _give_up(self, request: Request) -> None:
        self._overdue.discard(request)
        self._ready.append(request)

    def _give_up_loading(self) -> None:
        if self._loading is not None:
            self._overdue.discard(self._loading.fetch.request)
            self.forget_memory()
        self._load_next()

    def _start_timer(self, seconds: float) -> None:
        if not self._has_timer:
            self._has_timer = True
            self._timer(seconds, lambda: self._report(self._release_overdue))

    def _release_overdue(self) -> None:
        """Release requests that have waited too long; the pages of a load stay reserved until its thread reports."""
        self._has_timer = False
        ends = {request: since + FETCH_TIMEOUT_S - self._clock() for request, since in self._waiting_since.items()}
        over = [request for request, left in ends.items() if left <= 0]
        self._ready += over
        unanswered = set(over) - {each.request for each in self._waiting}
        if unanswered:
            logger.warning("a tier of the cache does not answer: prompts are computed until it does")
            self._overdue |= unanswered
        if left := [left for left in ends.values() if left > 0]:
            self._start_timer(min(left))

    # -- any thread

    def _open(self) -> None:
        for tier in self.tiers:
            try:
                tier.open()
            except Exception:
                logger.exception("opening the %s tier of the cache failed", tier.name)
        if self.server is not None and not self._is_closed:
            self.server.settle = self.settle
            self.server.start()

    def _store(self, work: Callable[[], None], if_failed: Callable[[], None]) -> None:
        def job() -> None:
            self._opened.result()
            work()

        self._run(self._storer, job, if_failed)

    def _report(self, then: Callable[[], None]) -> None:
        self._reports.append(then)
        self._wake()

    def _run(self, executor: Executor, work: Callable[[], None], if_failed: Callable[[], None]) -> None:
        def job() -> None:
            try:
                work()
            except Exception:
                logger.exception("a transfer of the cache failed")
                self._report(if_failed)

        if self._is_closed:
            return
        executor.submit(job)


def _runs(places: Sequence[str | None]) -> list[FetchRun]:
    """The runs of pages in these places."""
    return [FetchRun(tier, len(list(pages))) for tier, pages in groupby(places)]
