"""Moves pages between the pool and the tiers below it, while steps run.

Offloading: after each step, written pages that are new in the tree are copied and given to every tier, on a thread. The tree may evict a
page meanwhile: its copy counts only if its epoch is still the same afterwards, which the engine thread checks. Nothing is locked, so
offloading never keeps a page from a request.

Fetching: a new request whose prompt is longer than its match in the tree waits while a thread looks for the next pages below. If there are
some, and loading them is expected to take less time than computing them (fetch_price.py), the engine thread locks the prefix and allocates
pages; a thread fills them from the uppermost tier that has each; then the engine thread adds them to the tree as if a request had computed
them. Missing and damaged pages are computed, and so is the rest of a load that takes longer than computing would. One request's pages are
loaded at a time, so requests for the same pages do not load them twice; the time until a load can begin counts as a part of its price.
Requests that need no pages from below do not wait. A request waits for FETCH_TIMEOUT_S at most: then it is computed, and until the tier has
answered no request waits for it.

Remote tiers are asked once for all pages that the others do not have, and only where computing these takes longer than an answer.

The engine thread does bookkeeping only. Threads report by `_report`, and `poll` runs the reported functions between two steps.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from rtlang.cache.node import RadixNode
from rtlang.cache.prefix_cache import NewPage, PrefixCache
from rtlang.cache.tiers.digest import sequence_digests
from rtlang.cache.tiers.tier import RemoteTier
from rtlang.engine.requests.request import Request, RequestStatus
from rtlang.engine.tiers.configured_tiers import CacheTiers
from rtlang.engine.tiers.fetch_price import FetchPrices, FetchRun
from rtlang.model.runner import PageMemory
from rtlang.work.fair_executor import FairExecutor

logger = logging.getLogger(__name__)

MAX_BATCH_BYTES = 32 << 20
"""Bytes of the pages that are copied at a time."""
MAX_BATCH_PAGES = 512
FETCH_TIMEOUT_S = 10.0
"""Seconds that a request waits for its pages."""
SETTLE_S = 0.5
"""Seconds that a peer's question waits for pages on their way to the tiers, which takes milliseconds as a rule."""
_LONG_PROMPT = 1024
FLUSH_S = 3.0
"""Seconds for storing pages when the engine ends."""


@dataclass(frozen=True, slots=True)
class _Fetch:
    """A request whose pages are in a tier: the digests of its pages up to the last one to load, and the plan of the load."""

    request: Request
    digests: list[bytes]
    expected_s: float
    limit_s: float | None


@dataclass(frozen=True, slots=True, eq=False)
class _Load:
    """Pages that are being loaded: after `num_before` pages that end with the locked `node`, into private pages."""

    fetch: _Fetch
    node: RadixNode
    num_before: int
    page_ids: list[int]
    started: float


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
        executor: runs all work of threads; for tests. Default: two threads for fetching, one for offloading.
        compute_s: seconds for computing so many tokens (second argument) after so many others; None if unknown.
        timing: measures loads, and bounds how long requests wait; another one than the real time is for tests.

    Attributes:
        num_fetched: pages loaded, by the name of the tier.
        num_recomputed: pages that were in the tier when their prompt came and were computed, since that takes less time.
        num_lost: new pages that were evicted before they were copied.
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
    ) -> None:
        self.tiers, self.server = tiers.tiers, tiers.server
        self._remote = [tier for tier in self.tiers if isinstance(tier, RemoteTier)]
        self._stores = [tier for tier in self.tiers if not isinstance(tier, RemoteTier)]
        self.prices = FetchPrices()
        self.num_fetched: Counter[str] = Counter()
        self.num_recomputed: Counter[str] = Counter()
        self.num_lost = 0
        self._cache, self._memory, self._rank_of, self._wake = cache, memory, rank_of, wake
        self._fetchers: Executor = executor or FairExecutor(2, "cache-fetch")
        self._storer: Executor = executor or FairExecutor(1, "cache-store")
        self._reports: deque[Callable[[], None]] = deque()  # filled by threads
        self._ready: list[Request] = []
        self._compute_s, self._clock, self._timer = compute_s, timing.clock, timing.timer
        self._waiting_since: dict[Request, float] = {}  # by request that waits, the time of `fetch`
        self._overdue: set[Request] = set()  # requests that waited too long, until the thread of each reports
        self._has_timer = False
        self._waiting: deque[_Fetch] = deque()  # in order
        self._loading: _Load | None = None
        self._is_storing = False
        self._settled = threading.Event()  # unset while written pages are not in the tiers yet
        self._settled.set()
        self._is_closed = False
        self._num_per_batch = max(1, min(MAX_BATCH_PAGES, MAX_BATCH_BYTES // memory.page_bytes))
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
        cache = self._cache
        num_pages = request.match_limit // cache.page_size
        num_found = cache.peek(request.token_ids, request.scope) // cache.page_size
        if num_found >= num_pages:
            return False
        asks = self._remote_is_worthwhile(num_found, num_pages)
        if not asks and self._opened.done() and not any(tier.stats.num_pages for tier in self._stores):
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
            places, seconds = self._find_places(digests[num_found:], asks=asks)
            self._report(lambda: self._found(request, digests[: num_found + len(places)], places, seconds))

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
        return self._settled.wait(SETTLE_S)

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
        """Begin to copy new pages, unless copies are under way."""
        if self._is_storing or self._is_closed:
            return
        touched = self._cache.evictions.take_new()
        pages = self._cache.take_new_pages(self._num_per_batch)
        if pages:
            self._settled.clear()
        else:
            self._settled.set()
        if not pages and not touched:
            return
        self._is_storing = True
        memory = self._memory

        def copy() -> None:
            self._opened.result()
            for tier in self.tiers:
                tier.touch(touched)
            wanted = [page for page in pages if not all(tier.has(page.digest) for tier in self._stores)]
            contents = np.empty((len(wanted), memory.page_bytes), dtype=np.uint8)
            for page, out in zip(wanted, contents, strict=True):
                memory.read_page(page.page_id, out)
            self._report(lambda: self._store(wanted, contents))

        self._run(self._storer, copy, self._stored)

    def forget_memory(self, memory: PageMemory | None = None) -> None:
        """The pages of the pool hold nothing any more; `memory` is that of the new pool, if there is one."""
        if self._loading is not None:
            load, self._loading = self._loading, None
            self._cache.abandon(load.node, load.page_ids)
            self._ready.append(load.fetch.request)
        if memory is not None:
            self._memory = memory

    def close(self) -> None:
        """Store what the persistent tiers do not have yet, for a limited time, and close all tiers. Idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        self._settled.set()
        if self.server is not None:
            self.server.close()
        for pool in (self._fetchers, self._storer):
            if isinstance(pool, FairExecutor):
                pool.shutdown(wait=False, cancel_futures=True)
        tiers = [tier for tier in self.tiers if tier.is_persistent]
        if tiers and self._opened.done() and not self._opened.cancelled():
            end = time.monotonic() + FLUSH_S
            content = np.empty(self._memory.page_bytes, dtype=np.uint8)
            while time.monotonic() < end and (pages := self._cache.take_new_pages(1)):
                self._memory.read_page(pages[0].page_id, content)
                for tier in tiers:
                    tier.put(pages[0].digest, content.data)
        for tier in self.tiers:
            tier.close()

    # -- engine thread: what the threads reported

    def _remote_is_worthwhile(self, num_found: int, num_pages: int) -> bool:
        """Whether to ask the remote tiers for the pages of a prompt after the first `num_found`."""
        if not any(tier.stats.num_connected for tier in self._remote):
            return False
        size = self._cache.page_size
        compute_s = self._compute_s(num_found * size, (num_pages - num_found) * size)
        return self.prices.is_worth_asking(compute_s)

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
        awaited = {digest for each in self._unfinished() for digest in each.digests}
        named = [
            None if digest in awaited else place for digest, place in zip(digests[num_before:], places, strict=True)
        ]
        runs = [FetchRun(tier, len(list(pages))) for tier, pages in groupby(named)]
        plan = self.prices.plan(
            runs, self._seconds_left(), lambda num_pages: self._compute_s(num_before * size, num_pages * size)
        )
        self.num_recomputed.update(plan.passed)
        if plan.num_pages:
            self._waiting.append(_Fetch(request, digests[: num_before + plan.num_pages], plan.expected_s, plan.limit_s))
            self._load_next()
        else:
            self._ready.append(request)

    def _unfinished(self) -> list[_Fetch]:
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
            rank = self._rank_of(request)
            num_pages = min(len(digests) - first, cache.num_available_to(rank))
            page_ids = cache.allocate(num_pages, rank=rank) if num_pages > 0 else None
            if not page_ids:
                cache.unlock(node)
                self._ready.append(request)
                continue
            self._loading = _Load(fetch, node, first, page_ids, self._clock())
            self._run(self._fetchers, self._loader(self._loading), self._give_up_loading)

    def _loader(self, load: _Load) -> Callable[[], None]:
        memory, clock, limit_s = self._memory, self._clock, load.fetch.limit_s
        digests = load.fetch.digests[load.num_before : load.num_before + len(load.page_ids)]

        def work() -> None:
            found: list[str] = []
            seconds: dict[str, float] = {}
            started = before = clock()
            if self._remote:
                absent = [digest for digest in digests if not any(tier.has(digest) for tier in self._stores)]
                for remote in self._remote:
                    remote.expect(absent)
            for digest, page_id in zip(digests, load.page_ids, strict=True):
                if limit_s is not None and before - started > limit_s:
                    break
                for tier in self.tiers:
                    content = tier.get(digest)
                    if content is not None and content.nbytes == memory.page_bytes:
                        memory.write_page(page_id, np.frombuffer(content, dtype=np.uint8))
                        found.append(tier.name)
                        break
                else:
                    break
                after = clock()
                seconds[found[-1]] = seconds.get(found[-1], 0.0) + after - before
                before = after
            for remote in self._remote:
                remote.expect(())
            is_slow = len(found) < len(digests) and limit_s is not None and before - started > limit_s
            self._report(lambda: self._loaded(load, found, seconds, is_slow=is_slow))

        return work

    def _loaded(self, load: _Load, found: list[str], seconds: Mapping[str, float], *, is_slow: bool) -> None:
        """Pages were loaded, from these tiers.

        Args:
            seconds: by tier.
            is_slow: whether the load was ended because it took too long.
        """
        counts = Counter(found)
        for name, count in counts.items():
            self.prices.observe(name, count, seconds[name])
        self._overdue.discard(load.fetch.request)
        if self._loading is not load:  # the pool was emptied
            self._load_next()
            return
        self._loading = None
        request, size = load.fetch.request, self._cache.page_size
        start, end = load.num_before * size, (load.num_before + len(found)) * size
        self._cache.finish(load.node, request.token_ids[start:end], load.page_ids, request.scope, start)
        self.num_fetched.update(counts)
        if is_slow:
            self.num_recomputed[found[-1]] += len(load.page_ids) - len(found)
        if request.status is RequestStatus.FETCHING:
            request.stats.num_fetched_tokens = {name: count * size for name, count in counts.items()}
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

    def _store(self, pages: Sequence[NewPage], contents: NDArray[np.uint8]) -> None:
        """Pages were copied: store those that are still what they were."""
        kept = [i for i, page in enumerate(pages) if self._cache.is_unchanged(page)]
        self.num_lost += len(pages) - len(kept)

        def store() -> None:
            for i in kept:
                for tier in self._stores:
                    tier.put(pages[i].digest, contents[i].data)
            self._report(self._stored)

        self._run(self._storer, store, self._stored)

    def _stored(self) -> None:
        self._is_storing = False

    # -- any thread

    def _find_places(self, digests: Sequence[bytes], *, asks: bool) -> tuple[list[str], float | None]:
        """The tiers of the first of these pages that are in some, and the seconds that the answers of remote tiers took, if asked."""
        places, seconds = list[str](), None
        for index, digest in enumerate(digests):
            place = next((tier.name for tier in self._stores if tier.has(digest)), None)
            if place is None and asks:
                if seconds is None:
                    started = self._clock()
                    for tier in self._remote:
                        tier.ask(digests[index:])
                    seconds = self._clock() - started
                place = next((tier.name for tier in self._remote if tier.has(digest)), None)
            if place is None:
                break
            places.append(place)
        return places, seconds

    def _open(self) -> None:
        for tier in self.tiers:
            try:
                tier.open()
            except Exception:
                logger.exception("opening the %s tier of the cache failed", tier.name)
        if self.server is not None and not self._is_closed:
            self.server.settle = self.settle
            self.server.start()

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
