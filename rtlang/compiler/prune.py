"""Drops nodes that no output needs, and finds those that a waiting program needs first.

A call of the client's function is never dropped, unless it is pure: it may have side effects. In the blocks of branches and loops, the
pass keeps named nodes and the nodes that the block's sequence and value depend on.
"""

from __future__ import annotations

from collections.abc import Iterable

from rtlang.compiler.rewriting import with_blocks
from rtlang.contract.request_graph import (
    Block,
    Call,
    Node,
    Ref,
    Repeat,
    RequestGraph,
    Switch,
    all_nodes,
    dependencies,
    name_of,
)


def prune(graph: RequestGraph, needed: Iterable[int]) -> RequestGraph:
    """Keep the needed nodes and their dependencies, and drop nodes that no result needs from their blocks.

    Args:
        needed: ids of nodes, of this graph or others.
    """
    kept = ancestors(graph.nodes, {*needed, *_calls(graph.nodes)})
    nodes = tuple(_pruned_node(node) for node in graph.nodes if node.node_id in kept)
    return graph if nodes == graph.nodes else RequestGraph(nodes, graph.inputs, graph.outputs)


def ancestors(nodes: Iterable[Node], needed: Iterable[int]) -> set[int]:
    """Ids of the nodes among `nodes` that are in `needed` or that these depend on."""
    wanted = set(needed)
    found: set[int] = set()
    for node in reversed(tuple(nodes)):
        if node.node_id in wanted:
            found.add(node.node_id)
            wanted |= dependencies(node)
    return found


def _calls(nodes: Iterable[Node]) -> set[int]:
    return {node.node_id for node in nodes if any(map(_is_effect, all_nodes((node,))))}


def _is_effect(node: Node) -> bool:
    return isinstance(node, Call) and node.policy != "pure"


def _pruned_node(node: Node) -> Node:
    if not isinstance(node, (Switch, Repeat)):
        return node
    until = node.until if isinstance(node, Repeat) else None

    def change(block: Block) -> Block:
        needed = {each.node_id for each in block.nodes if name_of(each) is not None}
        needed.update(ref.node_id for ref in (block.value, until) if isinstance(ref, Ref))
        if block.end is not None:
            needed.add(block.end)
        return Block(prune(RequestGraph(block.nodes), needed).nodes, block.end, block.value)

    return with_blocks(node, change)
