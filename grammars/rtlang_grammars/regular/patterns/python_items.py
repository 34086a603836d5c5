"""Characters of the items into which Python's `re` parses a pattern: those that an item reads, and those with which items may end."""

from __future__ import annotations

import re
from collections.abc import Sequence
from re import _constants as ops  # type: ignore[attr-defined]
from typing import Any

from rtlang_grammars.regular.characters import code_points, unicode_sets
from rtlang_grammars.regular.characters.code_points import CodePoints


def characters_of(operation: Any, argument: Any, flags: int) -> CodePoints | None:
    """The set of an item that reads one character; None for others."""
    if operation is ops.ANY:
        return code_points.ALL if flags & re.DOTALL else code_points.complement(unicode_sets.NEWLINE)
    if operation is ops.LITERAL:
        return any_case(code_points.single(argument), flags)
    if operation is ops.NOT_LITERAL:
        return code_points.complement(any_case(code_points.single(argument), flags))
    if operation is not ops.IN:
        return None
    is_negative, found = False, []
    for kind, value in argument:
        if kind is ops.NEGATE:
            is_negative = True
        elif kind is ops.RANGE:
            found.append(code_points.normalize([value]))
        elif kind is ops.CATEGORY:
            found.append(category_of(value, flags))
        else:
            found.append(code_points.single(value))
    points = any_case(code_points.union(*found) if found else (), flags)
    return code_points.complement(points) if is_negative else points


def one_character(body: Any, flags: int) -> CodePoints | None:
    """The set of a look-around that sees one character; None for others."""
    while len(body) == 1 and body[0][0] is ops.SUBPATTERN:
        _, added, removed, inner = body[0][1]
        flags, body = (flags | added) & ~removed, inner
    points: CodePoints = ()
    for each in body[0][1][1] if len(body) == 1 and body[0][0] is ops.BRANCH else [body]:
        found = characters_of(each[0][0], each[0][1], flags) if len(each) == 1 else None
        if found is None:
            return None
        points = code_points.union(points, found)
    return points


def last_characters(items: Sequence[Any], flags: int) -> CodePoints | None:
    """The characters with which items may end; None where they may be empty or it is not known."""
    found: list[CodePoints] = []
    for operation, argument in reversed(items):
        points, may_be_empty = characters_of(operation, argument, flags), False
        if points is not None:
            found.append(points)
        elif operation in (ops.MAX_REPEAT, ops.MIN_REPEAT):
            inner = last_characters(list(argument[2]), flags)
            if inner is None:
                return None
            found.append(inner)
            may_be_empty = int(argument[0]) == 0
        elif operation is ops.SUBPATTERN:
            inner = last_characters(list(argument[3]), (flags | argument[1]) & ~argument[2])
            if inner is None:
                return None
            found.append(inner)
        elif operation is ops.BRANCH:
            inners = [last_characters(list(each), flags) for each in argument[1]]
            known = [each for each in inners if each is not None]
            if len(known) < len(inners):
                return None
            found += known
        else:
            return None
        if not may_be_empty:
            return code_points.union(*found)
    return None


def any_case(points: CodePoints, flags: int) -> CodePoints:
    if not flags & re.IGNORECASE:
        return points
    return unicode_sets.ascii_case_closure(points) if flags & re.ASCII else unicode_sets.case_closure(points)


def category_of(category: Any, flags: int) -> CodePoints:
    is_ascii = bool(flags & re.ASCII)
    if category in (ops.CATEGORY_DIGIT, ops.CATEGORY_NOT_DIGIT):
        points = unicode_sets.DIGIT if is_ascii else unicode_sets.python_digit()
    elif category in (ops.CATEGORY_SPACE, ops.CATEGORY_NOT_SPACE):
        points = unicode_sets.ASCII_SPACE if is_ascii else unicode_sets.python_space()
    else:
        points = unicode_sets.WORD if is_ascii else unicode_sets.python_word()
    is_negative = category in (ops.CATEGORY_NOT_DIGIT, ops.CATEGORY_NOT_SPACE, ops.CATEGORY_NOT_WORD)
    return code_points.complement(points) if is_negative else points
