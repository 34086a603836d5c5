"""The prefix cache against a dictionary of all prefixes, and its promises one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from rtlang.cache.node import RadixNode, pack
from rtlang.cache.prefix_cache import PrefixCache, PrefixMatch
from rtlang.cache.scope import CacheScope
from rtlang.cache.states import StatePool
from tests.support.engine.cache_simulation import CacheSimulation
from tests.support.engine.state_simulation import StateSimulation
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


STATE_SHAPES = [
    # num_pages, page_size, num_tokens, num_states, number of operations
    (24, 4, 2, 14, 4000),
    (48, 4, 3, 24, 2000),
    (40, 1, 3, 16, 2000),
    (32, 16, 2, 16, 2000),
]


def test_random_operations_restore_the_states_of_a_dictionary() -> None:
    counts = Counter[str]()
    for num_pages, page_size, num_tokens, num_states, num_operations in STATE_SHAPES:
        simulation = StateSimulation(
            1, num_pages=num_pages, page_size=page_size, num_tokens=num_tokens, sharing=True, num_states=num_states
        )
        simulation.run(num_operations)
        stats = simulation.pool.stats
        assert stats.num_hits == simulation.num_restored > 100
        assert stats.num_evicted == simulation.num_evicted_states > 10
        assert stats.num_kept == simulation.num_kept > 50
        counts.update({name: count for name, count in vars(simulation).items() if isinstance(count, int)})
    assert counts["num_restored_in_pages"] > 500
    assert counts["num_replayed"] > 1000
    assert counts["num_held_states"] > 100
    assert counts["num_kept_early"] > 20
    assert counts["num_doubles"] > 3
    assert counts["num_lost_states"] > 20


def test_without_sharing_no_state_is_kept() -> None:
    simulation = StateSimulation(1, num_pages=24, page_size=4, num_tokens=2, sharing=False, num_states=14)
    simulation.run(500)
    assert simulation.num_restored == simulation.pool.num_kept == simulation.num_kept == 0


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 52))
def test_half_a_million_random_operations_restore_the_states_of_a_dictionary(seed: int) -> None:
    for num_pages, page_size, num_tokens, num_states, num_operations in STATE_SHAPES:
        simulation = StateSimulation(
            seed, num_pages=num_pages, page_size=page_size, num_tokens=num_tokens, sharing=True, num_states=num_states
        )
        simulation.run(num_operations)


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


def stateful(num_pages: int = 32, num_states: int = 6) -> tuple[PrefixCache, StatePool]:
    cache = PrefixCache(num_pages, 4, num_states=num_states)
    assert cache.states is not None
    return cache, cache.states


def compute(cache: PrefixCache, tokens: list[int], *positions: int, is_checked: bool = True) -> PrefixMatch:
    """A request that computes a sequence and leaves its end, with checkpoints at these positions."""
    match = cache.match(tokens, len(tokens) - 1)
    cache.lock(match.node)
    page_ids = cache.allocate(-(-len(tokens) // cache.page_size) - len(match.page_ids))
    assert page_ids is not None
    assert cache.states is not None
    whole = len(tokens) // cache.page_size * cache.page_size
    num_new = (whole - match.num_tokens) // cache.page_size
    node, _ = cache.extend(match.node, tokens[match.num_tokens : whole], page_ids[:num_new], start=match.num_tokens)
    cache.commit()
    for position in positions:
        slot = cache.states.allocate()
        assert slot is not None
        if position == len(tokens):
            cache.finish(node, tokens[whole:], page_ids[num_new:], start=whole, state=(position, slot))
            break
        cache.keep_state(node, position, slot)
    else:
        cache.finish(node, tokens[whole:], page_ids[num_new:], start=whole)
    if is_checked:
        cache.check()
    return match


def test_a_match_returns_whole_pages_and_the_deepest_state() -> None:
    cache, states = stateful()
    tokens = list(range(18))
    assert compute(cache, tokens, 5, 18).state_slot is None
    assert (states.stats.num_hits, states.stats.num_misses) == (0, 0), "nothing was stored, so no state was missed"
    again = cache.match([*tokens, 99], 18)
    assert (again.num_tokens, again.num_tail_tokens, again.num_state_tokens) == (16, 2, 18)
    assert again.state_slot is not None
    assert again.tail_page_id is not None
    other = cache.match([*tokens[:14], 99, 99], 15)
    assert (other.num_tokens, other.num_tail_tokens, other.num_state_tokens) == (12, 0, 5)
    assert other.state_slot not in (None, again.state_slot)
    assert other.tail_page_id is None, "its tokens would have to be computed for their states"
    assert cache.match([*tokens[:4], 99], 4).state_slot is None
    assert (states.stats.num_hits, states.stats.num_misses) == (2, 1)
    assert states.stats.num_replayed_tokens == (12 - 5) + 4
    assert cache.stats.num_hit_tokens == 18 + 5
    assert cache.peek([*tokens[:14], 99]) == 5
    assert cache.num_in_pages([*tokens[:14], 99]) == 12
    found = cache.lookup(pack([*tokens, 99]), 2)
    assert (found.num_cached, found.num_in_pages, found.state_positions, found.position) == (18, 16, (5, 18), 18)


def test_a_prefix_of_100_tokens_is_shared_by_hundreds_of_requests_through_one_state() -> None:
    cache, states = stateful(1000, 2)
    prefix = list(range(102))
    compute(cache, [*prefix, 200, 200, 200], len(prefix))
    for number in range(300):
        match = compute(cache, [*prefix, 1000 + number * 7919 % 1009, 1, 2], is_checked=False)
        assert (match.num_tokens, match.num_state_tokens) == (100, 102)
    cache.check()
    assert states.num_kept == 1


def test_a_junction_found_late_inside_a_page_hits_from_the_third_visit_on() -> None:
    cache, _ = stateful()
    prefix = list(range(10))
    compute(cache, [*prefix, 50, 51, 52], 13)
    found = cache.match([*prefix, 60, 61, 62], 12)
    assert (found.num_tokens, found.num_state_tokens, found.num_stored_tokens) == (8, 0, 10)
    compute(cache, [*prefix, 60, 61, 62], found.num_stored_tokens)
    assert cache.match([*prefix, 70], 10).num_state_tokens == 10
    assert cache.match([*prefix, 50, 51, 52, 53], 13).num_state_tokens == 13


def test_states_of_requests_that_were_cut_off_are_freed() -> None:
    cache, states = stateful()
    tokens = list(range(8))
    ends: list[Callable[[RadixNode, list[int], int], object]] = [
        lambda node, pages, slot: cache.finish(node, [], pages, start=8, state=(8, slot)),
        lambda node, pages, slot: cache.abandon(node, pages, slot),
        lambda node, pages, slot: (cache.keep_state(node, 8, slot), cache.abandon(node, pages)),
    ]
    for end in ends:
        match, page_ids = start(cache, tokens)
        slot = states.allocate()
        assert slot is not None
        node, _ = cache.extend(match.node, tokens, page_ids)
        cache.discard_pending()
        end(node, [], slot)
        cache.check()
        assert (states.num_free, cache.num_free) == (6, 32)


def test_a_state_before_the_first_token_is_freed() -> None:
    cache, states = stateful()
    compute(cache, [1, 2, 3, 4], 0)
    assert states.num_free == 6


def test_a_hold_keeps_the_deepest_state_until_it_is_released() -> None:
    cache, states = stateful(num_states=3)
    tokens = list(range(10))
    compute(cache, tokens, 4, 10)
    hold = cache.hold(tokens, 0.0)
    assert hold is not None
    compute(cache, [50, 51, 52], 3)
    for _ in range(2):
        assert states.allocate() is not None
    assert cache.peek([50, 51, 52, 53]) == 0
    assert cache.peek(tokens) == 10, "others were evicted first, though they were used later"
    cache.release(hold)
    assert states.allocate() is not None
    assert cache.peek(tokens) == 0
    cache.check()


def test_a_hold_moves_to_a_deeper_state() -> None:
    cache, states = stateful(num_states=3)
    tokens = list(range(12))
    compute(cache, tokens, 4)
    hold = cache.hold(tokens, 0.0)
    compute(cache, [*tokens, 20], 8)
    compute(cache, [*tokens, 21], 6)
    for _ in range(2):
        assert states.allocate() is not None
    assert cache.peek(tokens) == 8
    assert states.allocate() is not None, "a hold is no lock"
    assert hold is not None
    cache.release(hold)
    cache.check()


def test_demoted_states_make_room_first() -> None:
    cache, states = stateful(num_states=3)
    compute(cache, [1, 2, 3, 4, 5], 5)
    compute(cache, [10, 11, 12, 13, 14, 15, 16, 17], 4, 8)
    cache.demote([10, 11, 12, 13, 14, 15, 16, 17], 4)
    assert states.allocate() is not None
    assert cache.peek([10, 11, 12, 13, 14, 15, 16, 17]) == 4
    assert cache.peek([1, 2, 3, 4, 5]) == 5


def test_clear_drops_states_but_those_that_a_step_reads_or_a_hold_keeps() -> None:
    cache, states = stateful()
    compute(cache, [1, 2, 3, 4, 5], 4, 5)
    compute(cache, [10, 11, 12, 13], 2)
    running = cache.match([1, 2, 3, 4], 4)
    cache.lock(running.node)
    assert running.state_slot is not None
    states.lock(running.state_slot)
    assert cache.hold([10, 11, 12, 13], 0.0) is not None
    cache.clear_unheld()
    cache.check()
    assert (cache.peek([1, 2, 3, 4, 5]), cache.peek([10, 11, 12, 13])) == (4, 2)
    cache.clear()
    cache.check()
    assert (cache.peek([1, 2, 3, 4, 5]), cache.peek([10, 11, 12, 13])) == (4, 0)
    states.unlock(running.state_slot)
    cache.clear()
    assert cache.peek([1, 2, 3, 4, 5]) == 0
    assert states.num_free == 6
    cache.unlock(running.node)
    cache.check()


def test_namespaces_share_no_states_but_those_of_public_prompts() -> None:
    cache, states = stateful()
    tokens = list(range(10))
    mine, other = CacheScope(1, 4), CacheScope(2, 4)
    match = cache.match(tokens, 9, mine)
    cache.lock(match.node)
    page_ids, slots = cache.allocate(3), [states.allocate() for _ in range(2)]
    assert page_ids is not None
    assert slots[0] is not None
    assert slots[1] is not None
    node, _ = cache.extend(match.node, tokens[:8], page_ids[:2], mine)
    cache.commit()
    cache.keep_state(node, 4, slots[0])
    cache.finish(node, tokens[8:], page_ids[2:], mine, 8, (10, slots[1]))
    cache.check()
    assert [cache.peek(tokens, scope) for scope in (mine, other)] == [10, 4]
    assert cache.match(tokens, 9, other).state_slot == slots[0]
