"""Cheap syntactic checks on a syntax tree that avoid building its automaton.

A positive answer is a proof, a negative answer means unknown. Most patterns begin with a few fixed characters and match many strings,
which is enough to separate most of them and to see that they are not empty.
"""

from __future__ import annotations

from rtlang_grammars.regular.characters import code_points
from rtlang_grammars.regular.characters.code_points import CodePoints
from rtlang_grammars.regular.patterns.syntax import (
    Alternation,
    Characters,
    Complement,
    Concatenation,
    Intersection,
    Lookaround,
    PatternNode,
    Repetition,
)

_MANY = 1 << 40
_MAX_PREFIX = 24


def prefix(node: PatternNode, limit: int = _MAX_PREFIX) -> list[CodePoints]:
    """Return sets that contain the first characters of every string, for up to `limit` positions; every string is at least that long."""
    return _prefix(node, limit)[0]


def suffix(node: PatternNode, limit: int = _MAX_PREFIX) -> list[CodePoints]:
    """Return sets that contain the last characters of every string, the last one first, as `prefix` does."""
    return _prefix(node, limit, from_end=True)[0]


def are_apart(sets: list[CodePoints], others: list[CodePoints]) -> bool:
    """Whether two prefixes or two suffixes show that languages are disjoint."""
    return any(not code_points.intersection(one, other) for one, other in zip(sets, others, strict=False))


def has_string(node: PatternNode) -> bool:
    """Whether the language is known to be nonempty."""
    if isinstance(node, Intersection) and len(node.items) == 1 and not isinstance(node.items[0], Complement):
        length = node.items[0].min_length
        return _min_num_strings(node.items[0]) > 0 and node.low <= length and (node.high is None or length <= node.high)
    return _min_num_strings(node) > 0 or _excludes_few_prefixes(node)


def has_more_strings_than(node: PatternNode, limit: int) -> bool:
    """Whether the language is known to have more than `limit` strings."""
    return _min_num_strings(node) > limit or _excludes_few_prefixes(node)


def alphabet(node: PatternNode) -> CodePoints:
    """A set that contains all characters of all strings."""
    if isinstance(node, Characters):
        return node.points
    if isinstance(node, Lookaround):  # it only restricts the language
        return code_points.NONE
    if isinstance(node, Concatenation | Alternation):
        return code_points.union(*map(alphabet, node.items))
    if isinstance(node, Repetition):
        return alphabet(node.item)
    found = code_points.ALL
    if isinstance(node, Intersection):
        for item in node.items:
            found = code_points.intersection(found, alphabet(item))
    return found


def _prefix(node: PatternNode, limit: int, from_end: bool = False) -> tuple[list[CodePoints], bool]:
    """The prefix sets, and whether every string ends after them. Lookarounds only restrict the language, so they are skipped.

    from_end: the sets of the last characters instead, the last one first.
    """
    sets: list[CodePoints] = []
    if isinstance(node, Characters):
        return [node.points], True
    if isinstance(node, Lookaround):
        return [], True
    if isinstance(node, Concatenation):
        for item in node.items[::-1] if from_end else node.items:
            if len(sets) >= limit:
                return sets, False
            part, is_whole = _prefix(item, limit - len(sets), from_end)
            sets += part
            if not is_whole:
                return sets, False
        return sets, True
    if isinstance(node, Repetition) and node.low:
        part, is_whole = _prefix(node.item, limit, from_end)
        if not is_whole:
            return part, False
        return (part * min(node.low, limit))[:limit], node.high == node.low and len(part) * node.low <= limit
    if isinstance(node, Alternation):
        sets, is_whole = _prefix(node.items[0], limit, from_end)
        for item in node.items[1:]:
            if not sets:
                return [], False
            part, is_part_whole = _prefix(item, len(sets), from_end)
            is_whole = is_whole and is_part_whole and len(part) == len(sets)
            sets = [
                each if each == own else code_points.union(each, own) for each, own in zip(sets, part, strict=False)
            ]
        return sets, is_whole
    if isinstance(node, Intersection):
        for item in node.items:
            sets = max(sets, _prefix(item, limit, from_end)[0], key=len)
    return sets, False


def _min_num_strings(node: PatternNode) -> int:
    """A lower bound on the number of strings; 0 if unknown or if the tree has more than characters, alternations and repetitions."""
    if isinstance(node, Characters):
        return code_points.size(node.points)
    if isinstance(node, Concatenation | Alternation):  # strings that differ in one item are distinct
        most = 1
        for item in node.items:
            count = _min_num_strings(item)
            if not count:
                return 0
            most = max(most, count)
        return most
    if isinstance(node, Repetition):
        count = _min_num_strings(node.item)
        if not count:
            return 0
        if node.high is None and (count > 1 or node.item.min_length):
            return _MANY
        if isinstance(node.item, Characters) and node.high is not None:
            return int(min(_MANY, count ** min(node.high, 40)))
        return count
    return 0


def _excludes_few_prefixes(node: PatternNode) -> bool:
    """Whether the tree only excludes strings, and none that begins with a certain character: all strings beginning with it are left."""
    if isinstance(node, Complement):
        excluded = [node.item]
    elif isinstance(node, Intersection) and node.low == 0 and node.high is None:
        excluded = [item.item for item in node.items if isinstance(item, Complement)]
        if len(excluded) < len(node.items):
            return False
    else:
        return False
    first_characters = code_points.NONE
    for item in excluded:
        first = prefix(item, 1)
        if not first:
            return False
        first_characters = code_points.union(first_characters, first[0])
    return first_characters != code_points.ALL
