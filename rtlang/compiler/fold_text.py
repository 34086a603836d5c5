"""Merges adjacent text nodes, so that their text is one node and tokenized once.

Plain text that follows plain text is always merged, because the tokens of a text depend on where it ends. Across the markers of chat
messages, which are tokens of their own, merging only saves nodes: that is the part that can be switched off.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from rtlang.compiler.rewriting import with_blocks
from rtlang.contract.request_graph import (
    Arg,
    Block,
    Node,
    Part,
    Ref,
    Repeat,
    RequestGraph,
    RoleEnd,
    RoleStart,
    Switch,
    Text,
    parent_of,
)


def fold_text(graph: RequestGraph, keep: Collection[int] = (), *, across_roles: bool = True) -> RequestGraph:
    """Merge adjacent text nodes.

    A text node is merged into its child if the child is also text and the only node that continues it. The merged node has the id of the
    child, so that references to it stay valid. Only nodes of `graph` and of its blocks are merged; nodes submitted earlier are unchanged.

    Args:
        keep: ids of nodes that later nodes may continue; these are not merged into their children.
        across_roles: whether to merge where the start or end of a message lies between the texts.
    """
    parents = [node.parent if type(node) is Text else parent_of(node) for node in graph.nodes]
    several: Collection[int | None] = ()  # nodes with more than one child
    if len(set(parents)) < len(parents):
        several = {parent for parent, count in Counter(parents).items() if count > 1}
    folded: dict[int, Node] = {}
    for node in graph.nodes:
        if type(node) is not Text:
            if isinstance(node, (Switch, Repeat)):
                node = with_blocks(node, lambda block: _folded_block(block, keep, across_roles))
            folded[node.node_id] = node
            continue
        parent = node.parent
        earlier = folded.get(parent) if parent is not None else None
        if (
            type(earlier) is Text
            and parent not in several
            and parent not in keep
            and (across_roles or not _has_marker_between(earlier.parts, node.parts))
        ):
            del folded[earlier.node_id]
            folded[node.node_id] = Text(node.node_id, earlier.parent, _joined((*earlier.parts, *node.parts)))
        else:
            parts = _joined(node.parts)
            folded[node.node_id] = node if parts is node.parts else Text(node.node_id, parent, parts)
    return RequestGraph(tuple(folded.values()), graph.inputs, graph.outputs)


def _folded_block(block: Block, keep: Collection[int], across_roles: bool) -> Block:
    kept = keep if block.end is None else {*keep, block.end}
    return Block(fold_text(RequestGraph(block.nodes), kept, across_roles=across_roles).nodes, block.end, block.value)


def _has_marker_between(before: Sequence[Part], after: Sequence[Part]) -> bool:
    return any(type(part) in (RoleStart, RoleEnd) for part in (*before[-1:], *after[:1]))


def _joined(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The parts with adjacent strings concatenated; the same tuple if there are none."""
    if len(parts) < 2:
        return parts
    is_after_text = False
    for part in parts:
        if type(part) is str:
            if is_after_text:
                break
            is_after_text = True
        else:
            is_after_text = False
    else:
        return parts
    joined: list[Part] = []
    for part in parts:
        if type(part) is str and joined and type(joined[-1]) is str:
            joined[-1] += part
        else:
            joined.append(part)
    return tuple(joined)


def is_constant(node: Node) -> bool:
    """Whether a node is text without generated values and inputs, so that its tokens are known once its tokenizer is."""
    if type(node) is not Text:
        return False
    for part in node.parts:  # noqa: SIM110 - called for every node; a generator costs twice as much
        if type(part) is Ref or type(part) is Arg:
            return False
    return True
