"""Pages between two processes over real sockets: every page or none, whatever the peer does, in bounded time."""

from __future__ import annotations

import pytest

from rtlang.cache.tiers.peers import peer_tier
from tests.support.engine.lying_peers import flipped, garbage, lying
from tests.support.engine.page_peers import PAGE_BYTES, contents, digest_of, fetching, page_of, served, store
from tests.support.waiting import wait_until

DIGESTS = [digest_of(number) for number in range(8)]


def test_pages_of_peers_are_found_and_fetched() -> None:
    with (
        served(store([0, 1, 2])) as first,
        served(store([3, 4]), instance=b"other") as second,
        fetching(first.address, second.address) as tier,
    ):
        assert tier.stats.num_connected == 2
        assert not tier.has(DIGESTS[0]), "nobody was asked"
        tier.ask(DIGESTS)
        assert [tier.has(digest) for digest in DIGESTS] == [True] * 5 + [False] * 3
        tier.expect(DIGESTS[:5])
        assert contents(tier, DIGESTS[:6]) == [*(page_of(number) for number in range(5)), None]
        tier.expect(())
        assert contents(tier, DIGESTS[1:3][::-1]) == [page_of(2), page_of(1)], "in any order, without notice"
        assert (first.stats.num_pages, second.stats.num_pages) == (5, 2)
        assert first.stats.num_bytes == 5 * PAGE_BYTES
        assert tier.stats.num_loaded == 7


def test_a_page_that_was_evicted_after_the_question_is_none() -> None:
    there = store([0, 1, 2])
    with served(there) as server, fetching(server.address) as tier:
        tier.ask(DIGESTS[:3])
        there.clear()
        tier.expect(DIGESTS[:3])
        assert contents(tier, DIGESTS[:3]) == [None] * 3
        assert not tier.has(DIGESTS[0])
        assert tier.stats.num_connected == 1, "that is no failure"


def test_many_pages_are_asked_and_fetched_at_once_but_few_are_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_tier, "MAX_AHEAD", 4)
    monkeypatch.setattr(peer_tier, "MAX_ASKED", 16)
    digests = [digest_of(number) for number in range(60)]
    with served(store(range(50))) as server, fetching(server.address) as tier:
        tier.ask(digests)
        assert sum(map(tier.has, digests)) == 50
        tier.expect(digests)
        for number in range(50):
            assert tier.get(digests[number]) == page_of(number)
            assert len(tier._coming) <= 4


def test_a_process_is_not_its_own_peer_and_counts_once() -> None:
    with served(store([0]), instance=b"client") as own, served(store([0])) as other:
        with fetching(own.address) as tier:
            assert tier.stats.num_connected == 0
        with fetching(other.address, ("localhost", other.address[1])) as tier:
            assert tier.stats.num_connected == 1


def test_peers_can_be_named_later_and_be_replaced() -> None:
    with (
        served(store([0])) as first,
        served(store([1]), instance=b"second") as second,
        served(store([2]), instance=b"third") as third,
        fetching(first.address) as tier,
    ):
        for named, expected in (([second.address], 2), ([second.address, third.address], 3), ([], 3)):
            tier.set_peers(named)
            tier.connect()
            assert tier.stats.num_connected == expected, "a connection lasts"
        third.close()
        tier.ask(DIGESTS[:3])
        assert contents(tier, DIGESTS[:3]) == [page_of(0), page_of(1), None]
        clock_free = tier._next_lookup
        tier.set_peers([])
        assert tier._next_lookup == clock_free, "nothing has changed"


def test_a_peer_that_is_not_there_is_tried_again_after_rests() -> None:
    clock = [0.0]
    with served(store([])) as gone:
        address = gone.address
    with fetching(address, clock=clock) as tier:
        rests = []
        for _ in range(8):
            rests.append(tier.connect())
            clock[0] += rests[-1] + 0.001
        assert tier.stats.num_connected == 0
        assert rests[:4] == pytest.approx([1.0, 2.0, 4.0, 8.0])
        peer = next(iter(tier._peers.values()))
        clock[0] = peer.next_try
        with served(store([0])) as back:
            peer.address = back.address
            tier.connect()
            tier.ask(DIGESTS)
            assert tier.get(DIGESTS[0]) == page_of(0)

        def has_ended() -> bool:
            tier.ask(DIGESTS)
            return tier.get(DIGESTS[0]) is None and tier.stats.num_connected == 0

        wait_until(has_ended)


def test_one_bad_peer_does_not_spoil_another() -> None:
    with (
        served(store(range(8))) as good,
        lying(garbage) as bad,
        fetching(bad, good.address) as tier,
    ):
        tier.ask(DIGESTS)
        assert contents(tier, DIGESTS) == [page_of(number) for number in range(8)]
        assert tier.stats.num_connected == 1


def test_a_server_that_does_not_know_the_secret_gets_no_further() -> None:
    with lying(flipped, secret=b"another") as address, fetching(address) as tier:
        assert tier.stats.num_connected == 0


def test_states_of_peers_are_fetched_and_entries_of_other_sizes_end_the_connection() -> None:
    there = store([0, 1])
    for number, size in ((2, 3 * PAGE_BYTES), (3, 2 * PAGE_BYTES)):
        there.put(digest_of(number), memoryview(page_of(number, size)))
    with served(there) as server, fetching(server.address, state_bytes=3 * PAGE_BYTES) as tier:
        tier.ask(DIGESTS[:4])
        tier.expect(DIGESTS[2:3] + DIGESTS[:2])
        assert contents(tier, [DIGESTS[2], *DIGESTS[:2]]) == [page_of(2, 3 * PAGE_BYTES), page_of(0), page_of(1)]
        tier.expect(())
        assert tier.get(DIGESTS[3]) is None
        assert tier.stats.num_bad == 1
        assert tier.stats.num_connected == 0
