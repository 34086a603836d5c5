"""The checkpoints in the nodes of a tree: they follow their tokens through splits, shorter pages, siblings and eviction."""

from __future__ import annotations

import pytest

from rtlang.cache.node import TOKEN_BYTES, RadixNode, pack
from rtlang.cache.radix import RadixTree
from rtlang.cache.states import StatePool

PAGE_SIZE = 4


@pytest.fixture
def tree() -> RadixTree:
    return RadixTree(PAGE_SIZE, states=StatePool(8))


def store(tree: RadixTree, token_ids: list[int], first_page: int, *, is_pending: bool = False) -> RadixNode:
    """Store a sequence, unlocked; its new pages are `first_page` and those after it. Returns the node or leaf with its end."""
    data = pack(token_ids)
    cut = len(token_ids) // PAGE_SIZE * PAGE_SIZE * TOKEN_BYTES
    node, found = tree.descend(tree.root, data[:cut])
    rest = data[len(found) * PAGE_SIZE * TOKEN_BYTES : cut]
    num_new = len(rest) // (PAGE_SIZE * TOKEN_BYTES)
    if num_new:
        page_ids = list(range(first_page, first_page + num_new))
        node = tree.append(node, rest, page_ids, held=0, is_pending=is_pending)
    if len(data) > cut:
        leaf = tree.append_partial(node, data[cut:], first_page + num_new)
        assert leaf is not None
        node = leaf
    tree.check()
    return node


def keep(tree: RadixTree, node: RadixNode, position: int) -> int:
    """Keep a new state; returns its slot."""
    slot = tree.states.pool.allocate()
    assert slot is not None
    assert tree.states.keep(node, position, slot) is not None
    tree.check()
    return slot


def found(tree: RadixTree, token_ids: list[int]) -> tuple[int, int] | None:
    """The slot and position of the deepest checkpoint; `peek_state` must see the same."""
    data = pack(token_ids)
    _, seen, _ = tree.peek_state(data, len(data))
    _, checkpoint, _ = tree.find_state(data, len(data))
    tree.check()
    assert seen is checkpoint
    return None if checkpoint is None else (checkpoint.slot, tree.states.position(checkpoint))


def test_a_split_leaves_each_checkpoint_at_its_tokens(tree: RadixTree) -> None:
    tokens = list(range(16))
    node = store(tree, tokens, 0)
    slots = {position: keep(tree, node, position) for position in (2, 4, 7, 8, 9, 13)}
    _, _, positions = tree.peek_state(pack(tokens), len(tokens) * TOKEN_BYTES)
    assert positions == [2, 4, 7, 8, 9, 13]
    store(tree, [*tokens[:8], 50, 50, 50, 50], 10)
    store(tree, [*tokens[:5], 60, 60, 60], 20)
    for length in range(17):
        deepest = max((position for position in slots if position <= length), default=None)
        assert found(tree, tokens[:length]) == (None if deepest is None else (slots[deepest], deepest))
    assert found(tree, [*tokens[:8], 50, 50, 50, 50]) == (slots[8], 8)
    assert found(tree, [*tokens[:5], 60, 60, 60]) == (slots[4], 4)


def test_a_checkpoint_inside_a_page_is_found_only_if_all_tokens_before_it_agree(tree: RadixTree) -> None:
    slot = keep(tree, store(tree, [1, 2, 3, 4, 5, 6, 7, 8], 0), 7)
    assert found(tree, [1, 2, 3, 4, 5, 6, 7]) == (slot, 7)
    assert found(tree, [1, 2, 3, 4, 5, 6, 7, 9]) == (slot, 7)
    assert found(tree, [1, 2, 3, 4, 5, 6, 9, 8]) is None
    assert found(tree, [1, 2, 3, 9, 5, 6, 7, 8]) is None


def test_the_limit_counts_for_checkpoints(tree: RadixTree) -> None:
    tokens = list(range(8))
    node = store(tree, tokens, 0)
    first, second = keep(tree, node, 3), keep(tree, node, 6)
    for limit, expected in ((8, second), (6, second), (5, first), (3, first), (2, None)):
        _, checkpoint, _ = tree.find_state(pack(tokens), limit * TOKEN_BYTES)
        assert (None if checkpoint is None else checkpoint.slot) == expected


def test_a_checkpoint_of_tokens_that_many_pages_share_is_found_from_all_and_kept_once(tree: RadixTree) -> None:
    prefix = [*range(4), 7, 7]
    slot = -1
    for number in range(200):
        node = store(tree, [*prefix, number, number], 2 * number)
        if number == 100:
            slot = keep(tree, node, len(prefix))
    assert found(tree, [*prefix, 199, 1]) == (slot, 6), "no page that is near in order has it"
    assert found(tree, [*prefix, 3, 3]) == (slot, 6), "it is before the end of another whole page"
    other = tree.states.pool.allocate()
    assert other is not None
    assert tree.states.keep(node, len(prefix), other) is None
    assert tree.states.pool.num_free == 7


def test_a_longer_page_takes_the_checkpoints_of_the_partial_one_it_replaces(tree: RadixTree) -> None:
    slot = keep(tree, store(tree, [1, 2, 3, 4, 5], 0), 5)
    longer = store(tree, [1, 2, 3, 4, 5, 6, 7, 8], 10)
    assert tree.supersede(longer) == [1]
    assert found(tree, [1, 2, 3, 4, 5, 9]) == (slot, 5)


def test_a_sibling_takes_over_when_a_page_is_evicted(tree: RadixTree) -> None:
    first = store(tree, [1, 2, 3, 4], 0)
    slots = keep(tree, first, 2), keep(tree, first, 3)
    store(tree, [1, 2, 5, 5], 1)
    assert tree.evict(1) == [0]
    assert found(tree, [1, 2, 5, 5]) == (slots[0], 2)
    assert tree.states.pool.num_kept == 1, "no page has the tokens of the other one"
    assert tree.evict(1) == [1]
    assert found(tree, [1, 2, 5, 5]) is None
    assert (tree.states.pool.num_free, tree.states.pool.stats.num_dropped) == (8, 2)


def test_eviction_from_the_end_of_a_node_drops_the_checkpoints_there(tree: RadixTree) -> None:
    tokens = list(range(12))
    node = store(tree, tokens, 0)
    first = keep(tree, node, 8)
    keep(tree, node, 9)
    keep(tree, node, 12)
    tree.evict(1)
    tree.check()
    assert found(tree, tokens) == (first, 8)
    assert tree.states.pool.num_free == 7


def test_a_checkpoint_in_a_pending_page_is_found_after_the_commit_only(tree: RadixTree) -> None:
    tokens = list(range(12))
    node = store(tree, tokens[:4], 0)
    tree.lock(node)
    grown = tree.append(node, pack(tokens[4:]), [1, 2], held=1, is_pending=True)
    before, inside = keep(tree, grown, 4), keep(tree, grown, 6)
    assert found(tree, tokens) == (before, 4)
    tree.commit()
    assert found(tree, tokens) == (inside, 6)


def test_a_failed_step_frees_the_checkpoints_in_its_pages(tree: RadixTree) -> None:
    tokens = list(range(12))
    node = store(tree, tokens[:4], 0)
    tree.lock(node)
    grown = tree.append(node, pack(tokens[4:]), [1, 2], held=1, is_pending=True)
    before = keep(tree, grown, 4)
    keep(tree, grown, 6)
    keep(tree, grown, 12)
    tree.discard()
    tree.check()
    assert found(tree, tokens) == (before, 4)
    assert tree.states.pool.num_free == 7
    tree.unlock(grown)
    tree.check()


def test_a_written_page_takes_the_place_of_a_pending_one_that_may_be_discarded(tree: RadixTree) -> None:
    keep(tree, store(tree, [1, 2, 3, 4], 0, is_pending=True), 2)
    slot = keep(tree, store(tree, [1, 2], 1), 2)
    assert found(tree, [1, 2, 3, 4]) == (slot, 2)
    tree.discard()
    assert found(tree, [1, 2, 3, 4]) == (slot, 2)
    assert tree.states.pool.num_free == 7


def test_demoted_nodes_demote_their_checkpoints_but_not_those_that_siblings_need(tree: RadixTree) -> None:
    node = store(tree, [1, 2, 3, 4, 5, 6, 7, 8], 0)
    shared, end, middle = keep(tree, node, 2), keep(tree, node, 8), keep(tree, node, 6)
    tree.states.pool.touch(tree.states.pool.checkpoint(shared))
    store(tree, [1, 2, 9, 9], 10)
    tree.demote(node, 0)
    tree.check()
    accesses = [tree.states.pool.checkpoint(slot).last_access for slot in (shared, end, middle)]
    assert accesses[0] > 0
    assert accesses[1:] == [0, 0]


def test_eviction_of_checkpoints_thins_out_a_path_and_leaves_its_pages(tree: RadixTree) -> None:
    tokens = list(range(8))
    node = store(tree, tokens, 0)
    for position in range(1, 9):
        keep(tree, node, position)
    for expected in ([2, 4, 6, 8], [4, 8], [8], []):
        for _ in range(max(1, len(expected) - (expected == [8]))):
            assert tree.states.pool.allocate() is not None
        tree.check()
        assert tree.peek_state(pack(tokens), 64)[2] == expected
    assert tree.num_pages == 2


def test_a_checkpoint_spares_the_tokens_behind_the_one_above_it(tree: RadixTree) -> None:
    node = store(tree, list(range(16)), 0)
    other = store(tree, [*range(6), 50, 50], 10)
    slots = [keep(tree, other, 5), keep(tree, node, 11), keep(tree, node, 9), keep(tree, node, 16)]
    pool = tree.states.pool
    checkpoints = [pool.checkpoint(slot) for slot in slots]
    assert [each.num_spared for each in checkpoints] == [5, 6, 4, 5]
    pool.touch(checkpoints[1])
    assert checkpoints[1].num_spared == 2
