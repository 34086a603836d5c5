"""Moves pages between the pool and the tiers below it, while steps run.

Offloading: after each step, written pages that are new in the tree are copied and given to every tier, on a thread. The tree may evict a
page meanwhile: its copy counts only if its epoch is still the same afterwards, which the engine thread checks. Nothing is locked, so
offloading never keeps a page from a request.

Fetching: a new request whose prompt is longer than its match in the tree waits while a thread looks for the next pages below. If there are
some, the engine thread locks the prefix and allocates pages; a thread fills them from the uppermost tier that has each; then the engine
thread adds them to the tree as if a request had computed them. Missing and damaged pages are computed. One request's pages are loaded at a
time, so requests for the same pages do not load them twice.

The engine thread does bookkeeping only. Threads report by `_report`, and `poll` runs the reported functions between two steps.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor

import numpy as np
from numpy.typing import NDArray

from rtlang.cache.node import RadixNode
from rtlang.cache.prefix_cache import NewPage, PrefixCache
from rtlang.cache.tiers.digest import sequence_digests
from rtlang.cache.tiers.tier import CacheTier
from rtlang.engine.daemon_pool import DaemonPool
from rtlang.engine.request import Request, RequestStatus
from rtlang.model.runner import PageMemory

logger = logging.getLogger(__name__)

MAX_BATCH_BYTES = 32 << 20
"""Bytes of the pages that are copied at a time."""
MAX_BATCH_PAGES = 512
FLUSH_S = 3.0
"""Seconds for storing pages when the engine ends."""


class PageTransfers:
    """The transfers of one engine. Methods are for the engine thread.

    Args:
        tiers: from the fastest to the slowest; `open` is called on a thread.
        rank_of: the place of a request among programs; see `PrefixCache.allocate`.
        wake: called from any thread when `poll` has something to do.
        executor: runs all work of threads; for tests. Default: two threads for fetching, one for offloading.

    Attributes:
        num_fetched: pages loaded, by the name of the tier.
        num_lost: new pages that were evicted before they were copied.
    """

    def __init__(
        self,
        cache: PrefixCache,
        memory: PageMemory,
        tiers: Sequence[CacheTier],
        rank_of: Callable[[Request], float],
        wake: Callable[[], None],
        executor: Executor | None = None,
    ) -> None:
        self.tiers = tuple(tiers)
        self.num_fetched: Counter[str] = Counter()
        self.num_lost = 0
        self._cache, self._memory, self._rank_of, self._wake = cache, memory, rank_of, wake
        self._fetchers: Executor = executor or DaemonPool(2, "cache-fetch")
        self._storer: Executor = executor or DaemonPool(1, "cache-store")
        self._reports: deque[Callable[[], None]] = deque()  # filled by threads
        self._ready: list[Request] = []
        self._waiting: deque[tuple[Request, list[bytes]]] = deque()  # requests whose pages are below, in order
        self._loading: tuple[Request, RadixNode, int, list[int]] | None = None  # with first page and private pages
        self._is_storing = False
        self._is_closed = False
        self._num_per_batch = max(1, min(MAX_BATCH_PAGES, MAX_BATCH_BYTES // memory.page_bytes))
        self._opened = self._fetchers.submit(self._open)

    @property
    def has_reports(self) -> bool:
        """Whether `poll` has something to do."""
        return bool(self._reports)

    @property
    def num_fetching(self) -> int:
        """Number of requests that wait for pages."""
        return len(self._waiting) + (self._loading is not None)

    def fetch(self, request: Request) -> bool:
        """Begin to look for the pages of a request below; False if it need not wait. Otherwise `poll` returns it once."""
        if self._is_closed:
            return False
        cache = self._cache
        num_pages = request.match_limit // cache.page_size
        num_found = cache.peek(request.token_ids, request.scope) // cache.page_size
        if num_found >= num_pages or (self._opened.done() and not any(tier.stats.num_pages for tier in self.tiers)):
            return False
        request.status = RequestStatus.FETCHING
        token_ids, scope, namespace = (
            request.token_ids[: request.match_limit],
            request.scope,
            request.principal.namespace,
        )
        root = cache.digests.root

        def look() -> None:
            self._opened.result()
            digests = sequence_digests(root, token_ids, cache.page_size, num_pages, namespace, scope.num_public)
            end = num_found
            while end < num_pages and any(tier.has(digests[end]) for tier in self.tiers):
                end += 1
            self._report(lambda: self._found(request, digests[:end] if end > num_found else []))

        self._run(self._fetchers, look, lambda: self._ready.append(request))
        return True

    def poll(self) -> list[Request]:
        """Continue the transfers whose threads are done. Returns requests that need not wait any more; some may have ended meanwhile."""
        while self._reports:
            self._reports.popleft()()
        found, self._ready = self._ready, []
        return found

    def offload(self) -> None:
        """Begin to copy new pages, unless copies are under way."""
        if self._is_storing or self._is_closed:
            return
        touched = self._cache.evictions.take_new()
        pages = self._cache.take_new_pages(self._num_per_batch)
        if not pages and not touched:
            return
        self._is_storing = True
        memory = self._memory

        def copy() -> None:
            self._opened.result()
            for tier in self.tiers:
                tier.touch(touched)
            wanted = [page for page in pages if not all(tier.has(page.digest) for tier in self.tiers)]
            contents = np.empty((len(wanted), memory.page_bytes), dtype=np.uint8)
            for page, out in zip(wanted, contents, strict=True):
                memory.read_page(page.page_id, out)
            self._report(lambda: self._store(wanted, contents))

        self._run(self._storer, copy, self._stored)

    def forget_memory(self, memory: PageMemory | None = None) -> None:
        """The pages of the pool hold nothing any more; `memory` is that of the new pool, if there is one."""
        if self._loading is not None:
            request, node, _, page_ids = self._loading
            self._loading = None
            self._cache.abandon(node, page_ids)
            self._ready.append(request)
        if memory is not None:
            self._memory = memory

    def close(self) -> None:
        """Store what the persistent tiers do not have yet, for a limited time, and close all tiers. Idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        for pool in (self._fetchers, self._storer):
            if isinstance(pool, DaemonPool):
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

    def _found(self, request: Request, digests: list[bytes]) -> None:
        if not digests:
            self._ready.append(request)
            return
        self._waiting.append((request, digests))
        self._load_next()

    def _load_next(self) -> None:
        cache = self._cache
        while self._waiting and self._loading is None:
            request, digests = self._waiting.popleft()
            if request.status is not RequestStatus.FETCHING:
                continue
            node, first = cache.lock_prefix(request.token_ids, len(digests) * cache.page_size, request.scope)
            rank = self._rank_of(request)
            num_pages = min(len(digests) - first, cache.num_available_to(rank))
            page_ids = cache.allocate(num_pages, rank=rank) if num_pages > 0 else None
            if not page_ids:
                cache.unlock(node)
                self._ready.append(request)
                continue
            self._loading = request, node, first, page_ids
            self._run(self._fetchers, self._loader(digests[first : first + num_pages], page_ids), self._give_up_loading)

    def _loader(self, digests: Sequence[bytes], page_ids: Sequence[int]) -> Callable[[], None]:
        memory, loading = self._memory, self._loading

        def load() -> None:
            found: list[str] = []
            for digest, page_id in zip(digests, page_ids, strict=True):
                for tier in self.tiers:
                    content = tier.get(digest)
                    if content is not None and content.nbytes == memory.page_bytes:
                        memory.write_page(page_id, np.frombuffer(content, dtype=np.uint8))
                        found.append(tier.name)
                        break
                else:
                    break
            self._report(lambda: self._loaded(loading, found))

        return load

    def _loaded(self, loading: object, found: list[str]) -> None:
        """Pages were loaded, from these tiers."""
        if self._loading is None or self._loading is not loading:  # the pool was emptied
            self._load_next()
            return
        request, node, first, page_ids = self._loading
        self._loading = None
        size = self._cache.page_size
        token_ids = request.token_ids[first * size : (first + len(found)) * size]
        self._cache.finish(node, token_ids, page_ids, request.scope, first * size)
        self.num_fetched.update(found)
        request.num_fetched_tokens = {name: count * size for name, count in Counter(found).items()}
        self._ready.append(request)
        self._load_next()

    def _give_up_loading(self) -> None:
        if self._loading is not None:
            self.forget_memory()
        self._load_next()

    def _store(self, pages: Sequence[NewPage], contents: NDArray[np.uint8]) -> None:
        """Pages were copied: store those that are still what they were."""
        kept = [i for i, page in enumerate(pages) if self._cache.is_unchanged(page)]
        self.num_lost += len(pages) - len(kept)

        def store() -> None:
            for i in kept:
                for tier in self.tiers:
                    tier.put(pages[i].digest, contents[i].data)
            self._report(self._stored)

        self._run(self._storer, store, self._stored)

    def _stored(self) -> None:
        self._is_storing = False

    # -- any thread

    def _open(self) -> None:
        for tier in self.tiers:
            try:
                tier.open()
            except Exception:
                logger.exception("opening the %s tier of the cache failed", tier.name)

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
