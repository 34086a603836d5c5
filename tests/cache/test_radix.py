"""The radix tree's structure: splits, growth, locks, tails, eviction order, pending and detached nodes."""

from __future__ import annotations

import pytest

from rtlang.cache.node import TOKEN_BYTES, RadixNode, pack
from rtlang.cache.radix import RadixTree

PAGE_SIZE = 4


def tokens(*pages: int) -> bytes:
    """Whole pages, each of one repeated token."""
    return pack([page for page in pages for _ in range(PAGE_SIZE)])


def store(tree: RadixTree, data: bytes, page_ids: list[int], *, is_pending: bool = False) -> RadixNode:
    """Insert a sequence from the root, unlocked; `page_ids` are those that are not stored yet."""
    node, found = tree.descend(tree.root, data)
    rest = data[len(found) * PAGE_SIZE * TOKEN_BYTES :]
    node = tree.append(node, rest, page_ids, held=0, is_pending=is_pending)
    tree.check()
    return node


def find(tree: RadixTree, data: bytes) -> tuple[list[int], int | None, int]:
    node, tail_page_id, num_tail_tokens = tree.find(data, len(data))
    tree.check()
    return tree.page_ids(node), tail_page_id, num_tail_tokens


@pytest.fixture
def tree() -> RadixTree:
    return RadixTree(PAGE_SIZE)


def test_a_split_leaves_the_object_as_the_deeper_part_with_its_locks(tree: RadixTree) -> None:
    node = store(tree, tokens(1, 2, 3), [10, 11, 12])
    tree.lock(node)
    tree.lock(node)
    upper, _, _ = tree.find(tokens(1, 9), 2 * PAGE_SIZE * TOKEN_BYTES)
    assert upper is not node
    assert (upper.page_ids, node.page_ids) == ([10], [11, 12])
    assert node.parent is upper
    assert upper.lock_count == node.lock_count == 2
    assert tree.unlock(node) == tree.unlock(node) == []
    tree.check()
    assert upper.lock_count == node.lock_count == 0
    assert tree.num_unlocked_pages == 3


def test_a_leaf_grows_in_place_only_while_nothing_else_depends_on_its_end(tree: RadixTree) -> None:
    node = store(tree, tokens(1), [1])
    tree.lock(node)
    assert tree.append(node, tokens(2), [2], held=1, is_pending=False) is node
    tree.lock(node)
    child = tree.append(node, tokens(3), [3], held=1, is_pending=False)
    assert child is not node
    assert child.lock_count == 1
    tree.check()
    assert tree.append(child, tokens(4), [4], held=1, is_pending=False) is child
    assert tree.append(node, tokens(5), [5], held=1, is_pending=False) is not node
    assert find(tree, tokens(1, 2, 3, 4))[0] == [1, 2, 3, 4]


def test_peek_finds_what_find_does_and_changes_nothing(tree: RadixTree) -> None:
    node = store(tree, tokens(1, 2, 3), [1, 2, 3])
    before = node.last_access
    query = tokens(1, 2) + pack([3, 3, 9])
    assert tree.peek(query, len(query)) == 2 * PAGE_SIZE + 2
    assert tree.peek(query, 5 * TOKEN_BYTES) == 5
    assert (node.last_access, tree.num_nodes) == (before, 1)
    assert find(tree, query) == ([1, 2], 3, 2)
    assert tree.num_nodes == 2


def test_the_tail_is_the_page_that_shares_most(tree: RadixTree) -> None:
    store(tree, pack([7, 0, 0, 0]), [1])
    store(tree, pack([7, 7, 0, 0]), [2])
    store(tree, pack([8, 8, 8, 8]), [3])
    assert tree.append_partial(tree.root, pack([7, 7, 7]), 4) is not None
    assert find(tree, pack([7, 7, 7, 7])) == ([], 4, 3)
    assert find(tree, pack([7, 7, 0, 1])) == ([], 2, 3)
    assert find(tree, pack([7, 1]))[2] == 1
    assert find(tree, pack([9, 9])) == ([], None, 0)


def test_a_longer_page_takes_the_place_of_partial_ones(tree: RadixTree) -> None:
    assert tree.append_partial(tree.root, pack([1, 1]), 1) is not None
    assert tree.append_partial(tree.root, pack([1]), 2) is None
    longer = tree.append_partial(tree.root, pack([1, 1, 1]), 3)
    assert longer is not None
    assert tree.supersede(longer) == [1]
    whole = tree.append(tree.root, pack([1, 1, 1, 2]), [4], held=0, is_pending=True)
    assert tree.supersede(whole) == [], "a pending page cannot stand in for a written one"
    assert find(tree, pack([1, 1, 1, 9])) == ([], 3, 3)
    assert tree.commit() == [3]
    assert find(tree, pack([1, 1, 1, 9])) == ([], 4, 3)


def test_eviction_takes_least_recently_used_leaves_from_their_ends(tree: RadixTree) -> None:
    store(tree, tokens(1, 2, 3), [1, 2, 3])
    store(tree, tokens(4, 5), [4, 5])
    store(tree, tokens(1, 6), [6])  # splits: 1 / 2 3 and 6
    find(tree, tokens(1, 2, 3))
    assert tree.evict(1) == [5]
    assert tree.evict(2) == [4, 6]
    assert find(tree, tokens(1, 2, 3))[0] == [1, 2, 3]
    assert tree.evict(2) == [2, 3]
    assert tree.evict(5) == [1]
    assert tree.num_pages == tree.num_nodes == 0


def test_eviction_never_takes_a_locked_node(tree: RadixTree) -> None:
    node = store(tree, tokens(1, 2), [1, 2])
    tree.lock(node)
    store(tree, tokens(1, 2, 3), [3])
    assert tree.num_evictable_pages == 1
    assert tree.evict(9) == [3]
    tree.unlock(node)
    assert tree.evict(9) == [1, 2]


def test_pending_pages_are_matched_whole_but_neither_copied_nor_evicted(tree: RadixTree) -> None:
    store(tree, tokens(1), [1])
    store(tree, tokens(1, 2), [2], is_pending=True)
    store(tree, tokens(3), [3])
    assert find(tree, tokens(1, 2))[0] == [1, 2]
    assert find(tree, tokens(1) + pack([2, 2])) == ([1], None, 0)
    assert tree.num_evictable_pages == 1
    assert tree.evict(9) == [3]
    assert tree.commit() == []
    assert find(tree, tokens(1) + pack([2, 2])) == ([1], 2, 2)
    assert sorted(tree.evict(9)) == [1, 2]


def test_discarded_pages_are_out_of_reach_at_once_and_freed_with_the_last_lock(tree: RadixTree) -> None:
    node = store(tree, tokens(1), [1])
    tree.lock(node)
    grown = tree.append(node, tokens(2, 3), [2, 3], held=1, is_pending=True)
    assert grown is node
    tree.lock(node)
    other = tree.append(node, tokens(4), [4], held=1, is_pending=True)
    store(tree, tokens(5), [5], is_pending=True)
    assert tree.discard() == [5]
    tree.check()
    assert find(tree, tokens(1, 2, 3, 4)) == ([1], None, 0)
    assert not node.is_attached
    assert not other.is_attached
    assert tree.unlock(other) == [4]
    tree.check()
    assert tree.unlock(node) == [2, 3]
    tree.check()
    assert tree.num_pages == tree.num_unlocked_pages == 1
    assert tree.evict(1) == [1]


def test_thousands_of_children_are_found_and_evicted(tree: RadixTree) -> None:
    store(tree, tokens(0), [0])
    for page_id in range(1, 3001):
        node, _ = tree.descend(tree.root, tokens(0))
        tree.append(node, pack([page_id, 1, 2, 3]), [page_id], held=0, is_pending=False)
    tree.check()
    assert find(tree, tokens(0) + pack([1234, 1, 2, 3])) == ([0, 1234], None, 0)
    assert find(tree, tokens(0) + pack([2345, 1, 9])) == ([0], 2345, 2)
    assert set(tree.evict(2998)) == set(range(1, 3001)) - {1234, 2345}
    assert tree.evict(1) == [1234]


def test_the_eviction_queue_does_not_outgrow_the_tree(tree: RadixTree) -> None:
    for round_number in range(400):
        assert tree.append_partial(tree.root, pack([round_number]), 2 * round_number) is not None
        longer = tree.append_partial(tree.root, pack([round_number, 1]), 2 * round_number + 1)
        assert longer is not None
        assert tree.supersede(longer) == [2 * round_number]
        assert len(tree._queue) <= 2 * tree.num_nodes + 65


def test_page_size_must_be_positive() -> None:
    with pytest.raises(ValueError, match="page_size = 0"):
        RadixTree(0)


def test_what_follows_pending_pages_is_pending_too(tree: RadixTree) -> None:
    node = store(tree, tokens(1), [1], is_pending=True)
    below = store(tree, tokens(1, 2), [2])
    assert tree.append_partial(below, pack([3]), 3) is not None
    tree.check()
    assert tree.evict(3) == []
    assert tree.num_evictable_pages == 0
    assert find(tree, tokens(1, 2) + pack([3])) == ([1, 2], None, 0)
    assert sorted(tree.discard()) == [1, 2, 3]
    assert not node.is_attached
    tree.check()


def test_a_pending_page_does_not_stand_in_for_a_partial_one(tree: RadixTree) -> None:
    store(tree, pack([1, 1, 1, 1]), [1], is_pending=True)
    assert tree.append_partial(tree.root, pack([1, 1]), 2) is not None
    assert find(tree, pack([1, 1, 5])) == ([], 2, 2)
    assert tree.discard() == [1]
    assert find(tree, pack([1, 1, 5])) == ([], 2, 2)


def test_a_dropped_node_cannot_be_locked(tree: RadixTree) -> None:
    node = store(tree, tokens(1), [1])
    assert tree.evict(1) == [1]
    with pytest.raises(AssertionError, match="dropped"):
        tree.lock(node)
