"""The shape of one level of a graph (its outermost nodes, or those of one block) as a tree for drawing.

Nodes that continue a sequence lie below it. Branches lie side by side; what uses all of them, such as the text after a join, is a later
stage below them. Branches that are alike are shown once or a few times, with their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rtlang.contract.graph.nodes import Node, RoleEnd, Text, dependencies, name_of, parent_of

MAX_ALIKE = 6
"""More branches than this that are alike are not all shown ..."""

NUM_SHOWN = 3
"""... but only so many of them."""


@dataclass(slots=True)
class Level:
    """The nodes of one level that are shown, in order.

    Attributes:
        order: ids of the nodes, and of the groups that stand for hidden ones (negative).
        parents: the sequence that a node continues, if it is on this level.
        sources: the nodes of this level whose values a node, or a block of it, reads.
        ranks: the length of the longest path to a node.
        stages: the nodes below a node (None: the roots), as rows of neighbours.
        asides: the numbers of the stages that hold only values, beside the line to what continues the sequence.
        groups: the number of hidden branches, by the id of the group.
        num_hidden: the number of hidden nodes of this level.
    """

    order: list[int] = field(default_factory=list)
    parents: dict[int, int] = field(default_factory=dict)
    sources: dict[int, list[int]] = field(default_factory=dict)
    ranks: dict[int, int] = field(default_factory=dict)
    stages: dict[int | None, list[list[int]]] = field(default_factory=dict)
    asides: dict[int | None, set[int]] = field(default_factory=dict)
    groups: dict[int, int] = field(default_factory=dict)
    num_hidden: int = 0


def level_of(nodes: Sequence[Node], *, collapses: bool = True) -> Level:
    """The tree of these nodes. References to nodes of other levels are left out.

    Args:
        collapses: whether to hide branches that are alike, and texts that only end a message.
    """
    level = Level()
    here = {node.node_id for node in nodes}
    hidden: dict[int, int] = {}  # node to the group or node that stands for it
    starts = _groups(nodes, here) if collapses else {}
    level.groups.update((start, len(members)) for start, members in starts.items())
    group_of = {member: start for start, members in starts.items() for member in members}
    for node in nodes:
        parent = parent_of(node)
        if parent not in here:
            parent = None
        needed = [each for each in sorted(dependencies(node)) if each in here]
        group = _group_of(parent, needed, hidden) or group_of.get(node.node_id)
        if collapses and group is None and parent is not None and is_end(node):
            hidden[node.node_id] = hidden.get(parent, parent)
            continue
        if group is not None:
            hidden[node.node_id] = group
            level.num_hidden += 1
            if group in level.ranks:
                continue
            at = group
        else:
            at = node.node_id
        if parent is not None:
            level.parents[at] = hidden.get(parent, parent)
        level.sources[at] = list(dict.fromkeys(hidden.get(each, each) for each in needed if each != parent))
        above = [*level.sources[at], *([level.parents[at]] if at in level.parents else [])]
        level.ranks[at] = max((level.ranks[each] + 1 for each in above), default=0)
        level.order.append(at)
    _stage(level)
    return level


def is_end(node: Node) -> bool:
    """Whether a node adds nothing but the end of a message."""
    return isinstance(node, Text) and all(isinstance(part, RoleEnd) or part == "" for part in node.parts)


def _groups(nodes: Sequence[Node], here: set[int]) -> dict[int, list[int]]:
    """The first nodes of the branches to hide, by the (negative) id of their group."""
    children: dict[int | None, list[Node]] = {}
    for node in nodes:
        parent = parent_of(node)
        children.setdefault(parent if parent in here else None, []).append(node)
    shapes: dict[int, int] = {}
    for node in reversed(nodes):  # children have larger ids
        inner = tuple(shapes[each.node_id] for each in children.get(node.node_id, ()))
        shapes[node.node_id] = hash((type(node), name_of(node), inner))
    found: dict[int, list[int]] = {}
    for siblings in children.values():
        alike: dict[int, list[int]] = {}
        for node in siblings:
            alike.setdefault(shapes[node.node_id], []).append(node.node_id)
        for members in alike.values():
            if len(members) > MAX_ALIKE:
                rest = members[NUM_SHOWN:]
                found[-1 - rest[0]] = rest
    return found


def _group_of(parent: int | None, needed: Sequence[int], hidden: dict[int, int]) -> int | None:
    """The group that hides a node: that of its parent, or without one that of everything that it reads."""
    if parent is not None:
        found = hidden.get(parent)
    else:
        groups = {hidden.get(each) for each in needed}
        found = next(iter(groups)) if len(groups) == 1 else None
    return found if found is not None and found < 0 else None


def _stage(level: Level) -> None:
    above: dict[int, int | None] = {}
    depths: dict[int | None, int] = {None: -1}
    for at in level.order:
        upper = level.parents.get(at)
        if upper is None and level.sources[at]:
            upper = level.sources[at][0]
            for each in level.sources[at][1:]:
                upper = _common(upper, each, above, depths)
        above[at] = upper
        depths[at] = depths[upper] + 1
    lowest = dict(level.ranks)  # the largest rank at or below a node
    children: dict[int | None, list[int]] = {}
    for at in level.order:
        children.setdefault(above[at], []).append(at)
    for at in reversed(level.order):
        upper = above[at]
        if upper is not None:
            lowest[upper] = max(lowest[upper], lowest[at])
    for owner, siblings in children.items():
        stages: list[list[int]] = []
        bottoms: list[int] = []
        for at in siblings:
            row, bottom = [at], lowest[at]
            while bottoms and level.ranks[at] <= bottoms[-1]:  # it lies beside these
                row, bottom = stages.pop() + row, max(bottom, bottoms.pop())
            stages.append(row)
            bottoms.append(bottom)
        level.stages[owner] = stages
        continues = [any(at in level.parents for at in row) for row in stages]
        level.asides[owner] = {
            number
            for number, row in enumerate(stages)
            if not continues[number] and any(continues[number:]) and owner is not None
        }


def _common(
    first: int | None, second: int | None, above: dict[int, int | None], depths: dict[int | None, int]
) -> int | None:
    """The lowest node above both."""
    while first != second:
        if depths[first] >= depths[second]:
            assert first is not None
            first = above[first]
        else:
            assert second is not None
            second = above[second]
    return first
