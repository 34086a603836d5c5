"""The interfaces of tiers, and their counters.

A tier is a bounded store of pages by digest. It may forget any page at any time, and answers are only ever whole pages with the content
that was put under their digest. Tiers in this process are thread-safe; the engine thread calls no method that reads or writes pages. The
states of recurrent layers, and parts of pages, are stored in the same way and counted as pages here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(slots=True)
class TierStats:
    """Counters of one tier. Owned by it.

    Attributes:
        num_pages, num_bytes: stored now.
        num_stored, num_loaded, num_evicted: pages since the start.
        num_bad: pages that were refused because their content was damaged or belonged elsewhere.
        num_connected: of a remote tier, the places that can be asked now.
    """

    num_pages: int = 0
    num_bytes: int = 0
    num_stored: int = 0
    num_loaded: int = 0
    num_evicted: int = 0
    num_bad: int = 0
    num_connected: int = 0


class CacheTier(Protocol):
    """A store of pages below the pool."""

    name: str
    """The name in metrics and explanations."""
    is_persistent: bool
    """Whether pages outlive the process."""
    stats: TierStats

    def open(self) -> None:
        """Prepare the tier; may take long. Called once, before all else, on a thread of its own."""

    def has(self, digest: bytes) -> bool:
        """Whether a page is stored. Cheap; a page may still be gone when it is loaded."""

    def put(self, digest: bytes, page: memoryview) -> None:
        """Store a page as the one used last, unless it is stored. May evict others. Never raises for lack of space."""

    def get(self, digest: bytes) -> memoryview | None:
        """The content of a page, which counts as used; None if it is not stored or damaged."""

    def touch(self, digests: Sequence[bytes]) -> None:
        """Count stored pages as used."""

    def clear(self) -> None:
        """Forget all pages."""

    def close(self) -> None:
        """Release memory and handles. Idempotent."""


@runtime_checkable
class RemoteTier(CacheTier, Protocol):
    """A tier whose pages are elsewhere and are stored by others: `put` does nothing, and a question takes the time of a message.

    `has` answers from what `ask` has found.
    """

    def ask(self, digests: Sequence[bytes]) -> None:
        """Find out which of these pages are there. Takes a bounded time."""

    def set_peers(self, peers: Sequence[tuple[str, int]]) -> None:
        """Name more places to ask, as (host, port). Replaces those of the last call."""

    def expect(self, digests: Sequence[bytes]) -> None:
        """These pages, and no others, will be loaded next, in this order."""
