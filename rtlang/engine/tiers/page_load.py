"""One load of pages, and of a state, from the tiers into the pool: its digests, its places there, and the work of its thread.

A load may end early: a page is missing, loading takes longer than computing, or the pool was emptied, and its places are given to others.
The engine thread then ends it at once, without waiting for a tier that answers slowly, and nothing more is written.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rtlang.cache.node import RadixNode
from rtlang.cache.tiers.tier import CacheTier
from rtlang.engine.requests.request import Request
from rtlang.engine.tiers.stored_states import StoredState
from rtlang.model.runner import PageMemory, StateContent

_Item = tuple[int, NDArray[np.uint8]]  # a page or a slot, and its content


@dataclass(frozen=True, slots=True)
class Fetch:
    """A request whose pages are in a tier: the digests of its pages up to the last one to load, the plan of the load, and its state."""

    request: Request
    digests: list[bytes]
    expected_s: float
    limit_s: float | None
    state: StoredState | None = None

    @property
    def wanted(self) -> set[bytes]:
        """The digests of all that is loaded."""
        return {*self.digests, *(() if self.state is None else (self.state.digest, self.state.tail_digest or b""))}


@dataclass(slots=True)
class Loaded:
    """The result of a load.

    Attributes:
        tiers: the tier of each page that was loaded, in order; empty names for pages without content.
        seconds: the time that they took, by tier.
        state_tier, state_s: the tier of the state, and the time that it took; None if it is missing, or there is none.
        is_slow: whether pages were left out because loading takes longer than computing.
    """

    tiers: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    state_tier: str | None = None
    state_s: float = 0.0
    is_slow: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class PageLoad:
    """Pages that are being loaded: after `num_before` pages that end with the locked `node`, into private pages; a state, into `slot`."""

    fetch: Fetch
    node: RadixNode
    num_before: int
    page_ids: list[int]
    started: float
    slot: int | None = None
    _is_over: threading.Event = field(default_factory=threading.Event)

    @property
    def digests(self) -> list[bytes]:
        """Of the pages, and of the tail of the state if there is one."""
        state = self.fetch.state
        tail = [] if state is None or state.tail_digest is None else [state.tail_digest]
        return [*self.fetch.digests[self.num_before :], *tail][: len(self.page_ids)]

    @property
    def all_digests(self) -> list[bytes]:
        """The digest of the state, if there is one, and those of the pages."""
        state = self.fetch.state
        return self.digests if state is None else [state.digest, *self.digests]

    def end(self, memory: PageMemory, states: StateContent | None) -> None:
        """Let nothing more be written. Engine thread."""
        self._is_over.set()
        memory.abandon_writes()
        if states is not None:
            states.abandon_writes()

    def run(
        self,
        tiers: Sequence[CacheTier],
        memory: PageMemory,
        states: StateContent | None,
        clock: Callable[[], float],
    ) -> Loaded:
        """Load the state, without which the pages are of no use, and then the pages. Any thread."""
        found = Loaded()
        state, started = self.fetch.state, clock()
        if state is not None:
            assert states is not None
            self._load_state(state, tiers, states, found)
            found.state_s = clock() - started
            if found.state_tier is None:
                return found
        if memory.page_bytes:
            memory.write_pages(self._unless_over(self._pages(tiers, memory.page_bytes, found, started, clock)))
        else:
            found.tiers += [""] * len(self.page_ids)
        return found

    def _load_state(self, state: StoredState, tiers: Sequence[CacheTier], states: StateContent, found: Loaded) -> None:
        assert self.slot is not None
        for tier in tiers:
            content = _whole(tier, state.digest, states.state_bytes)
            if content is not None:
                states.write_states(self._unless_over([(self.slot, content)]))
                found.state_tier = tier.name
                return

    def _pages(
        self,
        tiers: Sequence[CacheTier],
        page_bytes: int,
        found: Loaded,
        started: float,
        clock: Callable[[], float],
    ) -> Iterator[_Item]:
        """The pages up to the first one that is missing or too late. The time of each lasts until the next one is asked for."""
        before = started + found.state_s
        for digest, page_id in zip(self.digests, self.page_ids, strict=True):
            if self.fetch.limit_s is not None and before - started > self.fetch.limit_s:
                found.is_slow = True
                return
            for tier in tiers:
                content = _whole(tier, digest, page_bytes)
                if content is not None:
                    break
            else:
                return
            found.tiers.append(tier.name)
            yield page_id, content
            after = clock()
            found.seconds[tier.name] = found.seconds.get(tier.name, 0.0) + after - before
            before = after

    def _unless_over(self, items: Iterable[_Item]) -> Iterator[_Item]:
        for item in items:
            if self._is_over.is_set():
                return
            yield item


def _whole(tier: CacheTier, digest: bytes, num_bytes: int) -> NDArray[np.uint8] | None:
    """The content of a page or state; None if the tier does not have all of it."""
    content = tier.get(digest)
    return None if content is None or content.nbytes != num_bytes else np.frombuffer(content, dtype=np.uint8)
