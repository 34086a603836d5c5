"""The outline of the radix tree: complete where it fits, bounded where it does not, and running requests' paths first."""

from __future__ import annotations

import random

from rtlang.cache.node import RadixNode, pack
from rtlang.cache.outline import MAX_CHILDREN, MAX_HEAD_TOKENS, ROOT_ID, OutlineNode, outline
from rtlang.cache.prefix_cache import PrefixCache
from rtlang.cache.radix import RadixTree
from rtlang.cache.scope import Namespaces
from tests.cache.test_scope import store as store_in

PAGE_SIZE = 4


def store(tree: RadixTree, tokens: list[int], first_page_id: int) -> RadixNode:
    """Insert a sequence of whole pages from the root."""
    data = pack(tokens)
    node, found = tree.descend(tree.root, data)
    num_new = len(tokens) // PAGE_SIZE - len(found)
    if num_new == 0:
        return node
    pages = list(range(first_page_id, first_page_id + num_new))
    return tree.append(node, pack(tokens[len(found) * PAGE_SIZE :]), pages, held=0, is_pending=False)


def texts(entries: list[OutlineNode]) -> set[tuple[int, ...]]:
    """The sequences down to each entry, from the heads and parents alone."""
    by_id = {entry.node_id: entry for entry in entries}
    assert len(by_id) == len(entries), "ids are distinct"
    found = set()
    for entry in entries:
        path: list[int] = []
        each: OutlineNode | None = entry
        while each is not None:
            path = [*each.head, *path]
            each = None if each.parent_id == ROOT_ID else by_id[each.parent_id]
        found.add(tuple(path))
    return found


def test_an_outline_of_a_small_tree_is_the_tree() -> None:
    rng = random.Random(5)
    tree, num_pages = RadixTree(PAGE_SIZE), 0
    sequences = []
    for _ in range(60):
        base = rng.choice(sequences)[: 4 * rng.randrange(4)] if sequences else []
        tokens = base + [rng.randrange(3) for _ in range(4 * rng.randrange(1, 4))]
        store(tree, tokens, num_pages)
        num_pages += len(tokens) // PAGE_SIZE
        sequences.append(tokens)
    entries = outline(tree.root, (), PAGE_SIZE, 10_000)
    nodes = [node for node in tree.root.subtree() if node is not tree.root]
    expected = set()
    for node in nodes:
        path: list[int] = []
        for passed in node.path(tree.root):
            path = [*passed.key, *path]
        expected.add(tuple(path))
    assert texts(entries) == expected
    assert sum(entry.num_pages for entry in entries) == tree.num_pages
    assert sum(entry.num_tokens for entry in entries) == sum(len(node.key) for node in nodes)
    assert sorted(entry.num_children for entry in entries) == sorted(len(node.children) for node in nodes)


def test_a_prefix_keeps_its_id_when_it_is_split() -> None:
    tree = RadixTree(PAGE_SIZE)
    store(tree, [1] * 8, 0)
    [before] = outline(tree.root, (), PAGE_SIZE, 10)
    store(tree, [1] * 4 + [2] * 4, 10)
    after = outline(tree.root, (), PAGE_SIZE, 10)
    assert [entry.node_id for entry in after if entry.parent_id == ROOT_ID] == [before.node_id]
    assert len(after) == 3


def test_a_wide_tree_is_cut_and_paths_in_use_come_first() -> None:
    tree = RadixTree(PAGE_SIZE)
    first = store(tree, [7, 7, 7, 7, 8, 8, 8, 8], 0)
    for number in range(500):
        store(tree, [9, number, 0, 0], 10 + number)
    tree.lock(first)
    entries = outline(tree.root, [first], PAGE_SIZE, 50)
    assert entries[0].num_users == 1
    assert list(entries[0].head) == [7, 7, 7, 7, 8, 8, 8, 8]
    assert len(entries) == 1 + MAX_CHILDREN
    assert {entry.head[1] for entry in entries[1:]} == set(range(500 - MAX_CHILDREN, 500)), "the newest ones"
    assert len(outline(tree.root, [first], PAGE_SIZE, 5)) == 5


def test_a_head_is_bounded() -> None:
    tree = RadixTree(PAGE_SIZE)
    store(tree, list(range(400)), 0)
    [entry] = outline(tree.root, (), PAGE_SIZE, 10)
    assert list(entry.head) == list(range(MAX_HEAD_TOKENS))
    assert (entry.num_tokens, entry.num_pages) == (400, 100)


def test_a_path_that_was_cut_off_is_left_out() -> None:
    tree = RadixTree(PAGE_SIZE)
    node = tree.append(tree.root, pack([1] * 4), [0], held=0, is_pending=True)
    tree.lock(node)
    tree.discard()
    assert not node.is_attached
    assert outline(tree.root, [node], PAGE_SIZE, 10) == []


def test_an_outline_of_a_namespace_has_its_sequences_and_does_not_change_with_others() -> None:
    """Random sequences of three namespaces, some behind public prompts: the outline of one is that of a tree of its own."""
    for seed in range(20):
        rng = random.Random(seed)
        public = [[rng.randrange(3) for _ in range(rng.randrange(1, 17))] for _ in range(2)]
        namespaces = Namespaces(public)
        number = namespaces.scope("a", ()).number
        both, alone = PrefixCache(2000, PAGE_SIZE), PrefixCache(2000, PAGE_SIZE)
        for _ in range(40):
            name = rng.choice(["a", "b", ""])
            tokens = rng.choice([*public, []]) + [rng.randrange(3) for _ in range(rng.randrange(1, 12))]
            for cache in (both, alone) if name == "a" else (both,):
                store_in(cache, tokens, namespaces.scope(name, tokens))

        found = []
        for cache in (both, alone):
            entries = cache.outline_of_namespace(number, 1000)
            assert all(entry.namespace in (0, number) for entry in entries)
            for entry in entries:
                below = [each for each in entries if each.parent_id == entry.node_id]
                assert entry.namespace == number or entry.num_children == len(below) > 0
            found.append({path[:end] for path in texts(entries) for end in range(len(path) + 1)})
        assert found[0] == found[1]


def test_an_outline_of_a_namespace_is_bounded() -> None:
    namespaces, cache = Namespaces(), PrefixCache(4000, PAGE_SIZE)
    for index in range(300):
        tokens = [index // 100, index, 1, 2]
        store_in(cache, tokens, namespaces.scope("ab"[index % 2], tokens))
    number = namespaces.scope("a", ()).number
    assert len(cache.outline_of_namespace(number, 7)) == 7
    assert len(cache.outline_of_namespace(number, 1000)) == MAX_CHILDREN
    assert cache.outline_of_namespace(namespaces.scope("c", ()).number, 1000) == []


def test_an_entry_says_after_which_of_its_tokens_there_are_states() -> None:
    cache = PrefixCache(16, PAGE_SIZE, num_states=4)
    assert cache.states is not None
    node = cache.match([], 0).node
    cache.lock(node)
    page_ids, slots = cache.allocate(3), [cache.states.allocate() for _ in range(2)]
    assert page_ids is not None
    assert slots[0] is not None
    assert slots[1] is not None
    node, _ = cache.extend(node, list(range(8)), page_ids[:2])
    cache.commit()
    cache.keep_state(node, 7, slots[0])
    cache.finish(node, [8, 9], page_ids[2:], start=8, state=(10, slots[1]))
    assert [entry.states for entry in cache.outline((), 10)] == [(7,), (2,)]
    assert [entry.states for entry in cache.outline_of_namespace(1, 10)] == []
