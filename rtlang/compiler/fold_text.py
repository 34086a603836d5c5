"""Merges adjacent text nodes of a recorded graph before it is submitted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from rtlang.contract.graph import Node, Part, RequestGraph, Text, parent_of


def fold_text(graph: RequestGraph, keep: Collection[int] = ()) -> RequestGraph:
    """Merge adjacent text nodes, so that their text is tokenized once.

    A text node is merged into its child if the child is also text and the only node that continues it. The merged node has the id of the
    child, so that references to it stay valid. Only nodes of `graph` are merged; nodes submitted earlier are unchanged.

    Args:
        keep: ids of nodes that later nodes may continue; these are not merged into their children.
    """
    nodes: dict[int, Node] = {node.node_id: node for node in graph.nodes}
    num_children = Counter(parent_id for node in graph.nodes if (parent_id := parent_of(node)) is not None)
    folded: dict[int, Node] = {}
    for node in graph.nodes:
        parent_id = parent_of(node)
        parent = nodes.get(parent_id) if parent_id is not None else None
        if not isinstance(node, Text):
            folded[node.node_id] = node
        elif isinstance(parent, Text) and num_children[parent.node_id] == 1 and parent.node_id not in keep:
            earlier = folded.pop(parent.node_id)
            assert isinstance(earlier, Text)
            folded[node.node_id] = Text(node.node_id, earlier.parent, _joined((*earlier.parts, *node.parts)))
        else:
            folded[node.node_id] = Text(node.node_id, node.parent, _joined(node.parts))
    return RequestGraph(tuple(folded.values()), graph.inputs)


def _joined(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The parts with adjacent strings concatenated."""
    joined: list[Part] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        else:
            joined.append(part)
    return tuple(joined)
