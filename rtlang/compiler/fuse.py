"""Finds generations that continue the sequence of another: they can keep its engine sequence, its slot and its pages."""

from __future__ import annotations

from rtlang.compiler.nodes import flat
from rtlang.contract.graph import Generate, RequestGraph, Text, parent_of


def chains(graph: RequestGraph) -> set[int]:
    """Ids of the generations whose sequence exactly one later generation of the graph continues, with nothing but text between.

    Both make one completion, and the text between them branches nowhere and waits for no other node.
    """
    children: dict[int, int] = {}
    for node in flat(graph.nodes):
        parent = parent_of(node)
        if parent is not None:
            children[parent] = children.get(parent, 0) + 1
    nodes = {node.node_id: node for node in graph.nodes}
    found: set[int] = set()
    for node in graph.nodes:
        if type(node) is not Generate or node.params.n != 1 or node.params.best_of != 1 or node.parent is None:
            continue
        before = nodes.get(node.parent)
        while type(before) is Text and before.parent is not None and children[before.node_id] == 1:
            before = nodes.get(before.parent)
        if type(before) is Generate and before.params.n == 1 and children[before.node_id] == 1:
            found.add(before.node_id)
    return found
