"""Named character sets: the class escapes of the dialects, Unicode properties and case closures.

Tables are computed on first use (milliseconds each) and cached; they depend only on the Unicode version of Python and `regex`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import regex

from rtlang_grammars.regular.characters import code_points
from rtlang_grammars.regular.characters.code_points import CodePoints, normalize

DIGIT: CodePoints = ((0x30, 0x39),)
WORD: CodePoints = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
ECMA_SPACE: CodePoints = (
    (0x09, 0x0D),
    (0x20, 0x20),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
)
ASCII_SPACE: CodePoints = ((0x09, 0x0D), (0x20, 0x20))
ECMA_LINE_ENDS: CodePoints = ((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029))
NEWLINE: CodePoints = ((0x0A, 0x0A),)

_SPECIAL_PROPERTIES = {"any": code_points.ALL, "ascii": ((0, 0x7F),)}
_ASSIGNED_PLANES = ((0, 0x40000), (0xE0000, 0xE1000))  # all other assigned characters are private use
_PRIVATE_PLANES: CodePoints = ((0xF0000, 0xFFFFD), (0x100000, 0x10FFFD))
_FEW = 256  # of so few characters the case variants are looked up one by one
_LAST_CASED = 0x1FFFF  # characters above this have no case variants


@lru_cache(maxsize=1)
def python_digit() -> CodePoints:
    r"""`\d` of Python's `re` for str patterns."""
    return _characters_where(str.isdecimal)


@lru_cache(maxsize=1)
def python_word() -> CodePoints:
    r"""`\w` of Python's `re` for str patterns."""
    return code_points.union(_characters_where(str.isalnum), ((0x5F, 0x5F),))


@lru_cache(maxsize=1)
def python_space() -> CodePoints:
    r"""`\s` of Python's `re` for str patterns."""
    return _characters_where(str.isspace)


@lru_cache(maxsize=1)
def unicode_digit() -> CodePoints:
    r"""`\d` of Rust's `regex`: the decimal digits of Unicode."""
    return _known_property("Nd")


@lru_cache(maxsize=1)
def unicode_word() -> CodePoints:
    r"""`\w` of Rust's `regex`, as in UTS #18."""
    return code_points.union(*map(_known_property, ("Alphabetic", "M", "Nd", "Pc", "Join_Control")))


@lru_cache(maxsize=1)
def unicode_space() -> CodePoints:
    r"""`\s` of Rust's `regex`: the property White_Space."""
    return _known_property("White_Space")


def _known_property(name: str) -> CodePoints:
    points = settled_property(name)
    assert points is not None
    return points


@lru_cache(maxsize=256)
def settled_property(name: str) -> CodePoints | None:
    r"""As `unicode_property`, without the characters that Python's Unicode version does not know: another engine may have an older one."""
    points = unicode_property(name)
    if points is None or name.lower() in _SPECIAL_PROPERTIES:
        return points
    return code_points.intersection(points, settled())


@lru_cache(maxsize=1)
def settled() -> CodePoints:
    """The characters whose properties all engines know: those assigned in Python's Unicode version."""
    return code_points.union(_characters_where(lambda each: unicodedata.category(each) != "Cn"), _PRIVATE_PLANES)


@lru_cache(maxsize=256)
def unicode_property(name: str) -> CodePoints | None:
    r"""The set of `\p{name}`: a general category, a script, `Script=...` or a binary property. None if there is no such property."""
    known = _SPECIAL_PROPERTIES.get(name.lower())
    if known is not None:
        return known
    if not all(part.replace("_", "").isalnum() and part.isascii() for part in name.split("=")) or name.count("=") > 1:
        return None
    try:
        pattern = regex.compile(rf"\p{{{name}}}+")
    except regex.error:
        return None
    return normalize((ord(found[0][0]), ord(found[0][-1])) for found in pattern.finditer(_all_text()))


@lru_cache(maxsize=64)
def case_closure(points: CodePoints) -> CodePoints:
    """The set with all case variants of its members, as in Python's `re.IGNORECASE`."""
    added = []
    if code_points.size(points) <= _FEW:
        groups = _groups_by_member()
        for first, last in points:
            for code_point in range(first, last + 1):
                added += [(each, each) for each in groups.get(code_point, ())]
        return normalize([*points, *added]) if added else points
    for group in _case_groups():
        inside = [code_points.contains(points, each) for each in group]
        if any(inside) and not all(inside):
            added += [(each, each) for each in group]
    return normalize([*points, *added]) if added else points


@lru_cache(maxsize=64)
def simple_case_closure(points: CodePoints) -> CodePoints:
    """The set with all characters of equal simple case folding, as in Rust's `regex`. Source: Unicode, CaseFolding.txt (C and S)."""
    added = []
    for group in _folding_groups():
        inside = [code_points.contains(points, each) for each in group]
        if any(inside) and not all(inside):
            added += [(each, each) for each in group]
    return normalize([*points, *added]) if added else points


@lru_cache(maxsize=1)
def _folding_groups() -> tuple[tuple[int, ...], ...]:
    groups: dict[str, list[int]] = {}
    for code_point in range(_LAST_CASED + 1):
        character = chr(code_point)
        folded = _UNEVEN_FOLDINGS.get(character) or character.casefold()
        folded = folded if len(folded) == 1 else character.lower()
        groups.setdefault(folded if len(folded) == 1 else character, []).append(code_point)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


_UNEVEN_FOLDINGS = {"\u1fd3": "\u0390", "\u1fe3": "\u03b0", "\ufb05": "\ufb06"}
"""Simple foldings of characters that are no lower case, and whose full foldings are longer."""


def ascii_case_closure(points: CodePoints) -> CodePoints:
    """The set with the case variants of its ASCII letters."""
    lower = code_points.intersection(points, ((0x61, 0x7A),))
    upper = code_points.intersection(points, ((0x41, 0x5A),))
    shifted = [(first - 32, last - 32) for first, last in lower] + [(first + 32, last + 32) for first, last in upper]
    return normalize([*points, *shifted])


@lru_cache(maxsize=1)
def _case_groups() -> tuple[tuple[int, ...], ...]:
    """Groups of two or more characters that are case variants of one another."""
    root: dict[int, int] = {}

    def find(code_point: int) -> int:
        while root.get(code_point, code_point) != code_point:
            code_point = root[code_point]
        return code_point

    for code_point in range(_LAST_CASED + 1):
        character = chr(code_point)
        for other in (character.lower(), character.upper()):
            if other != character and len(other) == 1:
                root[find(code_point)] = find(ord(other))
    root[find(0x130)] = find(ord("i"))  # its lower case has two characters; `re` uses the first
    groups: dict[int, list[int]] = {}
    for code_point in sorted({*root, *root.values()}):
        groups.setdefault(find(code_point), []).append(code_point)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


@lru_cache(maxsize=1)
def _groups_by_member() -> dict[int, tuple[int, ...]]:
    return {code_point: group for group in _case_groups() for code_point in group}


@lru_cache(maxsize=1)
def _all_text() -> str:
    """Every character once, in order."""
    numbers = [np.arange(first, last + 1, dtype="<u4") for first, last in code_points.ALL]
    return np.concatenate(numbers).tobytes().decode("utf-32-le")


def _characters_where(holds: Callable[[str], bool]) -> CodePoints:
    """The characters that satisfy a predicate, which must be false for unassigned and private-use characters."""
    ranges = []
    for first, end in _ASSIGNED_PLANES:
        begin = -1
        for code_point in range(first, end + 1):
            if code_point < end and holds(chr(code_point)):
                if begin < 0:
                    begin = code_point
            elif begin >= 0:
                ranges.append((begin, code_point - 1))
                begin = -1
    return normalize(ranges)
