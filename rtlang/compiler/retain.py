"""Finds the last uses of sequences: the engine frees their pages first, and keeps those that a program may still continue."""

from __future__ import annotations

from collections.abc import Collection

from rtlang.compiler.nodes import flat, is_generation
from rtlang.contract.graph import RequestGraph, choices_of, parent_of


def last_uses(graph: RequestGraph, *, is_open: bool = False, ended: Collection[int] = ()) -> set[int]:
    """Ids of the generations and selects whose sequence no later node continues.

    Args:
        is_open: whether nodes may follow that continue nodes of this graph.
        ended: nodes that no later node continues although the graph is open.
    """
    continued = {parent_of(node) for node in flat(graph.nodes)}
    return {
        node.node_id
        for node in graph.nodes
        if is_generation(node)
        and node.node_id not in continued
        and (not is_open or node.node_id in ended or choices_of(node) > 1)
    }
