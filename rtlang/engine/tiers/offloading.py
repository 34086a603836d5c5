"""Copies new pages of the pool, and new checkpoints, to the tiers below it, while steps run.

After each step, written pages that are new in the tree are copied and given to every tier, on a thread, and so are checkpoints that are
worth it. The tree may evict a page or a state meanwhile: its copy counts only if its epoch is still the same afterwards, which the engine
thread checks. Nothing is locked, so offloading never keeps a page or a slot from a request.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from rtlang.cache.prefix_cache import NewPage, NewState, PrefixCache
from rtlang.cache.tiers.tier import CacheTier
from rtlang.engine.tiers.fetch_price import FetchPrices, state_place
from rtlang.engine.tiers.stored_states import is_worth_storing
from rtlang.model.runner import PageMemory, StateContent

MAX_BATCH_BYTES = 32 << 20
"""Bytes of the pages, and of the states, that are copied at a time."""
MAX_BATCH_PAGES = 512
MAX_BATCH_STATES = 16

Work = Callable[[], None]


class Offloading:
    """See the module. Methods are for the engine thread, unless they say otherwise.

    Args:
        memory, states: the content of pages and of states; None for a model without states. Without access to the states of a model nothing
            is stored.
        tiers: all of them; only the `stores` among them are given pages.
        run: runs its first argument on a thread, and reports the second one if that fails.
        report: called from a thread with a function for the engine thread.
        prices, compute_s: see `PageTransfers`.

    Attributes:
        num_lost: new pages and states that were evicted before they were copied.
        is_busy: whether copies are under way.
    """

    def __init__(
        self,
        cache: PrefixCache,
        memory: PageMemory,
        states: StateContent | None,
        tiers: Sequence[CacheTier],
        stores: Sequence[CacheTier],
        run: Callable[[Work, Work], None],
        report: Callable[[Work], None],
        prices: FetchPrices,
        compute_s: Callable[[int, int], float | None],
    ) -> None:
        self.num_lost = 0
        self.is_busy = False
        self._under_way: list[NewPage | NewState] = []
        self.settled = threading.Event()  # unset while written pages are not in the tiers yet
        self.settled.set()
        self._cache, self._memory, self._states = cache, memory, states
        self._tiers, self._stores = tiers, stores
        self._run, self._report = run, report
        self._prices, self._compute_s = prices, compute_s
        self._num_per_batch = max(1, min(MAX_BATCH_PAGES, MAX_BATCH_BYTES // max(1, memory.page_bytes)))

    def use(self, memory: PageMemory, states: StateContent | None) -> None:
        """Go on with the memory of another runner."""
        self._memory, self._states = memory, states

    def begin(self) -> None:
        """Begin to copy new pages and states, unless copies are under way."""
        if self.is_busy:
            return
        touched = self._cache.evictions.take_new()
        new = self._take_new(self._num_per_batch)
        if new:
            self.settled.clear()
        else:
            self.settled.set()
        if not new and not touched:
            return
        self.is_busy, self._under_way = True, new
        memory, states = self._memory, self._states

        def copy() -> None:
            for tier in self._tiers:
                tier.touch(touched)
            wanted = [each for each in new if not all(tier.has(each.digest) for tier in self._stores)]
            contents = _read(wanted, memory, states)
            self._report(lambda: self._store(wanted, contents))

        self._run(copy, self._end)

    def flush(self, tiers: Sequence[CacheTier], end: float) -> None:
        """Store what these tiers do not have yet, on the thread of the caller, until the time `end` of `time.monotonic`."""
        new = [each for each in self._under_way if self._cache.is_unchanged(each)]  # their thread may never store them
        while time.monotonic() < end and (new := new or self._take_new(1)):
            each = new.pop(0)
            (content,) = _read([each], self._memory, self._states)
            for tier in tiers:
                tier.put(each.digest, content.data)

    def _take_new(self, max_pages: int) -> list[NewPage | NewState]:
        """New pages, and new states after the pages inside which they lie, as far as they have contents."""
        found: list[NewPage | NewState] = []
        if self._cache.states is not None and self._states is None:
            return found
        found += self._cache.take_new_pages(max_pages)
        if self._states is not None:
            max_states = min(max_pages, MAX_BATCH_STATES, max(1, MAX_BATCH_BYTES // self._states.state_bytes))
            for state in self._cache.take_new_states(max_states, self._is_worth_storing):
                found += [state] if state.tail is None else [state.tail, state]
        return found if self._memory.page_bytes else [each for each in found if isinstance(each, NewState)]

    def _is_worth_storing(self, position: int, num_spared: int, num_uses: int) -> bool:
        assert self._states is not None
        prices = [self._prices.price(state_place(tier.name)) for tier in self._stores]
        return is_worth_storing(
            num_spared,
            num_uses,
            self._states.state_bytes,
            self._memory.page_bytes / self._cache.page_size,
            self._compute_s(position - num_spared, num_spared),
            min((price for price in prices if price is not None), default=None),
        )

    def _store(self, new: Sequence[NewPage | NewState], contents: Sequence[NDArray[np.uint8]]) -> None:
        """Pages and states were copied: store those that are still what they were."""
        kept = [i for i, each in enumerate(new) if self._cache.is_unchanged(each)]
        self.num_lost += len(new) - len(kept)

        def store() -> None:
            for i in kept:
                for tier in self._stores:
                    tier.put(new[i].digest, contents[i].data)
            self._report(self._end)

        self._run(store, self._end)

    def _end(self) -> None:
        self.is_busy, self._under_way = False, []


def _read(
    new: Sequence[NewPage | NewState], memory: PageMemory, states: StateContent | None
) -> list[NDArray[np.uint8]]:
    """The content of pages and of states, uint8 [page_bytes] or [state_bytes] each; all pages, and all states, are read at once."""
    page_ids = [each.page_id for each in new if isinstance(each, NewPage)]
    slots = [each.slot for each in new if isinstance(each, NewState)]
    of_pages = iter(memory.read_pages(page_ids) if page_ids else ())
    of_states = iter(states.read_states(slots) if slots and states is not None else ())
    return [next(of_pages if isinstance(each, NewPage) else of_states) for each in new]
