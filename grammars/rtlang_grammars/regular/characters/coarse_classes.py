"""Coarse classes: fixed partitions of the characters that most patterns do not split.

A pattern has its own partition of the characters. Where nothing that may follow splits a coarse class, strings that are equal after
replacing each character by its class are accepted alike, so a vocabulary has to be tested only once for each such string.
"""

from __future__ import annotations

from typing import NamedTuple

from rtlang_grammars.regular.characters.code_points import ALL, CodePoints, difference, normalize


class CoarseClass(NamedTuple):
    """A set of interchangeable characters.

    Attributes:
        ranges: its code points.
        example: a member with the shortest encoding.
    """

    ranges: CodePoints
    example: int


def _ascii(*bounds: str) -> CoarseClass:
    """The class of the characters in inclusive ranges, each given by its two ends."""
    return CoarseClass(tuple((ord(pair[0]), ord(pair[1])) for pair in bounds), ord(bounds[0][0]))


_SPACES: CodePoints = (
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
)
_BREAKS: CodePoints = ((0x85, 0x85), (0x2028, 0x2029))
"""Line breaks that patterns often exclude; they are in no coarse class."""


_PRIVATE: CodePoints = ((0xE000, 0xF8FF), (0xF0000, 0xFFFFD), (0x100000, 0x10FFFD))
_IN_IDENTIFIERS: CodePoints = normalize(
    [
        (0xA0, 0xD7FF),
        (0xF900, 0xFDCF),
        (0xFDF0, 0xFFEF),
        *((plane << 16, (plane << 16) + 0xFFFD) for plane in range(1, 14)),
        (0xE1000, 0xEFFFD),
    ]
)
"""`ucschar` of RFC 3987. Private-use characters are a separate production there. All others are rare, so separating them costs nothing."""


def _non_ascii_classes() -> tuple[CoarseClass, ...]:
    """Classes of all characters beyond ASCII except line breaks."""
    usual = difference(_IN_IDENTIFIERS, normalize([*_SPACES, *_BREAKS]))
    known = normalize([(0, 0x7F), *_SPACES, *_BREAKS, *usual, *_PRIVATE])
    return (
        CoarseClass(_SPACES, 0xA0),
        CoarseClass(usual, 0xE9),
        CoarseClass(_PRIVATE, 0xE000),
        CoarseClass(difference(ALL, known), 0x80),
    )


_BEYOND_ASCII = _non_ascii_classes()
LEVELS: tuple[tuple[CoarseClass, ...], ...] = (
    (_ascii("az"), _ascii("AZ"), _ascii("09"), *_BEYOND_ASCII),
    (
        _ascii("af"),
        _ascii("gz"),
        _ascii("AF"),
        _ascii("GZ"),
        _ascii("09"),
        *_BEYOND_ASCII,
    ),
    (
        _ascii("af"),
        _ascii("gh", "jo", "qu", "wz"),
        _ascii("AF"),
        _ascii("GH", "JO", "QS", "UU", "WY"),
        *_BEYOND_ASCII,
    ),
)
"""Partitions from coarse to fine. The second separates the letters of hexadecimal numbers; the third, for addresses and times, also has
single digits and separates the letters of IPv6, T and Z. A character in no class is its own class.
"""

ALL_LEVELS = (1 << len(LEVELS)) - 1
"""The bit mask of all levels: bit i is LEVELS[i]."""
