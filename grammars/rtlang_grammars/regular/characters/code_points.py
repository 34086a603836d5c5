"""Sets of Unicode code points as sorted ranges.

A set is a tuple of inclusive (first, last) pairs in ascending order that neither touch nor overlap, so equal sets are equal tuples.
Surrogates are never members: strings are sequences of Unicode scalar values, as in UTF-8.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import lru_cache
from operator import itemgetter
from typing import TypeAlias

CodePoints: TypeAlias = tuple[tuple[int, int], ...]

MAX_CODE_POINT = 0x10FFFF
FIRST_SURROGATE, LAST_SURROGATE = 0xD800, 0xDFFF
ALL: CodePoints = ((0, FIRST_SURROGATE - 1), (LAST_SURROGATE + 1, MAX_CODE_POINT))
NONE: CodePoints = ()


@lru_cache(maxsize=1024)
def single(code_point: int) -> CodePoints:
    """The set of one code point; empty for a surrogate."""
    return NONE if FIRST_SURROGATE <= code_point <= LAST_SURROGATE else ((code_point, code_point),)


def of_text(characters: str) -> CodePoints:
    """The set of the characters of a string."""
    return normalize((ord(character), ord(character)) for character in characters)


def normalize(ranges: Iterable[tuple[int, int]]) -> CodePoints:
    """Make a set from any ranges: sort and merge them and drop surrogates."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            if last > merged[-1][1]:
                merged[-1] = (merged[-1][0], last)
        elif first <= last:
            merged.append((first, last))
    if not merged or merged[-1][1] < FIRST_SURROGATE:
        return tuple(merged)
    return intersection(tuple(merged), ALL)


def union(*sets: CodePoints) -> CodePoints:
    """The union of sets."""
    if len(sets) == 1:
        return sets[0]
    return normalize(pair for each in sets for pair in each)


def intersection(one: CodePoints, other: CodePoints) -> CodePoints:
    """The intersection of two sets."""
    if len(one) > len(other):
        one, other = other, one
    result: list[tuple[int, int]] = []
    if 8 * len(one) < len(other):
        for first, last in one:
            begin = bisect_left(other, first, key=itemgetter(1))
            stop = bisect_right(other, last, key=itemgetter(0))
            inside = other[begin:stop]
            if inside:
                low, high = max(inside[0][0], first), min(inside[-1][1], last)
                if len(inside) == 1:
                    result.append((low, high))
                else:
                    result += ((low, inside[0][1]), *inside[1:-1], (inside[-1][0], high))
        return tuple(result)
    i = j = 0
    while i < len(one) and j < len(other):
        first, last = max(one[i][0], other[j][0]), min(one[i][1], other[j][1])
        if first <= last:
            result.append((first, last))
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1
    return tuple(result)


def complement(points: CodePoints) -> CodePoints:
    """All code points outside the set."""
    result = []
    next_first = 0
    for first, last in points:
        if first > next_first:
            result.append((next_first, first - 1))
        next_first = last + 1
    if next_first <= MAX_CODE_POINT:
        result.append((next_first, MAX_CODE_POINT))
    return intersection(tuple(result), ALL)


def difference(one: CodePoints, other: CodePoints) -> CodePoints:
    """The members of the first set that are not in the second."""
    return intersection(one, complement(other))


def contains(points: CodePoints, code_point: int) -> bool:
    """Whether a code point is in the set."""
    at = bisect_right(points, (code_point, MAX_CODE_POINT)) - 1
    return at >= 0 and code_point <= points[at][1]


def size(points: CodePoints) -> int:
    """The number of code points in the set."""
    return sum(last - first + 1 for first, last in points)


def decided_by_first_byte(points: CodePoints) -> tuple[int, CodePoints]:
    """The bytes beyond ASCII with which, in UTF-8, only members begin, as bits, and the members that begin with others."""
    symbols, decided = 0, []
    for lead in range(0xC2, 0xF5):
        length = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
        first = max((lead & (0x7F >> length)) << 6 * (length - 1), (0x80, 0x800, 0x10000)[length - 2])
        last = min((((lead & (0x7F >> length)) + 1) << 6 * (length - 1)) - 1, MAX_CODE_POINT)
        if not difference(normalize([(first, last)]), points):
            symbols |= 1 << lead
            decided.append((first, last))
    return symbols, difference(points, normalize(decided))
