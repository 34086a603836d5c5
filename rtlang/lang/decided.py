"""Finds the nodes whose failure makes no difference, because a decision was made without them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rtlang.contract.events import NodeFinished
from rtlang.contract.graph import Decide, Node, Text, dependencies


def decided_without(nodes: Mapping[int, Node], outcome: Callable[[int], object]) -> set[int]:
    """Ids of the nodes that only operands of decisions need, where every such decision has a winner.

    Args:
        nodes: by id; a node depends on nodes with smaller ids only.
        outcome: of a node; its error if it failed.
    """
    users: dict[int, list[int]] = {}  # without decisions that were made
    found: set[int] = set()
    for node_id in sorted(nodes, reverse=True):
        node = nodes[node_id]
        if isinstance(node, Text) and node_id not in users:  # the end of a message, behind which nothing is generated
            continue
        if node_id in users and all(user in found for user in users[node_id]):
            found.add(node_id)
        is_made = isinstance(node, Decide) and isinstance(outcome(node_id), NodeFinished)
        for needed in dependencies(node):
            needing = users.setdefault(needed, [])
            if not is_made:
                needing.append(node_id)
    return found
