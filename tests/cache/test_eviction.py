"""The eviction queue: order of last use, whatever happened since a node was queued."""

from __future__ import annotations

import random
from array import array

from rtlang.cache.eviction import ORDERS, EvictionQueue, recent
from rtlang.cache.node import MAX_BRANCHES, RadixNode


def make_node(last_access: int) -> RadixNode:
    node = RadixNode(array("q", [0]), [0], None)
    node.last_access = last_access
    return node


def test_nodes_come_out_by_their_last_use_even_if_used_while_queued() -> None:
    generator = random.Random(0)
    queue = EvictionQueue(recent)
    nodes = [make_node(generator.randrange(1000)) for _ in range(200)]
    for node in nodes:
        queue.push(node)
        queue.push(node)
    assert len(queue) == len(nodes)
    for node in generator.sample(nodes, 120):
        node.last_access += generator.randrange(1000)
    queue.check()
    times = []
    while (taken := queue.pop()) is not None:
        assert taken.queue_entry is None
        times.append(taken.last_access)
    assert times == sorted(node.last_access for node in nodes)


def test_detached_nodes_can_be_dropped() -> None:
    queue = EvictionQueue(recent)
    nodes = [make_node(time) for time in range(10)]
    for node in nodes:
        queue.push(node)
    for node in nodes[::2]:
        node.is_attached = False
    queue.drop_detached()
    queue.check()
    assert len(queue) == 5
    assert queue.pop() is nodes[1]


def test_a_node_whose_time_was_lowered_comes_out_first_and_once() -> None:
    generator = random.Random(1)
    queue = EvictionQueue(recent)
    nodes = [make_node(generator.randrange(1, 1000)) for _ in range(100)]
    for node in nodes:
        queue.push(node)
    lowered = generator.sample(nodes, 30)
    for node in lowered:
        node.last_access = 0
        queue.push(node)
    used_again = lowered[::3]
    for node in used_again:
        node.last_access = 2000
    queue.check()
    queue.drop_detached()
    queue.check()
    assert len(queue) == 100
    taken = [node for _ in range(101) if (node := queue.pop()) is not None]
    assert taken[:20] == [node for node in lowered if node not in used_again]
    assert set(taken[-10:]) == set(used_again)
    assert len(taken) == len(set(taken)) == 100


def test_orders_prefer_recent_frequent_and_branching_nodes() -> None:
    old, often, branching, new = (make_node(time) for time in (10, 11, 12, 13))
    often.num_uses = 5
    for page in (b"a", b"b", b"b", b"c", b"d"):
        branching.note_branch(page)
    assert len(branching.branches) == 4
    orders = {
        "recent": [old, often, branching, new],
        "frequent": [old, branching, new, often],
        "valuable": [old, often, new, branching],
    }
    for name, expected in orders.items():
        queue = EvictionQueue(ORDERS[name], 100)
        for node in (new, often, old, branching):
            node.queue_entry = None
            queue.push(node)
        queue.check()
        assert [queue.pop() for _ in range(4)] == expected
        old.last_access = 10


def test_a_continuation_that_is_stored_again_after_eviction_is_not_counted() -> None:
    node = make_node(1)
    node.note_branch(b"a")
    node.is_cut = True
    node.note_branch(b"b")
    assert len(node.branches) == 1
    node.note_branch(b"c")
    assert len(node.branches) == 2
    for number in range(100):
        node.note_branch(bytes([number]))
    assert len(node.branches) == MAX_BRANCHES
