"""A bounded outline of the radix tree: which prefixes are stored, how long they are, and how many running requests use them.

Nodes that running requests use come first, then the tree level by level, the newest children of each node first. The cost is bounded by
`max_nodes` whatever the size of the tree.
"""

from __future__ import annotations

from array import array
from collections import Counter, deque
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
MAX_VISITS = 10_000
"""Nodes that an outline of one namespace looks at: about 3 ms."""


@dataclass(slots=True)
class OutlineNode:
    """One node of the tree.

    Attributes:
        node_id, parent_id: from the tokens, so a prefix keeps its id while it is stored; ROOT_ID is the root, which has no entry.
        head: its first tokens, at most MAX_HEAD_TOKENS.
        num_tokens, num_pages: its own, without those above it.
        num_users: locks on the node, which are the running requests whose sequence contains it.
        is_held: whether an open program keeps it from eviction.
        num_children: all its children, those that the outline leaves out included.
        last_access: logical time of the last use; the tree evicts the lowest first.
        namespace: the number of the namespace to which its last token belongs: the upper half of the number that the tree holds.
        states: its tokens, from 1 on, after which there are checkpoints, ascending.
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
    states: tuple[int, ...] = ()


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
            entry = _entry(child, parent_id, page_size)
            found.append(entry)
            if child.children:
                queue.append((child, entry.node_id))
    return found


def outline_of_namespace(root: RadixNode, number: int, page_size: int, max_nodes: int) -> list[OutlineNode]:
    """The entries of at most `max_nodes` nodes of a namespace, and of the public nodes that they continue, parents first.

    Nothing in them depends on other namespaces: the counts and times of public nodes are 0, and their children are those of the answer. At
    most MAX_VISITS nodes are looked at, so in a large tree some may be left out.
    """
    found: list[OutlineNode] = []
    queue = deque([(root, ROOT_ID)])
    num_visits = num_own = 0
    while queue and num_own < max_nodes:
        parent, parent_id = queue.popleft()
        num_shown = 0
        for child in reversed(parent.children.values()):
            num_visits += 1
            if num_visits > MAX_VISITS or num_shown >= MAX_CHILDREN or num_own >= max_nodes:
                break
            first, last = unpacked(child.key[0])[0], unpacked(child.key[-1])[0]
            if first not in (0, number) or last not in (0, number):
                continue
            is_own = last == number
            num_own += is_own
            num_shown += is_own
            entry = _entry(child, parent_id, page_size)
            if not is_own:
                entry.num_users = entry.last_access = entry.num_children = 0
                entry.is_held, entry.states = False, ()
            found.append(entry)
            if child.children:
                queue.append((child, entry.node_id))
    kept = list[OutlineNode]()
    num_children = Counter[int]()
    for entry in reversed(found):
        if entry.namespace != number:
            if not num_children[entry.node_id]:
                continue
            entry.num_children = num_children[entry.node_id]
        num_children[entry.parent_id] += 1
        kept.append(entry)
    return kept[::-1]


def _entry(node: RadixNode, parent_id: int, page_size: int) -> OutlineNode:
    key = node.key
    return OutlineNode(
        hash((parent_id, key[:page_size].tobytes())) & 0x1F_FFFF_FFFF_FFFF or 1,
        parent_id,
        array("q", [unpacked(each)[1] for each in key[:MAX_HEAD_TOKENS]]),
        len(key),
        len(node.page_ids),
        node.lock_count,
        node.hold_count > 0,
        len(node.children),
        node.last_access,
        unpacked(key[-1])[0],
        tuple(sorted(node.states)),
    )
