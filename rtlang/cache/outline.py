"""A bounded outline of the radix tree: which prefixes are stored, how long they are, and how many running requests use them.

Nodes that running requests use come first, then the tree level by level, the newest children of each node first. The cost is bounded by
`max_nodes` whatever the size of the tree.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from rtlang.cache.node import RadixNode
from rtlang.cache.scope import unpacked

ROOT_ID = 0
MAX_CHILDREN = 24
"""Children shown of one node, besides those that running requests use."""
MAX_HEAD_TOKENS = 32
"""Tokens of a node that its entry holds."""


@dataclass(slots=True)
class OutlineNode:
    """One node of the tree.

    Attributes:
        node_id, parent_id: from the tokens, so a prefix keeps its id while it is stored; ROOT_ID is the root, which has no entry.
        head: its first tokens, at most MAX_HEAD_TOKENS.
        namespace: number of the namespace of its last token.
        num_tokens, num_pages: its own, without those above it.
        num_users: locks on the node, which are the running requests whose sequence contains it.
        is_held: whether an open program keeps it from eviction.
        num_children: all its children, those that the outline leaves out included.
        last_access: logical time of the last use; the tree evicts the lowest first.
        namespace: the number of the namespace to which its last token belongs: the upper half of the number that the tree holds.
    """

    node_id: int
    parent_id: int
    head: array[int]
    num_tokens: int
    num_pages: int
    num_users: int
    is_held: bool
    num_children: int
    last_access: int
    namespace: int = 0


def outline(root: RadixNode, ends: Iterable[RadixNode], page_size: int, max_nodes: int) -> list[OutlineNode]:
    """The entries of at most `max_nodes` nodes below `root`, parents first.

    Args:
        ends: the nodes that the sequences of running requests end with.
    """
    used: dict[RadixNode, list[RadixNode]] = {}  # children in use, by parent
    seen: set[RadixNode] = set()
    for end in ends:
        path = [node for node in end.path(root) if node not in seen] if end.is_attached else []
        if len(seen) + len(path) > max_nodes:
            break
        seen.update(path)
        for node in path:
            assert node.parent is not None
            used.setdefault(node.parent, []).append(node)
    found: list[OutlineNode] = []
    num_spare = max_nodes - len(seen)
    queue = deque([(root, ROOT_ID)])
    while queue:
        parent, parent_id = queue.popleft()
        children = used.get(parent, [])
        if num_spare > 0:
            newest = islice(reversed(parent.children.values()), MAX_CHILDREN)
            others = [child for child in newest if child not in seen][:num_spare]
            num_spare -= len(others)
            children = [*children, *others]
        for child in children:
            key = child.key
            node_id = hash((parent_id, key[:page_size].tobytes())) & 0x1F_FFFF_FFFF_FFFF or 1
            head = array("q", [unpacked(each)[1] for each in key[:MAX_HEAD_TOKENS]])
            entry = OutlineNode(
                node_id,
                parent_id,
                head,
                len(key),
                len(child.page_ids),
                child.lock_count,
                child.hold_count > 0,
                len(child.children),
                child.last_access,
                unpacked(key[-1])[0],
            )
            found.append(entry)
            if child.children:
                queue.append((child, node_id))
    return found
