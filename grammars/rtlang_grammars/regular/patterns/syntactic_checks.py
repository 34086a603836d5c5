"""What is seen of a language by the shape of its tree alone: proofs that need no automaton.

Every answer "yes" is a proof; "no" means that it was not seen. Patterns mostly begin with a few fixed characters, and hold many texts:
that is enough to tell most of them apart, and to see that they are not empty.
"""

from __future__ import annotations

from rtlang_grammars.regular.characters import code_points
from rtlang_grammars.regular.characters.code_points import CodePoints
from rtlang_grammars.regular.patterns.syntax import (
    Alternation,
    Both,
    Characters,
    Concatenation,
    Lookaround,
    Negation,
    Node,
    Repetition,
)

_MANY = 1 << 40
_MAX_PREFIX = 24


def prefix(node: Node, limit: int = _MAX_PREFIX) -> list[CodePoints]:
    """Sets that the first characters of every text are in, one for each of up to `limit` places; every text is at least as long."""
    return _prefix(node, limit)[0]


def are_disjoint(one: Node, other: Node) -> bool:
    """No text is in both."""
    pairs = zip(prefix(one), prefix(other), strict=False)
    return any(not code_points.intersection(points, others) for points, others in pairs)


def has_text(node: Node) -> bool:
    """There is a text."""
    if isinstance(node, Both) and len(node.items) == 1 and not isinstance(node.items[0], Negation):
        length = node.items[0].min_length
        return _num_texts(node.items[0]) > 0 and node.low <= length and (node.high is None or length <= node.high)
    return _num_texts(node) > 0 or _leaves_out_beginnings(node)


def has_more_texts(node: Node, limit: int) -> bool:
    """There are more than `limit` texts."""
    return _num_texts(node) > limit or _leaves_out_beginnings(node)


def _prefix(node: Node, limit: int) -> tuple[list[CodePoints], bool]:
    """The sets, and whether every text ends behind them. What only looks around allows less: it is passed over."""
    sets: list[CodePoints] = []
    if isinstance(node, Characters):
        return [node.points], True
    if isinstance(node, Lookaround):
        return [], True
    if isinstance(node, Concatenation):
        for item in node.items:
            if len(sets) >= limit:
                return sets, False
            part, is_whole = _prefix(item, limit - len(sets))
            sets += part
            if not is_whole:
                return sets, False
        return sets, True
    if isinstance(node, Repetition) and node.low:
        part, is_whole = _prefix(node.item, limit)
        if not is_whole:
            return part, False
        return (part * min(node.low, limit))[:limit], node.high == node.low and len(part) * node.low <= limit
    if isinstance(node, Alternation):
        sets, is_whole = _prefix(node.items[0], limit)
        for item in node.items[1:]:
            if not sets:
                return [], False
            part, is_part_whole = _prefix(item, len(sets))
            is_whole = is_whole and is_part_whole and len(part) == len(sets)
            sets = [
                each if each == own else code_points.union(each, own) for each, own in zip(sets, part, strict=False)
            ]
        return sets, is_whole
    if isinstance(node, Both):
        for item in node.items:
            sets = max(sets, _prefix(item, limit)[0], key=len)
    return sets, False


def _num_texts(node: Node) -> int:
    """At least so many texts; 0 where that is not seen, and wherever there is more in the tree than characters, choices and repeats."""
    if isinstance(node, Characters):
        return code_points.size(node.points)
    if isinstance(node, Concatenation | Alternation):  # texts that differ in one part only are different
        most = 1
        for item in node.items:
            count = _num_texts(item)
            if not count:
                return 0
            most = max(most, count)
        return most
    if isinstance(node, Repetition):
        count = _num_texts(node.item)
        if not count:
            return 0
        if node.high is None and (count > 1 or node.item.min_length):
            return _MANY
        if isinstance(node.item, Characters) and node.high is not None:
            return int(min(_MANY, count ** min(node.high, 40)))
        return count
    return 0


def _leaves_out_beginnings(node: Node) -> bool:
    """It only leaves out other texts, none of which begins with some character: whatever begins with that is in it."""
    if isinstance(node, Negation):
        left_out = [node.item]
    elif isinstance(node, Both) and node.low == 0 and node.high is None:
        left_out = [item.item for item in node.items if isinstance(item, Negation)]
        if len(left_out) < len(node.items):
            return False
    else:
        return False
    beginnings = code_points.NONE
    for item in left_out:
        first = prefix(item, 1)
        if not first:
            return False
        beginnings = code_points.union(beginnings, first[0])
    return beginnings != code_points.ALL
