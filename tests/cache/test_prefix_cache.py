"""The prefix cache against a dictionary of all prefixes, and its promises one by one."""

from __future__ import annotations

import pytest

from rtlang.cache.prefix_cache import PrefixCache, PrefixMatch
from tests.support.engine.cache_simulation import CacheSimulation
from tests.support.long_tests import sized

SHAPES = [
    # num_pages, page_size, num_tokens, sharing
    (24, 4, 2, True),
    (64, 4, 3, True),
    (40, 1, 3, True),
    (32, 16, 2, True),
    (24, 4, 2, False),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_random_operations_agree_with_a_dictionary_of_all_prefixes(shape: tuple[int, int, int, bool]) -> None:
    num_pages, page_size, num_tokens, sharing = shape
    simulation = CacheSimulation(1, num_pages=num_pages, page_size=page_size, num_tokens=num_tokens, sharing=sharing)
    simulation.run(1500)
    assert set(simulation.num_operations) >= {
        *("admit", "advance", "succeed", "fail", "finish", "abandon", "squeeze"),
        *("hold", "release", "demote"),
    }
    if sharing:
        assert simulation.num_whole_hits > 100
        assert simulation.num_tail_hits > 100 or page_size == 1
        assert simulation.cache.stats.num_evicted_pages > 100
        retention = simulation.cache.retention
        assert retention.num_granted > 40
        assert retention.num_revoked > 2
    else:
        assert simulation.num_whole_hits == simulation.num_tail_hits == simulation.cache.num_cached == 0


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_many_random_operations_agree_with_a_dictionary_of_all_prefixes(shape: tuple[int, int, int, bool]) -> None:
    num_pages, page_size, num_tokens, sharing = shape
    for seed in range(2, sized(12, usual=4)):
        simulation = CacheSimulation(
            seed, num_pages=num_pages, page_size=page_size, num_tokens=num_tokens, sharing=sharing
        )
        simulation.run(2000)


def start(cache: PrefixCache, tokens: list[int]) -> tuple[PrefixMatch, list[int]]:
    """Match and lock a sequence, and take pages for the rest."""
    match = cache.match(tokens, len(tokens))
    cache.lock(match.node)
    page_ids = cache.allocate(-(-(len(tokens) - match.num_tokens) // cache.page_size))
    assert page_ids is not None
    return match, page_ids


def test_a_finished_sequence_is_found_again_with_its_partial_tail() -> None:
    cache = PrefixCache(8, 4)
    match, page_ids = start(cache, list(range(10)))
    cache.finish(match.node, list(range(10)), page_ids)
    assert (cache.num_free, cache.num_cached, cache.num_in_use) == (5, 3, 0)
    again = cache.match([*range(10), 99], 11)
    assert (again.num_tokens, again.page_ids) == (8, page_ids[:2])
    assert (again.tail_page_id, again.num_tail_tokens) == (page_ids[2], 2)
    assert cache.peek(list(range(10))) == 10
    limited = cache.match(list(range(10)), 7)
    assert (limited.num_tokens, limited.tail_page_id, limited.num_tail_tokens) == (4, page_ids[1], 3)
    assert cache.stats.num_queried_tokens == 10 + 11 + 7
    assert cache.stats.num_hit_tokens == 10 + 7
    cache.check()


def test_extend_gives_the_pages_that_are_stored_already() -> None:
    cache = PrefixCache(8, 4)
    first, first_pages = start(cache, list(range(8)))
    second, second_pages = start(cache, list(range(8)))
    node, used = cache.extend(first.node, list(range(8)), first_pages)
    assert used == first_pages
    other, used = cache.extend(second.node, list(range(4)), second_pages[:1])
    assert used == first_pages[:1]
    assert other is node.parent, "the lock stands where the second sequence ends"
    other, used = cache.extend(other, [4, 5, 6, 9], second_pages[1:])
    assert used == second_pages[1:]
    cache.commit()
    cache.check()
    assert cache.num_in_use == 3
    cache.finish(other, [], [])
    cache.finish(node, [], [])
    cache.check()
    assert (cache.num_in_use, cache.num_cached) == (0, 3)


def test_finishing_twice_the_same_frees_duplicates_and_surplus_pages() -> None:
    cache = PrefixCache(12, 4)
    pairs = []
    for _ in range(2):
        node = cache.match([], 0).node
        cache.lock(node)
        page_ids = cache.allocate(4)
        assert page_ids is not None
        pairs.append((node, page_ids))
    for node, page_ids in pairs:
        cache.finish(node, list(range(10)), page_ids)
        cache.check()
    assert (cache.num_free, cache.num_cached) == (9, 3)
    assert cache.match(list(range(10)), 10).page_ids == pairs[0][1][:2]


def test_allocation_is_all_or_nothing() -> None:
    cache = PrefixCache(6, 4)
    match, page_ids = start(cache, list(range(8)))
    node, _ = cache.extend(match.node, list(range(8)), page_ids)
    cache.commit()
    held, more = start(cache, [50, 51, 52, 53])
    cache.finish(held.node, [50, 51, 52, 53], more)
    assert (cache.num_free, cache.num_cached, cache.num_available) == (3, 1, 4)
    assert cache.allocate(5) is None
    assert cache.num_cached == 1
    assert cache.allocate(4) is not None
    assert cache.match([50, 51, 52, 53], 4).num_tokens == 0
    assert cache.match(list(range(8)), 8).num_tokens == 8
    assert cache.stats.num_evicted_pages == 1
    cache.unlock(node)
    cache.check()


@pytest.mark.parametrize("is_abandoned_first", [True, False])
def test_a_failed_step_leaves_nothing_behind(is_abandoned_first: bool) -> None:
    cache = PrefixCache(8, 4)
    match, page_ids = start(cache, list(range(10)))
    node, _ = cache.extend(match.node, list(range(8)), page_ids[:2])
    sharer = cache.match(list(range(9)), 8)
    assert sharer.page_ids == page_ids[:2]
    cache.lock(sharer.node)
    if is_abandoned_first:
        cache.abandon(node, page_ids[2:])
    cache.discard_pending()
    cache.check()
    assert cache.match(list(range(10)), 10).num_tokens == 0
    assert not sharer.node.is_attached
    assert cache.num_free == 8 - 2 - (0 if is_abandoned_first else 1)
    if not is_abandoned_first:
        cache.finish(node, [8, 9], page_ids[2:])  # nothing of it can be kept
    cache.abandon(sharer.node, [])
    cache.check()
    assert (cache.num_free, cache.num_cached) == (8, 0)


def test_without_sharing_nothing_is_matched_and_nothing_stays() -> None:
    cache = PrefixCache(8, 4, sharing=False)
    match, page_ids = start(cache, list(range(8)))
    node, used = cache.extend(match.node, list(range(8)), page_ids)
    assert used == page_ids
    cache.commit()
    again = cache.match(list(range(8)), 8)
    assert (again.num_tokens, again.page_ids, again.tail_page_id) == (0, [], None)
    assert cache.peek(list(range(8))) == 0
    cache.finish(node, [], used)
    cache.check()
    assert (cache.num_free, cache.num_in_use) == (8, 0)


def test_clear_drops_what_no_request_holds() -> None:
    cache = PrefixCache(8, 4)
    match, page_ids = start(cache, list(range(10)))
    cache.finish(match.node, list(range(10)), page_ids)
    held = cache.match(list(range(4)), 4)
    cache.lock(held.node)
    cache.clear()
    cache.check()
    assert (cache.num_free, cache.num_in_use) == (7, 1)
    cache.unlock(held.node)
    assert cache.stats.num_evicted_pages == 0


def test_pages_of_a_request_cancelled_in_its_step_are_not_available_before_the_step_is_done() -> None:
    cache = PrefixCache(4, 4)
    match, page_ids = start(cache, list(range(8)))
    node, _ = cache.extend(match.node, list(range(8)), page_ids)
    cache.finish(node, [], [])
    assert (cache.num_free, cache.num_cached, cache.num_available) == (2, 2, 2)
    assert cache.allocate(3) is None
    cache.clear()
    assert cache.num_cached == 2
    cache.commit()
    assert cache.num_available == 4
    assert cache.allocate(3) is not None
    cache.check()
