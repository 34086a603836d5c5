"""The prefix cache against a dictionary of all prefixes, and its promises one by one."""

from __future__ import annotations

import pytest

from tests.support.cache_simulation import CacheSimulation

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
    assert set(simulation.num_operations) >= {"admit", "advance", "succeed", "fail", "finish", "abandon", "squeeze"}
    if sharing:
        assert simulation.num_whole_hits > 100
        assert simulation.num_tail_hits > 100 or page_size == 1
        assert simulation.cache.stats.num_evicted_pages > 100
    else:
        assert simulation.num_whole_hits == simulation.num_tail_hits == simulation.cache.num_cached == 0


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_many_random_operations_agree_with_a_dictionary_of_all_prefixes(shape: tuple[int, int, int, bool]) -> None:
    num_pages, page_size, num_tokens, sharing = shape
    for seed in range(2, 12):
        simulation = CacheSimulation(
            seed, num_pages=num_pages, page_size=page_size, num_tokens=num_tokens, sharing=sharing
        )
        simulation.run(2000)
