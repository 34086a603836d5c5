"""The eviction queue: order of last use, whatever happened since a node was queued."""

from __future__ import annotations

import random
from array import array

from rtlang.cache.eviction import EvictionQueue
from rtlang.cache.node import RadixNode


def make_node(last_access: int) -> RadixNode:
    node = RadixNode(array("q", [0]), [0], None)
    node.last_access = last_access
    return node


def test_nodes_come_out_by_their_last_use_even_if_used_while_queued() -> None:
    generator = random.Random(0)
    queue = EvictionQueue()
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
        assert not taken.is_queued
        times.append(taken.last_access)
    assert times == sorted(node.last_access for node in nodes)


def test_detached_nodes_can_be_dropped() -> None:
    queue = EvictionQueue()
    nodes = [make_node(time) for time in range(10)]
    for node in nodes:
        queue.push(node)
    for node in nodes[::2]:
        node.is_attached = False
    queue.drop_detached()
    queue.check()
    assert len(queue) == 5
    assert queue.pop() is nodes[1]
