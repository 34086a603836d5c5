"""Finds how long the sequence of each generation is needed. The engine keeps its pages until then, and frees them first afterwards."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from rtlang.compiler.nodes import flat, is_generation
from rtlang.contract.request_graph import Lifetime, RequestGraph, choices_of, parent_of


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """The lifetimes of the generations and selects of a graph.

    Attributes:
        of: by node id.
        num_last_uses: number of them whose sequence nothing continues.
    """

    of: dict[int, Lifetime]
    num_last_uses: int


def lifetimes(
    graph: RequestGraph, *, is_open: bool = False, ended: Collection[int] = (), keep: Collection[int] = ()
) -> Lifetimes:
    """Find the lifetimes in a graph, without its blocks.

    Args:
        is_open: whether later parts may continue nodes of this graph.
        ended: nodes that no later part continues.
        keep: nodes that later parts may continue although nodes of this graph do.
    """
    continued = {parent_of(node) for node in flat(graph.nodes)}
    found: dict[int, Lifetime] = {}
    num_last_uses = 0
    for node in graph.nodes:
        if not is_generation(node):
            continue
        node_id = node.node_id
        is_leaf = node_id not in continued
        may_go_on = is_open and choices_of(node) == 1 and (node_id in keep or (is_leaf and node_id not in ended))
        found[node_id] = "program" if may_go_on else "part"
        num_last_uses += is_leaf and not may_go_on
    return Lifetimes(found, num_last_uses)
