"""Finds the pages and states of a prompt in the tiers below the pool. Any thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rtlang.cache.tiers.tier import CacheTier, RemoteTier
from rtlang.engine.tiers.stored_states import StoredState

MAX_OPTIONS = 4
"""States of a prompt, the deepest ones, whose loads are compared."""
MAX_ASKED_STATES = 4096
"""States and tails that remote tiers are asked for."""


class FoundState(NamedTuple):
    """A state that is stored below, and the tiers that have it and its tail, if it needs one."""

    state: StoredState
    place: str
    tail_place: str | None = None


class TierSearch:
    """See the module.

    Args:
        tiers: remote ones last.
        clock: seconds.

    Attributes:
        stores, remote: the tiers of this process, and the others.
    """

    def __init__(self, tiers: Sequence[CacheTier], clock: Callable[[], float]) -> None:
        self.remote = [tier for tier in tiers if isinstance(tier, RemoteTier)]
        self.stores = [tier for tier in tiers if not isinstance(tier, RemoteTier)]
        self._tiers, self._clock = tiers, clock

    def pages(self, digests: Sequence[bytes], *, asks: bool) -> tuple[list[str], float | None]:
        """The tiers of the first of these pages that are in some, and the seconds that the answers of remote tiers took, if asked."""
        places, seconds = list[str](), None
        for index, digest in enumerate(digests):
            place = _place(self.stores, digest)
            if place is None and asks:
                if seconds is None:
                    seconds = self._ask(digests[index:])
                place = _place(self.remote, digest)
            if place is None:
                break
            places.append(place)
        return places, seconds

    def states(
        self, wanted: Sequence[StoredState], *, asks: bool, has_kv: bool = True
    ) -> tuple[list[FoundState], float | None]:
        """The first `MAX_OPTIONS` of these states that are in some tiers together with their tails, and the seconds as in `pages`.

        Args:
            has_kv: False for a model without keys and values, whose tails have no content.
        """
        found, seconds = list[FoundState](), None
        for index, state in enumerate(wanted):
            each = self._find(self.stores, state, has_kv=has_kv)
            if each is None and asks:
                if seconds is None:
                    digests = [each for state in wanted[index:] for each in (state.digest, state.tail_digest) if each]
                    seconds = self._ask(digests[:MAX_ASKED_STATES])
                each = self._find(self._tiers, state, has_kv=has_kv)
            if each is not None:
                found.append(each)
                if len(found) == MAX_OPTIONS:
                    break
        return found, seconds

    def absent(self, digests: Sequence[bytes]) -> list[bytes]:
        """Those that no tier of this process has."""
        return [digest for digest in digests if _place(self.stores, digest) is None]

    def _ask(self, digests: Sequence[bytes]) -> float:
        started = self._clock()
        for tier in self.remote:
            tier.ask(digests)
        return self._clock() - started

    @staticmethod
    def _find(tiers: Sequence[CacheTier], state: StoredState, *, has_kv: bool) -> FoundState | None:
        place = _place(tiers, state.digest)
        if place is None or state.tail_digest is None or not has_kv:
            return None if place is None else FoundState(state, place)
        tail_place = _place(tiers, state.tail_digest)
        return None if tail_place is None else FoundState(state, place, tail_place)


def _place(tiers: Sequence[CacheTier], digest: bytes) -> str | None:
    return next((tier.name for tier in tiers if tier.has(digest)), None)
