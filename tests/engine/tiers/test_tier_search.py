"""Where pages and states are found, against dictionaries; how often remote tiers are asked."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from rtlang.cache.tiers.host_tier import HostTier
from rtlang.engine.tiers.stored_states import StoredState
from rtlang.engine.tiers.tier_search import MAX_OPTIONS, FoundState, TierSearch


class Remote(HostTier):
    """A remote tier that takes a second for an answer, and knows what it was asked for."""

    name = "peer"

    def __init__(self, there: set[bytes], clock: list[float]) -> None:
        super().__init__(1)
        self.there, self.clock = there, clock
        self.known, self.asked = set[bytes](), list[Sequence[bytes]]()

    def ask(self, digests: Sequence[bytes]) -> None:
        self.clock[0] += 1.0
        self.asked.append(digests)
        self.known |= self.there & set(digests)

    def set_peers(self, peers: Sequence[tuple[str, int]]) -> None: ...

    def expect(self, digests: Sequence[bytes]) -> None: ...

    def has(self, digest: bytes) -> bool:
        return digest in self.known


def digest(kind: str, number: int) -> bytes:
    return f"{kind}{number}".encode().ljust(16, b"\0")


@pytest.mark.parametrize("seed", range(30))
def test_pages_and_states_are_found_in_the_uppermost_tier_that_has_them(seed: int) -> None:
    rng = random.Random(seed)
    all_of = [digest(kind, number) for kind in "pst" for number in range(12)]
    content = {name: {each for each in all_of if rng.random() < 0.7} for name in ("host", "peer")}
    own, clock, asks, has_kv = HostTier(1 << 20), [0.0], rng.random() < 0.7, rng.random() < 0.8
    for each in content["host"]:
        own.put(each, memoryview(b"x"))
    remote = Remote(content["peer"], clock)
    search = TierSearch([own, remote], lambda: clock[0])

    def place(each: bytes) -> str | None:
        names = ("host", "peer") if asks else ("host",)
        return next((name for name in names if each in content[name]), None)

    pages = [digest("p", number) for number in range(12)]
    places = [place(each) for each in pages]
    first_lost = places.index(None) if None in places else 12
    found, seconds = search.pages(pages, asks=asks)
    assert found == places[:first_lost]
    assert seconds == (1.0 if asks and any(each not in content["host"] for each in pages[: first_lost + 1]) else None)

    wanted = [StoredState(9 - n, digest("s", n), digest("t", n) if rng.random() < 0.5 else None) for n in range(9)]
    expected = []
    for each in wanted:
        needs_tail = each.tail_digest is not None and has_kv
        tail = place(each.tail_digest) if each.tail_digest is not None and needs_tail else None
        if place(each.digest) is not None and (tail is not None or not needs_tail):
            expected.append(FoundState(each, place(each.digest) or "", tail))
    assert search.states(wanted, asks=asks, has_kv=has_kv)[0] == expected[:MAX_OPTIONS]
    assert len(remote.asked) <= 2, "once for pages, once for states"
    assert search.absent(all_of) == [each for each in all_of if each not in content["host"]]
