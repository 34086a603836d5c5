"""Estimates the longest path of dependents of each node; the engine runs nodes with longer paths first."""

from __future__ import annotations

from dataclasses import dataclass

from rtlang.compiler.nodes import estimated_tokens
from rtlang.contract.request_graph import RequestGraph, dependencies


@dataclass(frozen=True, slots=True)
class Paths:
    """Estimated tokens.

    Attributes:
        remaining: by node id, the tokens of the longest path of nodes that depend on the node, itself excluded.
        longest: of the longest path of the graph.
        total: of all nodes.
    """

    remaining: dict[int, int]
    longest: int
    total: int


def paths(graph: RequestGraph) -> Paths:
    """Estimate the paths of a graph."""
    remaining: dict[int, int] = {}
    longest = total = 0
    for node in reversed(graph.nodes):
        node_id = node.node_id
        own = estimated_tokens(node)
        total += own
        path = remaining.setdefault(node_id, 0) + own
        longest = max(longest, path)
        for needed in dependencies(node):
            if remaining.get(needed, -1) < path:
                remaining[needed] = path
    return Paths(remaining, longest, total)
