"""Grains: coarse partitions of the characters, fixed once for all, that most patterns do not look into.

What a pattern tells apart is its own partition; where none of what may still follow tells characters of one grain apart, texts that are
the same in grains are judged the same, and a vocabulary needs to be looked at once for each such text.
"""

from __future__ import annotations

from typing import NamedTuple

from rtlang_grammars.regular.characters.code_points import ALL, CodePoints, difference, normalised


class CoarseClass(NamedTuple):
    """Characters that stand for each other.

    Attributes:
        ranges: first and last code points.
        example: one of them, of the fewest bytes.
    """

    ranges: CodePoints
    example: int


def _of(*bounds: str) -> CoarseClass:
    """Characters between the first and the second of each pair."""
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
"""Those that patterns often leave out stand for themselves."""


_PRIVATE: CodePoints = ((0xE000, 0xF8FF), (0xF0000, 0xFFFFD), (0x100000, 0x10FFFD))
_IN_IDENTIFIERS: CodePoints = normalised(
    [
        (0xA0, 0xD7FF),
        (0xF900, 0xFDCF),
        (0xFDF0, 0xFFEF),
        *((plane << 16, (plane << 16) + 0xFFFD) for plane in range(1, 14)),
        (0xE1000, 0xEFFFD),
    ]
)
"""The characters beyond ASCII of RFC 3987 (`ucschar`); those for private use have a place of their own there. Hardly any others are ever
written, so that to tell them apart costs nothing."""


def _beyond() -> tuple[CoarseClass, ...]:
    """Grains of all beyond ASCII but line breaks."""
    usual = difference(_IN_IDENTIFIERS, normalised([*_SPACES, *_BREAKS]))
    known = normalised([(0, 0x7F), *_SPACES, *_BREAKS, *usual, *_PRIVATE])
    return (
        CoarseClass(_SPACES, 0xA0),
        CoarseClass(usual, 0xE9),
        CoarseClass(_PRIVATE, 0xE000),
        CoarseClass(difference(ALL, known), 0x80),
    )


_BEYOND_ASCII = _beyond()
LEVELS: tuple[tuple[CoarseClass, ...], ...] = (
    (_of("az"), _of("AZ"), _of("09"), *_BEYOND_ASCII),
    (_of("af"), _of("gz"), _of("AF"), _of("GZ"), _of("09"), *_BEYOND_ASCII),
    (_of("af"), _of("gh", "jo", "qu", "wz"), _of("AF"), _of("GH", "JO", "QS", "UU", "WY"), *_BEYOND_ASCII),
)
"""From coarse to fine, the second with the letters of hexadecimal numbers apart, the third, for addresses and times, with all digits and
the letters of IPv6, T and Z. Characters in no grain stand for themselves. No line break beyond ASCII is in one."""

ALL_LEVELS = (1 << len(LEVELS)) - 1
"""Bit i stands for level i."""
