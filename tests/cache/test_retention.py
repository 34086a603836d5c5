"""Holds: who gets one, what they keep, who loses theirs first, and what is evicted before all else.

Random operations with holds are compared with an oracle in test_prefix_cache.py.
"""

from __future__ import annotations

from rtlang.cache.node import pack
from rtlang.cache.prefix_cache import PrefixCache

PAGE_SIZE = 4


def store(cache: PrefixCache, tokens: list[int]) -> None:
    """A request comes and goes: its computed tokens stay in the cache."""
    match = cache.match(tokens, len(tokens))
    cache.lock(match.node)
    page_ids = cache.allocate(-(-(len(tokens) - match.num_tokens) // cache.page_size))
    assert page_ids is not None
    cache.finish(match.node, tokens[match.num_tokens :], page_ids)
    cache.check()


def sequence(kind: int, num_pages: int, num_more: int = 0) -> list[int]:
    """Tokens of a kind of their own."""
    return [100 * kind + index for index in range(num_pages * PAGE_SIZE + num_more)]


def squeeze(cache: PrefixCache, num_pages: int, rank: float | None = None) -> bool:
    """Take pages and give them back, so that others are evicted; returns whether they were to be had."""
    page_ids = cache.allocate(num_pages, rank=rank)
    if page_ids is not None:
        cache.free(page_ids)
    cache.check()
    return page_ids is not None


def num_stored(cache: PrefixCache, tokens: list[int]) -> int:
    return cache.peek(tokens)


def test_a_held_sequence_outlives_others_with_its_partial_page() -> None:
    cache = PrefixCache(12, PAGE_SIZE)
    first, second = sequence(1, 3, 2), sequence(2, 4)
    store(cache, first)
    store(cache, second)
    hold = cache.hold([*first, 7], rank=1.0)
    assert hold is not None
    assert (hold.num_tokens, cache.num_held) == (14, 4)
    assert squeeze(cache, 8)
    assert (num_stored(cache, first), num_stored(cache, second)) == (14, 0)
    cache.release(hold)
    assert cache.num_held == 0
    assert squeeze(cache, 12)
    assert num_stored(cache, first) == 0


def test_nothing_stored_is_nothing_held() -> None:
    cache = PrefixCache(8, PAGE_SIZE)
    assert cache.hold([1, 2, 3, 4, 5], rank=0.0) is None
    assert cache.retention.num_refused == 0
    plain = PrefixCache(8, PAGE_SIZE, sharing=False)
    assert plain.hold([1, 2, 3, 4, 5], rank=0.0) is None


def test_holds_are_revoked_newest_program_first_and_only_as_many_as_needed() -> None:
    cache = PrefixCache(12, PAGE_SIZE, retention_share=1.0)
    for kind in (1, 2, 3):
        store(cache, sequence(kind, 3))
    holds = {kind: cache.hold(sequence(kind, 3), rank=rank) for kind, rank in ((1, 5.0), (2, 1.0), (3, 9.0))}
    assert all(holds.values())
    assert squeeze(cache, 3)
    assert cache.retention.num_revoked == 0
    assert squeeze(cache, 5)
    assert cache.retention.num_revoked == 1
    assert [num_stored(cache, sequence(kind, 3)) for kind in (1, 2, 3)] == [12, 12, 4]
    assert squeeze(cache, 7)
    assert [num_stored(cache, sequence(kind, 3)) for kind in (1, 2, 3)] == [8, 12, 0]
    assert squeeze(cache, 12)
    assert (cache.retention.num_revoked, len(cache.retention)) == (3, 0)


def test_who_arrived_later_cannot_revoke() -> None:
    cache = PrefixCache(8, PAGE_SIZE, retention_share=1.0)
    store(cache, sequence(1, 3))
    store(cache, sequence(2, 3))
    assert cache.hold(sequence(1, 3), rank=1.0)
    assert cache.hold(sequence(2, 3), rank=2.0)
    assert [cache.num_available_to(rank) for rank in (0.0, 1.0, 2.0, None)] == [8, 5, 2, 8]
    assert not squeeze(cache, 3, rank=2.0)
    assert not squeeze(cache, 6, rank=1.5)
    assert cache.retention.num_revoked == 0
    assert squeeze(cache, 4, rank=1.5)
    assert len(cache.retention) == 1
    assert num_stored(cache, sequence(1, 3)) == 12


def test_the_share_is_given_to_the_oldest_programs() -> None:
    cache = PrefixCache(20, PAGE_SIZE, retention_share=0.3)
    for kind in (1, 2, 3, 4):
        store(cache, sequence(kind, 3))
    assert cache.hold(sequence(1, 3), rank=2.0)
    assert cache.hold(sequence(2, 3), rank=3.0)
    assert cache.hold(sequence(3, 3), rank=4.0) is None, "two older programs have all of the share"
    assert cache.retention.num_refused == 1
    assert cache.hold(sequence(4, 3), rank=1.0), "it is older than those that have the share"
    assert (cache.retention.num_revoked, cache.num_held) == (1, 6)
    assert cache.hold(sequence(1, 3), rank=2.0), "what is held already costs nothing"
    assert cache.num_held == 6


def test_a_shared_prefix_is_held_until_its_last_hold_ends() -> None:
    cache = PrefixCache(12, PAGE_SIZE)
    trunk = sequence(1, 2)
    branches = [trunk + sequence(kind, 1) for kind in (2, 3)]
    for branch in branches:
        store(cache, branch)
    holds = [cache.hold(branch, rank=0.0) for branch in branches]
    assert cache.num_held == 4
    assert holds[0] is not None
    cache.release(holds[0])
    assert cache.num_held == 3
    assert squeeze(cache, 9)
    assert [num_stored(cache, branch) for branch in branches] == [8, 12]


def test_a_held_node_does_not_grow_but_what_follows_it_is_found() -> None:
    cache = PrefixCache(12, PAGE_SIZE)
    store(cache, sequence(1, 2))
    assert cache.hold(sequence(1, 2), rank=0.0)
    store(cache, sequence(1, 5))
    assert cache.num_held == 2
    assert squeeze(cache, 10)
    assert num_stored(cache, sequence(1, 5)) == 8


def test_a_held_partial_page_may_be_replaced_by_a_longer_one() -> None:
    cache = PrefixCache(12, PAGE_SIZE)
    store(cache, sequence(1, 1, 2))
    hold = cache.hold(sequence(1, 1, 2), rank=0.0)
    assert hold is not None
    store(cache, sequence(1, 2))
    assert cache.num_held == 1
    assert num_stored(cache, sequence(1, 2)) == 8
    cache.release(hold)
    cache.check()
    assert cache.num_held == 0


def test_pages_cut_off_by_a_failed_step_are_not_held() -> None:
    cache = PrefixCache(12, PAGE_SIZE)
    store(cache, sequence(1, 1))
    match = cache.match(sequence(1, 1), PAGE_SIZE)
    cache.lock(match.node)
    page_ids = cache.allocate(2)
    assert page_ids is not None
    node, _ = cache.extend(match.node, sequence(1, 3)[PAGE_SIZE:], page_ids)
    hold = cache.hold(sequence(1, 3), rank=0.0)
    assert hold is not None
    assert cache.num_held == 3
    cache.discard_pending()
    cache.check()
    assert cache.num_held == 1
    cache.abandon(node, [])
    cache.check()
    cache.release(hold)
    cache.check()
    assert cache.num_held == 0


def test_clear_revokes_all() -> None:
    cache = PrefixCache(8, PAGE_SIZE)
    store(cache, sequence(1, 3))
    assert cache.hold(sequence(1, 3), rank=0.0)
    cache.clear()
    cache.check()
    assert (cache.num_free, len(cache.retention)) == (8, 0)


def test_what_nothing_continues_goes_first_and_what_comes_before_it_stays() -> None:
    cache = PrefixCache(12, PAGE_SIZE)
    old, dead = sequence(1, 3), sequence(2, 2) + sequence(3, 3, 1)
    store(cache, old)
    store(cache, dead)
    cache.demote(dead, 7)  # in the second page, which is partly needed
    cache.check()
    assert squeeze(cache, 7)
    assert (num_stored(cache, old), num_stored(cache, dead)) == (12, 8)
    assert squeeze(cache, 10)
    assert (num_stored(cache, old), num_stored(cache, dead)) == (0, 8), "what comes before is as recent as it was"


def test_what_is_demoted_and_used_again_is_recent() -> None:
    cache = PrefixCache(12, PAGE_SIZE)
    store(cache, sequence(1, 3))
    store(cache, sequence(2, 3))
    cache.demote(sequence(2, 3), 0)
    assert cache.match(sequence(2, 3), 12).num_tokens == 12
    assert squeeze(cache, 9)
    assert [num_stored(cache, sequence(kind, 3)) for kind in (1, 2)] == [0, 12]


def test_a_trunk_is_demoted_only_after_its_branches() -> None:
    cache = PrefixCache(20, PAGE_SIZE)
    trunk = sequence(1, 3)
    branches = [trunk + sequence(kind, 2) for kind in (2, 3)]
    store(cache, sequence(4, 3))
    for branch in branches:
        store(cache, branch)
    cache.demote(branches[0], PAGE_SIZE)
    assert squeeze(cache, 12)
    assert [num_stored(cache, branch) for branch in branches] == [12, 20]
    hold = cache.hold(branches[1], rank=0.0)
    assert hold is not None
    cache.demote(branches[1], PAGE_SIZE)
    cache.release(hold)
    cache.demote(branches[1], PAGE_SIZE)
    cache.check()
    assert squeeze(cache, 16)
    assert num_stored(cache, branches[1]) == 4
    assert num_stored(cache, sequence(4, 3)) == 12


def test_the_pages_of_several_holds_count_once_within_a_limit() -> None:
    cache = PrefixCache(40, PAGE_SIZE, retention_share=1.0)
    first = sequence(1, 3, 2)
    longer = [*first[: 2 * PAGE_SIZE], *sequence(2, 6)]
    other = sequence(3, 5)
    for tokens in (first, longer, other):
        store(cache, tokens)
    hold = cache.hold(first, rank=0.0)
    assert hold is not None  # 4 pages, the partial one included

    def num_pages(tokens: list[int], limit: int) -> int:
        return cache.retention.num_pages_within([hold], pack(tokens), limit)

    assert num_pages(first, 4) == 4, "the same pages again are no more pages"
    assert num_pages(longer, 4) == 2, "the first two are shared"
    assert num_pages(longer, 7) == 5
    assert num_pages(other, 4) == 0
    assert num_pages(other, 6) == 2
    assert num_pages(other, 2) == 0
    cache.release(hold)
    assert num_pages(other, 4) == 4
