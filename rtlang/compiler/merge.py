"""Merges nodes that must give the same result: same parent, same content, and no randomness of their own.

Whole subgraphs merge, because the children of merged nodes have the same parent again. A generation merges if it is greedy or has a seed of
its own, and no functions of the client; a call of the client's function never does.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass

from rtlang.compiler.rewriting import renamed, renamed_block, with_blocks
from rtlang.contract.graph.frozen_copies import changed
from rtlang.contract.request_graph import (
    Apply,
    Block,
    Generate,
    Node,
    Ref,
    Repeat,
    RequestGraph,
    Select,
    Switch,
    Text,
    name_of,
    parent_of,
    path_of,
)

Key = tuple[Hashable, ...]
Known = dict[int | None, "Node | dict[Key, int]"]
"""The nodes so far by parent: the only one, or the ids of several by key. Most nodes are the only child and need no key."""


@dataclass(frozen=True, slots=True)
class Merged:
    """Attributes: aliases, the nodes that were dropped, each with the node that it equals."""

    graph: RequestGraph
    aliases: Mapping[int, int]


def merge(
    graph: RequestGraph,
    known: Known | None = None,
    *,
    keeps_names: bool = False,
    failed: Collection[int] = (),
    alone: Collection[str] = (),
) -> Merged:
    """Drop each node that equals an earlier one, and let its dependants refer to that one.

    Args:
        known: the nodes that were submitted earlier; the nodes of this graph are added.
        keeps_names: never drop a node with a name.
        failed: nodes that no node equals: a program that has seen their errors tries again.
        alone: paths of nodes that equal no others, because their outcomes are given.
    """
    siblings: Known = {} if known is None else known
    aliases: dict[int, int] = {}
    has_blocks = False
    nodes: list[Node] = []
    for node in graph.nodes:
        if aliases:
            node = renamed(node, aliases)
        if not isinstance(node, _MERGED):
            if isinstance(node, (Switch, Repeat)):
                node, has_blocks = _merged_blocks(node), True
            nodes.append(node)
            continue
        parent = -1 if isinstance(node, Apply) else parent_of(node)
        first = siblings.get(parent)
        if first is None:
            siblings[parent] = node
            nodes.append(node)
            continue
        if not isinstance(first, dict):
            key = None if alone and path_of(first) in alone else _key(first)
            first = siblings[parent] = {} if key is None else {key: first.node_id}
        key = None if alone and path_of(node) in alone else _key(node)
        if key is not None and first.get(key) in failed:
            first[key] = node.node_id
        if (
            key is None
            or first.setdefault(key, node.node_id) == node.node_id
            or (keeps_names and name_of(node) is not None)
        ):
            nodes.append(node)
        else:
            aliases[node.node_id] = first[key]
    is_changed = aliases or has_blocks
    return Merged(RequestGraph(tuple(nodes), graph.inputs, graph.outputs) if is_changed else graph, aliases)


_MERGED = (Text, Generate, Select, Apply)


def _merged_blocks(node: Switch | Repeat) -> Node:
    """The node with equal nodes of each block merged; names stay, because a block may run several times or not at all."""
    if isinstance(node, Repeat):
        merged = merge(RequestGraph(node.body.nodes), keeps_names=True)
        body = renamed_block(Block(merged.graph.nodes, node.body.end, node.body.value), merged.aliases)
        until = node.until
        if isinstance(until, Ref):
            until = Ref(merged.aliases.get(until.node_id, until.node_id), until.choice)
        return changed(node, body=body, until=until)

    def change(block: Block) -> Block:
        merged = merge(RequestGraph(block.nodes), keeps_names=True)
        return renamed_block(Block(merged.graph.nodes, block.end, block.value), merged.aliases)

    return with_blocks(node, change)


def _is_exact(node: Generate) -> bool:
    """Whether equal generations give equal texts. Logits processors may have a state, and need not be hashable."""
    params, constraint = node.params, node.constraint
    is_greedy = params.temperature == 0 and (constraint is None or not constraint.may_set_temperature)
    return (is_greedy or params.seed is not None) and not params.logits_processors


def _key(node: Node) -> Key | None:
    """Equal for siblings with equal results; None if a node equals no other."""
    match node:
        case Text():
            return ("text", node.parts)
        case Generate() if _is_exact(node):
            return ("generate", node.params, node.constraint)
        case Select():
            return ("select", node.choices, node.method)
        case Apply():
            return ("apply", node.function, repr(node.args))  # equal constants may differ: 1, 1.0 and True
        case _:
            return None
