"""Finds the nodes whose failure makes no difference, because a decision was made without them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rtlang.contract.events import NodeFinished
from rtlang.contract.graph import Decide, Node, Ref, Text, dependencies


def decided_without(nodes: Mapping[int, Node], outcome: Callable[[int], object]) -> set[int]:
    """Ids of the nodes that only candidates of decisions need, where every such decision has a winner.

    The rating of a candidate (`by`) is not among them: its failure is a mistake of the program.

    Args:
        nodes: by id; a node depends on nodes with smaller ids only.
        outcome: of a node; a NodeFinished if it succeeded.
    """
    users: dict[int, list[int]] = {}  # without decisions that were made
    found: set[int] = set()
    candidates: set[int] = set()
    for node_id in sorted(nodes, reverse=True):
        node = nodes[node_id]
        if isinstance(node, Text) and node_id not in users:  # the end of a message, behind which nothing is generated
            continue
        if node_id in users and all(user in found for user in users[node_id]):
            found.add(node_id)
        needed = dependencies(node)
        if isinstance(node, Decide) and isinstance(outcome(node_id), NodeFinished):
            candidates.update(operand.node_id for operand in node.of if isinstance(operand, Ref))
            for each in needed:
                users.setdefault(each, [])
            continue
        if node_id in candidates:
            candidates |= needed
        for each in needed:
            users.setdefault(each, []).append(node_id)
    return found & candidates
