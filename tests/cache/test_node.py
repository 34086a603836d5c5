"""Packed tokens and the node's own lookups, against loops over tokens."""

from __future__ import annotations

import random
from array import array

import pytest

from rtlang.cache.node import RadixNode, common_pages, common_tokens, pack


def naive_common(a: list[int], b: list[int]) -> int:
    num_tokens = 0
    while num_tokens < min(len(a), len(b)) and a[num_tokens] == b[num_tokens]:
        num_tokens += 1
    return num_tokens


def test_packing_takes_any_sequence_and_keeps_arrays() -> None:
    tokens = [0, 1, 2**31 - 1, 151_935]
    assert pack(tokens) == pack(tuple(tokens)) == pack(array("q", tokens)) == pack(array("i", tokens))
    assert array("q", pack(tokens)).tolist() == tokens


@pytest.mark.parametrize("seed", range(3))
def test_common_tokens_counts_whole_tokens_only(seed: int) -> None:
    generator = random.Random(seed)
    values = [0, 1, 256, 257, 65_536, 2**31]  # share bytes without being equal
    for _ in range(500):
        a = generator.choices(values, k=generator.randint(0, 9))
        b = a[: generator.randint(0, len(a))] + generator.choices(values, k=generator.randint(0, 9))
        assert common_tokens(pack(a), pack(b)) == naive_common(a, b)


@pytest.mark.parametrize("page_size", [1, 4])
def test_common_pages_agrees_with_a_loop(page_size: int) -> None:
    generator = random.Random(page_size)
    for _ in range(300):
        num_pages = generator.randint(1, 9)
        key = generator.choices(range(2), k=num_pages * page_size)
        node = RadixNode(array("q", key), list(range(num_pages)), None)
        query = key[: generator.randint(page_size, len(key))] + generator.choices(range(2), k=generator.randint(0, 9))
        before = generator.choices(range(2), k=generator.randint(0, 5))
        limit = generator.randint(page_size, len(query))
        found = common_pages(node, pack(before + query), len(before) * 8, (len(before) + limit) * 8, page_size * 8)
        assert found == naive_common(key, query[:limit]) // page_size


def test_the_closest_child_is_the_best_of_all_written_ones() -> None:
    generator = random.Random(5)
    for _ in range(200):
        parent = RadixNode(array("q"), [], None)
        for page_id in range(generator.randint(0, 25)):
            page = generator.choices([0, 1, 256], k=generator.randint(1, 4))
            if pack(page) not in parent.children:
                child = RadixNode(array("q", page), [page_id], parent)
                child.num_pending_pages = int(generator.random() < 0.3)
                parent.link(pack(page), child)
        query = generator.choices([0, 1, 256], k=generator.randint(1, 4))
        common = {
            child: naive_common(child.key.tolist(), query)
            for child in parent.children.values()
            if not child.num_pending_pages
        }
        found = parent.closest_child(pack(query))
        if found is None:
            assert max(common.values(), default=0) == 0
        else:
            assert found[1] == common[found[0]] == max(common.values())


def test_unlinked_children_are_gone() -> None:
    parent = RadixNode(array("q"), [], None)
    children = {pack([token]): RadixNode(array("q", [token]), [token], parent) for token in (5, 1, 9)}
    for first_page, child in children.items():
        parent.link(first_page, child)
    assert next(iter(parent.subtree())) is parent
    assert set(parent.subtree()) == {parent, *children.values()}
    parent.unlink(pack([1]))
    assert set(parent.children) == set(parent.child_keys) == {pack([5]), pack([9])}
    assert list(children[pack([5])].path()) == [children[pack([5])], parent]
    assert list(children[pack([5])].path(parent)) == [children[pack([5])]]
