"""The page allocator: owners, runs, and the refusal of what only a bug would ask."""

from __future__ import annotations

import random

import pytest

from rtlang.cache.pages import PageAllocator, PageOwner


def test_a_fresh_pool_gives_one_ascending_run() -> None:
    pages = PageAllocator(10)
    assert pages.allocate(4) == [0, 1, 2, 3]
    assert pages.allocate(6) == [4, 5, 6, 7, 8, 9]
    assert pages.allocate(1) is None
    assert pages.allocate(0) == []


def test_single_pages_come_from_the_shortest_run() -> None:
    pages = PageAllocator(32)
    assert pages.allocate(32) is not None
    pages.free([3])
    pages.free(list(range(8, 16)))
    assert pages.allocate(1) == [3]
    assert pages.allocate(8) == list(range(8, 16))


def test_a_run_that_fits_is_preferred_to_scattered_pages() -> None:
    pages = PageAllocator(64)
    assert pages.allocate(64) is not None
    pages.free(list(range(0, 32, 2)))
    pages.free(list(range(40, 51)))
    assert pages.allocate(5) == [40, 41, 42, 43, 44]
    assert pages.allocate(7) == [0, 45, 46, 47, 48, 49, 50]


def test_freed_neighbours_merge_in_any_order() -> None:
    pages = PageAllocator(16)
    page_ids = pages.allocate(16)
    assert page_ids is not None
    random.Random(0).shuffle(page_ids)
    for page_id in page_ids:
        pages.free([page_id])
        pages.check()
    assert pages.allocate(16) == list(range(16))


def test_wrong_transitions_assert() -> None:
    pages = PageAllocator(4)
    page_ids = pages.allocate(2)
    assert page_ids == [0, 1]
    pages.free([0])
    with pytest.raises(AssertionError, match="page 0 is FREE, expected PRIVATE"):
        pages.free([0])
    with pytest.raises(AssertionError, match="page 1 is PRIVATE, expected TREE"):
        pages.free([1], PageOwner.TREE)
    pages.give_to_tree([1])
    with pytest.raises(AssertionError, match="page 1 is TREE, expected PRIVATE"):
        pages.free([1])


def test_a_pool_without_pages_is_refused() -> None:
    with pytest.raises(ValueError, match="num_pages = 0"):
        PageAllocator(0)


@pytest.mark.parametrize("seed", range(4))
def test_random_use_agrees_with_a_list_of_owners(seed: int) -> None:
    generator = random.Random(seed)
    num_pages = 60
    pages = PageAllocator(num_pages)
    owners = [PageOwner.FREE] * num_pages
    for _ in range(1500):
        taken = [page for page in range(num_pages) if owners[page] is not PageOwner.FREE]
        action = generator.random()
        if action < 0.5:
            wanted = generator.choice([1, 1, 2, generator.randint(0, 20)])
            got = pages.allocate(wanted)
            assert (got is None) == (wanted > owners.count(PageOwner.FREE))
            for page in got or []:
                assert owners[page] is PageOwner.FREE
                owners[page] = PageOwner.PRIVATE
            assert got is None or (got == sorted(got) and len(got) == wanted)
        elif action < 0.6:
            private = [page for page in taken if owners[page] is PageOwner.PRIVATE]
            given = generator.sample(private, generator.randint(0, len(private)))
            pages.give_to_tree(given)
            for page in given:
                owners[page] = PageOwner.TREE
        else:
            owner = generator.choice([PageOwner.PRIVATE, PageOwner.TREE])
            owned = [page for page in taken if owners[page] is owner]
            given = generator.sample(owned, generator.randint(0, min(6, len(owned))))
            pages.free(given, owner)
            for page in given:
                owners[page] = PageOwner.FREE
        pages.check()
        assert [pages.owner(page) for page in range(num_pages)] == owners
        assert pages.num_private == owners.count(PageOwner.PRIVATE)
        assert pages.num_in_tree == owners.count(PageOwner.TREE)
