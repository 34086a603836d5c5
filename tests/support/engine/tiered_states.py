"""A `StateDriver` with tiers below its pool, on threads that the test runs; and tiers that lose, damage and cut what they hold."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from rtlang.cache.tiers.host_tier import HostTier
from rtlang.cache.tiers.tier import CacheTier
from rtlang.engine.requests.request import Request
from rtlang.engine.tiers.configured_tiers import CacheTiers
from rtlang.engine.tiers.page_transfers import PageTransfers, TransferTime
from tests.support.engine.held_jobs import Jobs
from tests.support.engine.state_driver import StateDriver

STATE_BYTES = 64


class TieredStateDriver(StateDriver):
    """An engine on a runner with states and these tiers."""

    def __init__(
        self,
        tiers: Sequence[CacheTier],
        num_states: int = 16,
        num_pages: int = 64,
        *,
        jobs: Jobs | None = None,
        compute_s: Callable[[int, int], float | None] = lambda num_before, num_tokens: None,
        clock: Callable[[], float] = lambda: 0.0,
        **settings: Any,
    ) -> None:
        super().__init__(num_states, num_pages, **{"state_bytes": STATE_BYTES, **settings})
        self.jobs = jobs or Jobs()
        engine = self.engine
        assert engine.cache.states is not None
        engine.cache._tree.tracks_new_pages = engine.cache.states.tracks_new = True
        engine.transfers = engine.preparation._transfers = PageTransfers(
            engine.cache,
            self.runner,
            CacheTiers(tuple(tiers)),
            lambda request: engine.scheduler.rank(request.program.arrival_time, request.spec.priority),
            lambda: None,
            self.jobs,
            compute_s,
            TransferTime(clock, lambda seconds, call: None),
            self.runner.state_memory,
        )

    @property
    def transfers(self) -> PageTransfers:
        assert self.engine.transfers is not None
        return self.engine.transfers

    def generate(self, tokens: list[int], max_tokens: int = 2, **rest: Any) -> Request:
        """Add a request and run until nothing is left."""
        request = self.add(tokens, max_tokens, **rest)
        self.run()
        return request


class Unreliable(HostTier):
    """A tier that forgets, cuts or lengthens an entry now and then. Content is never wrong: checksums and seals find that."""

    def __init__(self, rng: random.Random, share: float, max_bytes: int = 1 << 20) -> None:
        super().__init__(max_bytes)
        self.rng, self.share = rng, share
        self.num_lost = 0

    def get(self, digest: bytes) -> memoryview | None:
        content = super().get(digest)
        if content is None or self.rng.random() >= self.share:
            return content
        self.num_lost += 1
        match self.rng.randrange(3):
            case 0:
                return None
            case 1:
                return content[: self.rng.randrange(content.nbytes)]
            case _:
                return memoryview(bytes(content) + b"x")


def without_states(there: HostTier, state_bytes: int = STATE_BYTES) -> HostTier:
    """A copy of a tier that has lost all states."""
    made = HostTier(1 << 20)
    for digest, content in there._pages.items():
        if len(content) != state_bytes:
            made.put(digest, memoryview(content))
    return made
